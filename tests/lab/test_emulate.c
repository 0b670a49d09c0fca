// SPDX-License-Identifier: Apache-2.0
/* The emulator in f32 against the same algorithms in plain C, written here once more, and against the kernels. Mixed
 * formats are in test_emulate_mixed.c, the laws that errors follow are in test_emulate_laws.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/registry.h"
#include "src/lab/emulate/emulate.h"
#include "tests/support/numerics.h"

enum { N = 1000 };

static struct nb_design parsed(const char *text) {
    struct nb_design d;
    cr_assert_eq(nb_design_parse(&d, text), 0, "%s", text);
    return d;
}

struct row {
    float x[N], gamma[N], beta[N];
    double wide_x[N], wide_gamma[N], wide_beta[N];
};

static void row_fill(struct row *r, double mean, uint64_t seed) {
    struct random_state random = {seed};
    for (int i = 0; i < N; i++) {
        r->wide_x[i] = (double)(r->x[i] = (float)(mean + random_normal(&random)));
        r->wide_gamma[i] = (double)(r->gamma[i] = (float)(1 + 0.3 * random_normal(&random)));
        r->wide_beta[i] = (double)(r->beta[i] = (float)(0.1 * random_normal(&random)));
    }
}

/* ---- plain C ----------------------------------------------------------------------------------------------------------- */

static float term(float x, bool squared) { return squared ? x * x : x; }

static float sum_lanes(const float *x, int n, int lanes, bool squared, bool fused) {
    float s[64] = {0};
    for (int i = 0; i < n; i++)
        s[i % lanes] = fused ? fmaf(x[i], x[i], s[i % lanes]) : s[i % lanes] + term(x[i], squared);
    for (; lanes > 1; lanes /= 2)
        for (int i = 0; i < lanes / 2; i++) s[i] = s[2 * i] + s[2 * i + 1];
    return s[0];
}

static float sum_pairwise(const float *x, int n, bool squared) {
    if (n <= 8) return sum_lanes(x, n, 1, squared, false);
    return sum_pairwise(x, n / 2, squared) + sum_pairwise(x + n / 2, n - n / 2, squared);
}

static float sum_blocked(const float *x, int n, bool squared) {
    float s = 0;
    for (int i = 0; i < n; i += 64) s += sum_lanes(x + i, n - i < 64 ? n - i : 64, 1, squared, false);
    return s;
}

static float sum_kahan(const float *x, int n, bool squared) {
    float s = 0, c = 0;
    for (int i = 0; i < n; i++) {
        const float y = term(x[i], squared) - c, t = s + y;
        c = (t - s) - y;
        s = t;
    }
    return s;
}

enum order { LANES_1, LANES_16, PAIRWISE, BLOCKED, KAHAN, FUSED, N_ORDERS };
static const char *const order_texts[] = {
    "", "/acc:f32x16", "/order:pairwise", "/order:blocked/leaf:64", "/order:kahan", "/fma:1"};

static float sum(const float *x, int n, bool squared, enum order order) {
    switch (order) {
    case LANES_16:
        return sum_lanes(x, n, 16, squared, false);
    case PAIRWISE:
        return sum_pairwise(x, n, squared);
    case BLOCKED:
        return sum_blocked(x, n, squared);
    case KAHAN:
        return sum_kahan(x, n, squared);
    default:
        return sum_lanes(x, n, 1, squared, squared && order == FUSED);
    }
}

struct statistics {
    float mean, residual, var;
};

static void about(const float *x, float centre, float *d) {
    for (int i = 0; i < N; i++) d[i] = x[i] - centre;
}

static struct statistics two_pass(const float *x, enum order order, bool corrected) {
    float d[N];
    struct statistics s = {.mean = sum(x, N, false, order) / N};
    about(x, s.mean, d);
    float squares = sum(d, N, true, order);
    if (corrected) {
        const float rest = sum(d, N, false, order);
        s.residual = rest / N;
        squares = order == FUSED ? fmaf(-s.residual, rest, squares) : squares - s.residual * rest;
    }
    s.var = squares / N;
    return s;
}

