// SPDX-License-Identifier: Apache-2.0
/* What the relations of one case share. */
#ifndef NB_METAMORPHIC_TRIALS_H
#define NB_METAMORPHIC_TRIALS_H

#include "src/accuracy/bound.h"
#include "src/measure/fixture.h"
#include "src/record/relations.h"

struct nb_trials {
    struct nb_fixture *fixture;
    const struct nb_oracle *oracle; /* of the whole case */
    struct nb_bound bound;
    struct nb_metamorphic *out;
    void *first, *y;           /* of the first call and of the last, packed */
    double *exact, *tolerance; /* one row */
    int64_t n_compared;        /* elements or rows that a ratio was taken of */
};

/* Calls, and takes y; false after a failure, which is judged. */
bool nb_trials_call(struct nb_trials *t, enum nb_relation relation, int64_t rows, int64_t range);
void nb_trials_skip(struct nb_trials *t, enum nb_relation relation, const char *reason);
void nb_trials_fail(struct nb_trials *t, enum nb_relation relation, const char *reason);
/* Passed when nothing was counted. */
void nb_trials_judge(struct nb_trials *t, enum nb_relation relation, const char *what_failed);
/* Passed when the figure is at most the threshold; not applicable when nothing was compared. */
void nb_trials_judge_ratio(struct nb_trials *t, enum nb_relation relation, double threshold, const char *what_failed);
/* Fills exact and tolerance of a row. */
void nb_trials_exact(struct nb_trials *t, const struct nb_oracle *oracle, const struct nb_bound *bound, int64_t row);

#endif
