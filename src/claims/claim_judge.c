// SPDX-License-Identifier: Apache-2.0
/* Readings one by one, then the claim. */
#include "src/claims/claim_judge.h"

#include <stdlib.h>

#include "src/claims/sensitivity.h"
#include "src/core/log.h"
#include "src/core/text.h"

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
    result->reads = nb_alloc(result->claim->n_readings + 1, sizeof *result->reads);
    for (size_t i = 0; i < result->claim->n_readings; i++) {
        result->reads[i].reading = &result->claim->readings[i];
        judge_reading(result, &result->reads[i]);
    }
    combine(result);
    nb_sensitivity_find(result);
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
