// SPDX-License-Identifier: Apache-2.0
/* A call, and what becomes of it. */
#include "src/measure/metamorphic_trials.h"

#include <math.h>
#include <stdio.h>

bool nb_trials_call(struct nb_trials *t, enum nb_relation relation, int64_t rows, int64_t range) {
    if (nb_fixture_run(t->fixture, rows, range) == 0) {
        nb_fixture_take(t->fixture, rows, t->y);
        return true;
    }
    nb_trials_fail(t, relation, "run() returned an error");
    return false;
}

void nb_trials_skip(struct nb_trials *t, enum nb_relation relation, const char *reason) {
    t->out->relations[relation].verdict = NB_NOT_PROMISED;
    t->out->relations[relation].figure = NAN;
    snprintf(t->out->relations[relation].reason, sizeof t->out->relations[relation].reason, "%s", reason);
}

void nb_trials_fail(struct nb_trials *t, enum nb_relation relation, const char *reason) {
    t->out->relations[relation].verdict = NB_BROKEN;
    snprintf(t->out->relations[relation].reason, sizeof t->out->relations[relation].reason, "%s", reason);
}

void nb_trials_judge(struct nb_trials *t, enum nb_relation relation, const char *what_failed) {
    t->out->relations[relation].verdict = NB_HOLDS;
    if (t->out->relations[relation].figure > 0) nb_trials_fail(t, relation, what_failed);
}

void nb_trials_judge_ratio(struct nb_trials *t, enum nb_relation relation, double threshold, const char *what_failed) {
    t->out->relations[relation].verdict = NB_HOLDS;
    if (t->n_compared == 0)
        nb_trials_skip(t, relation, "every row is lost, as the formula predicts");
    else if (t->out->relations[relation].figure > threshold)
        nb_trials_fail(t, relation, what_failed);
}

void nb_trials_exact(struct nb_trials *t, const struct nb_oracle *oracle, const struct nb_bound *bound, int64_t row) {
    nb_oracle_row(oracle, row, t->exact);
    nb_bound_row(bound, row, t->exact, t->tolerance);
}
