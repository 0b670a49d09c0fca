// SPDX-License-Identifier: Apache-2.0
/* Cases made by hand. */
#include "tests/support/cases.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/registry.h"
#include "src/lab/probe/probe.h"
#include "src/lab/probe/probe_box.h"
#include "tests/support/files.h"
#include "tests/support/numerics.h"
#include "tests/support/trials.h"

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

char *key_of(const struct nb_case *c) { return kept(nb_case_key(c)); }

char *value_of(const struct nb_case *c, const char *axis) { return kept(nb_case_axis_text(c, axis)); }

void set(struct nb_case *c, const char *axis, const char *text) {
    char reason[256] = "";
    cr_assert_eq(nb_axis_set(nb_axis_find(axis), c, text, reason, sizeof reason), 0, "%s=%s %s", axis, text, reason);
    nb_case_normalize(c);
}

/* One value of each field; a kernel that does not implement it is given the first value. */
static const struct nb_formula formulas[] = {
    {.root = NB_ROOT_MUL_RECIP, .affine = NB_AFFINE_GAMMA_BETA},
    {.root = NB_ROOT_DIV_SQRT, .eps_place = NB_EPS_OUTSIDE, .cast = NB_CAST_BEFORE, .affine = NB_AFFINE_GAMMA},
    {.root = NB_ROOT_RSQRT_NR, .weight_offset = 1, .affine = NB_AFFINE_GAMMA, .param = NB_PARAM_X, .round_sum = 1},
    {.root = NB_ROOT_DIV_SQRT, .eps_place = NB_EPS_CLAMP, .affine = NB_AFFINE_NONE, .round_sum = 1},
    {.root = NB_ROOT_MUL_RECIP,
     .cast = NB_CAST_BEFORE,
     .weight_offset = 1,
     .affine = NB_AFFINE_GAMMA_BETA,
     .param = NB_PARAM_X},
    {.root = NB_ROOT_RSQRT_RAW, .eps_place = NB_EPS_CLAMP, .cast = NB_CAST_BEFORE, .affine = NB_AFFINE_GAMMA_BETA},
    {.root = NB_ROOT_DIV_SQRT, .cast = NB_CAST_BEFORE, .weight_offset = 1, .affine = NB_AFFINE_GAMMA, .round_sum = 1},
    {.root = NB_ROOT_MUL_RECIP, .eps_place = NB_EPS_OUTSIDE, .affine = NB_AFFINE_GAMMA, .param = NB_PARAM_X},
};
enum { N_FORMULAS = sizeof formulas / sizeof formulas[0] };

/* What the kernel implements of a field stays, what it does not becomes its lowest value. */
static uint32_t implemented(uint32_t mask, uint32_t value) {
    if (mask == 0) return 0;
    return mask & 1u << value ? value : (uint32_t)__builtin_ctz(mask);
}
static struct nb_formula fit(const struct nb_formulas *can, struct nb_formula f) {
    f.struct_size = sizeof f;
    f.root = implemented(can->roots, f.root);
    f.eps_place = implemented(can->eps_places, f.eps_place);
    f.cast = implemented(can->casts, f.cast);
    f.weight_offset = implemented(can->weight_offsets, f.weight_offset);
    f.affine = implemented(can->affines, f.affine);
    f.param = implemented(can->params, f.param);
    f.round_sum = implemented(can->round_sums, f.round_sum);
    return f;
}

bool kernel_case(struct nb_case *c, const struct nb_entry *entry, const char *shape, size_t turn) {
    struct nb_call call;
    char reason[200];
    nb_case_init(c);
    cr_assert_eq(nb_shape_parse(&c->shape, shape, reason, sizeof reason), 0, "%s: %s", shape, reason);
    snprintf(c->data, sizeof c->data, "normal");
    c->seed = turn + 1;
    c->pad = (int64_t)(turn / 3 % 3) * 5;
    c->formula = fit(&entry->kernel->formulas, formulas[turn % N_FORMULAS]);
    c->mode = turn % 4 == 3 ? NB_INFERENCE : NB_TRAINING;
    c->k = c->shape.cols / 2 > 0 ? c->shape.cols / 2 : 1;
    snprintf(c->k_text, sizeof c->k_text, "%lld", (long long)c->k);
    nb_case_set_entry(c, entry);
    nb_case_call(c, &call);
    return !nb_case_conflict(c) && !nb_kernel_refuses(entry->kernel, &c->formula) &&
           !nb_kernel_applicable(entry->kernel, &call);
}

