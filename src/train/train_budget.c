// SPDX-License-Identifier: Apache-2.0
#include "src/train/train_budget.h"

#include <math.h>
#include <stddef.h>

double nb_train_share_cost(const struct nb_train_share *s) { return s->n_left * s->job_s / s->n_seats; }

double nb_train_budget_cost(const struct nb_train_budget *b) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (!b->shares[g].dropped) sum += nb_train_share_cost(&b->shares[g]);
    return sum;
}

void nb_train_share_settle(struct nb_train_share *s, double job_s) {
    s->spent_s += job_s;
    s->job_s = s->spent_s / ++s->n_done;
    s->n_left--;
}

void nb_train_budget_fit(struct nb_train_budget *b, double left_s, int round) {
    while (nb_train_budget_cost(b) > left_s) {
        struct nb_train_share *worst = NULL;
        for (int g = 0; g < b->n; g++) {
            struct nb_train_share *s = &b->shares[g];
            if (s->dropped || s->n_left == 0) continue;
            if (!worst || nb_train_share_cost(s) > nb_train_share_cost(worst)) worst = s;
        }
        if (!worst) return;
        worst->dropped = true;
        worst->dropped_at = round;
    }
}

bool nb_train_budget_readmit(struct nb_train_budget *b, double left_s) {
    struct nb_train_share *best = NULL;
    for (int g = 0; g < b->n; g++) {
        struct nb_train_share *s = &b->shares[g];
        if (!s->dropped || s->readmitted) continue;
        if (!best || nb_train_share_cost(s) < nb_train_share_cost(best)) best = s;
    }
    if (!best || nb_train_share_cost(best) > left_s) return false;
    best->dropped = false;
    best->readmitted = true;
    return true;
}

double nb_train_budget_wanted(const struct nb_train_budget *b, double left_s) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (b->shares[g].dropped) sum += nb_train_share_cost(&b->shares[g]);
    return fmax(1, ceil(sum - fmax(0, left_s)));
}
