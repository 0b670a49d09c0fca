// SPDX-License-Identifier: Apache-2.0
/* Each form of a rule, both ways; what intervals leave open; what rulings come to. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/core/json.h"
#include "tests/support/files.h"

static struct nb_rule rule_of(const char *text) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    struct nb_rule rule = {0};
    cr_assert_eq(nb_jsonc_parse(&file, "claim.json", text, strlen(text)), 0, "%s", text);
    cr_assert_eq(nb_rule_read(&rule, &file, file.root), 0, "%s", text);
    return rule;
}

static struct nb_findings f; /* of the test */

static void release(void) {
    nb_findings_release(&f);
    f = (struct nb_findings){0};
}
TestSuite(claims_rules, .fini = release);

static void add(const char *tag, double value, double half) {
    struct nb_finding *one =
        nb_findings_add(&f, "cut", "share", (struct nb_interval){value, value - half, value + half});
    one->n_launches = 10;
    nb_finding_tag(one, "style", tag);
}

static void release_rulings(void *rulings) { nb_rulings_release(rulings); }

static struct nb_rulings ruled(const char *text) {
    struct nb_rule rule released_by(nb_rule_release) = rule_of(text);
    struct nb_rulings r = {0};
    nb_rule_apply(&rule, &f, NULL, NULL, &r);
    for (size_t i = 0; i < r.n; i++) r.items[i].rule = NULL; /* the rule goes before the rulings do */
    release_at_end(&r, sizeof r, release_rulings);
    return r;
}

static enum nb_outcome_kind outcome(const char *text, double value, double half) {
    release();
    add("fused", value, half);
    struct nb_rulings r = ruled(text);
    cr_assert_eq(r.n, 1, "%s", text);
    return r.items[0].outcome;
}

Test(claims_rules, every_bound_holds_fails_and_is_undecided) {
    static const struct {
        const char *rule;
        double inside, outside, at; /* at: on the bound */
    } cases[] = {
        {"{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":0.1}", 0.2, 0.05, 0.1},
        {"{\"figure\":\"cut\",\"form\":\"at_most\",\"most\":0.1}", 0.05, 0.2, 0.1},
        {"{\"figure\":\"cut\",\"form\":\"between\",\"least\":0.1,\"most\":0.5}", 0.3, 0.7, 0.5},
        {"{\"figure\":\"cut\",\"form\":\"between\",\"least\":0.1,\"most\":0.5}", 0.3, 0.02, 0.1},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":0.4,\"within\":0.1}", 0.45, 0.55, 0.5},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":0.4,\"factor\":2}", 0.25, 0.9, 0.8},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":[0.4,0.1,0.5]}", 0.15, 0.55, 0.1},
        {"{\"figure\":\"cut\",\"form\":\"equals\",\"to\":1,\"within\":0.1}", 1.05, 1.2, 1.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_eq(outcome(cases[i].rule, cases[i].inside, 0.01), NB_HOLDS_TRUE, "%s", cases[i].rule);
        cr_expect_eq(outcome(cases[i].rule, cases[i].outside, 0.01), NB_FAILS, "%s", cases[i].rule);
        cr_expect_eq(outcome(cases[i].rule, cases[i].at, 0.03), NB_UNDECIDED, "%s", cases[i].rule);
        cr_expect_eq(outcome(cases[i].rule, NAN, 0), NB_MISSING, "%s", cases[i].rule);
        cr_expect_eq(outcome(cases[i].rule, cases[i].inside, NAN), NB_UNDECIDED, "no interval: %s", cases[i].rule);
    }
    cr_expect_eq(outcome("{\"figure\":\"cut\",\"form\":\"equals\",\"to\":1}", 1, 0), NB_HOLDS_TRUE);
    cr_expect_eq(outcome("{\"figure\":\"cut\",\"form\":\"equals\",\"to\":1}", 1.0000001, 0), NB_FAILS);
}

Test(claims_rules, orderings_compare_medians_of_groups) {
    static const char rule[] = "{\"figure\":\"cut\",\"form\":\"ordering\",\"steps\":[{\"style\":\"fused\"},"
                               "{\"style\":\"composed\"}],\"margin\":0.1}";
    static const struct {
        double fused, composed, half;
        enum nb_outcome_kind outcome;
    } cases[] = {{0.0, 0.3, 0.01, NB_HOLDS_TRUE},
                 {0.3, 0.0, 0.01, NB_FAILS},
                 {0.0, 0.12, 0.03, NB_UNDECIDED},
                 {0.0, NAN, 0.01, NB_MISSING}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        release();
        for (int k = 0; k < 2; k++) add("fused", cases[i].fused, cases[i].half);
        add("fused", cases[i].fused + 5, cases[i].half); /* one of three moves no median */
        add("composed", cases[i].composed, cases[i].half);
        struct nb_rulings r = ruled(rule);
        cr_assert_eq(r.n, 1);
        cr_expect_eq(r.items[0].outcome, cases[i].outcome, "case %zu: %s", i, nb_outcome_names[r.items[0].outcome]);
    }
}

