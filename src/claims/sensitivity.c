// SPDX-License-Identifier: Apache-2.0
/* One value at a time. */
#include "src/claims/sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

/* The reading that was named, else the first that was decided. */
static const struct nb_reading *reading_of(const struct nb_claim_result *result, const struct nb_sensitivity *by) {
    if (by->reading) return nb_claim_reading(result->claim, by->reading);
    for (size_t i = 0; i < result->claim->n_readings; i++)
        if (result->reads[i].verdict != NB_NOT_TESTABLE) return &result->claim->readings[i];
    return NULL;
}

static void apply(const struct nb_reading *r, const struct nb_findings *findings, const char *axis, const char *value,
                  struct nb_sensed *out) {
    struct nb_rulings rulings = {0};
    char *reason = NULL;
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_apply(&r->rules[i], findings, axis, value, &rulings);
    out->low = INFINITY;
    out->high = -INFINITY;
    for (size_t i = 0; i < rulings.n; i++) {
        out->low = fmin(out->low, rulings.items[i].value.value);
        out->high = fmax(out->high, rulings.items[i].value.value);
    }
    out->n = rulings.n;
    out->verdict = nb_verdict_of(&rulings, &reason);
    free(reason);
    nb_rulings_release(&rulings);
}

static bool is_known(const struct nb_claim_result *result, const struct nb_sensitivity *by, const char *value) {
    for (size_t i = 0; i < result->n_sensed; i++)
        if (result->sensed[i].by == by && strcmp(result->sensed[i].value, value) == 0) return true;
    return false;
}

/* Values in the order in which they were found. */
static void find_axis(struct nb_claim_result *result, const struct nb_sensitivity *by, const struct nb_reading *r) {
    const struct nb_findings *findings = &result->findings[r->experiment];
    for (size_t i = 0; i < findings->n; i++) {
        const char *value = nb_finding_get(&findings->items[i], by->axis);
        if (!value || is_known(result, by, value)) continue;
        struct nb_sensed sensed = {.by = by, .reading = r};
        apply(r, findings, by->axis, value, &sensed);
        if (sensed.n == 0) continue;
        sensed.value = nb_strdup(value);
        result->sensed = nb_realloc(result->sensed, result->n_sensed + 1, sizeof *result->sensed);
        result->sensed[result->n_sensed++] = sensed;
    }
}

void nb_sensitivity_find(struct nb_claim_result *result) {
    for (size_t i = 0; i < result->claim->n_sensitivities; i++) {
        const struct nb_sensitivity *by = &result->claim->sensitivities[i];
        const struct nb_reading *r = reading_of(result, by);
        if (r) find_axis(result, by, r);
    }
}

bool nb_sensitivity_decides(const struct nb_claim_result *result, size_t i) {
    const struct nb_sensitivity *by = result->sensed[i].by;
    bool seen[NB_N_VERDICTS] = {false};
    int n = 0;
    for (size_t j = 0; j < result->n_sensed; j++) {
        const enum nb_verdict v = result->sensed[j].verdict;
        if (result->sensed[j].by != by || v == NB_NOT_TESTABLE || seen[v]) continue;
        seen[v] = true;
        n++;
    }
    return n > 1;
}
