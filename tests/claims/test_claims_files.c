// SPDX-License-Identifier: Apache-2.0
/* Every claim that is published with the program: it can be read, and doctored measurements make each of its readings, and the whole,
 * come out REPRODUCED and NOT REPRODUCED: no verdict is fixed in advance. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

static void set_up(void) {
    quiet();
    load_kernels();
}
TestSuite(claims_files, .init = set_up, .fini = nb_registry_release);

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

static double inside(const struct nb_rule *r) {
    if (isinf(r->least)) return r->most - fabs(r->most) - 1;
    if (isinf(r->most)) return r->least + fabs(r->least) + 1;
    return (r->least + r->most) / 2;
}

static double outside(const struct nb_rule *r) {
    return isinf(r->most) ? r->least - fabs(r->least) - 1 : r->most + fabs(r->most) + 1;
}

static void doctor_bound(const struct nb_rule *r, enum doctored how, struct nb_findings *out) {
    const double edge = isinf(r->most) ? r->least : r->most;
    const struct nb_interval v = how == HOLDING   ? around(inside(r), 0)
                                 : how == FAILING ? around(outside(r), 0)
                                                  : around(edge, fabs(edge) + 1);
    struct nb_finding *f = nb_findings_add(out, r->figure, "", v);
    f->n_launches = 10;
    tag_for(f, &r->where);
}

static void doctor_ordering(const struct nb_rule *r, enum doctored how, struct nb_findings *out) {
    const double step = r->margin + 1;
    for (size_t i = 0; i < r->n_steps; i++) {
        const double value = how == HOLDING ? (double)i * step : -(double)i * step;
        struct nb_finding *f = nb_findings_add(out, r->figure, "", around(value, how == WIDE ? 100 * step : 0));
        f->n_launches = 10;
        tag_for(f, &r->steps[i]);
        tag_for(f, &r->where);
    }
}

static void doctor_spread(const struct nb_rule *r, enum doctored how, struct nb_findings *out) {
    const bool apart = (how == HOLDING) == isinf(r->most);
    const double most = isinf(r->most) ? r->least : r->most;
    for (int i = 0; i < 2; i++) {
        const double value = apart ? (double)i * (2 * most + 1) : 0;
        struct nb_finding *f = nb_findings_add(out, r->figure, "", around(value, how == WIDE ? 10 * most + 10 : 0));
        f->n_launches = 10;
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
    struct nb_rulings rulings = {0};
    char *reason;
    for (size_t i = 0; i < reading->n_rules; i++) nb_rule_apply(&reading->rules[i], findings, NULL, NULL, &rulings);
    const enum nb_claim_verdict v = nb_verdict_of(&rulings, &reason);
    free(reason);
    nb_rulings_release(&rulings);
    return v;
}

static void flips(const struct nb_claim *claim, const struct nb_reading *reading) {
    static const enum nb_claim_verdict expected[] = {NB_REPRODUCED, NB_NOT_REPRODUCED, NB_NOT_TESTABLE};
    for (int how = HOLDING; how <= WIDE; how++) {
        struct nb_findings findings = {0};
        doctor(reading, (enum doctored)how, &findings);
        const enum nb_claim_verdict v = verdict_of(reading, &findings);
        cr_expect_eq(v, expected[how], "%s, %s: %s where %s is due", claim->id, reading->id, nb_claim_verdict_names[v],
                     nb_claim_verdict_names[expected[how]]);
        nb_findings_release(&findings);
    }
    const struct nb_findings none = {0};
    cr_expect_eq(verdict_of(reading, &none), NB_NOT_TESTABLE, "%s, %s: without measurements", claim->id, reading->id);
}

/* Of the readings that make up the verdict; false where this machine cannot test one of them. */
static bool whole(const struct nb_claim *claim, enum doctored how, enum nb_claim_verdict *out) {
    struct nb_claim_result result = {.claim = claim};
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
    nb_claim_result_release(&result);
    return testable;
}

Test(claims_files, every_verdict_can_come_out_either_way, .timeout = 60) {
    struct nb_claims claims;
    int n_whole = 0;
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    cr_assert_geq(claims.n, 100, "only %zu claims: 60 of the catalogue, 40 and more bug reports", claims.n);
    for (size_t i = 0; i < claims.n; i++) {
        const struct nb_claim *c = &claims.items[i];
        enum nb_claim_verdict v;
        for (size_t r = 0; r < c->n_readings; r++) flips(c, &c->readings[r]);
        if (!whole(c, HOLDING, &v)) {
            cr_expect_eq(v, NB_NOT_TESTABLE, "%s", c->id);
            continue;
        }
        n_whole++;
        cr_expect_eq(v, NB_REPRODUCED, "%s: %s", c->id, nb_claim_verdict_names[v]);
        whole(c, FAILING, &v);
        cr_expect_eq(v, NB_NOT_REPRODUCED, "%s: %s", c->id, nb_claim_verdict_names[v]);
    }
    cr_expect_geq(n_whole, 80, "%d claims could be judged whole", n_whole);
    nb_claims_release(&claims);
}

