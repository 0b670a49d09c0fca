// SPDX-License-Identifier: Apache-2.0
/* Every claim that is published with the program: it can be read, and doctored measurements, of values that the figure can have, make each
 * of its rules, its readings and the whole come out REPRODUCED and NOT REPRODUCED: no verdict is fixed in advance. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/core/axes.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(claims_files, .init = load_kernels_quietly, .fini = nb_registry_release);

enum doctored { HOLDING, FAILING, WIDE };

/* A value that the selector takes: of a glob one that it matches, of a bound the bound's number moved inside. */
static void value_for(const char *wanted, char *out, size_t n) {
    size_t len = 0;
    if (wanted[0] == '>' || wanted[0] == '<') {
        const double bound = strtod(wanted + 1 + (wanted[1] == '='), NULL);
        snprintf(out, n, "%.15g", wanted[0] == '>' ? bound + 1 : bound - 1);
        return;
    }
    for (const char *p = wanted; *p && len + 1 < n; p++)
        if (*p != '*') out[len++] = *p;
    out[len] = '\0';
}

static void tag_for(struct nb_finding *f, const struct nb_selector *s) {
    for (size_t i = 0; i < s->n; i++) {
        char value[200];
        value_for(s->axes[i].values[0], value, sizeof value);
        if (!nb_finding_get(f, s->axes[i].axis)) nb_finding_tag(f, s->axes[i].axis, value);
    }
}

/* For exact figures (counts, bits) an interval without width, else a narrow one. */
static struct nb_interval around(double value, double half) {
    return (struct nb_interval){value, value - half, value + half};
}

/* What figures can be: a rule that holds of all of it, or of none, decides nothing. */
static const struct range {
    double least, most;
    const char *figures;
} ranges[] = {
    {0, 1,
     " lost not_finite differ beyond_dtype inverted misrounded rows_moved rows_kept_apart saturated slope diverges wrong failed survives "},
    {0, INFINITY,
     " apart apart_ulp change changed dimensions dispatch_needed error final_loss gradient_drift gradient_first_over_last gradient_moved "
     "gradient_ratio gradient_spread largest_step limit_ratio loss_ratio max_ulp mean_loss_ratio mean_off memory_ratio moved mse "
     "of_bound off_print ratio relative relative_error result_bits sizes_kept std std_drift std_last turns variance_kept variance_off "},
    {0, 2, " turned "}, /* 1 - cos */
    {-1, 1, " distances_kept "},
    {-INFINITY, 1, " cut step_cut kept_cut memory_cut instructions_cut phases_cut sweeps_cut parameters_cut "},
    {0, 100, " failed_steps "},
    {-INFINITY, INFINITY, " gradient step "},
};

static struct range range_of(const struct nb_rule *r) {
    char name[80];
    snprintf(name, sizeof name, " %s ", r->figure);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (strstr(ranges[i].figures, name)) return ranges[i];
    cr_expect(false, "figure %s: a row of `ranges` says what it can be", r->figure);
    return (struct range){-INFINITY, INFINITY, ""};
}

/* Between two bounds, of which one or both may be infinite. */
static double between(double least, double most) {
    if (isinf(least)) return isinf(most) ? 0 : most - fabs(most) - 1;
    return isinf(most) ? least + fabs(least) + 1 : (least + most) / 2;
}

static double inside(const struct nb_rule *r) {
    const struct range can = range_of(r);
    return between(fmax(r->least, can.least), fmin(r->most, can.most));
}

/* NaN: the figure cannot be there. */
static double outside(const struct nb_rule *r) {
    const struct range can = range_of(r);
    if (can.least < r->least) return between(can.least, r->least);
    return can.most > r->most ? between(r->most, can.most) : (double)NAN;
}

static struct nb_finding *doctor_one(const struct nb_rule *r, double value, double half, struct nb_findings *out) {
    struct nb_finding *f = nb_findings_add(out, r->figure, "", around(value, half));
    const struct range can = range_of(r);
    cr_expect(value >= can.least && value <= can.most, "%s cannot be %g", r->figure, value);
    f->n_launches = 10;
    return f;
}

