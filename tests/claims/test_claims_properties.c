// SPDX-License-Identifier: Apache-2.0
/* Each property experiment on something whose answer is known, or that must not show what it looks for. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/property.c"
#include "src/core/registry.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"
#include "tests/support/runs.h"

TestSuite(claims_properties, .init = load_kernels_quietly, .fini = nb_registry_release);

static void release_findings(void *findings) { nb_findings_release(findings); }

static void run_into(const char *name, const char *params, struct nb_findings *out) {
    const struct nb_property *p = find_property(name);
    struct nb_jsonc file released_by(nb_jsonc_release);
    cJSON *all = NULL;
    cr_assert(p, "%s", name);
    cr_assert_eq(nb_jsonc_parse(&file, "params", params, strlen(params)), 0, "%s", params);
    cr_assert_eq(property_params(p, &file, file.root, &all), 0, "%s", params);
    property_run(p, all, out);
    cJSON_Delete(all);
}

static struct nb_findings run(const char *name, const char *params) {
    struct nb_findings out = {0};
    run_into(name, params, &out);
    release_at_end(&out, sizeof out, release_findings);
    return out;
}

static double value_of(const struct nb_findings *f, const char *name, const char *tags) {
    const struct nb_finding *one = finding_of(f, name, tags);
    cr_expect(!one->reason, "%s: %s", name, one->reason);
    return one->value.value;
}

Test(claims_properties, defaults_are_json_and_mistakes_are_named) {
    const struct nb_property *p;
    for (size_t i = 0; (p = nb_property_at(i)); i++) {
        for (const struct nb_property_param *param = p->params; param->name; param++) {
            cJSON *fallback = kept_json(cJSON_Parse(param->fallback));
            cr_expect(fallback, "%s, %s: %s", p->name, param->name, param->fallback);
        }
        for (size_t j = 0; j < i; j++) cr_expect_str_neq(nb_property_at(j)->name, p->name);
    }
    static const char *const wrong[][2] = {{"coupling", "{\"batch\":0}"},
                                           {"coupling", "{\"batch\":-1}"},
                                           {"coupling", "{\"batch\":1.5}"},
                                           {"coupling", "{\"batch\":4097}"},
                                           {"coupling", "{\"batch\":1e300}"},
                                           {"coupling", "{\"batch\":[8,0]}"},
                                           {"divide", "{\"by\":\"x\"}"},
                                           {"divide", "{\"byy\":1}"},
                                           {"divide", "{\"by\":[1,2]}"},
                                           {"divide", "{\"x\":[]}"},
                                           {"divide", "[]"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct nb_jsonc file released_by(nb_jsonc_release);
        cJSON *all = NULL;
        cr_assert_eq(nb_jsonc_parse(&file, "params", wrong[i][1], strlen(wrong[i][1])), 0);
        cr_expect_eq(property_params(find_property(wrong[i][0]), &file, file.root, &all), -1, "%s", wrong[i][1]);
        cJSON_Delete(all);
    }
}

/* What is known of an experiment: between least and most, or more than the same figure of other tags. */
struct known {
    const char *figure, *tags;
    double least, most;
    const char *than;
};
#define IS(figure, tags, value)                                                                                        \
    { figure, tags, value, value, NULL }
#define NEAR(figure, tags, value, within)                                                                              \
    { figure, tags, (value) - (within), (value) + (within), NULL }
#define ABOVE(figure, tags, least)                                                                                     \
    { figure, tags, least, INFINITY, NULL }
#define BELOW(figure, tags, most)                                                                                      \
    { figure, tags, -INFINITY, most, NULL }
#define MORE(figure, tags, than)                                                                                       \
    { figure, tags, -INFINITY, INFINITY, than }
static const double row = 4.0 / 100; /* a statistic of f32 for each row of 100, in bytes an element */

