// SPDX-License-Identifier: Apache-2.0
/* The figures of each format, and that a wrong figure or wrong arithmetic is not called right. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/lab/limits/limits.h"
#include "tests/support/numerics.h"
#include "tests/support/sparsely.h"

static const struct nb_limit_rule *rule_named(const char *id) {
    size_t i = 0;
    while (nb_limit_rule_at(i) && strcmp(nb_limit_rule_at(i)->id, id) != 0) i++;
    return nb_limit_rule_at(i);
}

static struct nb_limit line_of(const struct nb_limits *l, const char *id, bool verified) {
    const struct nb_limit_rule *rule = rule_named(id);
    struct nb_limit line;
    cr_assert(rule, "no rule %s", id);
    nb_limit_predict(rule, l, &line);
    if (verified) nb_limit_verify(rule, l, &line);
    return line;
}

static struct nb_limit limit(enum nb_op op, enum nb_number dtype, double eps, const char *id) {
    struct nb_limits l;
    nb_limits_init(&l, op, dtype, 4096, eps);
    return line_of(&l, id, true);
}

/* ---- figures ----------------------------------------------------------------------------------------------------------- */

struct figure {
    const char *id;
    enum nb_op op;
    double want[5]; /* f32, f16, bf16, e5m2, e4m3; NaN: never or does not apply */
};
static const enum nb_number formats[] = {NB_NUM_F32, NB_NUM_F16, NB_NUM_BF16, NB_NUM_E5M2, NB_NUM_E4M3};

/* Where it begins, as a number of the format. Written as exact numbers where they have a short form. */
static const struct figure figures[] = {
    {"square_overflow", NB_OP_RMSNORM, {0x1p64, 256, 0x1p64, 256, 22}},
    {"square_vanishes", NB_OP_RMSNORM, {0x1p-75, 0x1.6ap-13, 0x1p-67, 0x1.4p-9, 0x1p-5}},
    {"square_subnormal", NB_OP_RMSNORM, {0x1.fffffep-64, 0x1.ffcp-8, 0x1.fep-64, 0x1.cp-8, 0x1.ep-4}},
    {"sum_overflow", NB_OP_RMSNORM, {0x1p58, 4, 0x1p58, 4, 0.34375}},
    {"mean_overflow", NB_OP_LAYERNORM, {0x1p116, 16, 0x1p116, 16, 0.1171875}},
    {"stagnation", NB_OP_RMSNORM, {0x1p24, 2048, 256, 8, 16}},
    {"onepass_breaks", NB_OP_LAYERNORM, {4096, 46, 16, 2, 4}},
    {"output_overflow", NB_OP_RMSNORM, {0x1p122, 1024, 0x1p122, 1024, 7.5}},
    {"eps_survives",
     NB_OP_RMSNORM,
     {0x1.0000000000001p-150, 0x1.0000000000001p-25, 0x1.0000000000001p-134, 0x1.0000000000001p-17,
      0x1.0000000000001p-10}},
    {"root_overflow", NB_OP_RMSNORM, {NAN, NAN, NAN, NAN, NAN}},
};

Test(limits, the_figures_of_five_formats_hold) {
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        for (int f = 0; f < 5; f++) {
            const struct nb_limit line = limit(figures[i].op, formats[f], 1e-5, figures[i].id);
            const double want = figures[i].want[f];
            const char *const name = nb_numbers[formats[f]].name;
            cr_expect(line.from == want || (isnan(line.from) && isnan(want)), "%s %s: %.17g (%a), not %a", name,
                      line.id, line.from, line.from, want);
            cr_expect_eq(line.state, NB_LIMIT_HOLDS, "%s %s: %s; %s", name, line.id, line.at, line.beyond);
        }
}

struct stored {
    double eps;
    double f32_absorbed, f16, f16_absorbed, bf16_error, bf16_absorbed;
};
static const struct stored stored[] = {
    {1e-3, 0x1p15, 1e-3 * 1.0004, 4, -0.0005, 0.5},
    {1e-5, 256, 168 * 0x1p-24, 0x1p-5, 0.0014, 0x1p-8},
    {1e-8, 0.25, 0, NAN, 0.0012, 0x1p-18},
};

