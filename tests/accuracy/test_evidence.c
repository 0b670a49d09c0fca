// SPDX-License-Identifier: Apache-2.0
/* Evidence for grades, from rows and outputs made by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/accuracy/evidence.h"
#include "src/core/dtype.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"

enum { COLS = 4 };
static const struct nb_range no_limit = {0, INFINITY, INFINITY};

/* One row of an op without parameters. */
struct setting {
    struct nb_case c;
    struct nb_inputs in;
    struct nb_oracle oracle;
    double y[COLS], tolerance[COLS];
    float computed[COLS];
};

static struct setting s; /* of the test */
static void set_up(uint32_t op, const char *affine, const float *x) {
    s.c = case_of(op, NB_F32);
    set(&s.c, "shape", "1x4");
    set(&s.c, "affine", affine);
    cr_assert_eq(nb_inputs_init(&s.in, &s.c), 0);
    memcpy(s.in.x, x, COLS * sizeof *x);
    cr_assert_eq(nb_oracle_init(&s.oracle, &s.c, &s.in), 0);
    nb_oracle_row(&s.oracle, 0, s.y);
    for (int i = 0; i < COLS; i++) {
        s.computed[i] = (float)s.y[i];
        s.tolerance[i] = 4 * nb_ulp(s.y[i], NB_F32);
    }
}

static struct nb_evidence take(const struct nb_range *claimed) {
    struct nb_evidence e;
    struct nb_evidence_sum *sum = nb_evidence_new(
        &s.c, &s.oracle, &(struct nb_evidence){.claimed = *claimed, .is_declared = isfinite(claimed->max_rho)});
    nb_evidence_row(sum, 0, s.computed, s.y, s.tolerance);
    nb_evidence_finish(sum, &e);
    nb_oracle_release(&s.oracle);
    nb_inputs_release(&s.in);
    return e;
}

Test(evidence, strange_elements_are_counted_apart) {
    set_up(NB_OP_RMSNORM, "none", (const float[]){1, 2, 3, 4});
    s.computed[0] = NAN;
    s.computed[1] = INFINITY;
    s.computed[2] = 0;
    const struct nb_evidence e = take(&no_limit);
    cr_assert_eq(e.n_nan, 1);
    cr_assert_eq(e.n_inf, 1);
    cr_assert_eq(e.n_zero, 1);
    cr_assert_eq(e.n_beyond, 3);
    cr_assert_eq(e.worst_col, 0);
    cr_assert(isinf(e.normwise_u));
}

Test(evidence, losses_that_the_formula_predicts_count_too) {
    set_up(NB_OP_RMSNORM, "none", (const float[]){1, 2, 3, 4});
    for (int i = 0; i < COLS; i++) {
        s.tolerance[i] = INFINITY;
        s.computed[i] = 0;
    }
    const struct nb_evidence e = take(&no_limit);
    cr_assert_eq(e.n_zero, COLS);
    cr_assert_eq(e.n_unbounded, COLS);
    cr_assert_eq(e.n_beyond, 0);
    cr_assert(isnan(e.bound_ratio));
}

Test(evidence, rows_that_are_not_finite_are_left_out) {
    set_up(NB_OP_RMSNORM, "none", (const float[]){1, INFINITY, 3, 4});
    const struct nb_evidence e = take(&no_limit);
    cr_assert_eq(e.n, 0);
    cr_assert_eq(e.n_rows_not_finite, 1);
    cr_assert_not(e.covered);
    cr_assert(isnan(e.max_ulp));
}

Test(evidence, an_element_that_cancels_is_measured_at_a_sixteenth_of_the_rms) {
    const float x[] = {-3, 3, -1, 1 + 0x1p-20f};
    set_up(NB_OP_LAYERNORM, "none", x);
    const float small = (float)s.y[3];
    s.y[3] = 0x1p-30; /* as if its exact value were almost nothing */
    s.computed[3] = 0x1p-30f + 0x1p-27f;
    const struct nb_evidence e = take(&no_limit);
    cr_assert_gt(small, 0);
    cr_assert_gt(e.max_ulp, 0x1p19);
    cr_assert_lt(e.componentwise_ulp, 4);
    cr_assert_gt(e.componentwise_ulp, 1);
}

