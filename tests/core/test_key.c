// SPDX-License-Identifier: Apache-2.0
/* Axes and keys: what is written is what is read, for every axis and every kind of op. */
#include <criterion/criterion.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"

/* Values that each axis has to carry through a key: all of its choices, and awkward ones where the text is free. */
static const char *const *values_of_axis(const struct nb_axis *axis, uint32_t op) {
    static const char *const shapes[] = {"1x1", "64x384", "2x3x[4x5]", "[7]", "4096x65536", NULL};
    static const char *const images[] = {"nchw:8x64x28x28", "nhwc:4x7x7x16", "nchw:3x5", "12x34", NULL};
    static const char *const data[] = {
        "normal",    "values(1,-0,0x1p-24)", "minilm_layer0_out", "offset(100)", "/tmp/a file/x.npy", "100%/%2F:eps:1",
        "tab\there", "\xc3\xa9.npy",         "a=b,c[*]?",         NULL};
    static const char *const seeds[] = {"0", "1", "18446744073709551615", NULL};
    static const char *const eps[] = {"0", "1e-5", "1E-05", "0.000001", "0x1p-7", "999999.5", "1e-45", NULL};
    static const char *const reals[] = {"0", "0.1", "0.5", "1", NULL};
    static const char *const k[] = {"6.25%", "100%", "1", "20", "0.0001%", NULL};
    static const char *const stride[] = {"packed", "1", "64", "1048576", NULL};
    static const char *const params[] = {"drawn",       "negative",           "zeros",          "tiny",
                                         "fixed(-1.5)", "fixed(1e10,0x1p-3)", "values(2,-0.5)", NULL};
    static const char *const threads[] = {"1", "2", "1024", NULL};
    static const struct {
        const char *name;
        const char *const *values;
    } free_texts[] = {{"shape", shapes},   {"data", data},     {"seed", seeds},    {"eps", eps},
                      {"alpha", reals},    {"k", k},           {"stride", stride}, {"threads", threads},
                      {"momentum", reals}, {"images", images}, {"params", params}, {"dy", data}};
    if (axis->choices) return axis->choices;
    const char *name = op == NB_OP_BATCHNORM && strcmp(axis->name, "shape") == 0 ? "images" : axis->name;
    for (size_t i = 0; i < sizeof free_texts / sizeof free_texts[0]; i++)
        if (strcmp(free_texts[i].name, name) == 0) return free_texts[i].values;
    cr_assert_fail("axis %s has no values in this test", axis->name);
    return NULL;
}

static void goes_through_a_key(const struct nb_case *c, const struct nb_kernel *kernel) {
    struct nb_case back;
    char *key = key_of(c);
    for (const char *p = key; *p; p++) cr_assert(*p > ' ' && *p < 0x7f, "key with a blank or a control: %s", key);
    cr_assert_eq(nb_case_parse(&back, key), 0, "%s", key);
    cr_assert_str_eq(back.variant, c->variant);
    nb_case_set_kernel(&back, kernel, NULL);
    cr_assert(same_case(&back, c), "not the same case again: %s", key);
    cr_assert_str_eq(key_of(&back), key);
}

Test(key, every_value_of_every_axis_goes_through_a_key_for_every_op_and_dtype) {
    size_t n = 0;
    for (uint32_t op = 0; op < NB_N_OPS; op++)
        for (uint32_t dtype = 0; dtype < NB_N_DTYPES; dtype++)
            for (size_t a = 0; a < nb_n_axes; a++) {
                const struct nb_axis *axis = &nb_axes[a];
                const struct nb_kernel kernel = kernel_of(op, dtype);
                const struct nb_case base = case_of(op, dtype);
                if (axis->kind != NB_AXIS_CELL) continue;
                for (const char *const *value = values_of_axis(axis, op); *value; value++) {
                    struct nb_case c = base;
                    set(&c, axis->name, *value);
                    goes_through_a_key(&c, &kernel);
                    n++;
                }
            }
    cr_assert_gt(n, 1000);
}

Test(key, a_key_has_only_what_means_something) {
    struct nb_case copy = case_of(NB_OP_COPY, NB_F32), dyt = case_of(NB_OP_DYT, NB_F32),
                   rms = case_of(NB_OP_RMSNORM, NB_BF16);
    char *key = key_of(&copy);
    cr_expect_str_eq(key, "some_kernel_v256_f32/shape:1024x1024/data:normal/seed:1/stride:packed/threads:1/cache:hot");
    key = key_of(&dyt);
    cr_expect(strstr(key, "/alpha:0.5") && !strstr(key, "/eps") && !strstr(key, "/root") && !strstr(key, "/cast"), "%s",
              key);
    key = key_of(&rms);
    cr_expect(strstr(key, "/cast:after") && strstr(key, "/param_dtype:f32") && !strstr(key, "/k:") &&
                  !strstr(key, "/mode"),
              "%s", key);
}

Test(key, bad_values_are_refused_with_what_would_be_right) {
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
        {"root", "div_sqr", "one of div_sqrt"},
        {"cast", "befor", "one of after, before"},
        {"eps_place", "insid", "one of inside"},
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
        int result = nb_axis_set(nb_axis_find(wants[i].axis), &c, wants[i].value, reason, sizeof reason);
        cr_expect_eq(result, -1, "%s=%s was taken", wants[i].axis, wants[i].value);
        cr_expect(strstr(reason, wants[i].words), "%s=%s: %s", wants[i].axis, wants[i].value, reason);
        cr_expect(same_case(&c, &before), "%s=%s changed the case", wants[i].axis, wants[i].value);
    }
}

Test(key, parts_are_shown_as_they_were_given) {
    static const char *const keys[] = {"a_f32/shape:4x8/k:6.25%25/eps:0", "a_f32/shape:4x8/k:6.25%25/eps:1"};
    struct nb_key_parts two released_by(nb_key_parts_release) = {0}, one released_by(nb_key_parts_release) = {0};
    struct nb_strbuf common released_by(nb_strbuf_release) = {0}, own released_by(nb_strbuf_release) = {0};
    nb_key_parts_init(&two, keys, 2);
    nb_key_parts_common(&two, &common);
    cr_expect_str_eq(common.text, "shape 4x8, k 6.25%");
    nb_key_parts_init(&one, &keys[1], 1);
    nb_key_parts_short(&one, "b_f32/data:%2Ftmp%2Fx.npy/eps:1", &own);
    cr_expect_str_eq(own.text, "b_f32 data:/tmp/x.npy");
}

static void key_is_refused(const char *key, const char *words) {
    struct nb_case c;
    expect_refused(nb_case_parse(&c, key), key, words);
}

Test(key, broken_keys_are_refused_with_the_part_that_is_wrong) {
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
