// SPDX-License-Identifier: Apache-2.0
/* Cases, axes and keys: what is written is what is read, for every axis and every kind of op. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/case.h"
#include "src/names.h"
#include "tests/test_support_runs.h"

static struct nb_kernel kernel_of(uint32_t op, uint32_t dtype) {
    return (struct nb_kernel){.struct_size = sizeof(struct nb_kernel),
                              .op = op,
                              .dtype = dtype,
                              .width = NB_256,
                              .name = "some_kernel",
                              .variant = "some_kernel_v256_f32",
                              .loads = 1,
                              .stores = 1};
}

static struct nb_case case_of(uint32_t op, uint32_t dtype) {
    const struct nb_kernel kernel = kernel_of(op, dtype);
    struct nb_case c;
    nb_case_init(&c);
    c.formula.affine = NB_N_AFFINES;
    nb_case_set_kernel(&c, &kernel, NULL);
    return c;
}

static char *key_of(const struct nb_case *c) {
    struct nb_strbuf key = {0};
    nb_case_key(c, &key);
    return key.text;
}

static char *value_of(const struct nb_case *c, const char *axis) {
    struct nb_strbuf value = {0};
    nb_case_axis(c, axis, &value);
    return value.text;
}

static void set(struct nb_case *c, const char *axis, const char *text) {
    char reason[256] = "";
    cr_assert_eq(nb_axis_find(axis)->set(c, text, reason, sizeof reason), 0, "%s=%s %s", axis, text, reason);
    nb_case_normalize(c);
}

/* Values that each axis has to carry through a key: all of its choices, and awkward ones where the text is free. */
static const char *const *values_of_axis(const struct nb_axis *axis) {
    static const char *const shapes[] = {"1x1", "64x384", "2x3x[4x5]", "[7]", "4096x65536", NULL};
    static const char *const images[] = {"nchw:8x64x28x28", "nhwc:4x7x7x16", "nchw:3x5", "12x34", NULL};
    static const char *const data[] = {
        "normal",       "minilm_layer0_out", "offset(100)", "/tmp/a file/x.npy", "100%/%2F:eps:1", "tab\there",
        "\xc3\xa9.npy", "a=b,c[*]?",         NULL};
    static const char *const seeds[] = {"0", "1", "18446744073709551615", NULL};
    static const char *const eps[] = {"0", "1e-5", "1E-05", "0.000001", "0x1p-7", "999999.5", "1e-45", NULL};
    static const char *const reals[] = {"0", "0.1", "0.5", "1", NULL};
    static const char *const k[] = {"6.25%", "100%", "1", "20", "0.0001%", NULL};
    static const char *const stride[] = {"packed", "1", "64", "1048576", NULL};
    static const char *const threads[] = {"1", "2", "1024", NULL};
    static const struct {
        const char *name;
        const char *const *values;
    } free_texts[] = {{"shape", shapes},   {"data", data},    {"seed", seeds},    {"eps", eps},
                      {"alpha", reals},    {"k", k},          {"stride", stride}, {"threads", threads},
                      {"momentum", reals}, {"images", images}};
    if (axis->choices) return axis->choices;
    for (size_t i = 0; i < sizeof free_texts / sizeof free_texts[0]; i++)
        if (strcmp(free_texts[i].name, axis->name) == 0) return free_texts[i].values;
    cr_assert_fail("axis %s has no values in this test", axis->name);
    return NULL;
}

static bool same_shape(const struct nb_shape *a, const struct nb_shape *b) {
    return a->layout == b->layout && a->rows == b->rows && a->cols == b->cols && a->n == b->n && a->c == b->c &&
           a->hw == b->hw && strcmp(a->text, b->text) == 0;
}

static bool same_case(const struct nb_case *a, const struct nb_case *b) {
    return strcmp(a->variant, b->variant) == 0 && a->op == b->op && a->pass == b->pass && a->dtype == b->dtype &&
           a->width == b->width && same_shape(&a->shape, &b->shape) && a->eps == b->eps && a->alpha == b->alpha &&
           memcmp(&a->formula, &b->formula, sizeof a->formula) == 0 && a->momentum == b->momentum && a->k == b->k &&
           strcmp(a->eps_text, b->eps_text) == 0 && strcmp(a->k_text, b->k_text) == 0 && a->mode == b->mode &&
           a->pad == b->pad && a->threads == b->threads && a->cache == b->cache && strcmp(a->data, b->data) == 0 &&
           a->seed == b->seed;
}