int probe_case(struct nb_case *c, const struct nb_entry *entry, struct nb_formula formula) {
    struct nb_call call;
    nb_case_init(c);
    snprintf(c->data, sizeof c->data, "normal");
    c->shape = (struct nb_shape){.layout = NB_ROWS, .rows = 1, .cols = NB_PROBE_COLS};
    snprintf(c->shape.text, sizeof c->shape.text, "1x%d", NB_PROBE_COLS);
    c->formula = fit(&entry->kernel->formulas, formula);
    nb_case_set_entry(c, entry);
    nb_case_call(c, &call);
    if (nb_probe_refuses(c) || nb_case_conflict(c) || nb_kernel_refuses(entry->kernel, &c->formula)) return -1;
    return nb_kernel_applicable(entry->kernel, &call) ? -1 : 0;
}

void each_kernel(bool (*is)(const struct nb_kernel *k), void (*check)(const struct nb_kernel *k)) {
    int n = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_kernel *k = nb_registry_at(i)->kernel;
        if (!is(k) || nb_cpu_refuses(k->cpu_features, k->width)) continue;
        check(k);
        n++;
    }
    cr_expect_gt(n, 0);
    nb_registry_release();
}

void fill_with_kinds(struct nb_inputs *in, struct nb_case *c, int first) {
    uint64_t r = (uint64_t)first + 5;
    const struct nb_shape *s = &c->shape;
    const bool channels = c->op == NB_OP_BATCHNORM;
    for (int64_t i = 0; i < in->rows * in->cols; i++) {
        const int64_t row = i / in->cols, col = i % in->cols;
        int64_t kind = row, at = col;
        if (channels && s->layout == NB_NCHW) kind = row % s->c, at = row / s->c * s->hw + col;
        if (channels && s->layout != NB_NCHW) kind = col, at = row;
        const double v = hard_value((int)((first + kind) % N_HARD_KINDS), at, channels ? s->n * s->hw : in->cols, &r);
        nb_set(in->x, i, in->dtype, in->residual ? v / 2 : v);
        if (in->residual) nb_set(in->residual, i, in->dtype, v / 2);
    }
    snprintf(c->data, sizeof c->data, "-"); /* not drawn */
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

static bool differentiates(const struct nb_case *c) { return c->pass == NB_BACKWARD && c->op != NB_OP_COPY; }

void solve(struct solved *s, bool of_all_kinds) {
    const char *key = key_of(&s->c);
    cr_assert_eq(nb_inputs_init(&s->in, &s->c), 0, "%s: no inputs", key);
    if (of_all_kinds) fill_with_kinds(&s->in, &s->c, 0);
    cr_assert_eq(nb_saved_statistics_add(&s->in, &s->c), 0, "%s: no statistics", key);
    cr_assert_eq(nb_oracle_init(&s->oracle, &s->c, &s->in), 0, "%s: no oracle", key);
    if (differentiates(&s->c))
        cr_assert_eq(nb_saved_statistics_gradient(&s->gradient, &s->c, &s->in), 0, "%s: no gradient", key);
}

void solve_key(struct solved *s, const char *key) {
    *s = (struct solved){0};
    cr_assert_eq(nb_case_parse(&s->c, key), 0, "%s", key);
    s->entry = entry_of("mistakes", s->c.variant);
    nb_case_set_entry(&s->c, s->entry);
    solve(s, false);
}

struct nb_checked checked_by(const struct solved *s) {
    struct nb_checked checked;
    const struct nb_exact exact = {.oracle = &s->oracle, .gradient = differentiates(&s->c) ? &s->gradient : NULL};
    nb_check_case(&s->c, s->entry, &s->in, &exact, &checked);
    return checked;
}

void solved_release(struct solved *s) {
    nb_gradient_release(&s->gradient);
    nb_oracle_release(&s->oracle);
    nb_inputs_release(&s->in);
}

struct nb_metamorphic related_by(const char *key) {
    struct solved s released_by(solved_release);
    struct nb_metamorphic m;
    solve_key(&s, key);
    nb_metamorphic_check(&s.c, s.entry, &s.oracle, &m);
    return m;
}
