// SPDX-License-Identifier: Apache-2.0
/* Each property experiment on something whose answer is known, or that must not show what it looks for. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.c"
#include "src/core/registry.h"
#include "src/measure/single_step.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

static void set_up(void) {
    quiet();
    load_kernels();
}
TestSuite(claims_properties, .init = set_up, .fini = nb_registry_release);

static void release_findings(void *findings) { nb_findings_release(findings); }

static struct nb_findings run(const char *name, const char *params) {
    const struct nb_property *p = find_property(name);
    struct nb_jsonc file;
    struct nb_findings out = {0};
    cJSON *all = NULL;
    cr_assert(p, "%s", name);
    cr_assert_eq(nb_jsonc_parse(&file, "params", params, strlen(params)), 0, "%s", params);
    cr_assert_eq(property_params(p, &file, file.root, &all), 0, "%s", params);
    property_run(p, all, &out);
    cJSON_Delete(all);
    nb_jsonc_release(&file);
    release_at_end(&out, sizeof out, release_findings);
    return out;
}

/* The value of the first finding of that name with all the tags "axis=value" given, up to null. */
static double value_of(const struct nb_findings *f, const char *name, ...) {
    for (size_t i = 0; i < f->n; i++) {
        const struct nb_finding *one = &f->items[i];
        bool fits = strcmp(one->name, name) == 0;
        va_list args;
        va_start(args, name);
        for (const char *tag; (tag = va_arg(args, const char *));) {
            const char *equals = strchr(tag, '=');
            char axis[64] = "";
            memcpy(axis, tag, (size_t)(equals - tag));
            const char *value = nb_finding_get(one, axis);
            fits = fits && value && strcmp(value, equals + 1) == 0;
        }
        va_end(args);
        if (!fits) continue;
        cr_expect(!one->reason, "%s: %s", name, one->reason);
        return one->value.value;
    }
    cr_expect(false, "nothing was found of %s", name);
    return NAN;
}
#define VALUE(...) value_of(&f, __VA_ARGS__, NULL)

Test(claims_properties, defaults_are_json_and_mistakes_are_named) {
    for (size_t i = 0; nb_properties[i]; i++) {
        const struct nb_property *p = nb_properties[i];
        size_t n_each = 0, n_known = 0;
        while (p->each[n_each].param) n_each++;
        for (const struct nb_property_param *param = p->params; param->name; param++) {
            cJSON *fallback = kept_json(cJSON_Parse(param->fallback));
            cr_expect(fallback, "%s, %s: %s", p->name, param->name, param->fallback);
            for (size_t k = 0; k < n_each; k++) n_known += strcmp(p->each[k].param, param->name) == 0;
        }
        cr_expect_eq(n_known, n_each, "%s goes through a parameter that it has not", p->name);
        for (size_t j = 0; j < i; j++) cr_expect_str_neq(nb_properties[j]->name, p->name);
    }
    static const char *const counts[] = {"0", "-1", "1.5", "4097", "1e300", "[8,0]"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct nb_jsonc file;
        cJSON *all = NULL;
        char text[40];
        snprintf(text, sizeof text, "{\"batch\":%s}", counts[i]);
        cr_assert_eq(nb_jsonc_parse(&file, "params", text, strlen(text)), 0);
        cr_expect_eq(property_params(find_property("coupling"), &file, file.root, &all), -1, "%s", text);
        cJSON_Delete(all);
        nb_jsonc_release(&file);
    }
    static const char *const wrong[] = {"{\"by\":\"x\"}", "{\"byy\":1}", "{\"by\":[1,2]}", "{\"x\":[]}", "[]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct nb_jsonc file;
        cJSON *all = NULL;
        cr_assert_eq(nb_jsonc_parse(&file, "params", wrong[i], strlen(wrong[i])), 0);
        cr_expect_eq(property_params(find_property("divide"), &file, file.root, &all), -1, "%s", wrong[i]);
        cJSON_Delete(all);
        nb_jsonc_release(&file);
    }
}