static void goes_through_a_key(const struct nb_case *c, const struct nb_kernel *kernel) {
    struct nb_case back;
    char *key = key_of(c);
    for (const char *p = key; *p; p++) cr_assert(*p > ' ' && *p < 0x7f, "key with a blank or a control: %s", key);
    cr_assert_eq(nb_case_parse(&back, key), 0, "%s", key);
    cr_assert_str_eq(back.variant, c->variant);
    nb_case_set_kernel(&back, kernel, NULL);
    cr_assert(same_case(&back, c), "not the same case again: %s", key);
    char *again = key_of(&back);
    cr_assert_str_eq(again, key);
    free(key);
    free(again);
}

Test(case, every_value_of_every_axis_goes_through_a_key_for_every_op_and_dtype) {
    size_t n = 0;
    for (uint32_t op = 0; op < NB_N_OPS; op++)
        for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++)
            for (size_t a = 0; a < nb_n_axes; a++) {
                const struct nb_axis *axis = &nb_axes[a];
                const struct nb_kernel kernel = kernel_of(op, dtype);
                const struct nb_case base = case_of(op, dtype);
                if (axis->kind != NB_AXIS_CELL) continue;
                for (const char *const *value = values_of_axis(axis); *value; value++) {
                    struct nb_case c = base;
                    set(&c, axis->name, *value);
                    goes_through_a_key(&c, &kernel);
                    n++;
                }
            }
    cr_assert_gt(n, 1000);
}

Test(case, a_key_has_only_what_means_something) {
    struct nb_case twin = case_of(NB_OP_TWIN, NB_F32), dyt = case_of(NB_OP_DYT, NB_F32),
                   rms = case_of(NB_OP_RMSNORM, NB_BF16);
    char *key = key_of(&twin);
    cr_expect_str_eq(key, "some_kernel_v256_f32/shape:1024x1024/data:normal/seed:1/stride:packed/threads:1/cache:hot");
    free(key);
    key = key_of(&dyt);
    cr_expect(strstr(key, "/alpha:0.5") && !strstr(key, "/eps") && !strstr(key, "/root") && !strstr(key, "/cast"), "%s",
              key);
    free(key);
    key = key_of(&rms);
    cr_expect(strstr(key, "/cast:after") && strstr(key, "/param_dtype:f32") && !strstr(key, "/k:") &&
                  !strstr(key, "/mode"),
              "%s", key);
    free(key);
}

Test(case, without_gamma_nothing_is_said_of_the_weight) {
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_BF16);
    set(&c, "cast", "before");
    set(&c, "weight_offset", "1");
    set(&c, "affine", "none");
    cr_expect_eq(c.formula.cast, NB_CAST_AFTER, "cases that compute the same have the same key");
    cr_expect_eq(c.formula.weight_offset, 0);
    char *key = key_of(&c);
    cr_expect_null(strstr(key, "cast"));
    free(key);
}

Test(case, the_default_affine_is_the_usual_one_of_the_op) {
    cr_expect_eq(case_of(NB_OP_LAYERNORM, NB_F32).formula.affine, NB_AFFINE_GAMMA_BETA);
    cr_expect_eq(case_of(NB_OP_BATCHNORM, NB_F32).formula.affine, NB_AFFINE_GAMMA_BETA);
    cr_expect_eq(case_of(NB_OP_DYT, NB_F32).formula.affine, NB_AFFINE_GAMMA_BETA);
    cr_expect_eq(case_of(NB_OP_RMSNORM, NB_F32).formula.affine, NB_AFFINE_GAMMA);
    cr_expect_eq(case_of(NB_OP_L2NORM, NB_F32).formula.affine, NB_AFFINE_GAMMA);
    cr_expect_eq(case_of(NB_OP_TWIN, NB_F32).formula.affine, NB_AFFINE_NONE);
}

