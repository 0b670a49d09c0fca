// SPDX-License-Identifier: Apache-2.0
/* What is done with gamma and beta: cast order, the format of 1 + gamma, fma.
 *
 * Rows of 96 elements +-1.5 and 160 of +-0.5 have v = 1 in any order of summation: where the root is exact, x rstd is x. With
 * beta = -RN(x gamma) only a fused product leaves its rounding error. */
#include <math.h>
#include <stdio.h>

#include "src/core/dtype.h"
#include "src/core/random.h"
#include "src/lab/probe/probe_internal.h"

enum { ROWS = 16, COLS = 256 };

static double round_x(const struct nb_probe *p, double v) { return nb_round_to(v, (enum nb_dtype)p->c.dtype); }
/* ---- cast order ---- */

/* What multiplies, as the kernel sees it: gamma, or 1 + gamma, which is exact here. */
static double weight(const struct nb_box *b, int64_t col) { return b->gamma[col] + (b->p->unit == 0 ? 1 : 0); }

/* Outputs with gamma = 1 first: q = RN(x rstd). If the weight then multiplies q, all outputs are RN(q gamma). */
static void ask_cast(struct nb_probe *p, struct nb_box *b) {
    static double q[ROWS * COLS];
    int64_t before = 0, differing = 0;
    nb_box_fill_normal(b, 0);
    if (nb_box_run(b) != 0) return;
    for (int64_t i = 0; i < ROWS * COLS; i++) q[i] = nb_box_y(b, i / COLS, i % COLS);
    for (int64_t i = 0; i < COLS; i++) /* six bits, so that 1 + gamma is exact in every format; no power of two */
        b->gamma[i] = (double)(33 + 2 * (i % 15)) / 32 - (p->unit == 0 ? 1 : 0);
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    if (nb_box_run(b) != 0) return;
    for (int64_t i = 0; i < ROWS * COLS; i++)
        before += nb_box_y(b, i / COLS, i % COLS) == round_x(p, q[i] * weight(b, i % COLS));
    differing = ROWS * COLS - before;
    const char *value = differing == 0 ? "before" : differing > ROWS * COLS / 20 ? "after" : NULL;
    nb_probe_say(p, "cast", value, "certain",
                 "%lld of %d outputs are the rounded output for gamma = 1 times gamma, rounded again",
                 (long long)before, ROWS * COLS);
}

/* ---- 1 + gamma ---- */

/* gamma below half a spacing of 1: in x's dtype 1 + gamma is 1, in f32 it is not. */
static void ask_offset(struct nb_probe *p, struct nb_box *b) {
    static double q[ROWS * COLS];
    int64_t changed = 0;
    const double tiny = p->format->unit_roundoff * 0.75;
    nb_box_fill_normal(b, 1);
    for (int64_t i = 0; i < COLS; i++) b->gamma[i] = 0;
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    if (nb_box_run(b) != 0) return;
    for (int64_t i = 0; i < ROWS * COLS; i++) q[i] = nb_box_y(b, i / COLS, i % COLS);
    for (int64_t i = 0; i < COLS; i++) b->gamma[i] = tiny;
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    if (nb_box_run(b) != 0) return;
    for (int64_t i = 0; i < ROWS * COLS; i++) changed += q[i] != nb_box_y(b, i / COLS, i % COLS);
    const char *value = changed == 0 ? p->format->name : changed > ROWS * COLS / 8 ? "f32 or wider" : NULL;
    nb_probe_say(p, "offset_dtype", value, "certain", "gamma = %.3g changes %lld of %d outputs", tiny,
                 (long long)changed, ROWS * COLS);
}

/* ---- fma ---- */

/* v = 1; for L2Norm the sum is 1. */
static void fill_exact(struct nb_box *b) {
    const double unit = b->p->of_sum ? 1.0 / 16 : 1;
    for (int64_t i = 0; i < b->rows * b->cols; i++) b->x[i] = unit * (i % 16 < 6 ? 1.5 : 0.5) * (i % 2 ? -1 : 1);
}

/* 2^14 m in f32, m from 1.25 to 1.75: errors of products then are numbers in f16 too. */
static double wide_weight(int64_t i) {
    return (double)(float)(0x1p14 * (1.25 + 0.5 * nb_random_open(nb_random_stream(17, 0), (uint64_t)i)));
}

/* x w + beta with beta = -RN(x w): fused, rounded to f32 between, and rounded to x's dtype between. */
enum { FUSED, SEPARATE, NARROW, N_FORMS };
static const char *const forms[N_FORMS] = {"fma", "rounded, then added", "rounded to x's dtype, then added"};