Test(claims_properties, broadcast_knows_error_silence_and_the_rare_right_result) {
    struct nb_findings f =
        run("broadcast", "{\"shapes\":[\"2x4x8\",\"4x4x4\",\"1x4x4\",\"2x1x8\",\"1x1x8\",\"1x2x4\"]}");
    cr_expect_eq(VALUE("error", "shape=2x4x8", "keepdim=no"), 1);
    cr_expect_eq(VALUE("error", "shape=2x4x8", "keepdim=yes"), 0);
    cr_expect_eq(VALUE("error", "shape=4x4x4", "keepdim=no"), 0);
    cr_expect_eq(VALUE("wrong", "shape=4x4x4", "keepdim=no"), 1);
    cr_expect_eq(VALUE("wrong", "shape=4x4x4", "keepdim=yes"), 0);
    cr_expect_gt(VALUE("off", "shape=4x4x4"), 0.1);
    cr_expect_eq(VALUE("wrong", "shape=1x4x4", "keepdim=no"), 1, "S = H with B = 1");
    cr_expect_eq(VALUE("wrong", "shape=2x1x8", "keepdim=no"), 1, "[2, 1, 8] with [2, 1]: the result is [2, 2, 8]");
    cr_expect_eq(VALUE("wrong", "shape=1x1x8", "keepdim=no"), 0, "one token alone is right without keepdim");
    cr_expect_eq(VALUE("dimensions", "shape=1x2x4"), 3);
}

Test(claims_properties, a_shape_and_a_kernel_may_come_out_as_no_claim_has_them) {
    struct nb_findings f =
        run("broadcast", "{\"shapes\":[\"1x1x2x4\",\"6\",\"2x4x8\"],\"kernel\":\"layernorm_twopass\"}");
    cr_expect_eq(VALUE("dimensions", "shape=1x1x2x4"), 4, "four pairs of brackets");
    cr_expect_eq(VALUE("dimensions", "shape=6"), 1);
    cr_expect_eq(VALUE("wrong", "shape=6", "keepdim=no"), 0, "one row needs no keepdim");
    cr_expect_eq(VALUE("wrong", "shape=2x4x8", "keepdim=yes"), 1, "another norm is another result");
}

/* Each layer keeps a third of the variance and adds its biases: std goes to a floor of about 0.016 at 512; a norm keeps it. */
Test(claims_properties, a_stack_of_layers_loses_its_spread_without_a_norm) {
    struct nb_findings f = run("linear_stack", "{\"seed\":1,\"rows\":32,\"cols\":128,\"layers\":6}");
    cr_expect_lt(VALUE("std", "norm=none", "layer=6"), 0.2 * VALUE("std", "norm=none", "layer=1"));
    cr_expect_gt(VALUE("std", "norm=rmsnorm_twopass", "layer=6"), 0.5);
}

Test(claims_properties, what_autograd_keeps_follows_from_its_rules) {
    struct nb_findings f = run("kept", "{\"dtype\":[\"f32\",\"bf16\"],\"rows\":1000,\"cols\":100}");
    const double row = 4.0 / 100; /* a statistic of f32 for each row, in bytes an element */
    cr_expect_float_eq(VALUE("kept_bytes_per_element", "dtype=f32", "style=op by op", "norm=layernorm"), 12 + row, 1e-9,
                       "x, x - mean, the quotient, and the root");
    cr_expect_float_eq(VALUE("kept_bytes_per_element", "dtype=f32", "style=op by op", "norm=rmsnorm"), 8 + row, 1e-9);
    cr_expect_float_eq(VALUE("kept_bytes_per_element", "dtype=bf16", "style=fused", "norm=layernorm"), 2 + 2 * row,
                       1e-9);
    cr_expect_float_eq(VALUE("kept_bytes_per_element", "dtype=bf16", "style=casting class", "norm=rmsnorm"), 6 + row,
                       1e-9, "x in f32 and the rounded quotient");
    cr_expect_lt(VALUE("kept_cut", "dtype=bf16", "style=casting class"), 0);
    cr_expect_gt(VALUE("kept_cut", "dtype=bf16", "style=op by op"), 0.3);
    for (size_t i = 0; i < f.n; i++) cr_expect_str_neq(f.items[i].name, "memory_cut", "no step was asked for");
}

