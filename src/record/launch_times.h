// SPDX-License-Identifier: Apache-2.0
/* What each launch of a run measured, for formats that want repetitions: results.json keeps what the launches came to, the journal
 * has them one by one. */
#ifndef NB_LAUNCH_TIMES_H
#define NB_LAUNCH_TIMES_H

#include "src/core/text.h"
#include "src/record/results.h"

struct nb_launch_time {
    double wall_ns; /* of one call: median over the launch's samples */
    double cpu_ns;  /* that by the share of CPU time in the whole launch; NaN: not known, the clock may tick in 4 ms */
    double calls;   /* that were timed */
};

struct nb_launch_times {
    struct nb_case_launches {
        struct nb_launch_time *launches; /* owned */
        size_t n;
        double group; /* of the run line, in whose launches it is reported */
        int64_t rows;
    } * cases;                /* as results->records */
    size_t n;                 /* records */
    struct nb_text_map index; /* keys, borrowed from the results */
};

/* Reads the journal in results->dir. Without one (merged results) no case has launches. -1 after nb_error: the journal is none. */
int nb_launch_times_read(struct nb_launch_times *t, const struct nb_results *results);
void nb_launch_times_release(struct nb_launch_times *t);

#endif
