// SPDX-License-Identifier: Apache-2.0
/* Accuracy to JSON and back. Counts of elements are numbers, since they stay far below 2^53; what the witness got,
 * wanted and read is exact text, since that is what a replay compares. */
#include "src/accuracy/accuracy_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"

static cJSON *witness_to_json(const struct nb_witness *w) {
    if (w->row < 0) return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "row", (double)w->row);
    nb_json_number(json, "col", (double)w->col);
    nb_json_exact(json, "got", w->got);
    nb_json_exact(json, "want", w->want);
    nb_json_exact(json, "x", w->x);
    nb_json_number(json, "err_ulp", w->err_ulp);
    nb_json_number(json, "tolerance_ulp", w->tolerance_ulp);
    return json;
}

static cJSON *histogram_to_json(const int64_t *histogram) {
    cJSON *json = cJSON_CreateArray();
    for (int i = 0; i < NB_ULP_BUCKETS; i++) cJSON_AddItemToArray(json, cJSON_CreateNumber((double)histogram[i]));
    return json;
}

static cJSON *bias_evidence_to_json(const struct nb_accuracy *a) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "n_rows", (double)a->n_rows);
    nb_json_number(json, "n_large", (double)a->n_large);
    nb_json_number(json, "bias_large_u", a->bias_large_u);
    nb_json_number(json, "bias_large_sd_u", a->bias_large_sd_u);
    nb_json_number(json, "n_rounding_rows", (double)a->n_rounding_rows);
    nb_json_number(json, "n_rounding", (double)a->n_rounding);
    nb_json_number(json, "rounding_ulp", a->rounding_ulp);
    nb_json_number(json, "rounding_sd_ulp", a->rounding_sd_ulp);
    return json;
}

static cJSON *ratios_to_json(const struct nb_accuracy *a) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "noise_ratio", a->noise_ratio);
    nb_json_number(json, "noise_ulp", a->noise_ulp);
    nb_json_number(json, "reference_ratio", a->reference_ratio);
    nb_json_number(json, "nmse", a->nmse);
    nb_json_number(json, "scaled_max_u", a->scaled_max_u);
    nb_json_number(json, "max_ordinal", a->max_ordinal);
    nb_json_text(json, "noise_reason", *a->noise_reason ? a->noise_reason : NULL);
    nb_json_text(json, "reference_reason", *a->reference_reason ? a->reference_reason : NULL);
    return json;
}

static int ratios_from_json(struct nb_accuracy *a, const cJSON *json) {
    a->has_ratios = cJSON_IsObject(json);
    if (!a->has_ratios) return 0;
    a->noise_ratio = nb_json_get_number(json, "noise_ratio");
    a->noise_ulp = nb_json_get_number(json, "noise_ulp");
    a->reference_ratio = nb_json_get_number(json, "reference_ratio");
    a->nmse = nb_json_get_number(json, "nmse");
    a->scaled_max_u = nb_json_get_number(json, "scaled_max_u");
    a->max_ordinal = nb_json_get_number(json, "max_ordinal");
    if (nb_json_copy_text(a->noise_reason, sizeof a->noise_reason, json, "noise_reason") != 0) return -1;
    return nb_json_copy_text(a->reference_reason, sizeof a->reference_reason, json, "reference_reason");
}

static const struct {
    const char *name;
    size_t offset; /* in struct nb_accuracy */
} parameters[] = {{"dgamma", offsetof(struct nb_accuracy, dgamma)},
                  {"dbeta", offsetof(struct nb_accuracy, dbeta)},
                  {"dalpha", offsetof(struct nb_accuracy, dalpha)}};
enum { N_PARAMETERS = sizeof parameters / sizeof parameters[0] };

static cJSON *parameters_to_json(const struct nb_accuracy *a) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        const struct nb_parameter_error *p = (const void *)((const char *)a + parameters[i].offset);
        cJSON *error = p->n > 0 ? cJSON_AddObjectToObject(json, parameters[i].name)
                                : cJSON_AddNullToObject(json, parameters[i].name);
        if (p->n == 0) continue;
        nb_json_number(error, "n", (double)p->n);
        nb_json_number(error, "ratio", p->ratio);
        nb_json_number(error, "norm_u", p->norm_u);
    }
    return json;
}