/* A token of 1000 numbers besides 10 norms of 100: of LayerNorm 3 rows each, of RMSNorm 2, and a root of f32 of either. A quarter of the
 * step does not depend on tokens. */
Test(claims_properties, what_a_step_keeps_less_follows_from_what_a_token_keeps) {
    struct nb_findings f =
        run("kept", "{\"dtype\":\"f32\",\"cols\":100,\"norms\":10,\"besides\":1000,\"fixed\":1e6,\"total\":4e6}");
    cr_expect_float_eq(VALUE("memory_cut", "style=op by op"), 0.75 * 10 * 400 / (4000 + 10 * 1204.), 1e-9);
    cr_expect_float_eq(VALUE("memory_cut", "style=fused"), 0.75 * 10 * 4 / (4000 + 10 * 408.), 1e-9, "the mean alone");
    cr_expect_float_eq(VALUE("memory_cut", "style=casting class"), -0.75 * 10 * 396 / (4000 + 10 * 408.), 1e-9,
                       "it keeps the quotient, but no mean");
    f = run("kept", "{\"dtype\":\"f32\",\"total\":1}");
    for (size_t i = 0; i < f.n; i++)
        if (strcmp(f.items[i].name, "memory_cut") == 0)
            cr_expect(f.items[i].reason, "a model without norms or anything");
}

Test(claims_properties, cast_order_shows_with_weights_and_not_without) {
    struct nb_findings f = run("cast_order", "{\"weight\":[\"ones\",\"drawn\"],\"dtype\":[\"bf16\",\"f16\"]}");
    cr_expect_eq(VALUE("differ", "dtype=bf16", "weight=ones"), 0);
    cr_expect(VALUE("differ", "dtype=bf16", "weight=drawn") > 0.2 &&
              VALUE("differ", "dtype=bf16", "weight=drawn") < 0.32);
    cr_expect_eq(VALUE("largest_step", "dtype=f16", "weight=drawn"), 1);
}

Test(claims_properties, companions_move_batchnorm_alone) {
    struct nb_findings f = run("coupling", "{\"batch\":[2,64],\"draws\":16}");
    cr_expect_eq(VALUE("moved", "norm=layernorm_twopass", "batch=2"), 0);
    cr_expect_gt(VALUE("moved", "norm=batchnorm_twopass", "batch=2"),
                 VALUE("moved", "norm=batchnorm_twopass", "batch=64"));
    cr_expect_gt(VALUE("gradient_moved", "norm=batchnorm_twopass", "batch=2"),
                 VALUE("gradient_moved", "norm=batchnorm_twopass", "batch=64"));
}

Test(claims_properties, depth_leaves_layernorm_alone) {
    struct nb_findings f = run("depth", "{\"depth\":[1,8],\"batch\":16,\"width\":24,\"batches\":10}");
    cr_expect_eq(VALUE("apart", "norm=layernorm_twopass", "depth=8"), 0);
    cr_expect_gt(VALUE("apart", "norm=batchnorm_twopass", "depth=8"),
                 VALUE("apart", "norm=batchnorm_twopass", "depth=1"));
}

Test(claims_properties, descent_meets_the_limit_of_theory) {
    struct nb_findings f = run("descent", "{}"), g = run("descent", "{\"rate\":1e-6,\"divide\":1}");
    cr_expect_float_eq(VALUE("limit_ratio", "divide=1"), 1, 0.01);
    cr_expect_float_eq(VALUE("limit_ratio", "divide=100"), 1, 0.01);
    cr_expect_eq(VALUE("diverges", "divide=1"), 1);
    cr_expect_eq(VALUE("diverges", "divide=100"), 0);
    cr_expect_eq(value_of(&g, "diverges", NULL), 0, "a small rate converges on raw inputs, too");
}

