// SPDX-License-Identifier: Apache-2.0
/* Rulings become verdicts, of readings and of the claim; sensitivities. */
#include "src/claims/verdict.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/text.h"

const char *const nb_verdict_names[NB_N_VERDICTS] = {"REPRODUCED", "PARTLY", "NOT REPRODUCED", "NOT TESTABLE HERE"};

static const struct nb_ruled *first_of(const struct nb_rulings *r, enum nb_outcome_kind outcome) {
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].outcome == outcome) return &r->items[i];
    return NULL;
}

static void say_undecided(const struct nb_rulings *r, struct nb_strbuf *out) {
    const struct nb_ruled *undecided = first_of(r, NB_UNDECIDED), *missing = first_of(r, NB_MISSING);
    if (missing)
        nb_strbuf_addf(out, "%zu of %zu figures not measured: %s", r->count[NB_MISSING], r->n, missing->reason);
    if (undecided)
        nb_strbuf_addf(out, "%s%zu of %zu figures undecided: %s", missing ? "; " : "", r->count[NB_UNDECIDED], r->n,
                       undecided->reason);
}

enum nb_verdict nb_verdict_of(const struct nb_rulings *r, char **reason) {
    const size_t holds = r->count[NB_HOLDS_TRUE], fails = r->count[NB_FAILS], decided = holds + fails;
    const size_t open = r->count[NB_UNDECIDED] + r->count[NB_MISSING];
    struct nb_strbuf text = {0};
    enum nb_verdict verdict = NB_PARTLY;
    if (decided == 0 || (fails == 0 && 4 * open > r->n) || (holds == 0 && 2 * open > r->n))
        verdict = NB_NOT_TESTABLE;
    else if (fails == 0)
        verdict = NB_REPRODUCED;
    else if (holds == 0)
        verdict = NB_NOT_REPRODUCED;
    if (verdict != NB_NOT_TESTABLE)
        nb_strbuf_addf(&text, "%zu of %zu figures hold%s", holds, decided, decided == 1 && holds == 1 ? "s" : "");
    if (open > 0) {
        if (text.len) nb_strbuf_add(&text, "; ");
        say_undecided(r, &text);
    }
    nb_strbuf_add(&text, "");
    *reason = text.text;
    return verdict;
}

/* ---- sensitivities, one value at a time ---- */

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

/* Fills result->sensed from its reads and findings. */
static void sensitivity_find(struct nb_claim_result *result) {
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

/* ---- readings one by one, then the claim ---- */

static const char *why_not(const struct nb_claim *c, const struct nb_reading *r) {
    const struct nb_experiment *e = &c->experiments[r->experiment];
    const char *refused = e->kind->refuses ? e->kind->refuses(e) : NULL;
    for (size_t i = 0; i < r->needs.n && !refused; i++) refused = nb_claim_lacks(r->needs.items[i]);
    return refused;
}

static void judge_reading(const struct nb_claim_result *result, struct nb_read *out) {
    const struct nb_reading *r = out->reading;
    const char *refused = why_not(result->claim, r);
    for (size_t i = 0; i < r->n_rules && !refused; i++)
        nb_rule_apply(&r->rules[i], &result->findings[r->experiment], NULL, NULL, &out->rulings);
    if (!refused) {
        out->verdict = nb_verdict_of(&out->rulings, &out->reason);
        return;
    }
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "needed: %s", refused);
    out->verdict = NB_NOT_TESTABLE;
    out->reason = text.text;
}

/* ---- the claim ---- */

/* That of the only reading, or all of them by name. */
static char *reason_of(const struct nb_claim_result *result) {
    const struct nb_claim *c = result->claim;
    struct nb_strbuf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < c->n_readings; i++) n += !c->readings[i].alternative;
    for (size_t i = 0; i < c->n_readings; i++) {
        if (c->readings[i].alternative) continue;
        if (text.len > 0) nb_strbuf_add(&text, "; ");
        if (n > 1) nb_strbuf_addf(&text, "%s: ", c->readings[i].id);
        nb_strbuf_add(&text, result->reads[i].reason);
    }
    return text.text;
}

/* Readings that are meant together: what one of them leaves open the whole leaves open; where they differ, the claim holds in
 * part. */
static void combine(struct nb_claim_result *result) {
    bool seen[NB_N_VERDICTS] = {false};
    size_t n = 0, first[NB_N_VERDICTS];
    for (size_t i = 0; i < result->claim->n_readings; i++) {
        const enum nb_verdict v = result->reads[i].verdict;
        if (result->claim->readings[i].alternative) continue;
        if (!seen[v]) first[v] = i;
        n += !seen[v];
        seen[v] = true;
    }
    result->main = NB_NO_READING;
    if (n == 0) {
        struct nb_strbuf text = {0};
        nb_strbuf_addf(&text, "no measurement decides it: %s", result->claim->correction);
        result->verdict = NB_NOT_TESTABLE;
        result->reason = text.text;
        return;
    }
    result->verdict = seen[NB_NOT_TESTABLE] ? NB_NOT_TESTABLE : NB_PARTLY;
    for (int v = 0; v < NB_N_VERDICTS && n == 1; v++)
        if (seen[v]) result->verdict = (enum nb_verdict)v;
    for (int v = 0; v < NB_N_VERDICTS && result->main == NB_NO_READING; v++)
        if (seen[v] && (n > 1 ? !seen[NB_NOT_TESTABLE] || v == NB_NOT_TESTABLE : true)) result->main = first[v];
    result->reason = reason_of(result);
}

void nb_claim_judge(struct nb_claim_result *result) {
    assert(result && result->claim && result->findings);
    result->reads = nb_alloc(result->claim->n_readings + 1, sizeof *result->reads);
    for (size_t i = 0; i < result->claim->n_readings; i++) {
        result->reads[i].reading = &result->claim->readings[i];
        judge_reading(result, &result->reads[i]);
    }
    combine(result);
    sensitivity_find(result);
}

void nb_claim_try(struct nb_claim_result *result, const struct nb_claim *claim, const struct nb_claims_measured *m) {
    *result = (struct nb_claim_result){.claim = claim};
    result->findings = nb_alloc(claim->n_experiments + 1, sizeof *result->findings);
    for (size_t i = 0; i < claim->n_experiments; i++) {
        const struct nb_experiment *e = &claim->experiments[i];
        if (!e->kind->refuses || !e->kind->refuses(e)) e->kind->find(e, m, &result->findings[i]);
    }
    nb_claim_judge(result);
}

void nb_claim_result_release(struct nb_claim_result *result) {
    const struct nb_claim *c = result->claim;
    for (size_t i = 0; c && result->findings && i < c->n_experiments; i++) nb_findings_release(&result->findings[i]);
    for (size_t i = 0; c && result->reads && i < c->n_readings; i++) {
        nb_rulings_release(&result->reads[i].rulings);
        free(result->reads[i].reason);
    }
    for (size_t i = 0; i < result->n_sensed; i++) free(result->sensed[i].value);
    free(result->findings);
    free(result->reads);
    free(result->sensed);
    free(result->reason);
    *result = (struct nb_claim_result){0};
}