static void doctor_bound(const struct nb_rule *r, enum doctored how, struct nb_findings *out) {
    const double edge = r->most <= range_of(r).most && isfinite(r->most) ? r->most : r->least;
    const double value = how == HOLDING ? inside(r) : how == FAILING ? outside(r) : edge;
    tag_for(doctor_one(r, value, how == WIDE ? fabs(edge) + 1 : 0, out), &r->where);
}

/* FAILING: steps fall by next to nothing. */
static void doctor_ordering(const struct nb_rule *r, enum doctored how, struct nb_findings *out) {
    const struct range can = range_of(r);
    const double step = isinf(can.most - can.least) ? r->margin + 1 : (can.most - can.least) / (double)r->n_steps;
    const double start = isinf(can.least) ? fmin(can.most, 0) - (double)r->n_steps * step : can.least;
    for (size_t i = 0; i < r->n_steps; i++) {
        const double at = how == HOLDING ? (double)i : 1e-9 * (double)(r->n_steps - i);
        const double value =
            r->relative ? pow(r->margin + 2, at) : start + at * step; /* shares are of what is above 0 */
        struct nb_finding *f = doctor_one(r, value, how == WIDE ? 100 * step : 0, out);
        tag_for(f, &r->steps[i]);
        tag_for(f, &r->where);
    }
}

static void doctor_spread(const struct nb_rule *r, enum doctored how, struct nb_findings *out) {
    const bool apart = (how == HOLDING) == isinf(r->most);
    const double most = isinf(r->most) ? r->least : r->most, step = 2 * most + 1;
    const double start = r->relative ? 1 : fmin(range_of(r).most, step + 1) - step; /* shares are of what is above 0 */
    for (int i = 0; i < 2; i++) {
        const double value = start + (apart ? (double)i * step : 0);
        struct nb_finding *f = doctor_one(r, value, how == WIDE ? 10 * most + 10 : 0, out);
        tag_for(f, &r->where);
        nb_finding_tag(f, r->across, i ? "one" : "other");
    }
}

static void doctor(const struct nb_reading *reading, enum doctored how, struct nb_findings *out) {
    for (size_t i = 0; i < reading->n_rules; i++) {
        const struct nb_rule *r = &reading->rules[i];
        if (r->form == NB_RULE_ORDERING)
            doctor_ordering(r, how, out);
        else if (r->form == NB_RULE_SPREAD)
            doctor_spread(r, how, out);
        else
            doctor_bound(r, how, out);
    }
}

static enum nb_claim_verdict verdict_of(const struct nb_reading *reading, const struct nb_findings *findings) {
    struct nb_rulings rulings released_by(nb_rulings_release) = {0};
    char *reason freed = NULL;
    for (size_t i = 0; i < reading->n_rules; i++) nb_rule_apply(&reading->rules[i], findings, NULL, NULL, &rulings);
    return nb_verdict_of(&rulings, &reason);
}

static void flips(const struct nb_claim *claim, const struct nb_reading *reading) {
    const char *kind = claim->experiments[reading->experiment].kind->name;
    static const enum nb_claim_verdict expected[] = {NB_REPRODUCED, NB_NOT_REPRODUCED, NB_UNDECIDED_HERE};
    for (int how = HOLDING; how <= WIDE; how++) {
        struct nb_findings findings released_by(nb_findings_release) = {0};
        doctor(reading, (enum doctored)how, &findings);
        const enum nb_claim_verdict v = verdict_of(reading, &findings);
        cr_expect_eq(v, expected[how], "%s, %s: %s where %s is due", claim->id, reading->id, nb_claim_verdict_names[v],
                     nb_claim_verdict_names[expected[how]]);
    }
    for (size_t i = 0; i < reading->n_rules && strcmp(kind, "timing") != 0; i++) /* no two times are equal */
        cr_expect(reading->rules[i].form != NB_RULE_ORDERING || reading->rules[i].margin > 0,
                  "%s, %s: an ordering of what is equal holds without a margin", claim->id, reading->id);
    const struct nb_findings none = {0};
    cr_expect_eq(verdict_of(reading, &none), NB_NOT_MEASURED, "%s, %s: without measurements", claim->id, reading->id);
}