Test(claims_properties, designs_lose_what_their_formats_lose) {
    struct nb_findings f =
        run("design", "{\"design\":[\"rmsnorm/eps:0\",\"rmsnorm/eps:1e-5\",\"rmsnorm/all:f16\",\"rmsnorm/store:f16\"],"
                      "\"data\":[\"zeros\",\"scale(300)\"],\"rows\":4,\"cols\":64}");
    cr_expect_eq(VALUE("not_finite", "design=rmsnorm/eps:0", "data=zeros"), 1);
    cr_expect_eq(VALUE("not_finite", "design=rmsnorm/eps:1e-5", "data=zeros"), 0);
    cr_expect_gt(VALUE("lost", "design=rmsnorm/all:f16", "data=scale(300)"), 0.9, "squares overflow");
    cr_expect_eq(VALUE("lost", "design=rmsnorm/store:f16", "data=scale(300)"), 0);
    cr_expect_lt(VALUE("error", "design=rmsnorm/store:f16", "data=scale(300)"), 0x1p-11);
}

Test(claims_properties, direction_is_kept_by_rmsnorm_alone) {
    struct nb_findings f = run("direction", "{\"data\":[\"offset(1)\"],\"cols\":1000,\"rows\":4}");
    cr_expect_lt(VALUE("turned", "kernel=rmsnorm_twopass"), 1e-12);
    /* x = 1 + z against z: cos = 1 / sqrt(2) */
    cr_expect_float_eq(VALUE("turned", "kernel=layernorm_twopass"), 1 - sqrt(0.5), 0.05);
}

Test(claims_properties, dividing_inputs_and_targets_changes_the_unit_alone) {
    struct nb_findings f = run("divide", "{}");
    cr_expect_float_eq(VALUE("mse", "divided=nothing"), 100, 1e-9);
    cr_expect_float_eq(VALUE("mse", "divided=inputs and targets"), 0.01, 1e-12);
    cr_expect_float_eq(VALUE("relative", "divided=nothing"), VALUE("relative", "divided=inputs and targets"), 1e-12);
    cr_expect_float_eq(VALUE("mse", "divided=nothing, fitted"), VALUE("mse", "divided=inputs, fitted"), 1e-9);
    cr_expect_gt(VALUE("mse", "divided=inputs"), 1000);
}

Test(claims_properties, eps_has_the_gain_of_its_place) {
    struct nb_findings f = run("eps_place", "{\"rms\":[0.00316227766],\"eps\":[1e-5]}");
    cr_expect_float_eq(VALUE("gain", "eps_place=inside"), sqrt(0.5), 1e-5);
    cr_expect_float_eq(VALUE("gain", "eps_place=outside"), 0.00316227766 / (0.00316227766 + 1e-5), 1e-5);
}

Test(claims_properties, a_kernel_needs_no_fewer_operations_than_itself) {
    struct nb_findings f = run("fewer_ops", "{\"of\":[\"rmsnorm_twopass\",\"rmsnorm_composed\"],"
                                            "\"against\":[\"rmsnorm_twopass\",\"layernorm_composed\"]}");
    cr_expect_eq(VALUE("sweeps_cut", "kernel=rmsnorm_twopass"), 0);
    cr_expect_gt(VALUE("phases_cut", "kernel=rmsnorm_composed"), 0);
    cr_expect_eq(VALUE("parameters_cut", "kernel=rmsnorm_composed"), 0.5);
    cr_expect_eq(VALUE("parameters_cut", "kernel=rmsnorm_twopass"), 0);
#if defined(__x86_64__)
    cr_expect_eq(VALUE("instructions_cut", "kernel=rmsnorm_twopass"), 0, "counts are exact");
    cr_expect_gt(VALUE("instructions_cut", "kernel=rmsnorm_composed"), 0);
#endif
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) /* whose instructions lie between */
static void run_alone(void *prepared) {
    const struct nb_norm_prepared *p = prepared;
    p->entry->kernel->run(&p->call, 0, 0, p->call.rows);
}

