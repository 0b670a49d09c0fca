// SPDX-License-Identifier: Apache-2.0
/* Mistakes that norm kernels are known for. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/tolerance/tolerance_test.h"

/* ---- Each mistake is one function ---- */

/* ---- of the arithmetic --------------------------------------------------------------------------------------------------- */

static bool no_eps(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    if (!(d->eps > 0)) return false;
    d->eps = 0;
    return true;
}
static bool tenfold_eps(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    d->eps *= 10;
    return d->eps > 0;
}
static bool eps_moved(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    if (d->root_form != NB_ROOT_DIV_SQRT && d->root_form != NB_ROOT_MUL_RECIP) return false;
    d->eps_place = d->eps_place == NB_EPS_INSIDE ? NB_EPS_OUTSIDE : NB_EPS_INSIDE;
    return d->eps > 0;
}
static bool casts_otherwise(struct nb_design *d, const struct nb_tolerance_test *t) {
    d->cast = d->cast == NB_CAST_BEFORE ? NB_CAST_AFTER : NB_CAST_BEFORE;
    return t->gamma && d->store != NB_NUM_F32;
}
static bool sums_in(struct nb_design *d, enum nb_number number) {
    const bool is_new = nb_numbers[d->acc].precision > nb_numbers[number].precision;
    d->acc = number;
    return is_new;
}
static bool sums_in_bf16(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    return sums_in(d, NB_NUM_BF16);
}
static bool sums_in_f16(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    return sums_in(d, NB_NUM_F16);
}
static bool narrow_rstd(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    const enum nb_number number = d->store == NB_NUM_F32 ? NB_NUM_BF16 : d->store;
    const bool is_new = nb_numbers[d->rstd].precision > nb_numbers[number].precision;
    d->rstd = number;
    return is_new;
}
static bool raw_estimate(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    if (d->root_form == NB_ROOT_RSQRT_RAW || d->eps_place != NB_EPS_INSIDE) return false;
    d->root_form = NB_ROOT_RSQRT_RAW;
    return true;
}
static bool one_pass(struct nb_design *d, const struct nb_tolerance_test *t) {
    (void)t;
    if (!nb_op_centres(d->op) || d->variance == NB_VAR_ONEPASS) return false;
    d->variance = NB_VAR_ONEPASS;
    return true;
}

/* ---- of the formula ------------------------------------------------------------------------------------------------------ */

