// SPDX-License-Identifier: Apache-2.0
/* Accuracy and evidence to JSON and back, by one table for each struct. Counts of elements are numbers, since they stay far below 2^53;
 * what the witness got, wanted and read is exact text, since that is what a replay compares. What is infinite is null; which of NaN and
 * Inf a null stands for follows from the counts. */
#include "src/accuracy/accuracy_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/json_fields.h"
#include "src/core/log.h"

/* ---- an accuracy ----------------------------------------------------------------------------------------------------- */

#define A(KIND, field) NB_MEMBER(KIND, struct nb_accuracy, field)

static const struct nb_member bias_evidence[] = {
    A(COUNT, n_rows),           A(COUNT, n_large),          A(NUMBER, bias_large_u),
    A(NUMBER, bias_large_sd_u), A(COUNT, n_rounding_rows),  A(COUNT, n_rounding),
    A(NUMBER, rounding_ulp),    A(NUMBER, rounding_sd_ulp), NB_MEMBERS_END};

static const struct nb_member figures[] = {A(COUNT, n),
                                           A(COUNT, n_exceptional),
                                           A(NUMBER, max_ulp),
                                           A(NUMBER, mean_ulp),
                                           A(NUMBER, p99_ulp),
                                           A(NUMBER, bias_u),
                                           A(NUMBER, bias_sigma),
                                           NB_MEMBER_GROUP("bias_evidence", bias_evidence),
                                           A(NUMBER, correctly_rounded),
                                           A(NUMBER, gain_u),
                                           A(NUMBER, offset_u),
                                           A(NUMBER, residual_ulp),
                                           A(COUNT, nan_unexpected),
                                           A(COUNT, inf_unexpected),
                                           A(COUNT, zero_unexpected),
                                           A(COUNT, nan_missing),
                                           A(COUNT, inf_missing),
                                           A(COUNT, n_beyond),
                                           A(NUMBER, worst_ratio),
                                           A(COUNT, n_rows_lost),
                                           NB_MEMBERS_END};

static const struct nb_member histogram[] = {A(COUNTS, histogram), NB_MEMBERS_END};

/* Present where has_ratios. */
static const struct nb_member ratios[] = {A(NUMBER, noise_ratio), A(NUMBER, noise_ulp),      A(NUMBER, reference_ratio),
                                          A(NUMBER, nmse),        A(NUMBER, scaled_max_u),   A(NUMBER, max_ordinal),
                                          A(TEXT, noise_reason),  A(TEXT, reference_reason), NB_MEMBERS_END};

static const struct nb_member witness[] = {NB_MEMBER(COUNT, struct nb_witness, row),
                                           NB_MEMBER(COUNT, struct nb_witness, col),
                                           NB_MEMBER(EXACT, struct nb_witness, got),
                                           NB_MEMBER(EXACT, struct nb_witness, want),
                                           NB_MEMBER(EXACT, struct nb_witness, x),
                                           NB_MEMBER(NUMBER, struct nb_witness, err_ulp),
                                           NB_MEMBER(NUMBER, struct nb_witness, tolerance_ulp),
                                           NB_MEMBERS_END};

static const struct nb_member parameter_error[] = {
    NB_MEMBER(COUNT, struct nb_parameter_error, n), NB_MEMBER(NUMBER, struct nb_parameter_error, ratio),
    NB_MEMBER(NUMBER, struct nb_parameter_error, norm_u), NB_MEMBERS_END};

static const struct {
    const char *name;
    size_t offset; /* in struct nb_accuracy */
} parameters[] = {{"dgamma", offsetof(struct nb_accuracy, dgamma)},
                  {"dbeta", offsetof(struct nb_accuracy, dbeta)},
                  {"dalpha", offsetof(struct nb_accuracy, dalpha)}};
enum { N_PARAMETERS = sizeof parameters / sizeof parameters[0] };

/* An object, or null where there is none. */
static void add_or_null(cJSON *json, const char *name, bool is_there, const struct nb_member *members,
                        const void *from) {
    if (is_there)
        nb_json_add_members(cJSON_AddObjectToObject(json, name), members, from);
    else
        cJSON_AddNullToObject(json, name);
}

cJSON *nb_accuracy_to_json(const struct nb_accuracy *a, enum nb_number number) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "dtype", nb_numbers[number].name);
    nb_json_number(json, "unit_roundoff", nb_numbers[number].unit_roundoff);
    nb_json_add_members(json, figures, a);
    nb_json_text(json, "loss", a->loss == NB_LOSS_NONE ? NULL : nb_loss_names[a->loss]);
    nb_json_add_members(json, histogram, a);
    add_or_null(json, "witness", a->witness.row >= 0, witness, &a->witness);
    if (a->has_ratios) add_or_null(json, "ratios", true, ratios, a);
    cJSON *errors = a->has_parameters ? cJSON_AddObjectToObject(json, "parameters") : NULL;
    for (size_t i = 0; errors && i < N_PARAMETERS; i++) {
        const struct nb_parameter_error *p = (const void *)((const char *)a + parameters[i].offset);
        add_or_null(errors, parameters[i].name, p->n > 0, parameter_error, p);
    }
    return json;
}

/* 1: read, 0: there is none, -1 after nb_error. */
static int get_if_there(const cJSON *json, const char *name, const struct nb_member *members, void *to) {
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!cJSON_IsObject(object)) return 0;
    return nb_json_get_members(object, members, to, "accuracy") == 0 ? 1 : -1;
}