cJSON *nb_accuracy_to_json(const struct nb_accuracy *a, enum nb_dtype dtype) {
    return nb_accuracy_number_to_json(a, nb_number_of(dtype));
}

cJSON *nb_accuracy_number_to_json(const struct nb_accuracy *a, enum nb_number number) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "dtype", nb_numbers[number].name);
    nb_json_number(json, "unit_roundoff", nb_numbers[number].unit_roundoff);
    nb_json_number(json, "n", (double)a->n);
    nb_json_number(json, "n_exceptional", (double)a->n_exceptional);
    nb_json_number(json, "max_ulp", a->max_ulp);
    nb_json_number(json, "mean_ulp", a->mean_ulp);
    nb_json_number(json, "p99_ulp", a->p99_ulp);
    nb_json_number(json, "bias_u", a->bias_u);
    nb_json_number(json, "bias_sigma", a->bias_sigma);
    cJSON_AddItemToObject(json, "bias_evidence", bias_evidence_to_json(a));
    nb_json_number(json, "correctly_rounded", a->correctly_rounded);
    nb_json_number(json, "gain_u", a->gain_u);
    nb_json_number(json, "offset_u", a->offset_u);
    nb_json_number(json, "residual_ulp", a->residual_ulp);
    nb_json_number(json, "nan_unexpected", (double)a->nan_unexpected);
    nb_json_number(json, "inf_unexpected", (double)a->inf_unexpected);
    nb_json_number(json, "zero_unexpected", (double)a->zero_unexpected);
    nb_json_number(json, "nan_missing", (double)a->nan_missing);
    nb_json_number(json, "inf_missing", (double)a->inf_missing);
    nb_json_number(json, "n_beyond", (double)a->n_beyond);
    nb_json_number(json, "worst_ratio", a->worst_ratio);
    nb_json_number(json, "n_rows_lost", (double)a->n_rows_lost);
    nb_json_text(json, "loss", a->loss == NB_LOSS_NONE ? NULL : nb_loss_name(a->loss));
    cJSON_AddItemToObject(json, "histogram", histogram_to_json(a->histogram));
    cJSON_AddItemToObject(json, "witness", witness_to_json(&a->witness));
    if (a->has_ratios) cJSON_AddItemToObject(json, "ratios", ratios_to_json(a));
    if (a->has_parameters) cJSON_AddItemToObject(json, "parameters", parameters_to_json(a));
    return json;
}

/* A count; what is missing, no number, negative or beyond 2^53 counts as damage. */
static int get_count(const cJSON *json, const char *name, int64_t *count) {
    double value = nb_json_get_number(json, name);
    if (!(value >= 0 && value <= 0x1p53 && value == floor(value)))
        return nb_error("accuracy: \"%s\" is not a count", name);
    *count = (int64_t)value;
    return 0;
}

/* What is infinite is null in JSON. */
static int parameters_from_json(struct nb_accuracy *a, const cJSON *json) {
    a->has_parameters = cJSON_IsObject(json);
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, parameters[i].name);
        struct nb_parameter_error *p = (void *)((char *)a + parameters[i].offset);
        *p = (struct nb_parameter_error){.ratio = NAN, .norm_u = NAN};
        if (!cJSON_IsObject(error)) continue;
        if (get_count(error, "n", &p->n) != 0) return -1;
        p->ratio = nb_json_get_number(error, "ratio");
        p->norm_u = nb_json_get_number(error, "norm_u");
        if (isnan(p->ratio)) p->ratio = INFINITY;
        if (isnan(p->norm_u)) p->norm_u = INFINITY;
    }
    return 0;
}

static int witness_from_json(struct nb_witness *w, const cJSON *json) {
    *w = (struct nb_witness){.row = -1, .col = -1};
    if (!cJSON_IsObject(json)) return 0;
    w->got = nb_json_get_exact(json, "got");
    w->want = nb_json_get_exact(json, "want");
    w->x = nb_json_get_exact(json, "x");
    w->err_ulp = nb_json_get_number(json, "err_ulp");
    w->tolerance_ulp = nb_json_get_number(json, "tolerance_ulp");
    return get_count(json, "row", &w->row) != 0 ? -1 : get_count(json, "col", &w->col);
}