static const struct {
    const char *property, *params;
    struct known known[9];
} experiments[] = {
    {"broadcast",
     "{\"shapes\":[\"2x4x8\",\"4x4x4\",\"1x4x4\",\"2x1x8\",\"1x1x8\",\"1x2x4\"]}",
     {IS("error", "shape=2x4x8;keepdim=no", 1), IS("error", "shape=2x4x8;keepdim=yes", 0),
      IS("wrong", "shape=4x4x4;keepdim=no", 1), IS("wrong", "shape=4x4x4;keepdim=yes", 0),
      ABOVE("off", "shape=4x4x4", 0.1), IS("wrong", "shape=1x4x4;keepdim=no", 1),
      IS("wrong", "shape=2x1x8;keepdim=no", 1), IS("wrong", "shape=1x1x8;keepdim=no", 0),
      IS("dimensions", "shape=1x2x4", 3)}},
    {"broadcast",
     "{\"shapes\":[\"1x1x2x4\",\"6\",\"2x4x8\"],\"kernel\":\"layernorm_twopass\"}",
     {IS("dimensions", "shape=1x1x2x4", 4), IS("dimensions", "shape=6", 1), IS("wrong", "shape=6;keepdim=no", 0),
      IS("wrong", "shape=2x4x8;keepdim=yes", 1)}},
    /* Each layer keeps a third of the variance and adds its biases; a norm keeps it. */
    {"linear_stack",
     "{\"seed\":1,\"rows\":32,\"cols\":128,\"layers\":6}",
     {BELOW("std", "norm=none;layer=6", 0.07), ABOVE("std", "norm=none;layer=1", 0.3),
      ABOVE("std", "norm=rmsnorm_twopass;layer=6", 0.5)}},
    /* x, x - mean, the quotient, and the root; the casting class keeps x in f32 and the rounded quotient. */
    {"kept",
     "{\"dtype\":[\"f32\",\"bf16\"],\"rows\":1000,\"cols\":100}",
     {NEAR("kept_bytes_per_element", "dtype=f32;style=unfused;norm=layernorm", 12 + row, 1e-9),
      NEAR("kept_bytes_per_element", "dtype=f32;style=unfused;norm=rmsnorm", 8 + row, 1e-9),
      NEAR("kept_bytes_per_element", "dtype=bf16;style=fused;norm=layernorm", 2 + 2 * row, 1e-9),
      NEAR("kept_bytes_per_element", "dtype=bf16;style=casting class;norm=rmsnorm", 6 + row, 1e-9),
      BELOW("kept_cut", "dtype=bf16;style=casting class", 0), ABOVE("kept_cut", "dtype=bf16;style=unfused", 0.3)}},
    /* A token of 1000 numbers besides 10 norms of 100: of LayerNorm 3 rows each, of RMSNorm 2, and a root of f32 of either. A quarter
     * of the step does not depend on tokens. */
    {"kept",
     "{\"dtype\":\"f32\",\"cols\":100,\"norms\":10,\"besides\":1000,\"fixed\":1e6,\"total\":4e6}",
     {NEAR("memory_cut", "style=unfused", 0.75 * 10 * 400 / (4000 + 10 * 1204.), 1e-9),
      NEAR("memory_cut", "style=fused", 0.75 * 10 * 4 / (4000 + 10 * 408.), 1e-9),
      NEAR("memory_cut", "style=casting class", -0.75 * 10 * 396 / (4000 + 10 * 408.), 1e-9)}},
    {"cast_order",
     "{\"weight\":[\"ones\",\"drawn\"],\"dtype\":[\"bf16\",\"f16\"]}",
     {IS("differ", "dtype=bf16;weight=ones", 0), NEAR("differ", "dtype=bf16;weight=drawn", 0.26, 0.06),
      IS("largest_step", "dtype=f16;weight=drawn", 1)}},
    /* The errors of subnormal numbers times more than 2. */
    {"cast_order", "{\"weight\":\"wide\",\"dtype\":\"f16\",\"rows\":1000}", {ABOVE("largest_step", "", 2)}},
    {"coupling",
     "{\"batch\":[2,64],\"draws\":16}",
     {IS("moved", "norm=layernorm_twopass;batch=2", 0),
      MORE("moved", "norm=batchnorm_twopass;batch=2", "norm=batchnorm_twopass;batch=64"),
      MORE("gradient_moved", "norm=batchnorm_twopass;batch=2", "norm=batchnorm_twopass;batch=64")}},
    {"coupling",
     "{\"batch\":4096,\"draws\":4,\"kernel\":\"batchnorm_twopass\"}",
     {BELOW("gradient_moved", "batch=4096", 0.05)}},
    {"depth",
     "{\"depth\":[1,8],\"batch\":16,\"width\":24,\"batches\":10}",
     {IS("apart", "norm=layernorm_twopass;depth=8", 0),
      MORE("apart", "norm=batchnorm_twopass;depth=8", "norm=batchnorm_twopass;depth=1")}},
    {"descent",
     "{}",
     {NEAR("limit_ratio", "divide=1", 1, 0.01), NEAR("limit_ratio", "divide=100", 1, 0.01),
      IS("diverges", "divide=1", 1), IS("diverges", "divide=100", 0)}},
    {"descent", "{\"rate\":1e-6,\"divide\":1}", {IS("diverges", "", 0)}},
    {"descent", "{\"error\":0}", {BELOW("limit_ratio", "divide=1", 0.9)}}, /* no loss grows from 0 */
    {"design",
     "{\"design\":[\"rmsnorm/eps:0\",\"rmsnorm/eps:1e-5\",\"rmsnorm/all:f16\",\"rmsnorm/store:f16\"],"
     "\"data\":[\"zeros\",\"scale(300)\"],\"rows\":4,\"cols\":64}",
     {IS("not_finite", "design=rmsnorm/eps:0;data=zeros", 1), IS("not_finite", "design=rmsnorm/eps:1e-5;data=zeros", 0),
      ABOVE("lost", "design=rmsnorm/all:f16;data=scale(300)", 0.9),
      IS("lost", "design=rmsnorm/store:f16;data=scale(300)", 0),
      BELOW("error", "design=rmsnorm/store:f16;data=scale(300)", 0x1p-11)}},
    /* What a format without subnormal numbers makes of eps 1e-5, and f16 of small squares. */
    {"design",
     "{\"design\":[\"rmsnorm/all:f16/flush:1/eps:1e-5\",\"rmsnorm/all:f16/eps:0\"],\"data\":[\"zeros\",\"scale(1e-4)\"]}",
     {IS("not_finite", "eps=1e-05;data=zeros", 1), ABOVE("lost", "eps=0;data=scale(1e-4)", 0.9)}},
    /* x = 1 + z against z: cos = 1 / sqrt(2) */
    {"direction",
     "{\"data\":[\"offset(1)\"],\"cols\":1000,\"rows\":4}",
     {BELOW("turned", "kernel=rmsnorm_twopass", 1e-12), NEAR("turned", "kernel=layernorm_twopass", 0.292893, 0.05)}},
    {"divide",
     "{}",
     {NEAR("mse", "divided=nothing", 100, 1e-9), NEAR("mse", "divided=inputs and targets", 0.01, 1e-12),
      NEAR("mse", "divided=nothing, fitted", 100.0 / 7, 1e-9), NEAR("mse", "divided=inputs, fitted", 100.0 / 7, 1e-9),
      ABOVE("mse", "divided=inputs", 1000)}},
    {"eps_place",
     "{\"rms\":[0.00316227766],\"eps\":[1e-5]}",
     {NEAR("gain", "eps_place=inside", 0.70710678, 1e-5),
      NEAR("gain", "eps_place=outside", 0.00316227766 / (0.00316227766 + 1e-5), 1e-5)}},
    {"fewer_ops",
     "{\"of\":[\"rmsnorm_twopass\",\"rmsnorm_composed\"],\"against\":[\"rmsnorm_twopass\",\"layernorm_composed\"]}",
     {IS("sweeps_cut", "kernel=rmsnorm_twopass", 0), ABOVE("phases_cut", "kernel=rmsnorm_composed", 1e-9),
      IS("parameters_cut", "kernel=rmsnorm_composed", 0.5), IS("parameters_cut", "kernel=rmsnorm_twopass", 0)}},
    {"gradient_balance",
     "{\"spread\":0}",
     {NEAR("gradient_ratio", "norm=none", 10000.0 / 30, 1e-6),
      NEAR("gradient_ratio", "norm=rmsnorm_twopass", 10000.0 / 30, 1e-3)}},
    {"gradient_balance",
     "{}",
     {BELOW("gradient_ratio", "norm=batchnorm_twopass", 1.2), BELOW("gradient_ratio", "norm=minmax", 1.2),
      IS("rows_kept_apart", "norm=layernorm_twopass", 0)}},
    {"gradient_scale",
     "{}",
     {NEAR("gradient", "reading=one term", 2000.0 / 3, 1e-6), NEAR("gradient", "reading=sum", 2000, 1e-6),
      NEAR("step", "reading=one term", 2.0 / 3, 1e-9)}},
    {"gradient_scale", "{\"x\":[100,200,300],\"same\":1}", {NEAR("gradient", "reading=sum", 4000, 1e-6)}},
    {"invariance",
     "{\"norm\":[\"layernorm\",\"rmsnorm\",\"weightnorm\"]}",
     {BELOW("change", "norm=layernorm;under=weight matrix re-centred", 1e-4),
      ABOVE("change", "norm=rmsnorm;under=weight matrix re-centred", 0.1),
      BELOW("change", "norm=rmsnorm;under=single case re-scaled", 1e-4),
      BELOW("change", "norm=weightnorm;under=weight vector re-scaled", 1e-12),
      ABOVE("change", "norm=weightnorm;under=dataset re-scaled", 1)}},
    /* v / (v + eps), at v = eps a half */
    {"moments",
     "{\"data\":[\"alternating(1)\",\"alternating(0.001)\",\"constant(3)\"],\"eps\":[1e-6]}",
     {BELOW("variance_off", "data=alternating(1)", 1e-5), NEAR("variance_off", "data=alternating(0.001)", 0.5, 1e-3),
      IS("variance_off", "data=constant(3)", 1)}},
    {"moments",
     "{\"kernel\":\"layernorm_onepass\",\"data\":\"offset(100)\"}",
     {ABOVE("variance_off", "", 1e-4), BELOW("variance_off", "", 2e-3)}},
    {"normalized_shape",
     "{\"shape\":[\"[6]\",\"[2x3]\",\"[1x6]\"]}",
     {IS("apart", "shape=[6]", 0), IS("apart", "shape=[1x6]", 0), ABOVE("apart", "shape=[2x3]", 0.1)}},
    /* The others of the row keep 1 / sqrt(1 + s^2 / n) of their size. */
    {"outlier",
     "{\"spike\":[1,1000]}",
     {NEAR("changed", "norm=rmsnorm_twopass;spike=1000;where=row", 0.977379, 5e-3),
      BELOW("changed", "norm=rmsnorm_twopass;spike=1;where=row", 0.02),
      BELOW("changed", "norm=batchnorm_twopass;spike=1000;where=row", 1e-6),
      ABOVE("changed", "norm=batchnorm_twopass;spike=1000;where=column", 0.9)}},
    {"padding",
     "{\"lengths\":[8,8,8]}",
     {IS("moved", "norm=batchnorm_twopass;statistics=feature", 0),
      IS("moved", "norm=batchnorm_twopass;statistics=position", 0)}},
    {"padding",
     "{\"lengths\":[16,8,4]}",
     {ABOVE("moved", "norm=batchnorm_twopass;statistics=feature", 0.05), IS("moved", "norm=layernorm_twopass", 0)}},
    {"printed_rows",
     "{}",
     {BELOW("off_print", "std_over=n - 1", 1e-4), ABOVE("off_print", "std_over=n", 0.1),
      BELOW("change", "map=centre;under=shift", 1e-12), ABOVE("change", "map=rmsnorm_twopass;under=shift", 0.1)}},
    {"promotion",
     "{}",
     {IS("result_bits", "dtype=bf16;weight=x", 16), IS("beyond_dtype", "dtype=bf16;weight=x", 0),
      IS("result_bits", "dtype=f16;weight=f32", 32), ABOVE("beyond_dtype", "dtype=f16;weight=f32", 0.5)}},
    {"quantized",
     "{\"to\":[\"int8\",\"f16\"],\"data\":[\"normal\"],\"sizes\":10000}",
     {MORE("relative_error", "norm=none;to=int8", "norm=rmsnorm_twopass;to=int8"),
      BELOW("relative_error", "norm=none;to=f16", 0x1p-11)}},
    {"root_forms",
     "{\"form\":[\"double\",\"recip_sqrt\"],\"stride\":1009}",
     {IS("misrounded", "form=double", 0), BELOW("max_ulp", "form=double", 0.5 + 1e-6),
      BELOW("max_ulp", "form=recip_sqrt", 1.5), ABOVE("misrounded", "form=recip_sqrt", 0.05)}},
    {"running",
     "{\"batch\":[64],\"batches\":[1,200]}",
     {IS("apart", "norm=layernorm_twopass;batches=1", 0),
      MORE("apart", "norm=batchnorm_twopass;batches=1", "norm=batchnorm_twopass;batches=200")}},
    {"same_result",
     "{\"data\":[\"lognormal\",\"offset(3)\"]}",
     {BELOW("apart_ulp", "data=offset(3);centred=yes", 8), ABOVE("apart", "data=offset(3);centred=no", 0.5)}},
    /* E[1 - tanh^2] of N(0,1) */
    {"saturation",
     "{\"norm\":[\"none\",\"rmsnorm_twopass\"],\"scale\":[0.1,1,100]}",
     {NEAR("slope", "norm=none;scale=1;function=tanh", 0.6057, 0.01),
      ABOVE("slope", "norm=none;scale=0.1;function=tanh", 0.95),
      ABOVE("saturated", "norm=none;scale=100;function=tanh", 0.9),
      BELOW("saturated", "norm=rmsnorm_twopass;scale=100;function=sigmoid", 0.01)}},
    {"spread",
     "{\"scale\":[2]}",
     {ABOVE("sizes_kept", "norm=batchnorm_twopass", 0.8), BELOW("sizes_kept", "norm=rmsnorm_twopass", 1e-3)}},
    {"structure",
     "{\"rows\":16,\"cols\":64}",
     {IS("inverted", "norm=layernorm_twopass", 0), ABOVE("inverted", "norm=batchnorm_twopass", 0.01),
      ABOVE("distances_kept", "norm=batchnorm_twopass", 0.9)}},
    {"tokens",
     "{\"kernel\":[\"rmsnorm_twopass\",\"batchnorm_twopass\"],\"rows\":8}",
     {IS("rows_moved", "norm=rmsnorm_twopass", 0), IS("rows_moved", "norm=batchnorm_twopass", 1)}}};