Test(limits, eps_as_held_and_where_it_is_absorbed) {
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        const struct stored *s = &stored[i];
        const struct nb_limit f16 = limit(NB_OP_RMSNORM, NB_NUM_F16, s->eps, "eps_stored"),
                              bf16 = limit(NB_OP_RMSNORM, NB_NUM_BF16, s->eps, "eps_stored");
        cr_expect_float_eq(f16.from, s->f16, 1e-4 * s->f16, "%g: %.9g", s->eps, f16.from);
        cr_expect_float_eq(bf16.from / s->eps - 1, s->bf16_error, 6e-5, "%g: %.9g", s->eps, bf16.from);
        cr_expect_eq(f16.state, NB_LIMIT_HOLDS);
        cr_expect_eq(bf16.state, NB_LIMIT_HOLDS);
        cr_expect_eq(limit(NB_OP_RMSNORM, NB_NUM_F32, s->eps, "eps_absorbed").from, s->f32_absorbed);
        cr_expect_eq(limit(NB_OP_RMSNORM, NB_NUM_BF16, s->eps, "eps_absorbed").from, s->bf16_absorbed);
        const struct nb_limit absorbed = limit(NB_OP_RMSNORM, NB_NUM_F16, s->eps, "eps_absorbed");
        cr_expect(absorbed.from == s->f16_absorbed || (isnan(absorbed.from) && isnan(s->f16_absorbed)));
        cr_expect_eq(absorbed.state, isnan(s->f16_absorbed) ? NB_LIMIT_ABSENT : NB_LIMIT_HOLDS);
    }
}

Test(limits, subnormal_eps_is_lost_where_subnormals_are_flushed) {
    struct nb_limits l;
    nb_limits_init(&l, NB_OP_RMSNORM, NB_NUM_F16, 64, 1e-5);
    cr_expect_eq(line_of(&l, "eps_stored", true).from, 168 * 0x1p-24);
    l.design.flush = true;
    cr_expect_eq(line_of(&l, "eps_stored", true).from, 0);
    const struct nb_limit survives = line_of(&l, "eps_survives", true);
    cr_expect_eq(survives.from, 0x1p-14 - 0x1p-25);
    cr_expect_eq(survives.state, NB_LIMIT_HOLDS, "%s; %s", survives.at, survives.beyond);
}

/* Statistics in f32, 1 / sqrt in f16: an eps of 1e-12 in a row of zeros is infinite. */
Test(limits, a_narrow_root_of_wide_statistics_overflows) {
    struct nb_limits l;
    nb_limits_init(&l, NB_OP_RMSNORM, NB_NUM_F16, 64, 1e-12);
    l.design.stat = l.design.acc = l.design.square = NB_NUM_F32;
    const struct nb_limit line = line_of(&l, "root_overflow", true);
    cr_expect_float_eq(line.from, 256.5 * 256.5 * 0x1p-48, 1e-16); /* its root is the subnormal 2^-16 */
    cr_expect_eq(line.state, NB_LIMIT_HOLDS, "%s; %s", line.at, line.beyond);
}

Test(limits, every_line_holds_for_designs_in_use) {
    char designs[] = "rmsnorm layernorm/all:f16 layernorm/store:f16/acc:f32x8/variance:onepass "
                     "rmsnorm/all:bf16/order:pairwise rmsnorm/all:f16/order:blocked layernorm/all:bf16/order:kahan "
                     "layernorm/store:bf16/flush:1";
    int n = 0;
    for (const char *text = strtok(designs, " "); text; text = strtok(NULL, " ")) {
        struct nb_limits l;
        if (n++ % sparsely()) continue;
        const struct nb_design d = parsed(text);
        nb_limits_init(&l, d.op, d.store, 256, 1e-6);
        l.design = d;
        for (size_t r = 0; nb_limit_rule_at(r); r++) {
            const struct nb_limit line = line_of(&l, nb_limit_rule_at(r)->id, true);
            cr_expect_neq(line.state, NB_LIMIT_BROKEN, "%s %s: %s; %s", text, line.id, line.at, line.beyond);
            cr_expect_neq(line.meaning[0], '\0', "%s says nothing", line.id);
        }
    }
}

/* ---- a wrong line is not called right ------------------------------------------------------------------------------------ */

Test(limits, a_threshold_moved_by_one_step_does_not_hold) {
    static const char *const ids[] = {"square_overflow", "square_vanishes", "square_subnormal", "sum_overflow",
                                      "mean_overflow",   "output_overflow", "eps_absorbed",     "root_cubed",
                                      "onepass_breaks",  "stagnation"};
    struct nb_limits l;
    nb_limits_init(&l, NB_OP_LAYERNORM, NB_NUM_F16, 1000, 1e-5);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const struct nb_limit_rule *rule = rule_named(ids[i]);
        const struct nb_limit right = line_of(&l, ids[i], true);
        struct nb_limit wrong = right;
        cr_expect_eq(right.state, NB_LIMIT_HOLDS, "%s: %s; %s", ids[i], right.at, right.beyond);
        wrong.from = right.safe;
        nb_limit_verify(rule, &l, &wrong);
        cr_expect_eq(wrong.state, NB_LIMIT_BROKEN, "%s begins at %.9g and is said to hold from %.9g", ids[i],
                     right.from, wrong.from);
        wrong = right;
        wrong.safe = right.from;
        nb_limit_verify(rule, &l, &wrong);
        cr_expect_eq(wrong.state, NB_LIMIT_BROKEN, "%s: %.9g is said to be safe", ids[i], wrong.safe);
    }
}