Test(case, k_is_the_smallest_count_that_is_no_less_than_the_share) {
    static const struct {
        const char *shape, *k;
        int64_t count;
    } wants[] = {{"1x512", "6.25%", 32}, {"1x240", "6.25%", 15},        {"1x513", "6.25%", 33}, {"1x1", "6.25%", 1},
                 {"1x100", "10%", 10},   {"1x1000", "0.1%", 1},         {"1x1001", "0.1%", 2},  {"1x384", "100%", 384},
                 {"1x384", "24", 24},    {"1x1048576", "33.3%", 349176}};
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct nb_case c = case_of(NB_OP_PRMSNORM, NB_F32);
        set(&c, "shape", wants[i].shape);
        set(&c, "k", wants[i].k);
        cr_expect_eq(c.k, wants[i].count, "%s of %s: %lld", wants[i].k, wants[i].shape, (long long)c.k);
    }
}

Test(case, eps_is_kept_as_typed_and_as_the_double) {
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "eps", "1E-05");
    char *text = value_of(&c, "eps");
    cr_expect_str_eq(text, "1E-05");
    cr_expect_eq(c.eps, 1e-5);
    free(text);
    set(&c, "eps", "0x1p-7");
    cr_expect_eq(c.eps, 0.0078125);
}

Test(case, bad_values_are_refused_with_what_would_be_right) {
    static const struct {
        const char *axis, *value, *words;
    } wants[] = {
        {"eps", "-1", "from 0"},
        {"eps", "nan", "from 0"},
        {"eps", "inf", "from 0"},
        {"eps", "1e6", "below 1e6"},
        {"eps", "", "from 0"},
        {"eps", "1e-5x", "from 0"},
        {"eps", " 1", "from 0"},
        {"eps", "1e-400", "from 0"},
        {"eps", "0x", "from 0"},
        {"root", "div_sqr", "'div_sqrt'"},
        {"cast", "befor", "'before'"},
        {"eps_place", "insid", "'inside'"},
        {"threads", "0", "1 to 1024"},
        {"threads", "2.5", "1 to 1024"},
        {"threads", "-1", "1 to 1024"},
        {"seed", "-1", "2^64"},
        {"seed", "18446744073709551616", "2^64"},
        {"stride", "-1", "packed"},
        {"stride", "99999999", "packed"},
        {"k", "0", "percentage"},
        {"k", "101%", "percentage"},
        {"k", "6.%", "percentage"},
        {"k", "%", "percentage"},
        {"k", "1.5", "percentage"},
        {"k", "99999999999", "percentage"},
        {"momentum", "1.5", "from 0 to 1"},
        {"alpha", "x", "number"},
        {"weight_offset", "2", "0, 1"},
        {"data", "", "name or a path"},
        {"mode", "train1", "training"},
        {"shape", "0x5", "dimension of 0"},
        {"eps", "0.0000000000000000000000000000000000001", "longer than 31"},
    };
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32), before = c;
        char reason[256] = "";
        int result = nb_axis_find(wants[i].axis)->set(&c, wants[i].value, reason, sizeof reason);
        cr_expect_eq(result, -1, "%s=%s was taken", wants[i].axis, wants[i].value);
        cr_expect(strstr(reason, wants[i].words), "%s=%s: %s", wants[i].axis, wants[i].value, reason);
        cr_expect(same_case(&c, &before), "%s=%s changed the case", wants[i].axis, wants[i].value);
    }
}

Test(case, every_fallback_is_a_value) {
    for (size_t a = 0; a < nb_n_axes; a++) {
        const struct nb_axis *axis = &nb_axes[a];
        struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32);
        char reason[256];
        cr_expect(axis->help && *axis->help);
        if (axis->kind == NB_AXIS_CELL)
            cr_expect_eq(axis->set(&c, axis->fallback, reason, sizeof reason), 0, "%s", axis->name);
        else if (axis->fallback && axis->choices)
            cr_expect_geq(nb_name_find(axis->choices, axis->fallback), 0, "%s", axis->name);
        cr_expect_eq(nb_axis_find(axis->name), axis);
    }
    cr_expect_str_eq(nb_axis_find("epsilon")->name, "eps");
    cr_expect_null(nb_axis_find("nothing"));
}