/* What is infinite is null in JSON. */
static int parameter_from_json(struct nb_parameter_error *p, const cJSON *json, const char *name) {
    *p = (struct nb_parameter_error){.ratio = NAN, .norm_u = NAN};
    const int there = get_if_there(json, name, parameter_error, p);
    if (there <= 0) return there;
    if (isnan(p->ratio)) p->ratio = INFINITY;
    if (isnan(p->norm_u)) p->norm_u = INFINITY;
    return 0;
}

static int loss_from_json(enum nb_loss *loss, const cJSON *json) {
    const char *name = nb_json_get_text(json, "loss");
    for (int i = 0; name && i < NB_N_LOSSES; i++) {
        if (strcmp(name, nb_loss_names[i]) != 0) continue;
        *loss = (enum nb_loss)i;
        return 0;
    }
    return name ? nb_error("accuracy: unknown loss \"%s\"", name) : 0;
}

int nb_accuracy_from_json(struct nb_accuracy *a, const cJSON *json) {
    const cJSON *errors = cJSON_GetObjectItemCaseSensitive(json, "parameters");
    *a = (struct nb_accuracy){.witness = {.row = -1, .col = -1}, .has_parameters = cJSON_IsObject(errors)};
    if (nb_json_get_members(json, figures, a, "accuracy") != 0) return -1;
    const int has_ratios = get_if_there(json, "ratios", ratios, a);
    if (has_ratios < 0) return -1;
    a->has_ratios = has_ratios > 0;
    for (size_t i = 0; i < N_PARAMETERS; i++)
        if (parameter_from_json((void *)((char *)a + parameters[i].offset), errors, parameters[i].name) != 0) return -1;
    if (loss_from_json(&a->loss, json) != 0) return -1;
    if (nb_json_get_members(json, histogram, a, "accuracy") != 0) return -1;
    return get_if_there(json, "witness", witness, &a->witness) < 0 ? -1 : 0;
}

/* ---- evidence -------------------------------------------------------------------------------------------------------- */

#define E(KIND, field) NB_MEMBER(KIND, struct nb_evidence, field)

static const struct nb_member range[] = {NB_MEMBER(NUMBER, struct nb_range, min_rms),
                                         NB_MEMBER(NUMBER, struct nb_range, max_abs),
                                         NB_MEMBER(NUMBER, struct nb_range, max_rho), NB_MEMBERS_END};

static const struct nb_member evidence[] = {E(COUNT, n_rows),
                                            E(COUNT, n_rows_not_finite),
                                            E(NUMBER, min_rms),
                                            E(NUMBER, max_abs),
                                            E(NUMBER, max_rho),
                                            NB_MEMBER_STRUCT(struct nb_evidence, claimed, range),
                                            E(BOOL, covered),
                                            E(COUNT, n),
                                            E(COUNT, n_correct),
                                            NB_MEMBER_AS("nan", COUNT, struct nb_evidence, n_nan),
                                            NB_MEMBER_AS("inf", COUNT, struct nb_evidence, n_inf),
                                            NB_MEMBER_AS("zero", COUNT, struct nb_evidence, n_zero),
                                            E(COUNT, n_beyond),
                                            E(COUNT, n_unbounded),
                                            E(NUMBER, bound_ratio),
                                            E(NUMBER, max_ulp),
                                            E(NUMBER, componentwise_ulp),
                                            E(NUMBER, normwise_u),
                                            NB_MEMBERS_END};

cJSON *nb_evidence_to_json(const struct nb_evidence *e) {
    cJSON *json = cJSON_CreateObject();
    nb_json_add_members(json, evidence, e);
    if (e->worst_row < 0) {
        cJSON_AddNullToObject(json, "worst");
        return json;
    }
    cJSON *worst = cJSON_AddArrayToObject(json, "worst");
    cJSON_AddItemToArray(worst, cJSON_CreateNumber((double)e->worst_row));
    cJSON_AddItemToArray(worst, cJSON_CreateNumber((double)e->worst_col));
    return json;
}

static void settle(double *value, double null_means) {
    if (isnan(*value)) *value = null_means;
}

int nb_evidence_from_json(struct nb_evidence *e, const cJSON *json) {
    *e = (struct nb_evidence){.worst_row = -1, .worst_col = -1};
    if (nb_json_get_members(json, evidence, e, "evidence") != 0) return -1;
    const cJSON *worst = cJSON_GetObjectItemCaseSensitive(json, "worst");
    const double unlimited = e->n > 0 ? (double)INFINITY : (double)NAN;
    settle(&e->claimed.min_rms, 0);
    settle(&e->claimed.max_abs, INFINITY);
    settle(&e->claimed.max_rho, INFINITY);
    settle(&e->max_rho, e->n_rows > e->n_rows_not_finite ? (double)INFINITY : (double)NAN);
    /* infinite: an error where none is allowed */
    settle(&e->bound_ratio, e->n > e->n_unbounded ? (double)INFINITY : (double)NAN);
    settle(&e->max_ulp, unlimited);
    settle(&e->componentwise_ulp, unlimited);
    settle(&e->normwise_u, unlimited);
    if (cJSON_GetArraySize(worst) != 2) return 0;
    e->worst_row = (int64_t)cJSON_GetArrayItem(worst, 0)->valuedouble;
    e->worst_col = (int64_t)cJSON_GetArrayItem(worst, 1)->valuedouble;
    return 0;
}