static struct statistics one_pass(const float *x, enum order order, bool shifted) {
    float d[N];
    about(x, shifted ? x[0] : 0, d);
    const float mean = sum(d, N, false, order) / N;
    return (struct statistics){.mean = shifted ? x[0] + mean : mean, .var = sum(d, N, true, order) / N - mean * mean};
}

static struct statistics welford(const float *x, bool fused) {
    float mean = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        const float before = x[i] - mean;
        mean += before / (float)(i + 1);
        const float after = x[i] - mean;
        squares = fused ? fmaf(before, after, squares) : squares + before * after;
    }
    return (struct statistics){.mean = mean, .var = squares / N};
}

/* ---- bit for bit ------------------------------------------------------------------------------------------------------- */

static void expect_same(const char *text, const struct nb_emulated *e, const struct statistics *s) {
    cr_expect_eq(e->mean, (double)s->mean, "%s: mean %a, not %a", text, e->mean, (double)s->mean);
    cr_expect_eq(e->var, (double)s->var, "%s: variance %a, not %a", text, e->var, (double)s->var);
}

static void check_elements(const char *text, const struct row *r, const struct statistics *s, bool affine, bool fused) {
    const struct nb_design d = parsed(text);
    double y[N];
    const struct nb_emulated e =
        nb_emulate_row(&d, N, r->wide_x, affine ? r->wide_gamma : NULL, affine ? r->wide_beta : NULL, y, 1);
    const float rstd = 1 / sqrtf(s->var + 1e-5f);
    expect_same(text, &e, s);
    cr_expect_eq(e.rstd, (double)rstd);
    for (int i = 0; i < N; i++) {
        float want = ((r->x[i] - s->mean) - s->residual) * rstd;
        if (affine) want = fused ? fmaf(want, r->gamma[i], r->beta[i]) : want * r->gamma[i] + r->beta[i];
        cr_assert_eq(y[i], (double)want, "%s, element %d: %a, not %a", text, i, y[i], (double)want);
    }
}

static void check_algorithms(double mean) {
    static struct row r;
    row_fill(&r, mean, 31);
    for (int o = 0; o < N_ORDERS; o++) {
        const enum order order = (enum order)o;
        char text[96];
        const bool fused = order == FUSED;
        const struct statistics rms = {.var = sum(r.x, N, true, order) / N};
        snprintf(text, sizeof text, "rmsnorm%s", order_texts[o]);
        check_elements(text, &r, &rms, true, fused);
        const struct statistics each[] = {two_pass(r.x, order, false), two_pass(r.x, order, true),
                                          one_pass(r.x, order, false), one_pass(r.x, order, true)};
        static const char *const names[] = {"twopass", "corrected", "onepass", "shifted"};
        for (int a = 0; a < 4; a++) {
            snprintf(text, sizeof text, "layernorm/variance:%s%s", names[a], order_texts[o]);
            if (each[a].var + 1e-5f > 0) check_elements(text, &r, &each[a], true, fused);
        }
    }
    const struct statistics running = welford(r.x, false), fused = welford(r.x, true);
    check_elements("welford", &r, &running, true, false);
    check_elements("welford/fma:1", &r, &fused, true, true);
    check_elements("welford", &r, &running, false, false);
}
Test(emulate, f32_is_plain_c_bit_for_bit_about_zero) { check_algorithms(0); }
Test(emulate, f32_is_plain_c_bit_for_bit_far_from_zero) { check_algorithms(300); }

/* Lanes, halves and blocks merged by Chan's formula: exact on small integers, where nothing is rounded but the quotients. */
Test(emulate, merged_welford_is_exact_where_nothing_is_rounded) {
    static const char *const texts[] = {"welford/lanes:4", "welford/order:pairwise/leaf:4",
                                        "welford/order:blocked/leaf:4", "welford/acc:f64x4/stat:f64/square:f64"};
    double x[16], y[16];
    for (int i = 0; i < 16; i++) x[i] = i / 4 % 2 ? 3 : -1; /* each lane, half and block has a mean of its own */
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        const struct nb_design d = parsed(texts[t]);
        const struct nb_emulated e = nb_emulate_row(&d, 16, x, NULL, NULL, y, 1);
        cr_expect_eq(e.mean, 1, "%s: mean %g", texts[t], e.mean);
        cr_expect_eq(e.var, 4, "%s: variance %g", texts[t], e.var);
    }
}