Test(claims_properties, experiments_find_what_is_known) {
    for (size_t i = 0; i < sizeof experiments / sizeof experiments[0]; i++) {
        const struct nb_findings f = run(experiments[i].property, experiments[i].params);
        for (const struct known *k = experiments[i].known; k < experiments[i].known + 9 && k->figure; k++) {
            const double value = value_of(&f, k->figure, k->tags);
            cr_expect(value >= k->least && value <= k->most, "%s %s: %s of %s is %g", experiments[i].property,
                      experiments[i].params, k->figure, k->tags, value);
            if (k->than) cr_expect_gt(value, value_of(&f, k->figure, k->than), "%s", experiments[i].property);
        }
    }
}

/* ---- every rule finds its figures, and there are data, a claim's own or those above, that make it hold and that make it fail ---- */

struct found {
    const struct nb_property *property;
    struct nb_findings findings;
};

/* Does an experiment with the property find a figure within the rule's bounds, or beyond them? */
static bool some(const struct found *all, const struct nb_property *p, const struct nb_rule *rule, bool within) {
    for (; all->property; all++)
        for (size_t i = 0; i < all->findings.n && all->property == p; i++) {
            const struct nb_finding *f = &all->findings.items[i];
            const double v = f->value.value;
            if (strcmp(f->name, rule->figure) == 0 && !isnan(v) && (v >= rule->least && v <= rule->most) == within)
                return true;
        }
    return false;
}

