// SPDX-License-Identifier: Apache-2.0
/* The judgement of a stress run, DIR/stress.json beside results.json (reports/schema/stress.schema.json): grades, what searches
 * found, which public bug inputs are survived. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "src/plan/plan.h"
#include "src/record/grade.h"

#define NB_STRESS_FILE "stress.json"
#define NB_STRESS_PAGE "precision.html"

/* What was searched so far. */
struct nb_searched {
    cJSON *list; /* as stress.json has them; owned by the caller; may be null */
    bool complete;
    double elapsed_s; /* NaN: there were none */
};
/* The document, from records and studies; owned. grades: of all records. */
cJSON *nb_stress_judge(const struct nb_results *results, const struct nb_grades *grades,
                       const struct nb_searched *searched);
int nb_stress_write(const cJSON *stress, const char *dir); /* temporary name, then rename */
/* What stress.json of dir holds of searches; nothing where there is none. -1 after nb_error: it cannot be read. */
int nb_searched_read(struct nb_searched *searched, const char *dir);
/* Null after nb_error. */
cJSON *nb_stress_read(const char *dir);

/* Relations between calls that did not hold for a case (src/measure/metamorphic.h). */
size_t nb_stress_broken(const struct nb_record *r);

/* ---- the searches: which variants, with which case, and what is kept ---- */

struct nb_stress_search {
    const struct nb_plan *plan;
    const struct nb_results *results; /* of its checks: a kernel that crashed in them is not searched */
    const struct nb_grades *grades;
    const char **plugins;
    int n_plugins;
    double budget_s, silence_s;
    const char *dir; /* stress.json is written every few seconds; reproducers go into dir/reproducers */
};

/* Of each kernel and dtype in the plan the widest variant that runs here and the scalar one, with the usual formula (else the first
 * planned) on 8 rows of 1024. Those that are there already are not searched again. Returns 0, -1 after nb_error, or the number
 * of the signal that ended it. */
int nb_stress_search(const struct nb_stress_search *q, struct nb_searched *searched);