Test(evidence, a_claim_covers_its_rows_alone) {
    const struct {
        struct nb_range claimed;
        bool covered;
    } claims[] = {
        {{1, 10, 4}, true},
        {{2, 10, 4}, false},
        {{1, 2, 4}, false},
        {{1, 10, 0.5}, false},
        {{0, INFINITY, INFINITY}, true},
    };
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        set_up(NB_OP_LAYERNORM, "none", (const float[]){1, 1, 3, 1}); /* rms sqrt(3), rho 1.73 */
        cr_assert_eq(take(&claims[i].claimed).covered, claims[i].covered, "claim %zu", i);
    }
}

Test(evidence, it_reads_back_from_json_with_its_infinities) {
    set_up(NB_OP_LAYERNORM, "none", (const float[]){7, 7, 7, 7});
    s.computed[1] = NAN;
    const struct nb_evidence e = take(&(struct nb_range){0.5, INFINITY, 64});
    struct nb_evidence back;
    cJSON *json = kept_json(nb_evidence_to_json(&e));
    cr_assert_eq(nb_evidence_from_json(&back, json), 0);
    cr_assert(isinf(e.max_rho) && isinf(back.max_rho));
    cr_assert(isinf(e.normwise_u) && isinf(back.normwise_u));
    cr_assert_eq(back.claimed.min_rms, 0.5);
    cr_assert(isinf(back.claimed.max_abs));
    cr_assert_eq(back.n_nan, 1);
    cr_assert_eq(back.covered, e.covered);
    cr_assert_eq(back.worst_col, e.worst_col);
    cJSON_ReplaceItemInObject(json, "nan", cJSON_CreateNumber(0.5));
    cr_assert_eq(nb_evidence_from_json(&back, json), -1);
}

/* mean/sd of these rows is 1000, of equal elements infinite: NaN there is a failure, unless the kernel declares that it does not take them. */
Test(evidence, NaN_of_finite_rows_is_excused_by_the_declared_range_alone) {
    static const struct {
        float x[COLS];
        struct nb_range claimed;
        int64_t n_broken;
    } rows[] = {
        {{999, 1001, 999, 1001}, {0, INFINITY, INFINITY}, 1},
        {{999, 1001, 999, 1001}, {0, INFINITY, 64}, 0},
        {{999, 1001, 999, 1001}, {0, INFINITY, 2000}, 1},
        {{999, 1001, 999, 1001}, {0, 500, 2000}, 0},
        {{1e30f, -1e30f, 1e30f, -1e30f}, {0, INFINITY, INFINITY}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_up(NB_OP_LAYERNORM, "none", rows[i].x);
        s.computed[1] = NAN;
        s.tolerance[1] = INFINITY;
        const struct nb_evidence e = take(&rows[i].claimed);
        cr_assert_eq(e.n_broken, rows[i].n_broken, "row %zu", i);
        cr_assert(e.n_broken == 0 || fabs(e.broken_rho - 1000) < 1, "row %zu: %g", i, e.broken_rho);
    }
}

/* Of y - beta; a single element that is off by more is the rest. */
Test(evidence, the_factor_of_a_row_is_measured) {
    static const char *const affines[] = {"none", "gamma", "gamma_beta"};
    for (size_t i = 0; i < 2 * sizeof affines / sizeof *affines; i++) {
        set_up(NB_OP_LAYERNORM, affines[i / 2], (const float[]){1, 2, 3, 7});
        for (int k = 0; k < COLS; k++) {
            const double beta = s.oracle.beta ? s.oracle.beta[k] : 0;
            s.computed[k] = (float)(beta + 0.99 * (s.y[k] - beta));
        }
        if (i % 2) s.computed[1] += 0.5F;
        const struct nb_evidence e = take(&no_limit);
        cr_expect((fabs(e.factor_low - 0.99) < 1e-6) == (i % 2 == 0), "%s: %g", affines[i / 2], e.factor_low);
        cr_expect((e.factor_rest < 1e-6) == (i % 2 == 0), "%s: %g", affines[i / 2], e.factor_rest);
        cr_expect_eq(e.factor_low, e.factor_high);
    }
}