/* Statistics of the elements [0, end) about `mean`, divided by n. */
static double squares_about(const double *x, int64_t end, double mean, double n) {
    double sum = 0;
    for (int64_t i = 0; i < end; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / n;
}

static double scale_of(const struct nb_design *d, double var) {
    if (d->eps_place == NB_EPS_OUTSIDE) return 1 / (sqrt(var) + d->eps);
    if (d->eps_place == NB_EPS_CLAMP) return 1 / fmax(sqrt(var), d->eps);
    return 1 / sqrt(var + d->eps);
}

static double weight_of(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t i) {
    return t->gamma ? t->gamma[i] + (d->weight_offset ? 1 : 0) : 1;
}

static void finish_by(enum nb_rounding rounding, const struct nb_design *d, const struct nb_tolerance_test *t,
                      int64_t row, double mean, double scale, double *y) {
    const int64_t cols = t->rows.cols;
    const double *x = t->rows.x + row * cols;
    for (int64_t i = 0; i < cols; i++) {
        const double v = (x[i] - mean) * scale * weight_of(d, t, i) + (t->beta ? t->beta[i] : 0);
        y[i] = nb_number_round(v, 0, d->store, rounding, 0);
    }
}

static void finish(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double mean, double scale,
                   double *y) {
    finish_by(NB_ROUND_NEAREST, d, t, row, mean, scale, y);
}

static double exact_mean(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row) {
    return nb_op_centres(d->op) ? t->truth[row].mean : 0;
}

static bool right(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    finish(d, t, row, exact_mean(d, t, row), t->truth[row].scale, y);
    return true;
}
static bool truncates(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    finish_by(NB_ROUND_ZERO, d, t, row, exact_mean(d, t, row), t->truth[row].scale, y);
    return true;
}
/* n: what the squares of the first `end` elements are divided by. */
static bool with_sum(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y, int64_t end,
                     double n) {
    const double mean = exact_mean(d, t, row);
    if (d->op == NB_OP_L2NORM) n = 1;
    const double var = squares_about(t->rows.x + row * t->rows.cols, end, mean, n);
    finish(d, t, row, mean, scale_of(d, var), y);
    return true;
}
static bool divides_by_less(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t n = nb_design_elements(d, t->rows.cols);
    return d->op != NB_OP_L2NORM && n > 1 && with_sum(d, t, row, y, n, (double)n - 1);
}
static bool leaves_one_out(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t n = nb_design_elements(d, t->rows.cols);
    return n > 1 && with_sum(d, t, row, y, n - 1, (double)n);
}
static bool leaves_tail_out(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t n = nb_design_elements(d, t->rows.cols), tail = n % 8 ? n % 8 : 8;
    return n > 8 && with_sum(d, t, row, y, n - tail, (double)n);
}
static bool rounds_mean(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    if (!nb_op_centres(d->op) || d->store == NB_NUM_F32) return false;
    const double mean = nb_number_round(t->truth[row].mean, 0, d->store, NB_ROUND_NEAREST, 0);
    const double var = squares_about(t->rows.x + row * t->rows.cols, t->rows.cols, mean, (double)t->rows.cols);
    finish(d, t, row, mean, scale_of(d, var), y);
    return true;
}
static bool other_mean(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t cols = t->rows.cols;
    const double *x = t->rows.x + row * cols;
    double mean = 0;
    for (int64_t i = 0; i < cols && !nb_op_centres(d->op); i++) mean += x[i] / (double)cols;
    if (d->op != NB_OP_LAYERNORM && d->op != NB_OP_RMSNORM) return false;
    finish(d, t, row, mean, scale_of(d, squares_about(x, cols, mean, (double)cols)), y);
    return true;
}
static bool gamma_one_off(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t cols = t->rows.cols;
    const double *x = t->rows.x + row * cols, mean = exact_mean(d, t, row), scale = t->truth[row].scale;
    for (int64_t i = 0; t->gamma && i < cols; i++) {
        const double weight = weight_of(d, t, i), step = nb_number_ulp(weight, d->store);
        y[i] = nb_number_round((x[i] - mean) * scale * (weight + step) + (t->beta ? t->beta[i] : 0), 0, d->store,
                               NB_ROUND_NEAREST, 0);
    }
    return t->gamma != NULL;
}
static bool no_gamma(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    struct nb_tolerance_test bare = *t;
    bare.gamma = NULL;
    return t->gamma && right(d, &bare, row, y);
}
static bool no_beta(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    struct nb_tolerance_test bare = *t;
    bare.beta = NULL;
    return t->beta && right(d, &bare, row, y);
}
static bool swaps_two(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t cols = t->rows.cols;
    right(d, t, row, y);
    if (cols < 2) return false;
    const double first = y[cols / 2 - 1];
    y[cols / 2 - 1] = y[cols / 2];
    y[cols / 2] = first;
    return true;
}
static bool forgets_last(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    right(d, t, row, y);
    y[t->rows.cols - 1] = 0;
    return true;
}

const struct nb_bug nb_bugs[] = {
    {"divides by n - 1", "the unbiased variance", NULL, divides_by_less},
    {"leaves one element out", "the last element is not in the sum of squares", NULL, leaves_one_out},
    {"leaves the tail out", "the last n mod 8 (or 8) elements are not in the sum of squares", NULL, leaves_tail_out},
    {"leaves eps out", "sqrt(v) for sqrt(v + eps)", no_eps, NULL},
    {"10 eps", "ten times the eps", tenfold_eps, NULL},
    {"eps in the other place", "sqrt(v) + eps for sqrt(v + eps)", eps_moved, NULL},
    {"truncates", "the last rounding cuts off", NULL, truncates},
    {"other cast order", "rounded before the weight instead of after, or the other way round", casts_otherwise, NULL},
    {"sums in bf16", "running sums in bf16", sums_in_bf16, NULL},
    {"sums in f16", "running sums in f16", sums_in_f16, NULL},
    {"narrow rstd", "1 / sqrt rounded to the stored format, of f32 kernels to bf16", narrow_rstd, NULL},
    {"no Newton step", "the 12 bits of the hardware's estimate of 1 / sqrt", raw_estimate, NULL},
    {"one pass", "E[x^2] - mean^2 for two passes", one_pass, NULL},
    {"rounds the mean", "the mean rounded to the stored format", NULL, rounds_mean},
    {"other mean", "RMSNorm that subtracts the mean, LayerNorm that does not", NULL, other_mean},
    {"gamma one ulp off", "every weight one unit in the last place of the stored format too large", NULL,
     gamma_one_off},
    {"no gamma", "the weight is not applied", NULL, no_gamma},
    {"no beta", "the shift is not added", NULL, no_beta},
    {"swaps two outputs", "two neighbours in the middle of the row", NULL, swaps_two},
    {"forgets the last output", "the last element stays 0", NULL, forgets_last},
};
const size_t nb_n_bugs = sizeof nb_bugs / sizeof nb_bugs[0];

static void emulate(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row, double *y) {
    const int64_t cols = t->rows.cols;
    nb_emulate_row(d, cols, t->rows.x + row * cols, t->gamma, t->beta, y, 1);
}

bool nb_bug_run(const struct nb_bug *bug, const struct nb_design *d, const struct nb_tolerance_test *t, double *got) {
    struct nb_design changed = *d;
    if (bug->change && !bug->change(&changed, t)) return false;
    for (int64_t row = 0; row < t->rows.rows; row++) {
        double *y = got + row * t->rows.cols;
        if (bug->change)
            emulate(&changed, t, row, y);
        else if (!bug->corrupt(d, t, row, y))
            return false;
    }
    return true;
}

void nb_bug_free(const struct nb_design *d, const struct nb_tolerance_test *t, double *emulated, double *exact) {
    for (int64_t row = 0; row < t->rows.rows; row++) {
        emulate(d, t, row, emulated + row * t->rows.cols);
        right(d, t, row, exact + row * t->rows.cols);
    }
}
