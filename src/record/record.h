// SPDX-License-Identifier: Apache-2.0
/* What one case left behind. A figure that was not measured is NaN here and null in JSON, with the reason beside it. */
#ifndef NB_RECORD_H
#define NB_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/accuracy_json.h"
#include "src/accuracy/evidence_json.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/record/relations.h"
#include "src/record/timing.h"

enum nb_status {
    NB_OK,
    NB_OUT_OF_RANGE,  /* a loss that the declared formula predicts for this input; timed all the same */
    NB_INACCURATE,    /* beyond the bound, or NaN, Inf, 0 where a number belongs */
    NB_BIASED,        /* within the bound, but one-sided beyond prediction */
    NB_WROTE_OUTSIDE, /* wrote before, after or between its rows */
    NB_READ_OUTSIDE,  /* read memory that is not its own */
    NB_CHANGED_INPUT,
    NB_NOT_REPRODUCIBLE, /* placement, ranges or repetition changed the result */
    NB_WRONG_WHEN_TIMED, /* what the timed calls wrote differs from what was checked */
    NB_RETURNED_ERROR,   /* run() returned non-zero */
    NB_CRASHED,          /* a signal */
    NB_TIMED_OUT,
    NB_SKIPPED, /* cannot run here; the reason says why */
    NB_NOT_RUN, /* planned, but the run ended before it */
    NB_N_STATUSES
};
const char *nb_status_name(enum nb_status s);
enum nb_status nb_status_parse(const char *name); /* NB_N_STATUSES: unknown */
bool nb_status_failed(enum nb_status s);          /* makes the exit code 1 */
bool nb_status_timed(enum nb_status s);           /* ok and out_of_range */

struct nb_counter {
    char name[48];
    double value;     /* NaN: not measured */
    char source[24];  /* "papi", "papi_software", "single_step" */
    char reason[120]; /* why value is NaN */
};
#define NB_MAX_COUNTERS 16

struct nb_record {
    char *key;
    struct nb_case c; /* from the key; the kernel's fields from the record itself */
    enum nb_status status;
    char *reason; /* what exactly, or null */
    bool has_accuracy, has_evidence, has_timing;
    struct nb_accuracy accuracy;
    struct nb_evidence evidence; /* what grades rest on */
    struct nb_timing timing;
    bool has_metamorphic; /* only of checks after which nothing is timed */
    struct nb_metamorphic metamorphic;
    struct nb_counter counters[NB_MAX_COUNTERS];
    int n_counters;
    char **labels; /* names that blocks of the config gave it; owned */
    int n_labels;
    char *timing_reason; /* why has_timing is false although nothing failed, or null */
    int group;           /* in the whole plan; cases of one group were interleaved */
    int machine;         /* index into the results' machines; 0 unless shards of several machines were merged */
    char *library, *implementation; /* what the kernel says did the work, and how; null: nothing */
    char *replay;                   /* the command line that runs this case alone */
    double bytes;                   /* compulsory */
    int64_t chain;                  /* as the kernel declares; 0: never asked */
    int64_t column_chain;           /* likewise, of the sums over rows of a backward case */
    bool row_local;
};

/* JSON both ways; every key is described in reports/schema/results.schema.json. -1 after nb_error. */
cJSON *nb_record_to_json(const struct nb_record *r);
int nb_record_from_json(struct nb_record *r, const cJSON *json);
/* A chain as a record or a check line has it: 1 or more, or 0 where there is none. */
int64_t nb_record_chain(const cJSON *json, const char *name);
/* "library" and "implementation" of a record or of a checked case in the journal. */
void nb_record_take_library(struct nb_record *r, const cJSON *json);
void nb_record_add_label(struct nb_record *r, const char *label);
void nb_record_release(struct nb_record *r);

/* What a case has from its kernel: variant, op, pass, dtype, width, style, stats, stats_dtype, variance; of a copy also
 * copy_loads and copy_stores. Reading normalizes the case. */
void nb_kernel_fields_to_json(cJSON *object, const struct nb_case *c);
int nb_kernel_fields_from_json(struct nb_case *c, const cJSON *object);

cJSON *nb_counter_to_json(const struct nb_counter *c);
int nb_counter_from_json(struct nb_counter *c, const cJSON *json);

#endif