/* Not those of whoever asks it for its phases and units. */
Test(claims_properties, instructions_are_the_kernels_own) {
    struct nb_findings f =
        run("fewer_ops", "{\"of\":[\"rmsnorm_twopass\"],\"against\":[\"layernorm_twopass\"],\"rows\":1,\"cols\":8}");
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct nb_norm n = {.kernel = "rmsnorm_twopass", .eps = 1e-5};
    const struct nb_matrix_view v = {.rows = 1, .cols = 8, .x = x, .gamma = x};
    struct nb_norm_prepared p;
    char reason[300] = "";
    cr_assert_eq(nb_norm_prepare(&p, &n, &v, reason, sizeof reason), 0, "%s", reason);
    const int64_t alone = nb_single_step(run_alone, &p, 100000, reason, sizeof reason);
    nb_norm_prepared_release(&p);
    cr_assert_gt(alone, 0, "%s", reason);
    cr_assert_str_eq(f.items[0].name, "instructions_cut");
    cr_expect_leq(strtod(f.items[0].evidence, NULL), (double)alone + 20, "%s, alone %lld", f.items[0].evidence,
                  (long long)alone);
}
#endif

Test(claims_properties, gradients_of_features_are_as_far_apart_as_they) {
    struct nb_findings f = run("gradient_balance", "{\"spread\":0}"), g = run("gradient_balance", "{}");
    cr_expect_float_eq(VALUE("gradient_ratio", "norm=none"), 10000.0 / 30, 1e-6);
    cr_expect_float_eq(VALUE("gradient_ratio", "norm=rmsnorm_twopass"), 10000.0 / 30, 1e-3);
    cr_expect_lt(value_of(&g, "gradient_ratio", "norm=batchnorm_twopass", NULL), 1.2);
    cr_expect_lt(value_of(&g, "gradient_ratio", "norm=minmax", NULL), 1.2);
    cr_expect_eq(value_of(&g, "rows_kept_apart", "norm=layernorm_twopass", NULL), 0, "two features become 1 and -1");
}

Test(claims_properties, the_worked_gradient_is_one_term_of_three) {
    struct nb_findings f = run("gradient_scale", "{}"), g = run("gradient_scale", "{\"x\":[100,200,300],\"same\":1}");
    cr_expect_float_eq(VALUE("gradient", "reading=one term"), 2000.0 / 3, 1e-6);
    cr_expect_float_eq(VALUE("gradient", "reading=sum"), 2000, 1e-6);
    cr_expect_float_eq(VALUE("step", "reading=one term"), 2.0 / 3, 1e-9);
    cr_expect_float_eq(value_of(&g, "gradient", "reading=sum", NULL), 4000, 1e-6);
}

Test(claims_properties, invariance_tells_layernorm_from_rmsnorm_by_one_cell) {
    struct nb_findings f = run("invariance", "{\"norm\":[\"layernorm\",\"rmsnorm\",\"weightnorm\"]}");
    cr_expect_lt(VALUE("change", "norm=layernorm", "under=weight matrix re-centred"), 1e-4);
    cr_expect_gt(VALUE("change", "norm=rmsnorm", "under=weight matrix re-centred"), 0.1);
    cr_expect_lt(VALUE("change", "norm=rmsnorm", "under=single case re-scaled"), 1e-4);
    cr_expect_lt(VALUE("change", "norm=weightnorm", "under=weight vector re-scaled"), 1e-12);
    cr_expect_gt(VALUE("change", "norm=weightnorm", "under=dataset re-scaled"), 1);
}

