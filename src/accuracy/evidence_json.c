// SPDX-License-Identifier: Apache-2.0
/* Numbers that may be infinite are null then; which of NaN and Inf a null stands for follows from the counts. */
#include "src/accuracy/evidence_json.h"

#include <math.h>

#include "src/core/json.h"
#include "src/core/log.h"

cJSON *nb_evidence_to_json(const struct nb_evidence *e) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "n_rows", (double)e->n_rows);
    nb_json_number(json, "n_rows_not_finite", (double)e->n_rows_not_finite);
    nb_json_number(json, "min_rms", e->min_rms);
    nb_json_number(json, "max_abs", e->max_abs);
    nb_json_number(json, "max_rho", e->max_rho);
    cJSON *claimed = cJSON_AddObjectToObject(json, "claimed");
    nb_json_number(claimed, "min_rms", e->claimed.min_rms);
    nb_json_number(claimed, "max_abs", e->claimed.max_abs);
    nb_json_number(claimed, "max_rho", e->claimed.max_rho);
    cJSON_AddBoolToObject(json, "covered", e->covered);
    nb_json_number(json, "n", (double)e->n);
    nb_json_number(json, "n_correct", (double)e->n_correct);
    nb_json_number(json, "nan", (double)e->n_nan);
    nb_json_number(json, "inf", (double)e->n_inf);
    nb_json_number(json, "zero", (double)e->n_zero);
    nb_json_number(json, "n_beyond", (double)e->n_beyond);
    nb_json_number(json, "n_unbounded", (double)e->n_unbounded);
    nb_json_number(json, "bound_ratio", e->bound_ratio);
    nb_json_number(json, "max_ulp", e->max_ulp);
    nb_json_number(json, "componentwise_ulp", e->componentwise_ulp);
    nb_json_number(json, "normwise_u", e->normwise_u);
    if (e->worst_row < 0) {
        cJSON_AddNullToObject(json, "worst");
        return json;
    }
    cJSON *worst = cJSON_AddArrayToObject(json, "worst");
    cJSON_AddItemToArray(worst, cJSON_CreateNumber((double)e->worst_row));
    cJSON_AddItemToArray(worst, cJSON_CreateNumber((double)e->worst_col));
    return json;
}

static double number_or(const cJSON *json, const char *name, double fallback) {
    const double value = nb_json_get_number(json, name);
    return isnan(value) ? fallback : value;
}

static int get_count(const cJSON *json, const char *name, int64_t *count) {
    const double value = nb_json_get_number(json, name);
    if (!(value >= 0 && value <= 0x1p53 && value == floor(value)))
        return nb_error("evidence: \"%s\" is not a count", name);
    *count = (int64_t)value;
    return 0;
}

static int get_counts(struct nb_evidence *e, const cJSON *json) {
    const struct {
        const char *name;
        int64_t *count;
    } fields[] = {{"n_rows", &e->n_rows},
                  {"n_rows_not_finite", &e->n_rows_not_finite},
                  {"n", &e->n},
                  {"n_correct", &e->n_correct},
                  {"nan", &e->n_nan},
                  {"inf", &e->n_inf},
                  {"zero", &e->n_zero},
                  {"n_beyond", &e->n_beyond},
                  {"n_unbounded", &e->n_unbounded}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (get_count(json, fields[i].name, fields[i].count) != 0) return -1;
    return 0;
}

int nb_evidence_from_json(struct nb_evidence *e, const cJSON *json) {
    *e = (struct nb_evidence){.worst_row = -1, .worst_col = -1};
    if (get_counts(e, json) != 0) return -1;
    const cJSON *claimed = cJSON_GetObjectItemCaseSensitive(json, "claimed");
    const cJSON *worst = cJSON_GetObjectItemCaseSensitive(json, "worst");
    const double unlimited = e->n > 0 ? (double)INFINITY : (double)NAN;
    e->claimed.min_rms = number_or(claimed, "min_rms", 0);
    e->claimed.max_abs = number_or(claimed, "max_abs", INFINITY);
    e->claimed.max_rho = number_or(claimed, "max_rho", INFINITY);
    e->covered = nb_json_get_bool(json, "covered");
    e->min_rms = nb_json_get_number(json, "min_rms");
    e->max_abs = nb_json_get_number(json, "max_abs");
    e->max_rho = number_or(json, "max_rho", e->n_rows > e->n_rows_not_finite ? (double)INFINITY : (double)NAN);
    /* infinite: an error where none is allowed */
    e->bound_ratio = number_or(json, "bound_ratio", e->n > e->n_unbounded ? (double)INFINITY : (double)NAN);
    e->max_ulp = number_or(json, "max_ulp", unlimited);
    e->componentwise_ulp = number_or(json, "componentwise_ulp", unlimited);
    e->normwise_u = number_or(json, "normwise_u", unlimited);
    if (cJSON_GetArraySize(worst) != 2) return 0;
    e->worst_row = (int64_t)cJSON_GetArrayItem(worst, 0)->valuedouble;
    e->worst_col = (int64_t)cJSON_GetArrayItem(worst, 1)->valuedouble;
    return 0;
}