/* Of the readings that make up the verdict; false where this machine cannot test one of them. */
static bool whole(const struct nb_claim *claim, enum doctored how, enum nb_claim_verdict *out) {
    struct nb_claim_result result released_by(nb_claim_result_release) = {.claim = claim};
    bool testable = claim->n_readings > 0;
    result.findings = nb_alloc(claim->n_experiments + 1, sizeof *result.findings);
    for (size_t i = 0; i < claim->n_readings; i++) {
        const struct nb_reading *r = &claim->readings[i];
        const struct nb_experiment *e = &claim->experiments[r->experiment];
        if (r->alternative) continue;
        testable &= !(e->kind->refuses && e->kind->refuses(e)) && r->needs.n == 0;
        doctor(r, how, &result.findings[r->experiment]);
    }
    nb_claim_judge(&result);
    *out = result.verdict;
    cr_expect(result.reason && *result.reason, "%s: no reason", claim->id);
    return testable;
}

Test(claims_files, every_verdict_can_come_out_either_way) {
    struct nb_claims claims released_by(nb_claims_release);
    int n_whole = 0;
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    cr_assert_geq(claims.n, 100, "only %zu claims: 60 of the catalogue, 40 and more bug reports", claims.n);
    for (size_t i = 0; i < claims.n; i++) {
        const struct nb_claim *c = &claims.items[i];
        enum nb_claim_verdict v;
        for (size_t r = 0; r < c->n_readings; r++) {
            flips(c, &c->readings[r]);
            for (size_t k = 0; k < c->readings[r].n_rules; k++) {
                struct nb_reading one = c->readings[r];
                one.rules += k;
                one.n_rules = 1;
                flips(c, &one);
            }
        }
        if (!whole(c, HOLDING, &v)) {
            cr_expect(v >= NB_FIRST_OPEN || v == NB_FALSE_IN_PART, "%s: %s", c->id, nb_claim_verdict_names[v]);
            continue;
        }
        n_whole++;
        cr_expect_eq(v, NB_REPRODUCED, "%s: %s", c->id, nb_claim_verdict_names[v]);
        whole(c, FAILING, &v);
        cr_expect_eq(v, NB_NOT_REPRODUCED, "%s: %s", c->id, nb_claim_verdict_names[v]);
    }
    cr_expect_geq(n_whole, 80, "%d claims could be judged whole", n_whole);
}

/* ---- from readings to the claim ---- */

static const char head[] = "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}]";

/* A claim of rows a to e that expect 1 or more of a figure of their own, and of rows f and g for the norm alone. */
static struct nb_claim rows_claim(void) {
    struct nb_claim c;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "%s,\"experiments\":{\"x\":{\"kind\":\"property\",\"property\":\"divide\"}},\"readings\":[",
                   head);
    for (char id = 'a'; id <= 'g'; id++)
        nb_strbuf_addf(
            &text,
            "%s{\"id\":\"%c\",\"text\":\"t\",\"under\":\"%s\",\"alternative\":%s,\"experiment\":\"x\",\"expect\":[{"
            "\"figure\":\"%c\",\"form\":\"at_least\",\"least\":1}]}",
            id > 'a' ? "," : "", id, id > 'e' ? "norms alone that do" : "whole steps that save 1",
            id > 'e' ? "true" : "false", id);
    nb_strbuf_add(&text, "]}");
    cr_assert_eq(nb_claim_parse(&c, "mine.json", text.text, text.len), 0);
    return c;
}

/* values: of each row '+' holds, '-' fails, '?' is too wide, ' ' not measured. */
static enum nb_claim_verdict of_rows(const char *values, char reason[400]) {
    struct nb_claim c released_by(nb_claim_release) = rows_claim();
    struct nb_claim_result result released_by(nb_claim_result_release) = {
        .claim = &c, .findings = nb_alloc(2, sizeof *result.findings)};
    for (int i = 0; values[i]; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        if (values[i] == ' ') continue;
        nb_findings_add(&result.findings[0], name, "", around(values[i] == '-' ? 0 : 2, values[i] == '?' ? 5 : 0))
            ->n_launches = 10;
    }
    nb_claim_judge(&result);
    const enum nb_claim_verdict v = result.verdict;
    snprintf(reason, 400, "%s", result.reason);
    return v;
}