static int compare_forms(struct nb_box *b, int64_t wrong[N_FORMS]) {
    const struct nb_probe *p = b->p;
    int64_t differing = 0;
    for (int64_t i = 0; i < b->cols; i++) {
        const double x = b->x[i], w = wide_weight(i), product = (double)(float)(x * w), y = nb_box_y(b, 0, i);
        const double narrow = round_x(p, (double)(float)(round_x(p, product) - product));
        const double predicted[N_FORMS] = {round_x(p, x * w - product), 0, narrow}; /* x w is exact in double */
        for (int f = 0; f < N_FORMS; f++) wrong[f] += predicted[f] != y;
        differing += predicted[FUSED] != 0;
    }
    return differing > b->cols / 8 ? 0 : -1;
}

static void say_forms(struct nb_probe *p, const int64_t wrong[N_FORMS], int64_t n) {
    const char *value = NULL;
    int n_right = 0;
    for (int f = 0; f < N_FORMS; f++) {
        if (wrong[f] != 0 || (f == NARROW && p->c.dtype == NB_F32)) continue;
        value = forms[f];
        n_right++;
    }
    if (n_right == 1)
        nb_probe_say(p, "affine_fma", value, "certain",
                     "x gamma - RN(x gamma) differs from fma in %lld of %lld columns, from 0 in %lld",
                     (long long)wrong[FUSED], (long long)n, (long long)wrong[SEPARATE]);
    else
        nb_probe_say(p, "affine_fma", NULL, NULL,
                     "x gamma - RN(x gamma) is neither fused nor rounded in all columns: 1/sqrt(1) is not 1, or "
                     "something else is done");
}

static void ask_fma(struct nb_probe *p) {
    struct nb_box b;
    int64_t wrong[N_FORMS] = {0};
    if (!p->has_beta) {
        nb_probe_say(p, "affine_fma", NULL, NULL, "no beta is passed with this formula");
        return;
    }
    if (p->c.dtype != NB_F32 && p->c.formula.param == NB_PARAM_X) {
        nb_probe_say(p, "affine_fma", NULL, NULL,
                     "products of 16-bit numbers are exact in f32: rounded or not, they are the same");
        return;
    }
    if (nb_box_init(&b, p, 1, COLS, 0) == 0) {
        fill_exact(&b);
        for (int64_t i = 0; i < COLS; i++) {
            b.gamma[i] = wide_weight(i) - (p->unit == 0 ? 1 : 0);
            b.beta[i] = -(double)(float)(b.x[i] * wide_weight(i));
        }
        nb_trial_set_params(&b.t, b.gamma, b.beta);
        if (nb_box_run(&b) == 0 && compare_forms(&b, wrong) == 0) say_forms(p, wrong, COLS);
    }
    nb_box_release(&b);
}

void nb_probe_affine(struct nb_probe *p) {
    struct nb_box b;
    const bool narrow = p->c.dtype != NB_F32;
    if (!p->has_gamma || !narrow)
        nb_probe_say(p, "cast", NULL, NULL, "%s", narrow ? "no gamma is passed with this formula" : "f32 is not cast");
    if (!p->has_gamma || !narrow || p->unit != 0)
        nb_probe_say(p, "offset_dtype", NULL, NULL, "%s", p->unit != 0 ? "1 + gamma is not formed" : "f32 is not cast");
    if (p->has_gamma && narrow && nb_box_init(&b, p, ROWS, COLS, 1e-5) == 0) {
        ask_cast(p, &b);
        if (p->unit == 0 && !b.broken) ask_offset(p, &b);
    }
    if (p->has_gamma && narrow) nb_box_release(&b);
    if (!p->failure) ask_fma(p);
}

/* ---- Does gamma multiply, or 1 + gamma? With gamma 0 the one gives a row of zeros ---- */

void nb_probe_params(struct nb_probe *p) {
    struct nb_box b;
    double largest = 0;
    p->unit = 1;
    if (!p->has_gamma) {
        nb_probe_say(p, "weight_offset", NULL, NULL, "no gamma is passed with this formula");
        return;
    }
    p->unit = 0; /* the box then lays zeros there */
    if (nb_box_init(&b, p, 1, 64, 1e-5) == 0) {
        for (int64_t i = 0; i < 64; i++) nb_box_set(&b, 0, i, i % 2 ? -1 - (double)(i % 4) / 4 : 1.5);
        nb_box_run(&b);
        for (int64_t i = 0; i < 64 && !b.broken; i++) largest = fmax(largest, fabs(nb_box_y(&b, 0, i)));
    }
    const bool offset = largest > 0;
    p->unit = offset ? 0 : 1;
    if (!p->failure)
        nb_probe_say(p, "weight_offset", offset ? "1" : "0", "certain", "with gamma = 0 the largest |y| is %.4g",
                     largest);
    nb_box_release(&b);
}