Test(claims_rules, selectors_take_globs_lists_and_bounds) {
    static const struct {
        const char *selector;
        bool takes;
    } cases[] = {{"{\"kernel\":\"rmsnorm*\"}", true},
                 {"{\"kernel\":[\"layernorm*\",\"rmsnorm_a\"]}", true},
                 {"{\"kernel\":\"layernorm*\"}", false},
                 {"{\"cols\":\">=512\"}", true},
                 {"{\"cols\":\">512\"}", false},
                 {"{\"cols\":\"<=511\"}", false},
                 {"{\"cols\":512}", true},
                 {"{\"kernel\":\">1\"}", false},
                 {"{\"nothing\":\"*\"}", false},
                 {"{}", true}};
    struct nb_finding *one = nb_findings_add_exact(&f, "cut", "", 1);
    nb_finding_tag(one, "kernel", "rmsnorm_a");
    nb_finding_tag_number(one, "cols", 512);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_jsonc file released_by(nb_jsonc_release);
        struct nb_selector s released_by(nb_selector_release) = {0};
        cr_assert_eq(nb_jsonc_parse(&file, "x", cases[i].selector, strlen(cases[i].selector)), 0);
        cr_assert_eq(nb_selector_read(&file, file.root, &s), 0);
        cr_expect_eq(nb_selector_takes(&s, one, NULL), cases[i].takes, "%s", cases[i].selector);
    }
}

/* ---- rulings to verdicts ---- */

static enum nb_claim_verdict verdict(size_t holds, size_t fails, size_t undecided) {
    struct nb_rulings r released_by(nb_rulings_release) = {0};
    char *reason freed = NULL;
    r.n = holds + fails + undecided;
    r.items = calloc(r.n + 1, sizeof *r.items);
    r.count[NB_HOLDS_TRUE] = holds;
    r.count[NB_FAILS] = fails;
    r.count[NB_UNDECIDED] = undecided;
    for (size_t i = 0; i < r.n; i++)
        r.items[i].outcome = i < holds ? NB_HOLDS_TRUE : i < holds + fails ? NB_FAILS : NB_UNDECIDED;
    for (size_t i = 0; i < r.n; i++) r.items[i].reason = strdup("why");
    const enum nb_claim_verdict v = nb_verdict_of(&r, &reason);
    cr_expect(*reason, "a verdict has a reason");
    return v;
}

Test(claims_rules, verdicts_follow_from_counts) {
    cr_expect_eq(verdict(4, 0, 0), NB_REPRODUCED);
    cr_expect_eq(verdict(0, 4, 0), NB_NOT_REPRODUCED);
    cr_expect_eq(verdict(3, 1, 0), NB_PARTLY);
    cr_expect_eq(verdict(0, 0, 4), NB_UNDECIDED_HERE);
    cr_expect_eq(verdict(3, 0, 1), NB_REPRODUCED);
    cr_expect_eq(verdict(2, 0, 1), NB_UNDECIDED_HERE, "a third is open");
    cr_expect_eq(verdict(0, 2, 1), NB_NOT_REPRODUCED, "at best it could hold in part");
    cr_expect_eq(verdict(0, 1, 2), NB_UNDECIDED_HERE);
    cr_expect_eq(verdict(1, 1, 9), NB_PARTLY, "nothing that is open can change it");
}

/* ---- what is wrong in a rule ---- */

static int read_wrong(const char *text) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    struct nb_rule rule released_by(nb_rule_release) = {0};
    if (nb_jsonc_parse(&file, "dir/mine.json", text, strlen(text)) != 0) return -2;
    return nb_rule_read(&rule, &file, file.root);
}

Test(claims_rules, mistakes_are_named_with_their_place) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"form\":\"at_least\",\"least\":1}", "needs \"figure\""},
        {"{\"figure\":\"cut\",\n\"form\":\"atleast\",\"least\":1}", "dir/mine.json:1:"},
        {"{\"figure\":\"cut\",\"form\":\"at_least\"}", "at_least needs \"least\""},
        {"{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":1,\"most\":2}", "\"most\" does not belong"},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":1}", "one of \"within\", \"factor\""},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":[1,0,2],\"within\":1}", "one of \"within\", \"factor\""},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":[1,2]}", "a number, or a list"},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":[1,2,3]}", "does not lie between"},
        {"{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":1,\"relative\":true}", "\"relative\" does not belong"},
        {"{\"figure\":\"cut\",\"form\":\"near\",\"published\":1,\"factor\":0.5}", "above 1"},
        {"{\"figure\":\"cut\",\"form\":\"between\",\"least\":2,\"most\":1}", "nothing lies between"},
        {"{\"figure\":\"cut\",\"form\":\"ordering\",\"steps\":[{}]}", "two or more"},
        {"{\"figure\":\"cut\",\"form\":\"spread\",\"across\":\"x\"}", "\"least\" or \"most\""},
        {"{\"figure\":\"cut\",\"form\":\"at_least\",\"leest\":1}", "did you mean \"least\""},
        {"{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":1,\"where\":{\"style\":[]}}", "empty list"},
        {"{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":\"1\"}", "must be a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused(read_wrong(cases[i].text), cases[i].text, cases[i].words);
    }
}