Test(emulate, roots_and_places_of_eps_are_plain_c) {
    static struct row r;
    double y[N];
    row_fill(&r, 0, 32);
    const float v = sum(r.x, N, true, LANES_1) / N, eps = 0.25f;
    const float inside = sqrtf(v + eps), outside = sqrtf(v) + eps, clamped = fmaxf(sqrtf(v), 4.0f);
    const struct {
        const char *text;
        float divisor, factor;
    } forms[] = {{"rmsnorm/eps:0.25", 0, 1 / inside},
                 {"rmsnorm/eps:0.25/root:div_sqrt", inside, 0},
                 {"rmsnorm/eps:0.25/eps_place:outside", 0, 1 / outside},
                 {"rmsnorm/eps:0.25/eps_place:outside/root:div_sqrt", outside, 0},
                 {"rmsnorm/eps:4/eps_place:clamp", 0, 1 / clamped}};
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        const struct nb_design d = parsed(forms[f].text);
        nb_emulate_row(&d, N, r.wide_x, r.wide_gamma, NULL, y, 1);
        for (int i = 0; i < N; i++) {
            const float xhat = forms[f].divisor > 0 ? r.x[i] / forms[f].divisor : r.x[i] * forms[f].factor;
            cr_assert_eq(y[i], (double)(xhat * r.gamma[i]), "%s", forms[f].text);
        }
    }
}

Test(emulate, an_estimate_has_12_bits_and_a_newton_step_23) {
    struct random_state r = {33};
    const struct nb_design raw = parsed("rmsnorm/root:rsqrt_raw/eps:0"), nr = parsed("rmsnorm/root:rsqrt_nr/eps:0");
    double worst_raw = 0, worst_nr = 0;
    for (int i = 0; i < 20000; i++) {
        const double x = nb_number_round(ldexp(1 + random_uniform(&r), i % 40 - 20), 0, NB_NUM_F32, NB_ROUND_ZERO, 0);
        double y;
        worst_raw = fmax(worst_raw, fabs(nb_emulate_row(&raw, 1, &x, NULL, NULL, &y, 1).rstd * x - 1));
        worst_nr = fmax(worst_nr, fabs(nb_emulate_row(&nr, 1, &x, NULL, NULL, &y, 1).rstd * x - 1));
    }
    cr_expect(worst_raw > 0x1p-13 && worst_raw <= 0x1.01p-12, "%g", worst_raw);
    cr_expect(worst_nr > 0x1p-25 && worst_nr < 4 * 0x1p-24, "%g", worst_nr);
}

Test(emulate, folding_and_casts_are_plain_c) {
    static struct row r;
    double y[N];
    row_fill(&r, 50, 34);
    const struct statistics s = two_pass(r.x, LANES_1, false);
    const float rstd = 1 / sqrtf(s.var + 1e-5f);
    struct nb_design d = parsed("layernorm/folded:1");
    nb_emulate_row(&d, N, r.wide_x, r.wide_gamma, r.wide_beta, y, 1);
    for (int i = 0; i < N; i++) {
        const float a = r.gamma[i] * rstd, b = -s.mean * a + r.beta[i];
        cr_assert_eq(y[i], (double)(r.x[i] * a + b));
    }
    d = parsed("llama"); /* x and gamma as bf16 has them */
    float x[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(r.wide_x[i] = nb_round_to(r.wide_x[i], NB_BF16));
        r.wide_gamma[i] = nb_round_to(r.wide_gamma[i], NB_BF16);
    }
    const float scale = 1 / sqrtf(sum(x, N, true, LANES_1) / N + 1e-5f);
    nb_emulate_row(&d, N, r.wide_x, r.wide_gamma, NULL, y, 1);
    for (int i = 0; i < N; i++) {
        const double xhat = nb_round_to((double)(x[i] * scale), NB_BF16);
        cr_assert_eq(y[i], nb_round_to(xhat * r.wide_gamma[i], NB_BF16));
    }
    d = parsed("gemma_bf16");
    nb_emulate_row(&d, N, r.wide_x, r.wide_gamma, NULL, y, 1);
    for (int i = 0; i < N; i++) {
        const float weight = (float)nb_round_to(1 + r.wide_gamma[i], NB_BF16);
        cr_assert_eq(y[i], nb_round_to((double)(x[i] * scale * weight), NB_BF16));
    }
}

