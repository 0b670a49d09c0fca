// SPDX-License-Identifier: Apache-2.0
/* Rulings to a verdict. */
#include "src/claims/verdict.h"

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
