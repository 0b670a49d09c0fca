// SPDX-License-Identifier: Apache-2.0
/* The journal's lines about cases that were checked, timed, counted or failed: each is written and read by one table. Workers say them,
 * whoever starts a worker reads them before they are written, and every reader of the journal reads them again. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/evidence.h"
#include "src/core/json.h"
#include "src/measure/counters.h"
#include "src/measure/metamorphic.h"
#include "src/measure/paired.h"
#include "src/measure/status.h"
#include "src/measure/timing.h"

/* Of a checked case, beside its figures. */
struct nb_facts {
    int64_t summation_depth, column_summation_depth; /* as the kernel declares; 0: not asked for, no backward case */
    int64_t rows_judged;                             /* of a large tensor of a device; 0: all */
    int64_t calls;                                   /* in a row, behind which it was checked again; 0: it was not */
    bool row_local;
    const char *library, *implementation; /* what the kernel says did the work, and how; null: nothing */
    char digest[20];                      /* of all outputs' bits, the row statistics apart; "": the case failed */
};
extern const struct nb_member nb_facts_members[];

/* A checked case. Results have the same figures. */
struct nb_check_line {
    const char *key, *reason; /* borrowed from the line, as the texts of its facts are; reason: or null */
    enum nb_status status;    /* one that a case can come out with */
    struct nb_facts facts;
    bool has_accuracy, has_evidence, has_metamorphic;
    struct nb_accuracy accuracy;
    struct nb_evidence evidence;
    struct nb_metamorphic metamorphic; /* only of checks after which nothing is timed */
};
/* number: of the output judged. */
cJSON *nb_check_line_to_json(const struct nb_check_line *l, enum nb_number number);
int nb_check_line_read(struct nb_check_line *l, const cJSON *line); /* -1 after nb_error */
/* The figures alone, which a record of results has too. */
int nb_check_line_read_figures(struct nb_check_line *l, const cJSON *json);

/* The counters of a case, NB_MAX_COUNTERS of them at most, which a record of results has too. Returns how many, or -1 after nb_error. */
int nb_counters_read(struct nb_counter *counters, const cJSON *json);

/* An arm of a launch: a case, or a copy. */
struct nb_timed {
    const char *key, *copy, *level; /* of a case; null: it has none; not known */
    const char *other_copy;         /* the runner-up, which was timed, too; or null */
    const char *variant;            /* of a copy */
    bool chunked;
    double per_sample, core_ns;
    double floor_ns; /* nb_measure_empty_ns() */
    struct nb_samples samples;
};
/* But for the samples, which nb_arm_to_json() writes. */
extern const struct nb_member nb_timed_case_members[], nb_timed_copy_members[];

struct nb_launch_line {
    int group, launch;
    const char
        *floor; /* of the copies the one that computes nothing: what a call costs at least; null: none was timed */
    struct nb_timed *arms; /* cases first, then copies; texts borrowed from the line */
    size_t n, n_cases, n_blocks;
    struct nb_noise noise;
    double elapsed_s;
    double clock_ghz, highest_ghz; /* of the launch, and of its CPU; NaN: not known */
};
extern const struct nb_member nb_launch_line_members[]; /* but for the arms */
/* Each case once, with samples of as many blocks as the others and a copy that is among the copies. floors: from which their states follow.
 * Released also after -1 with nb_error. */
int nb_launch_line_read(struct nb_launch_line *l, const cJSON *line, const struct nb_floors *floors);
void nb_launch_line_release(struct nb_launch_line *l);
/* The case of a key and the copy of a variant; null: there is none, or the text is. */
const struct nb_timed *nb_launch_line_case(const struct nb_launch_line *l, const char *key);
const struct nb_timed *nb_launch_line_copy(const struct nb_launch_line *l, const char *variant);
/* Takes in the samples of a case, beside those of its copies and of the reference case. False: none of its own is valid. */
bool nb_launch_line_add(const struct nb_launch_line *l, const struct nb_timed *t, const char *reference,
                        struct nb_launches *launches);

struct nb_failure {
    int group, launch;        /* launch: -1 in the check or the counter pass */
    const char *key, *reason; /* borrowed from the line */
    enum nb_status status;    /* one that ends a case */
};
cJSON *nb_failure_to_json(const struct nb_failure *f);
int nb_failure_read(struct nb_failure *f, const cJSON *line); /* -1 after nb_error */
