// SPDX-License-Identifier: Apache-2.0
/* The searches of a stress run: which variants, with which case, and what is kept. */
#ifndef NB_STRESS_SEARCH_H
#define NB_STRESS_SEARCH_H

#include "src/lab/stress/stress.h"
#include "src/plan/plan.h"

struct nb_stress_search {
    const struct nb_plan *plan;
    const struct nb_results *results; /* of its checks: a kernel that crashed in them is not searched */
    const struct nb_grades *grades;
    const char **plugins;
    int n_plugins;
    const char *max_width;
    double budget_s, silence_s;
    const char *dir; /* stress.json is written every few seconds; witnesses go into dir/witnesses */
};

/* Of each kernel and dtype in the plan the widest variant that runs here and the scalar one, with the usual formula (else the first
 * planned) on 8 rows of 1024. Those that are there already are not searched again. Returns 0, -1 after nb_error, or the number
 * of the signal that ended it. */
int nb_stress_search(const struct nb_stress_search *q, struct nb_searched *searched);

#endif