Test(case, other_words_mean_the_same) {
    cr_expect_eq(nb_name_find(nb_dtype_names, "fp32"), NB_F32);
    cr_expect_eq(nb_name_find(nb_dtype_names, "float32"), NB_F32);
    cr_expect_eq(nb_name_find(nb_dtype_names, "bfloat16"), NB_BF16);
    cr_expect_eq(nb_name_find(nb_dtype_names, "half"), NB_F16);
    cr_expect_eq(nb_name_find(nb_op_names, "ln"), NB_OP_LAYERNORM);
    cr_expect_eq(nb_name_find(nb_width_names, "v512"), NB_512);
    cr_expect_eq(nb_name_find(nb_width_names, "fp32"), -1);
}

static int parse_key(void *key) {
    struct nb_case c;
    return nb_case_parse(&c, key);
}

static void key_is_refused(const char *key, const char *words) {
    int result;
    char *copy = strdup(key), *text = errors_of(parse_key, copy, &result);
    cr_expect_eq(result, -1, "'%s' was taken", key);
    cr_expect(strstr(text, words), "'%s': wanted \"%s\" in: %s", key, words, text);
    free(copy);
    free(text);
}

Test(case, broken_keys_are_refused_with_the_part_that_is_wrong) {
    key_is_refused("", "begin with a variant");
    key_is_refused("/shape:1x1", "begin with a variant");
    key_is_refused("v/shap:1x1", "did you mean 'shape'");
    key_is_refused("v/shape", "AXIS:VALUE");
    key_is_refused("v/shape:1x", "shape");
    key_is_refused("v/shape:1x1/shape:1x1", "twice");
    key_is_refused("v/data:%2", "broken %XX");
    key_is_refused("v/data:%00", "broken %XX");
    key_is_refused("v/data:%zz", "broken %XX");
    key_is_refused("v/op:rmsnorm", "not a part of a key");
    key_is_refused("v/eps:1e-5/", "AXIS:VALUE");
}

Test(case, garbled_keys_never_crash) {
    struct nb_case c = case_of(NB_OP_ADD_LAYERNORM, NB_BF16);
    char *key = key_of(&c);
    size_t n = strlen(key);
    int keep = 0, result;
    for (size_t i = 0; i < n; i++) {
        for (int byte = 1; byte < 256; byte += 7) {
            char *garbled = strdup(key);
            garbled[i] = (char)byte;
            free(errors_of(parse_key, garbled, &result));
            keep += result == 0;
            garbled[i] = '\0';
            free(errors_of(parse_key, garbled, &result));
            free(garbled);
        }
    }
    cr_expect_gt(keep, 0);
    free(key);
}

Test(case, conflicts_are_named) {
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32);
    cr_expect_null(nb_case_conflict(&c));
    set(&c, "root", "rsqrt_nr");
    cr_expect_null(nb_case_conflict(&c));
    set(&c, "eps_place", "outside");
    cr_expect(strstr(nb_case_conflict(&c), "outside the root"));
    c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "shape", "nchw:2x3x4x5");
    cr_expect(strstr(nb_case_conflict(&c), "batchnorm"));
    c = case_of(NB_OP_PRMSNORM, NB_F32);
    set(&c, "k", "1025");
    cr_expect(strstr(nb_case_conflict(&c), "more than the row"));
    c = case_of(NB_OP_BATCHNORM, NB_F32);
    set(&c, "shape", "nchw:1x64");
    cr_expect(strstr(nb_case_conflict(&c), "two values per channel"));
    set(&c, "mode", "inference");
    cr_expect_null(nb_case_conflict(&c));
    c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "shape", "4294967296x1");
    set(&c, "stride", "1048576");
    cr_expect(strstr(nb_case_conflict(&c), "2^32"));
}