Test(claims_files, property_experiments_explain_themselves) {
    struct nb_strbuf text = {0}, row = {0};
    nb_properties_explain(&text);
    cr_assert_not_null(nb_properties[0]);
    for (size_t i = 0; nb_properties[i]; i++) {
        const struct nb_property *p = nb_properties[i];
        nb_strbuf_clear(&row);
        nb_strbuf_addf(&row, "%s: %s\n", p->name, p->summary);
        cr_expect(*p->summary && strstr(text.text, row.text), "%s", row.text);
        for (const struct nb_property_param *param = p->params; param->name; param++) {
            nb_strbuf_clear(&row);
            nb_strbuf_addf(&row, "  %s = ", param->name);
            cr_expect(strstr(text.text, row.text), "%s: %s", p->name, row.text);
        }
    }
    nb_strbuf_release(&text);
    nb_strbuf_release(&row);
}

Test(claims_files, readings_that_differ_make_partly) {
    static const char text[] =
        "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],"
        "\"experiments\":{\"a\":{\"kind\":\"property\",\"property\":\"divide\"}},\"readings\":["
        "{\"id\":\"one\",\"text\":\"t\",\"experiment\":\"a\",\"expect\":[{\"figure\":\"mse\",\"form\":\"equals\","
        "\"to\":1}]},"
        "{\"id\":\"two\",\"text\":\"t\",\"experiment\":\"a\",\"expect\":[{\"figure\":\"mse\",\"form\":\"equals\","
        "\"to\":2}]},"
        "{\"id\":\"three\",\"text\":\"t\",\"experiment\":\"a\",\"alternative\":true,\"expect\":[{\"figure\":\"mse\","
        "\"form\":\"equals\",\"to\":3}]}],\"sensitivity\":[\"x\"]}";
    struct nb_claim c;
    cr_assert_eq(nb_claim_parse(&c, "mine.json", text, strlen(text)), 0);
    struct nb_claim_result result = {.claim = &c, .findings = nb_alloc(2, sizeof *result.findings)};
    nb_finding_tag(nb_findings_add_exact(&result.findings[0], "mse", "", 1), "x", "left");
    nb_claim_judge(&result);
    cr_expect_eq(result.verdict, NB_PARTLY, "%s", nb_claim_verdict_names[result.verdict]);
    cr_expect(strstr(result.reason, "one: 1 of 1") && strstr(result.reason, "two: 0 of 1"), "%s", result.reason);
    cr_expect_eq(result.reads[2].verdict, NB_NOT_REPRODUCED, "an alternative is judged, and counts for nothing");
    cr_assert_eq(result.n_sensed, 1);
    cr_expect_str_eq(result.sensed[0].value, "left");
    nb_claim_result_release(&result);
    nb_claim_release(&c);
}

Test(claims_files, printed_figures_agree_with_the_paper_s_table) {
    cJSON *table = kept_json(nb_claims_table_read("rmsnorm-paper"));
    const cJSON *row;
    int n = 0;
    cr_assert(table);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(table, "rows")) {
        const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "claim"));
        const double ln = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(row, "layernorm"), 0)->valuedouble;
        const double rms = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(row, "rmsnorm"), 0)->valuedouble;
        struct nb_claims claims;
        cr_assert_eq(nb_claims_read(&claims, &id, 1), 0);
        const struct nb_rule *rule = &nb_claim_reading(&claims.items[0], "step")->rules[0];
        cr_expect(1 - rms / ln >= rule->least && 1 - rms / ln <= rule->most,
                  "%s: its own table, %.3f, is not in [%g, %g]", id, 1 - rms / ln, rule->least, rule->most);
        nb_claims_release(&claims);
        n++;
    }
    cr_expect_eq(n, 7);
}

/* Wide vectors may slow their neighbours: what times several widths keeps them apart. */
Test(claims_files, several_widths_are_never_timed_beside_each_other) {
    const size_t width = (size_t)(nb_axis_find("width") - nb_axes);
    for (int quick = 0; quick < 2; quick++) {
        struct nb_claims claims;
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
        nb_claims_release(&claims);
    }
}