/* Orderings and spreads: test_claims_files.c. */
static void flips(const char *id, const struct nb_rule *rule, const struct found *own, const struct found *all) {
    struct nb_rulings rulings released_by(nb_rulings_release) = {0};
    nb_rule_apply(rule, &own->findings, NULL, NULL, &rulings);
    cr_expect(rulings.n > 0 && rulings.count[NB_MISSING] == 0, "%s: a rule on %s finds no figure", id, rule->figure);
    for (int hold = 0; hold < 2 && rule->form != NB_RULE_ORDERING && rule->form != NB_RULE_SPREAD; hold++)
        cr_expect(some(all, own->property, rule, hold), "%s: no data make a rule on %s %s; add some to `experiments`",
                  id, rule->figure, hold ? "hold" : "fail");
}

Test(claims_properties, data_flip_every_rule) {
    enum { N = sizeof experiments / sizeof experiments[0] };
    static struct found all[N + 256];
    struct found *at = all;
    struct nb_claims claims released_by(nb_claims_release);
    cr_assert_eq(nb_claims_read(&claims, NULL, 0), 0);
    for (; at < all + N; at++) {
        at->property = find_property(experiments[at - all].property);
        run_into(experiments[at - all].property, experiments[at - all].params, &at->findings);
    }
    for (int judge = 0; judge < 2; judge++) {
        at = all + N;
        for (const struct nb_claim *c = claims.items; c < claims.items + claims.n; c++)
            for (size_t e = 0; e < c->n_experiments; e++) {
                const struct named *own = c->experiments[e].own;
                if (c->experiments[e].kind != &nb_experiment_property) continue;
                cr_assert_lt(at - all, N + 255);
                at->property = own->property;
                if (!judge) property_run(own->property, own->params, &at->findings);
                for (size_t r = 0; r < c->n_readings && judge; r++)
                    for (size_t k = 0; k < c->readings[r].n_rules && c->readings[r].experiment == e; k++)
                        flips(c->id, &c->readings[r].rules[k], at, all);
                at++;
            }
    }
    for (at = all; at->property; at++) nb_findings_release(&at->findings);
}