Test(case, rows_by_columns_are_positions_by_channels_for_batchnorm) {
    struct nb_case c = case_of(NB_OP_BATCHNORM, NB_F32);
    struct nb_call call;
    set(&c, "shape", "256x128");
    nb_case_call(&c, &call);
    cr_expect_eq(call.layout, NB_NHWC);
    cr_expect(call.n == 256 && call.c == 128 && call.hw == 1 && call.rows == 256 && call.cols == 128);
    cr_expect_str_eq(c.shape.text, "256x128");
}

Test(case, the_call_has_what_the_case_says) {
    struct nb_case c = case_of(NB_OP_ADD_RMSNORM, NB_BF16);
    struct nb_call call;
    set(&c, "shape", "2x3x[4x5]");
    set(&c, "stride", "7");
    set(&c, "eps", "1e-8");
    set(&c, "threads", "2");
    set(&c, "round_sum", "1");
    set(&c, "cast", "before");
    nb_case_call(&c, &call);
    cr_expect_eq(call.struct_size, sizeof call);
    cr_expect_eq(call.formula.struct_size, sizeof call.formula);
    cr_expect(call.rows == 6 && call.cols == 20 && call.n_threads == 2 && call.eps == 1e-8);
    cr_expect(call.x_stride == 27 && call.residual_stride == 27 && call.y_stride == 27 &&
              call.residual_out_stride == 27);
    cr_expect(call.formula.round_sum == 1 && call.formula.cast == NB_CAST_BEFORE && call.k == 20);
    cr_expect(!call.x && !call.y && !call.scratch);
}

Test(case, compulsory_bytes_are_tensors_parameters_and_statistics) {
    struct nb_case c = case_of(NB_OP_RMSNORM, NB_F32);
    set(&c, "shape", "64x384");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 64 * 384 * 4 + 384 * 4);
    c = case_of(NB_OP_LAYERNORM, NB_BF16);
    set(&c, "shape", "64x384");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 64 * 384 * 2 + 2 * 384 * 4, "parameters in f32");
    set(&c, "param_dtype", "x");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 64 * 384 * 2 + 2 * 384 * 2);
    c = case_of(NB_OP_ADD_RMSNORM, NB_F16);
    set(&c, "shape", "64x384");
    cr_expect_eq(nb_case_bytes(&c), 4.0 * 64 * 384 * 2 + 384 * 4);
    c = case_of(NB_OP_BATCHNORM, NB_F32);
    set(&c, "shape", "nchw:4x32x14x14");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 4 * 32 * 196 * 4 + 2 * 32 * 4 + 4 * 32 * 4);
    set(&c, "mode", "inference");
    cr_expect_eq(nb_case_bytes(&c), 2.0 * 4 * 32 * 196 * 4 + 2 * 32 * 4 + 2 * 32 * 4);
    struct nb_kernel triad = kernel_of(NB_OP_TWIN, NB_F32);
    triad.loads = 2;
    nb_case_init(&c);
    nb_case_set_kernel(&c, &triad, NULL);
    set(&c, "shape", "8x8");
    cr_expect_eq(nb_case_bytes(&c), 3.0 * 64 * 4);
}

Test(case, kernel_and_backend_are_read_from_the_variant) {
    struct nb_kernel kernel = kernel_of(NB_OP_RMSNORM, NB_BF16);
    struct nb_case c;
    kernel.variant = "my_fast_kernel_v256x_bf16";
    nb_case_init(&c);
    nb_case_set_kernel(&c, &kernel, "mine");
    char *kernel_name = value_of(&c, "kernel"), *backend = value_of(&c, "backend");
    cr_expect_str_eq(kernel_name, "mine:my_fast_kernel");
    cr_expect_str_eq(backend, "plugin:mine");
    cr_expect_str_eq(c.variant, "mine:my_fast_kernel_v256x_bf16");
    free(kernel_name);
    free(backend);
}

Test(case, the_shortest_text_reads_back_as_the_same_double) {
    const double values[] = {0, 0.1, 1.0 / 3, 1e-5, 123456789.25, 5e-324, 1.7976931348623157e308, 1e22, 0x1p-1022};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[32];
        nb_shortest_text(values[i], text);
        cr_expect_eq(strtod(text, NULL), values[i], "%s", text);
    }
    char text[32];
    nb_shortest_text(0.1, text);
    cr_expect_str_eq(text, "0.1");
}
