// SPDX-License-Identifier: Apache-2.0
/* Mistakes that norm kernels are known for. */
#include <math.h>

#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/tolerance/tolerance_test.h"

/* ---- of the arithmetic: each changes the design; false: it does not apply ---- */

static bool no_eps(struct nb_design *d) {
    if (!(d->eps > 0)) return false;
    d->eps = 0;
    return true;
}
static bool tenfold_eps(struct nb_design *d) {
    d->eps *= 10;
    return d->eps > 0;
}
static bool eps_moved(struct nb_design *d) {
    if (d->root_form != NB_ROOT_DIV_SQRT && d->root_form != NB_ROOT_MUL_RECIP) return false;
    d->eps_place = d->eps_place == NB_EPS_INSIDE ? NB_EPS_OUTSIDE : NB_EPS_INSIDE;
    return d->eps > 0;
}
static bool casts_otherwise(struct nb_design *d) {
    d->cast = d->cast == NB_CAST_BEFORE ? NB_CAST_AFTER : NB_CAST_BEFORE;
    return d->store != NB_NUM_F32;
}
/* False: the step is as narrow already. */
static bool narrows(enum nb_number *step, enum nb_number number) {
    const bool is_new = nb_numbers[*step].precision > nb_numbers[number].precision;
    *step = number;
    return is_new;
}
static bool sums_in_bf16(struct nb_design *d) { return narrows(&d->acc, NB_NUM_BF16); }
static bool sums_in_f16(struct nb_design *d) { return narrows(&d->acc, NB_NUM_F16); }
static bool narrow_rstd(struct nb_design *d) {
    return narrows(&d->rstd, d->store == NB_NUM_F32 ? NB_NUM_BF16 : d->store);
}
static bool raw_estimate(struct nb_design *d) {
    if (d->root_form == NB_ROOT_RSQRT_RAW || d->eps_place != NB_EPS_INSIDE) return false;
    d->root_form = NB_ROOT_RSQRT_RAW;
    return true;
}
static bool one_pass(struct nb_design *d) {
    if (!nb_op_centres(d->op) || d->variance == NB_VAR_ONEPASS) return false;
    d->variance = NB_VAR_ONEPASS;
    return true;
}

/* ---- of the formula: each makes y of one row from the exact statistics; false: it does not apply ---- */

struct nb_bug_row {
    const struct nb_design *d;
    const double *x, *gamma, *beta; /* the latter null for 1 and 0 */
    int64_t cols, n;                /* n: elements that the statistics see */
    double mean, scale;             /* exact; mean 0 where the op does not centre */
    double *y;
};

/* Mean of the squared distances of the first `end` elements from `mean`, over n. */
static double squares_about(const struct nb_bug_row *r, int64_t end, double mean, double n) {
    double sum = 0;
    for (int64_t i = 0; i < end; i++) sum += (r->x[i] - mean) * (r->x[i] - mean);
    return sum / n;
}

static double scale_of(const struct nb_design *d, double var) {
    if (d->eps_place == NB_EPS_OUTSIDE) return 1 / (sqrt(var) + d->eps);
    if (d->eps_place == NB_EPS_CLAMP) return 1 / fmax(sqrt(var), d->eps);
    return 1 / sqrt(var + d->eps);
}

static double weight_of(const struct nb_bug_row *r, int64_t i) {
    return r->gamma ? r->gamma[i] + (r->d->weight_offset ? 1 : 0) : 1;
}

static bool finish_by(enum nb_rounding rounding, const struct nb_bug_row *r, double mean, double scale) {
    for (int64_t i = 0; i < r->cols; i++) {
        const double v = (r->x[i] - mean) * scale * weight_of(r, i) + (r->beta ? r->beta[i] : 0);
        r->y[i] = nb_number_round(v, 0, r->d->store, rounding, 0);
    }
    return true;
}
static bool finish(const struct nb_bug_row *r, double mean, double scale) {
    return finish_by(NB_ROUND_NEAREST, r, mean, scale);
}