/* ---- the kernels ------------------------------------------------------------------------------------------------------- */

static void check_kernel(const char *variant, const char *text, uint32_t affine, enum nb_dtype dtype) {
    enum { ROWS = 4, COLS = 777 };
    const struct nb_entry *entry = nb_registry_find(variant);
    if (!entry) cr_skip_test("%s is not built", variant);
    struct problem p;
    struct nb_call call;
    problem_init(&p, entry->kernel->op, dtype, ROWS, COLS);
    problem_fill_normal(&p, 1.5, 2, 35);
    p.c.formula.affine = affine;
    nb_case_call(&p.c, &call);
    void *stored = calloc(ROWS * COLS, sizeof(float));
    call.x = p.in.x;
    call.y = stored;
    call.gamma = p.in.gamma_f32;
    call.beta = p.in.beta_f32;
    cr_assert_eq(entry->kernel->run(&call, 0, 0, ROWS), 0);
    const struct nb_design d = parsed(text);
    double x[COLS], gamma[COLS], beta[COLS], y[COLS];
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLS; i++) {
            x[i] = nb_get(p.in.x, row * COLS + i, dtype);
            gamma[i] = (double)p.in.gamma_f32[i];
            beta[i] = (double)p.in.beta_f32[i];
        }
        nb_emulate_row(&d, COLS, x, affine == NB_AFFINE_NONE ? NULL : gamma,
                       affine == NB_AFFINE_GAMMA_BETA ? beta : NULL, y, 1);
        for (int i = 0; i < COLS; i++) {
            const double got = nb_get(stored, row * COLS + i, dtype);
            cr_assert_eq(y[i], got, "%s, element %d: design %a, kernel %a", variant, i, y[i], got);
        }
    }
    free(stored);
    problem_free(&p);
}

/* What a kernel does is written in its file; a design of the same words gives its bits. */
Test(emulate, designs_of_the_scalar_kernels_have_their_bits, .fini = nb_registry_release) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    check_kernel("rmsnorm_twopass_scalar_f32", "rmsnorm/fma:1/lanes:8", NB_AFFINE_GAMMA, NB_F32);
    check_kernel("rmsnorm_twopass_scalar_bf16", "rmsnorm/fma:1/lanes:8/store:bf16", NB_AFFINE_GAMMA, NB_BF16);
    check_kernel("rmsnorm_twopass_scalar_f16", "rmsnorm/fma:1/lanes:8/store:f16", NB_AFFINE_GAMMA, NB_F16);
    check_kernel("rmsnorm_serial_scalar_f32", "rmsnorm/fma:1", NB_AFFINE_GAMMA, NB_F32);
    check_kernel("rmsnorm_lowp_scalar_bf16", "rmsnorm/all:bf16/weight:f32/scale:f32/cast:before", NB_AFFINE_NONE,
                 NB_BF16);
    check_kernel("layernorm_twopass_scalar_f32", "layernorm/fma:1/lanes:8", NB_AFFINE_GAMMA_BETA, NB_F32);
    check_kernel("layernorm_onepass_scalar_f32", "naive/fma:1/lanes:4", NB_AFFINE_GAMMA_BETA, NB_F32);
    check_kernel("layernorm_shifted_scalar_f32", "layernorm/variance:shifted/fma:1/lanes:4", NB_AFFINE_GAMMA_BETA,
                 NB_F32);
}