Test(claims_files, a_row_that_is_open_overrides_none_that_are_decided) {
    static const struct {
        const char *rows;
        enum nb_claim_verdict verdict;
        const char *reason;
    } cases[] = {
        {"----?++", NB_NOT_REPRODUCED, "whole steps that save 1: 0 of 5, not decided: e; norms alone that do: 2 of 2"},
        {"--+-?+-", NB_PARTLY, "whole steps that save 1: 1 of 5 (c), not decided: e; norms alone that do: 1 of 2 (f)"},
        {"+++++  ", NB_REPRODUCED, "whole steps that save 1: 5 of 5; norms alone that do: 0 of 2, not decided: f, g"},
        {"++++?++", NB_REPRODUCED, "whole steps that save 1: 4 of 5 (a, b, c, d), not decided: e"},
        {"+++??++", NB_UNDECIDED_HERE, "3 of 5 (a, b, c), not decided: d, e"},
        {"--???++", NB_UNDECIDED_HERE, "0 of 5, not decided: c, d, e"},
        {"     ++", NB_NOT_MEASURED, "0 of 5, not decided: a, b, c, d, e"},
        {"??   ++", NB_NOT_MEASURED, "0 of 5, not decided: a, b, c, d, e"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reason[400];
        const enum nb_claim_verdict v = of_rows(cases[i].rows, reason);
        cr_expect_eq(v, cases[i].verdict, "%s: %s", cases[i].rows, nb_claim_verdict_names[v]);
        cr_expect(strstr(reason, cases[i].reason), "%s: %s", cases[i].rows, reason);
    }
}

static enum nb_claim_verdict of_nothing(const char *rest) {
    struct nb_claim c released_by(nb_claim_release);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "%s%s}", head, rest);
    cr_assert_eq(nb_claim_parse(&c, "mine.json", text.text, text.len), 0, "%s", text.text);
    struct nb_claim_result result released_by(nb_claim_result_release) = {
        .claim = &c, .findings = nb_alloc(c.n_experiments + 1, sizeof *result.findings)};
    nb_claim_judge(&result);
    return result.verdict;
}

Test(claims_files, what_is_open_says_why) {
    static const char gpu[] =
        ",\"experiments\":{\"x\":{\"kind\":\"property\",\"property\":\"divide\"}},\"readings\":[{\"id\":\"r\","
        "\"text\":\"t\",\"experiment\":\"x\",\"needs\":[\"gpu\"],\"expect\":[{\"figure\":\"mse\",\"form\":"
        "\"equals\",\"to\":1}]}]";
    struct nb_claim c;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    cr_expect_eq(of_nothing(",\"correction\":\"nobody knows\""), NB_NO_MEASUREMENT);
    cr_expect_eq(of_nothing(",\"correction\":\"one does not\",\"false_in_part\":true"), NB_FALSE_IN_PART);
    cr_expect_eq(of_nothing(gpu), NB_NEEDS_A_GPU);
    cr_expect_not(nb_claim_is_decided(nb_claim_verdict_names[NB_NEEDS_A_GPU]));
    cr_expect(nb_claim_is_decided(nb_claim_verdict_names[NB_FALSE_IN_PART]));
    nb_strbuf_addf(&text, "%s%s,\"false_in_part\":true}", head, gpu);
    expect_refused(nb_claim_parse(&c, "mine.json", text.text, text.len), "a fact that is measured", "no readings");
}

Test(claims_files, documents_of_another_schema_or_changed_are_refused) {
    char *dir = new_folder();
    put_text(dir, NB_CLAIMS_FILE, "{\"schema\":\"1.0\",\"claims\":[]}");
    expect_refused(nb_claims_document_read(dir) ? 0 : -1, "the schema before",
                   "has schema 1.0, and this version reads only 2.0");
    put_text(dir, NB_CLAIMS_FILE, "{\"schema\":\"2.0\",\"claims\":[],\"sum\":\"0123456789abcdef\"}");
    expect_refused(nb_claims_document_read(dir) ? 0 : -1, "another sum",
                   "is of something else; `normbench claims --resume` makes it again");
}

