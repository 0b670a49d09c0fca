// SPDX-License-Identifier: Apache-2.0
/* The journal's lines about cases that were timed or failed: each is written and read by one table. Workers say them, whoever starts a worker
 * reads them before they are written, and every reader of the journal reads them again. */
#ifndef NB_LINES_H
#define NB_LINES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/json_fields.h"
#include "src/measure/paired.h"
#include "src/measure/status.h"

/* An arm of a launch: a case, or a copy. */
struct nb_timed {
    const char *key, *copy, *level; /* of a case; null: it has no roof; not known */
    const char *variant;            /* of a copy */
    bool chunked;
    double per_sample, core_ns;
    struct nb_samples samples;
};
/* But for the samples, which nb_arm_to_json() writes. */
extern const struct nb_member nb_timed_case_members[], nb_timed_copy_members[];

struct nb_launch_line {
    int group, launch;
    struct nb_timed *arms; /* cases first, then copies; texts borrowed from the line */
    size_t n, n_cases, n_blocks;
    struct nb_noise noise;
    double elapsed_s;
};
extern const struct nb_member nb_launch_line_members[]; /* but for the arms */
/* Each case once, with samples of as many blocks as the others and a copy that is among the copies. Released also after -1 with
 * nb_error. */
int nb_launch_line_read(struct nb_launch_line *l, const cJSON *line);
void nb_launch_line_release(struct nb_launch_line *l);

struct nb_failure {
    int group, launch;        /* launch: -1 in the check or the counter pass */
    const char *key, *reason; /* borrowed from the line */
    enum nb_status status;    /* one that ends a case */
};
cJSON *nb_failure_to_json(const struct nb_failure *f);
int nb_failure_read(struct nb_failure *f, const cJSON *line); /* -1 after nb_error */

#endif