static bool right(const struct nb_bug_row *r) { return finish(r, r->mean, r->scale); }
static bool truncates(const struct nb_bug_row *r) { return finish_by(NB_ROUND_ZERO, r, r->mean, r->scale); }
/* n: what the squares of the first `end` elements are divided by. */
static bool with_sum(const struct nb_bug_row *r, int64_t end, double n) {
    const double var = squares_about(r, end, r->mean, r->d->op == NB_OP_L2NORM ? 1 : n);
    return finish(r, r->mean, scale_of(r->d, var));
}
static bool divides_by_less(const struct nb_bug_row *r) {
    return r->d->op != NB_OP_L2NORM && r->n > 1 && with_sum(r, r->n, (double)r->n - 1);
}
static bool leaves_one_out(const struct nb_bug_row *r) { return r->n > 1 && with_sum(r, r->n - 1, (double)r->n); }
static bool leaves_tail_out(const struct nb_bug_row *r) {
    const int64_t tail = r->n % 8 ? r->n % 8 : 8;
    return r->n > 8 && with_sum(r, r->n - tail, (double)r->n);
}
static bool rounds_mean(const struct nb_bug_row *r) {
    if (!nb_op_centres(r->d->op) || r->d->store == NB_NUM_F32) return false;
    const double mean = nb_number_round(r->mean, 0, r->d->store, NB_ROUND_NEAREST, 0);
    return finish(r, mean, scale_of(r->d, squares_about(r, r->cols, mean, (double)r->cols)));
}
static bool other_mean(const struct nb_bug_row *r) {
    double mean = 0;
    for (int64_t i = 0; i < r->cols && !nb_op_centres(r->d->op); i++) mean += r->x[i] / (double)r->cols;
    if (r->d->op != NB_OP_LAYERNORM && r->d->op != NB_OP_RMSNORM) return false;
    return finish(r, mean, scale_of(r->d, squares_about(r, r->cols, mean, (double)r->cols)));
}
static bool gamma_one_off(const struct nb_bug_row *r) {
    for (int64_t i = 0; i < r->cols; i++) {
        const double weight = weight_of(r, i), step = nb_number_ulp(weight, r->d->store);
        const double v = (r->x[i] - r->mean) * r->scale * (weight + step) + (r->beta ? r->beta[i] : 0);
        r->y[i] = nb_number_round(v, 0, r->d->store, NB_ROUND_NEAREST, 0);
    }
    return true;
}
static bool no_gamma(const struct nb_bug_row *r) {
    struct nb_bug_row bare = *r;
    bare.gamma = NULL;
    return right(&bare);
}
static bool no_beta(const struct nb_bug_row *r) {
    struct nb_bug_row bare = *r;
    bare.beta = NULL;
    return r->beta && right(&bare);
}
static bool swaps_two(const struct nb_bug_row *r) {
    if (r->cols < 2) return false;
    right(r);
    const double first = r->y[r->cols / 2 - 1];
    r->y[r->cols / 2 - 1] = r->y[r->cols / 2];
    r->y[r->cols / 2] = first;
    return true;
}
static bool forgets_last(const struct nb_bug_row *r) {
    right(r);
    r->y[r->cols - 1] = 0;
    return true;
}

const struct nb_bug nb_bugs[] = {
    {"divides by n - 1", "the unbiased variance", false, NULL, divides_by_less},
    {"leaves one element out", "the last element is not in the sum of squares", false, NULL, leaves_one_out},
    {"leaves the tail out", "the last n mod 8 (or 8) elements are not in the sum of squares", false, NULL,
     leaves_tail_out},
    {"leaves eps out", "sqrt(v) for sqrt(v + eps)", false, no_eps, NULL},
    {"10 eps", "ten times the eps", false, tenfold_eps, NULL},
    {"eps in the other place", "sqrt(v) + eps for sqrt(v + eps)", false, eps_moved, NULL},
    {"truncates", "the last rounding cuts off", false, NULL, truncates},
    {"other cast order", "rounded before the weight instead of after, or the other way round", true, casts_otherwise,
     NULL},
    {"sums in bf16", "running sums in bf16", false, sums_in_bf16, NULL},
    {"sums in f16", "running sums in f16", false, sums_in_f16, NULL},
    {"narrow rstd", "1 / sqrt rounded to the stored format, of f32 kernels to bf16", false, narrow_rstd, NULL},
    {"no Newton step", "the 12 bits of the hardware's estimate of 1 / sqrt", false, raw_estimate, NULL},
    {"one pass", "E[x^2] - mean^2 for two passes", false, one_pass, NULL},
    {"rounds the mean", "the mean rounded to the stored format", false, NULL, rounds_mean},
    {"other mean", "RMSNorm that subtracts the mean, LayerNorm that does not", false, NULL, other_mean},
    {"gamma one ulp off", "every weight one unit in the last place of the stored format too large", true, NULL,
     gamma_one_off},
    {"no gamma", "the weight is not applied", true, NULL, no_gamma},
    {"no beta", "the shift is not added", false, NULL, no_beta},
    {"swaps two outputs", "two neighbours in the middle of the row", false, NULL, swaps_two},
    {"forgets the last output", "the last element stays 0", false, NULL, forgets_last},
};
const size_t nb_n_bugs = sizeof nb_bugs / sizeof nb_bugs[0];

static struct nb_bug_row row_of(const struct nb_design *d, const struct nb_tolerance_test *t, int64_t row,
                                double *got) {
    const int64_t cols = t->rows.cols;
    return (struct nb_bug_row){.d = d,
                               .x = t->rows.x + row * cols,
                               .gamma = t->rows.gamma,
                               .beta = t->rows.beta,
                               .cols = cols,
                               .n = nb_design_elements(d, cols),
                               .mean = nb_op_centres(d->op) ? t->judge.oracle.truth[row].mean : 0,
                               .scale = t->judge.oracle.truth[row].scale,
                               .y = got + row * cols};
}

void nb_test_emulate(const struct nb_design *d, const struct nb_tolerance_test *t, double *y) {
    const struct nb_design_rows *r = &t->rows;
    for (int64_t i = 0; i < t->n; i += r->cols) nb_emulate_row(d, r->cols, r->x + i, r->gamma, r->beta, y + i, 1);
}

void nb_test_round(const struct nb_design *d, const struct nb_tolerance_test *t, double *y) {
    nb_bug_run(&(struct nb_bug){.corrupt = right}, d, t, y);
}

bool nb_bug_run(const struct nb_bug *bug, const struct nb_design *d, const struct nb_tolerance_test *t, double *got) {
    struct nb_design changed = *d;
    if (bug->needs_gamma && !t->rows.gamma) return false;
    if (bug->change && !bug->change(&changed)) return false;
    if (bug->change) nb_test_emulate(&changed, t, got);
    for (int64_t row = 0; row < t->rows.rows && !bug->change; row++) {
        const struct nb_bug_row r = row_of(d, t, row, got);
        if (!bug->corrupt(&r)) return false;
    }
    return true;
}
