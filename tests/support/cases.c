// SPDX-License-Identifier: Apache-2.0
/* Cases made by hand. */
#include "tests/support/cases.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/files.h"

struct nb_kernel kernel_of(uint32_t op, uint32_t dtype) {
    return (struct nb_kernel){.struct_size = sizeof(struct nb_kernel),
                              .op = op,
                              .dtype = dtype,
                              .width = NB_256,
                              .name = "some_kernel",
                              .variant = "some_kernel_v256_f32",
                              .loads = 1,
                              .stores = 1};
}

struct nb_case case_of(uint32_t op, uint32_t dtype) {
    const struct nb_kernel kernel = kernel_of(op, dtype);
    struct nb_case c;
    nb_case_init(&c);
    c.formula.affine = NB_N_AFFINES;
    nb_case_set_kernel(&c, &kernel, NULL);
    return c;
}

char *key_of(const struct nb_case *c) {
    struct nb_strbuf key = {0};
    nb_case_key(c, &key);
    return kept(key.text);
}

char *value_of(const struct nb_case *c, const char *axis) {
    struct nb_strbuf value = {0};
    nb_case_axis(c, axis, &value);
    return kept(value.text);
}

void set(struct nb_case *c, const char *axis, const char *text) {
    char reason[256] = "";
    cr_assert_eq(nb_axis_set(nb_axis_find(axis), c, text, reason, sizeof reason), 0, "%s=%s %s", axis, text, reason);
    nb_case_normalize(c);
}

static bool same_shape(const struct nb_shape *a, const struct nb_shape *b) {
    return a->layout == b->layout && a->rows == b->rows && a->cols == b->cols && a->n == b->n && a->c == b->c &&
           a->hw == b->hw && strcmp(a->text, b->text) == 0;
}

bool same_case(const struct nb_case *a, const struct nb_case *b) {
    return strcmp(a->variant, b->variant) == 0 && a->op == b->op && a->pass == b->pass && a->dtype == b->dtype &&
           a->width == b->width && same_shape(&a->shape, &b->shape) && a->eps == b->eps && a->alpha == b->alpha &&
           memcmp(&a->formula, &b->formula, sizeof a->formula) == 0 && a->momentum == b->momentum && a->k == b->k &&
           strcmp(a->eps_text, b->eps_text) == 0 && strcmp(a->k_text, b->k_text) == 0 && a->mode == b->mode &&
           a->pad == b->pad && a->threads == b->threads && a->cache == b->cache && strcmp(a->data, b->data) == 0 &&
           a->seed == b->seed;
}