/* ---- the sources' own figures: a rule that its source would fail, or that no effect would pass, is no rule ---- */

static enum nb_outcome_kind outcome_of(const struct nb_rule *rule, struct nb_interval value) {
    struct nb_findings findings released_by(nb_findings_release) = {0};
    struct nb_rulings rulings released_by(nb_rulings_release) = {0};
    struct nb_finding *f = nb_findings_add(&findings, rule->figure, "", value);
    f->n_launches = 10;
    tag_for(f, &rule->where);
    nb_rule_apply(rule, &findings, NULL, NULL, &rulings);
    cr_assert_eq(rulings.n, 1);
    return rulings.items[0].outcome;
}

/* What a source says is exact, or has the interval that it gives. */
static void judges_its_source(const struct nb_claim *c, const struct nb_reading *r, const struct nb_rule *rule) {
    struct nb_interval p = rule->published;
    const char *kind = c->experiments[r->experiment].kind->name;
    const double width = isfinite(rule->most) ? rule->most - rule->least : fabs(rule->least) + 1;
    if (isnan(p.low)) {
        cr_expect(strcmp(kind, "timing") != 0 && strcmp(kind, "training") != 0,
                  "%s, %s: no measurement is exact: \"published\" needs an interval", c->id, r->id);
        p.low = p.high = p.value;
    }
    cr_expect_eq(outcome_of(rule, p), NB_HOLDS_TRUE, "%s, %s: its source's own figure does not hold", c->id, r->id);
    cr_expect_eq(outcome_of(rule, around(rule->least - width, 0)), NB_FAILS, "%s, %s: far below", c->id, r->id);
    if (isfinite(rule->most))
        cr_expect_eq(outcome_of(rule, around(rule->most + width, 0)), NB_FAILS, "%s, %s: far above", c->id, r->id);
    if (strstr(rule->figure, "cut"))
        cr_expect_eq(outcome_of(rule, around(0, 0)), NB_FAILS, "%s, %s: no effect holds", c->id, r->id);
}

Test(claims_files, a_source_s_own_figures_hold_and_no_effect_fails) {
    struct nb_claims claims released_by(nb_claims_release);
    int n = 0;
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    for (size_t i = 0; i < claims.n; i++)
        for (size_t j = 0; j < claims.items[i].n_readings; j++) {
            const struct nb_reading *r = &claims.items[i].readings[j];
            for (size_t k = 0; k < r->n_rules; k++) {
                const struct nb_rule *rule = &r->rules[k];
                /* What is said to be saved may not hold where nothing is saved, published figure or not. */
                if (strstr(rule->figure, "cut") && rule->form == NB_RULE_AT_LEAST)
                    cr_expect_eq(outcome_of(rule, around(0, 0)), NB_FAILS, "%s, %s", claims.items[i].id, r->id);
                if (isnan(rule->published.value)) continue;
                judges_its_source(&claims.items[i], r, rule);
                n++;
            }
        }
    cr_expect_geq(n, 50, "%d rules have a published figure", n);
}

/* Wide vectors may slow their neighbours: what times several widths keeps them apart. */
Test(claims_files, several_widths_are_never_timed_beside_each_other) {
    const size_t width = (size_t)(nb_axis_find("width") - nb_axes);
    for (int quick = 0; quick < 2; quick++) {
        struct nb_claims claims released_by(nb_claims_release);
        struct nb_config configs[NB_N_CLAIMS_PLANS];
        const struct nb_claims_effort effort = {.quick = quick};
        cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
        nb_claims_configs(&claims, &effort, configs);
        size_t apart = 0;
        for (size_t b = 0; b < configs[NB_PLAN_TIMING].n_blocks; b++) {
            const struct nb_block *block = &configs[NB_PLAN_TIMING].blocks[b];
            cr_expect(block->values[width].n == 1 || block->isolate_width, "%s, line %d", block->path, block->line);
            apart += block->isolate_width;
        }
        cr_expect_gt(apart, 0);
        for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) nb_config_release(&configs[i]);
    }
}