static int histogram_from_json(int64_t *histogram, const cJSON *json) {
    if (cJSON_GetArraySize(json) != NB_ULP_BUCKETS)
        return nb_error("accuracy: \"histogram\" does not hold %d counts", NB_ULP_BUCKETS);
    int i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, json) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53))
            return nb_error("accuracy: \"histogram\" holds what is no count");
        histogram[i++] = (int64_t)item->valuedouble;
    }
    return 0;
}

static int loss_from_json(enum nb_loss *loss, const cJSON *json) {
    const char *name = nb_json_get_text(json, "loss");
    *loss = NB_LOSS_NONE;
    for (int i = 0; name && i < NB_N_LOSSES; i++) {
        if (strcmp(name, nb_loss_name((enum nb_loss)i)) != 0) continue;
        *loss = (enum nb_loss)i;
        return 0;
    }
    return name ? nb_error("accuracy: unknown loss \"%s\"", name) : 0;
}

struct count_field {
    const char *name;
    int64_t *count;
};

static int get_counts(const cJSON *json, const struct count_field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (get_count(json, fields[i].name, fields[i].count) != 0) return -1;
    }
    return 0;
}

static int bias_evidence_from_json(struct nb_accuracy *a, const cJSON *json) {
    a->bias_large_u = nb_json_get_number(json, "bias_large_u");
    a->bias_large_sd_u = nb_json_get_number(json, "bias_large_sd_u");
    a->rounding_ulp = nb_json_get_number(json, "rounding_ulp");
    a->rounding_sd_ulp = nb_json_get_number(json, "rounding_sd_ulp");
    const struct count_field counts[] = {
        {"n_rows", &a->n_rows},
        {"n_large", &a->n_large},
        {"n_rounding_rows", &a->n_rounding_rows},
        {"n_rounding", &a->n_rounding},
    };
    return get_counts(json, counts, sizeof counts / sizeof counts[0]);
}

int nb_accuracy_from_json(struct nb_accuracy *a, const cJSON *json) {
    *a = (struct nb_accuracy){0};
    const struct count_field counts[] = {
        {"n", &a->n},
        {"n_exceptional", &a->n_exceptional},
        {"nan_unexpected", &a->nan_unexpected},
        {"inf_unexpected", &a->inf_unexpected},
        {"zero_unexpected", &a->zero_unexpected},
        {"nan_missing", &a->nan_missing},
        {"inf_missing", &a->inf_missing},
        {"n_beyond", &a->n_beyond},
        {"n_rows_lost", &a->n_rows_lost},
    };
    if (get_counts(json, counts, sizeof counts / sizeof counts[0]) != 0) return -1;
    if (bias_evidence_from_json(a, cJSON_GetObjectItemCaseSensitive(json, "bias_evidence")) != 0) return -1;
    a->max_ulp = nb_json_get_number(json, "max_ulp");
    a->mean_ulp = nb_json_get_number(json, "mean_ulp");
    a->p99_ulp = nb_json_get_number(json, "p99_ulp");
    a->bias_u = nb_json_get_number(json, "bias_u");
    a->bias_sigma = nb_json_get_number(json, "bias_sigma");
    a->correctly_rounded = nb_json_get_number(json, "correctly_rounded");
    a->gain_u = nb_json_get_number(json, "gain_u");
    a->offset_u = nb_json_get_number(json, "offset_u");
    a->residual_ulp = nb_json_get_number(json, "residual_ulp");
    a->worst_ratio = nb_json_get_number(json, "worst_ratio");
    if (ratios_from_json(a, cJSON_GetObjectItemCaseSensitive(json, "ratios")) != 0) return -1;
    if (parameters_from_json(a, cJSON_GetObjectItemCaseSensitive(json, "parameters")) != 0) return -1;
    if (loss_from_json(&a->loss, json) != 0) return -1;
    if (histogram_from_json(a->histogram, cJSON_GetObjectItemCaseSensitive(json, "histogram")) != 0) return -1;
    return witness_from_json(&a->witness, cJSON_GetObjectItemCaseSensitive(json, "witness"));
}