Test(claims_properties, moments_follow_from_eps) {
    struct nb_findings f =
        run("moments", "{\"data\":[\"alternating(1)\",\"alternating(0.001)\",\"constant(3)\"],\"eps\":[1e-6]}");
    cr_expect_lt(VALUE("variance_off", "data=alternating(1)"), 1e-5);
    cr_expect_float_eq(VALUE("variance_off", "data=alternating(0.001)"), 0.5, 1e-3, "v / (v + eps) at v = eps");
    cr_expect_eq(VALUE("variance_off", "data=constant(3)"), 1);
}

Test(claims_properties, several_dimensions_are_not_the_last_one) {
    struct nb_findings f = run("normalized_shape", "{\"shape\":[\"[6]\",\"[2x3]\",\"[1x6]\"]}");
    cr_expect_eq(VALUE("apart", "shape=[6]"), 0);
    cr_expect_eq(VALUE("apart", "shape=[1x6]"), 0);
    cr_expect_gt(VALUE("apart", "shape=[2x3]"), 0.1);
}

Test(claims_properties, an_outlier_shrinks_the_rest_of_its_row) {
    struct nb_findings f = run("outlier", "{\"spike\":[1,1000]}");
    /* the others keep 1 / sqrt(1 + s^2 / n) of their size */
    cr_expect_float_eq(VALUE("changed", "norm=rmsnorm_twopass", "spike=1000", "where=row"), 1 - 1 / sqrt(1 + 1e6 / 512),
                       5e-3);
    cr_expect_lt(VALUE("changed", "norm=rmsnorm_twopass", "spike=1", "where=row"), 0.02);
    cr_expect_lt(VALUE("changed", "norm=batchnorm_twopass", "spike=1000", "where=row"), 1e-6);
    cr_expect_gt(VALUE("changed", "norm=batchnorm_twopass", "spike=1000", "where=column"), 0.9);
}

Test(claims_properties, sequences_of_one_length_need_no_padding) {
    struct nb_findings f = run("padding", "{\"lengths\":[8,8,8]}"), g = run("padding", "{\"lengths\":[16,8,4]}");
    cr_expect_eq(VALUE("moved", "norm=batchnorm_twopass", "statistics=feature"), 0);
    cr_expect_eq(VALUE("moved", "norm=batchnorm_twopass", "statistics=position"), 0);
    cr_expect_gt(value_of(&g, "moved", "norm=batchnorm_twopass", "statistics=feature", NULL), 0.05);
    cr_expect_eq(value_of(&g, "moved", "norm=layernorm_twopass", NULL), 0);
}

Test(claims_properties, printed_rows_have_the_deviation_over_n_minus_1) {
    struct nb_findings f = run("printed_rows", "{}");
    cr_expect_lt(VALUE("off_print", "std_over=n - 1"), 1e-4);
    cr_expect_gt(VALUE("off_print", "std_over=n"), 0.1);
    cr_expect_lt(VALUE("change", "map=centre", "under=shift"), 1e-12);
    cr_expect_gt(VALUE("change", "map=rmsnorm_twopass", "under=shift"), 0.1);
}

Test(claims_properties, a_wider_weight_widens_the_result) {
    struct nb_findings f = run("promotion", "{}");
    cr_expect_eq(VALUE("result_bits", "dtype=bf16", "weight=x"), 16);
    cr_expect_eq(VALUE("beyond_dtype", "dtype=bf16", "weight=x"), 0);
    cr_expect_eq(VALUE("result_bits", "dtype=f16", "weight=f32"), 32);
    cr_expect_gt(VALUE("beyond_dtype", "dtype=f16", "weight=f32"), 0.5);
}

Test(claims_properties, rows_of_one_size_quantize_better_with_one_scale) {
    struct nb_findings f = run("quantized", "{\"to\":[\"int8\",\"f16\"],\"data\":[\"normal\"]}");
    cr_expect_gt(VALUE("relative_error", "norm=none", "to=int8"),
                 VALUE("relative_error", "norm=rmsnorm_twopass", "to=int8"));
    cr_expect_lt(VALUE("relative_error", "norm=none", "to=f16"), 0x1p-11);
}

