// SPDX-License-Identifier: Apache-2.0
/* The fixed forms in which a claim may say what it expects of the figures measured, and what intervals make of them.
 *
 *   at_least, at_most, between   each figure selected against bounds
 *   near                         within so much of the published figure, absolutely ("within") or as a ratio ("factor"), or within the
 *                                source's own interval, which then stands beside it: [figure, low, high]
 *   equals                       exactly so much, or off by at most "within": counts, bits, ulp
 *   ordering                     figures of each step above those of the step before it by at least "margin"
 *                                ("relative": by that share of it)
 *   spread                       the largest less the smallest figure over the values of one axis, against bounds; "relative": over
 *                                the smallest
 *
 * A figure with an interval holds when all of the interval is inside the bounds, fails when none of it is, and is undecided between:
 * more launches may decide it. Of the groups that ordering and spread compare, the medians represent the figures; groups that were
 * measured in the same launches or with the same seeds are compared launch by launch, seed by seed. */
#pragma once

#include "src/claims/finding.h"
#include "src/core/text.h"

enum nb_rule_form {
    NB_RULE_AT_LEAST,
    NB_RULE_AT_MOST,
    NB_RULE_BETWEEN,
    NB_RULE_NEAR,
    NB_RULE_EQUALS,
    NB_RULE_ORDERING,
    NB_RULE_SPREAD,
    NB_N_RULE_FORMS
};
extern const char *const nb_rule_form_names[]; /* null-terminated */

struct nb_rule {
    enum nb_rule_form form;
    char *figure, *text; /* text: what is expected, in words; may be null */
    struct nb_selector where;
    double least, most;           /* bounds, infinite where there is none */
    struct nb_interval published; /* NaN: the source gives no figure; bounds NaN: it gives no interval */
    struct nb_selector *steps;
    size_t n_steps;
    double margin;
    char *across;  /* axis, of spread */
    bool relative; /* ordering, spread */
    int line;
};

/* Reads an entry of "expect". -1 after nb_error. */
int nb_rule_read(struct nb_rule *rule, const struct nb_jsonc *file, const cJSON *node);
void nb_rule_release(struct nb_rule *rule);
/* "time saved at least 7%, where style unfused", for people. */
void nb_rule_print(const struct nb_rule *rule, struct nb_strbuf *out);
/* A bound or a published figure of the rule; what is saved is a share: "7%". */
void nb_rule_number_print(const struct nb_rule *rule, double number, struct nb_strbuf *out);
/* A figure's name: "time saved" of "cut", "memory saved" of "memory_cut". */
void nb_rule_figure_print(const char *figure, struct nb_strbuf *out);

enum nb_outcome_kind { NB_HOLDS_TRUE, NB_FAILS, NB_UNDECIDED, NB_MISSING, NB_N_OUTCOMES };
extern const char *const nb_outcome_names[NB_N_OUTCOMES]; /* "holds", "fails", "undecided", "missing" */

/* What a rule says of one figure, or of one comparison of groups. */
struct nb_ruled {
    const struct nb_rule *rule;
    size_t finding; /* index; of comparisons NB_NO_FINDING */
    struct nb_interval value;
    const char *unit; /* borrowed; "points": of a difference of shares */
    char *label;      /* of a comparison; or null */
    enum nb_outcome_kind outcome;
    char *reason; /* of what is undecided or missing; or null */
};
#define NB_NO_FINDING ((size_t)-1)
struct nb_rulings {
    struct nb_ruled *items;
    size_t n, count[NB_N_OUTCOMES];
};
/* Appends. relaxed: an axis whose selection is put aside, for sensitivities, and value the one taken in its place; both may be null. */
void nb_rule_apply(const struct nb_rule *rule, const struct nb_findings *findings, const char *relaxed,
                   const char *value, struct nb_rulings *out);
void nb_rulings_release(struct nb_rulings *r);