/* The rules on errors in 16 and 8 bits: other data in the place of theirs flip each; too few rows, or too few
 * draws, leave it open. */
Test(claims_properties, data_and_draws_flip_the_claim_of_stability) {
    static const char *const ids[] = {"prec-more-stable"};
    static const struct {
        const char *reading, *rmsnorm, *layernorm, *data;
        int rows, cols, seeds;
        enum nb_outcome_kind outcome;
    } cases[] = {{"fp16-normal", "all:f16", "all:f16", "offset(8)", 16, 512, 8, NB_HOLDS_TRUE},
                 {"fp16-normal", "all:f16", "all:f16", "lognormal", 16, 512, 8, NB_FAILS},
                 {"fp16-normal", "all:f16", "all:f16", "normal", 1, 16, 8, NB_UNDECIDED},
                 {"fp16-normal", "all:f16", "all:f16", "offset(8)", 16, 512, 5, NB_UNDECIDED},
                 {"fp8", "all:e5m2", "all:e5m2", "offset(2)", 16, 512, 8, NB_HOLDS_TRUE},
                 {"fp8", "all:e5m2", "store:e5m2", "normal", 16, 512, 8, NB_FAILS}};
    struct nb_claims claims released_by(nb_claims_release);
    cr_assert_eq(nb_claims_read(&claims, ids, 1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char params[200];
        snprintf(params, sizeof params,
                 "{\"design\":[\"rmsnorm/%s\",\"layernorm/%s\"],\"data\":\"%s\",\"rows\":%d,\"cols\":%d,\"seeds\":%d}",
                 cases[i].rmsnorm, cases[i].layernorm, cases[i].data, cases[i].rows, cases[i].cols, cases[i].seeds);
        const struct nb_findings found = run("design", params);
        const struct nb_reading *reading = nb_claim_reading(claims.items, cases[i].reading);
        struct nb_rulings rulings released_by(nb_rulings_release) = {0};
        nb_rule_apply(&reading->rules[0], &found, NULL, NULL, &rulings);
        cr_assert_eq(rulings.n, 1);
        cr_expect_eq(rulings.items[0].outcome, cases[i].outcome, "%s: %s, %g [%g, %g]", params,
                     nb_outcome_names[rulings.items[0].outcome], rulings.items[0].value.value,
                     rulings.items[0].value.low, rulings.items[0].value.high);
    }
}

Test(claims_properties, a_kernel_that_is_not_there_is_a_reason) {
    struct nb_findings f = run("tokens", "{\"kernel\":\"rmsnorm_nobody\"}");
    cr_assert_eq(f.n, 1);
    cr_expect(isnan(f.items[0].value.value));
    cr_expect(strstr(f.items[0].reason, "no kernel rmsnorm_nobody"), "%s", f.items[0].reason);
}