Test(claims_properties, root_forms_keep_what_their_specifications_promise) {
    struct nb_findings f = run("root_forms", "{\"form\":[\"double\",\"recip_sqrt\"],\"stride\":101}");
    cr_expect_eq(VALUE("misrounded", "form=double"), 0);
    cr_expect_leq(VALUE("max_ulp", "form=double"), 0.5 + 1e-6);
    cr_expect_leq(VALUE("max_ulp", "form=recip_sqrt"), 1.5);
    cr_expect_gt(VALUE("misrounded", "form=recip_sqrt"), 0.05);
}

Test(claims_properties, training_and_inference_agree_where_nothing_is_kept) {
    struct nb_findings f = run("running", "{\"batch\":[64],\"batches\":[1,200]}");
    cr_expect_eq(VALUE("apart", "norm=layernorm_twopass", "batches=1"), 0);
    cr_expect_gt(VALUE("apart", "norm=batchnorm_twopass", "batches=1"),
                 VALUE("apart", "norm=batchnorm_twopass", "batches=200"));
}

Test(claims_properties, same_result_centres_exactly) {
    struct nb_findings f = run("same_result", "{\"data\":[\"lognormal\",\"offset(3)\"]}");
    cr_expect_leq(VALUE("apart_ulp", "data=offset(3)", "centred=yes"), 8);
    cr_expect_gt(VALUE("apart", "data=offset(3)", "centred=no"), 0.5);
}

Test(claims_properties, slopes_of_a_normal_input) {
    struct nb_findings f = run("saturation", "{\"norm\":[\"none\",\"rmsnorm_twopass\"],\"scale\":[1,100]}");
    cr_expect_float_eq(VALUE("slope", "norm=none", "scale=1", "function=tanh"), 0.6057, 0.01,
                       "E[1 - tanh^2] of N(0,1)");
    cr_expect_gt(VALUE("saturated", "norm=none", "scale=100", "function=tanh"), 0.9);
    cr_expect_lt(VALUE("saturated", "norm=rmsnorm_twopass", "scale=100", "function=sigmoid"), 0.01);
}

Test(claims_properties, sizes_of_samples_survive_batchnorm_and_not_layernorm) {
    struct nb_findings f = run("spread", "{\"scale\":[2]}");
    cr_expect_gt(VALUE("sizes_kept", "norm=batchnorm_twopass"), 0.8);
    cr_expect_lt(VALUE("sizes_kept", "norm=rmsnorm_twopass"), 1e-3);
}

Test(claims_properties, order_within_a_row_is_kept) {
    struct nb_findings f = run("structure", "{\"rows\":16,\"cols\":64}");
    cr_expect_eq(VALUE("inverted", "norm=layernorm_twopass"), 0);
    cr_expect_gt(VALUE("inverted", "norm=batchnorm_twopass"), 0.01);
    cr_expect_gt(VALUE("distances_kept", "norm=batchnorm_twopass"), 0.9);
}

Test(claims_properties, tokens_share_statistics_in_batchnorm_alone) {
    struct nb_findings f = run("tokens", "{\"kernel\":[\"rmsnorm_twopass\",\"batchnorm_twopass\"],\"rows\":8}");
    cr_expect_eq(VALUE("rows_moved", "norm=rmsnorm_twopass"), 0);
    cr_expect_eq(VALUE("rows_moved", "norm=batchnorm_twopass"), 1);
}

Test(claims_properties, a_kernel_that_is_not_there_is_a_reason) {
    struct nb_findings f = run("tokens", "{\"kernel\":\"rmsnorm_nobody\"}");
    cr_assert_eq(f.n, 1);
    cr_expect(isnan(f.items[0].value.value));
    cr_expect(strstr(f.items[0].reason, "no kernel rmsnorm_nobody"), "%s", f.items[0].reason);
}
