// SPDX-License-Identifier: Apache-2.0
/* Rows of a case, copied anew before each call. */
#include "src/measure/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/gradient.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/faults.h"
#include "src/measure/pool.h"

/* Into memory that the first time makes; null where the case has none. */
static void *copied(void *to, const void *from, int64_t rows, int64_t source_rows, size_t bytes) {
    if (from && !to) to = nb_alloc((unsigned long long)rows, bytes);
    for (int64_t r = 0; to && r < rows; r++)
        memcpy((unsigned char *)to + (size_t)r * bytes, (const unsigned char *)from + (size_t)(r % source_rows) * bytes,
               bytes);
    return to;
}

static void *rows_of(const struct nb_fixture *fixture, const void *from, void *to) {
    return copied(to, from, fixture->in.rows, fixture->source_rows, (size_t)fixture->in.cols * fixture->item);
}

static void *params_of(const struct nb_fixture *fixture, const void *from, void *to, size_t item) {
    return copied(to, from, 1, 1, (size_t)fixture->in.n_params * item);
}

void nb_fixture_reset(struct nb_fixture *fixture) {
    const struct nb_inputs *from = fixture->source;
    struct nb_inputs *to = &fixture->in;
    const bool adds = nb_op_adds(fixture->c.op);
    to->x = rows_of(fixture, from->x, to->x);
    to->residual = adds ? rows_of(fixture, from->residual, to->residual) : NULL;
    to->dy = rows_of(fixture, from->dy, to->dy);
    to->dresidual_out = adds ? rows_of(fixture, from->dresidual_out, to->dresidual_out) : NULL;
    to->gamma_f32 = params_of(fixture, from->gamma_f32, to->gamma_f32, sizeof(float));
    to->beta_f32 = params_of(fixture, from->beta_f32, to->beta_f32, sizeof(float));
    to->gamma_x = params_of(fixture, from->gamma_x, to->gamma_x, fixture->item);
    to->beta_x = params_of(fixture, from->beta_x, to->beta_x, fixture->item);
    to->running_mean = params_of(fixture, from->running_mean, to->running_mean, sizeof(float));
    to->running_var = params_of(fixture, from->running_var, to->running_var, sizeof(float));
    fixture->c.eps = fixture->eps;
    fixture->c.alpha = fixture->alpha;
}

int nb_fixture_init(struct nb_fixture *fixture, const struct nb_case *c, const struct nb_entry *entry,
                    const struct nb_inputs *in, int64_t rows) {
    *fixture = (struct nb_fixture){
        .c = *c, .entry = entry, .source = in, .item = nb_formats[in->dtype].bytes, .eps = c->eps, .alpha = c->alpha};
    fixture->source_rows = c->shape.rows;
    if (c->op == NB_OP_BATCHNORM) rows = c->shape.rows;
    fixture->c.shape.rows = rows;
    nb_case_call(&fixture->c, &fixture->call);
    const struct nb_kernel *k = entry->kernel;
    if (nb_kernel_applicable(k, &fixture->call)) return -1;
    fixture->in = (struct nb_inputs){.dtype = in->dtype, .rows = rows, .cols = in->cols, .n_params = in->n_params};
    nb_fixture_reset(fixture);
    if (nb_saved_statistics_add(&fixture->in, &fixture->c) != 0) return -1;
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&fixture->c, false),
                                        .placement = NB_PLACE_SLAB,
                                        .rows = rows,
                                        .pad = c->pad,
                                        .n_stats = c->op == NB_OP_BATCHNORM ? in->n_params : rows,
                                        .scratch_bytes = nb_kernel_scratch_bytes(k, &fixture->call),
                                        .seed = c->seed,
                                        .poison = NB_POISON_NAN,
                                        .device = nb_device_of(k->backend)};
    if (nb_buffers_init(&fixture->buffers, &fixture->in, &q) != 0) return -1;
    nb_buffers_attach(&fixture->buffers, &fixture->c, &fixture->call);
    return 0;
}

void nb_fixture_release(struct nb_fixture *fixture) {
    nb_buffers_release(&fixture->buffers);
    nb_inputs_release(&fixture->in);
    *fixture = (struct nb_fixture){0};
}

/* ---- calls ---- */

static void refill(const struct nb_fixture *fixture, int64_t rows) {
    for (int i = 0; i < NB_N_TENSORS; i++) {
        const struct nb_tensor *t = &fixture->buffers.tensors[i];
        if (!t->data || !t->source) continue;
        const size_t bytes = (size_t)t->cols * t->item;
        for (int64_t r = 0; r < t->rows && r < rows; r++)
            memcpy(nb_tensor_row(t, r), (const unsigned char *)t->source + (size_t)r * bytes, bytes);
    }
}

static int renew_saved(struct nb_fixture *fixture) {
    nb_inputs_drop_saved(&fixture->in);
    if (nb_saved_statistics_add(&fixture->in, &fixture->c) != 0) return -1;
    nb_buffers_take_saved(&fixture->buffers);
    return 0;
}

int nb_fixture_call(struct nb_fixture *fixture, int64_t rows, int64_t range, void *result) {
    const struct nb_fp_state state = nb_fp_state();
    const struct nb_tensor *y = nb_buffers_result(&fixture->buffers, &fixture->c);
    const size_t bytes = (size_t)y->cols * y->item;
    if (fixture->in.n_saved > 0 && renew_saved(fixture) != 0) return -1;
    refill(fixture, rows);
    for (int64_t r = 0; r < rows; r++) memset(nb_tensor_row(y, r), 0xff, bytes); /* NaN */
    fixture->call.rows = rows;
    fixture->call.eps = fixture->c.eps;
    fixture->call.alpha = fixture->c.alpha;
    if (nb_buffers_to_device(&fixture->buffers) != 0) return -1;
    nb_faults_set_buffers(&fixture->buffers);
    int code = nb_run_in_ranges(fixture->entry->kernel, &fixture->call, range);
    nb_faults_set_buffers(NULL);
    if (code == 0) code = nb_buffers_from_device(&fixture->buffers);
    nb_fp_state_set(state); /* a kernel may leave it changed */
    for (int64_t r = 0; r < rows && code == 0; r++)
        memcpy((unsigned char *)result + (size_t)r * bytes, nb_tensor_row(y, r), bytes);
    return code == 0 ? 0 : -1;
}

/* ---- rows times a power of two ---- */

/* ---- the factor -------------------------------------------------------------------------------------------------- */

static void set_bits(void *array, int64_t i, size_t item, uint32_t bits) {
    if (item == 4)
        ((uint32_t *)array)[i] = bits;
    else
        ((uint16_t *)array)[i] = (uint16_t)bits;
}

/* A normal number gets another exponent; 0, Inf and NaN stay. array may be null. */
static bool scale_bits(void *array, int64_t n, enum nb_dtype dtype, int k) {
    const struct nb_format *f = &nb_formats[dtype];
    const int shift = f->precision - 1, last = f->emax - f->emin + 1; /* exponent field of the largest numbers */
    const uint32_t mask = (uint32_t)last + 1;
    for (int64_t i = 0; array && i < n; i++) {
        const uint32_t bits = (uint32_t)nb_bits(array, i, dtype);
        const int exponent = (int)(bits >> shift & mask);
        const bool is_zero = exponent == 0 && (bits & ((1u << shift) - 1)) == 0;
        if (is_zero || exponent == last + 1) continue;
        if (exponent == 0 || exponent + k < 1 || exponent + k > last) return false;
        set_bits(array, i, f->bytes, bits + ((uint32_t)k << shift));
    }
    return true;
}

static int eps_power(const struct nb_case *c, int k) { return c->formula.eps_place == NB_EPS_INSIDE ? 2 * k : k; }

bool nb_scale(struct nb_fixture *fixture, int k) {
    struct nb_inputs *in = &fixture->in;
    const int64_t n = in->rows * in->cols;
    nb_fixture_reset(fixture);
    if (fixture->c.pass == NB_BACKWARD)
        return scale_bits(in->dy, n, in->dtype, k) && scale_bits(in->dresidual_out, n, in->dtype, k);
    fixture->c.eps = ldexp(fixture->eps, eps_power(&fixture->c, k));
    fixture->c.alpha = ldexp(fixture->alpha, -k);
    return scale_bits(in->x, n, in->dtype, k) && scale_bits(in->residual, n, in->dtype, k) &&
           scale_bits(in->running_mean, in->n_params, NB_F32, k) &&
           scale_bits(in->running_var, in->n_params, NB_F32, 2 * k);
}

/* ---- where it is exact: forward ---------------------------------------------------------------------------------- */

/* Least magnitude beside 0, and largest, of what is stored and of what is normalized. */
struct extent {
    double least, largest;
    bool finite;
};

static void extend(struct extent *e, double v) {
    const double magnitude = fabs(v);
    if (!isfinite(magnitude)) e->finite = false;
    if (magnitude == 0 || !e->finite) return;
    e->least = fmin(e->least, magnitude);
    e->largest = fmax(e->largest, magnitude);
}

static struct extent extent_of(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    double *row freed = nb_alloc((unsigned long long)in->cols, sizeof *row);
    struct extent e = {.least = INFINITY, .finite = true};
    for (int64_t r = 0; r < in->rows; r++) {
        nb_truth_row(&fixture->c, in, r, row);
        for (int64_t i = 0; i < in->cols; i++) {
            extend(&e, row[i]);
            if (in->residual) extend(&e, nb_get(in->x, r * in->cols + i, in->dtype));
            if (in->residual) extend(&e, nb_get(in->residual, r * in->cols + i, in->dtype));
        }
    }
    return e;
}

static const struct nb_format *statistics_format(const struct nb_case *c) {
    return &nb_formats[c->stats_dtype == NB_STATS_X ? c->dtype : NB_F32];
}

static bool is_normal(double v, const struct nb_format *f) { return v >= f->min_normal && v <= f->max_finite; }

/* Does a parameter of the call scale exactly in the statistics' dtype? */
static bool scales(double v, int k, const struct nb_format *f) {
    const enum nb_dtype dtype = (enum nb_dtype)(f - nb_formats);
    if (v == 0) return true;
    const double before = nb_round_to(v, dtype), after = nb_round_to(ldexp(v, k), dtype);
    return is_normal(before, f) && is_normal(after, f) && after == ldexp(before, k);
}

/* Of the weights that are not 0. A kernel may multiply 1 / sqrt(v) by them first. */
static struct extent extent_of_weights(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    const struct nb_formula *formula = &fixture->c.formula;
    struct extent e = {.least = INFINITY, .finite = true};
    for (int64_t i = 0; formula->affine != NB_AFFINE_NONE && i < in->n_params; i++) {
        const bool narrow = formula->param == NB_PARAM_X;
        extend(&e, formula->weight_offset + (narrow ? nb_get(in->gamma_x, i, in->dtype) : (double)in->gamma_f32[i]));
    }
    if (e.largest == 0) e.least = e.largest = 1;
    return e;
}

static const char *forward_excuse(const struct nb_fixture *fixture, const struct nb_oracle *oracle, int k) {
    const struct nb_case *c = &fixture->c;
    const struct nb_format *f = statistics_format(c), *stored = &nb_formats[c->dtype];
    const struct extent e = extent_of(fixture), weights = extent_of_weights(fixture);
    const double n = (double)oracle->n_stats;
    if (!e.finite) return "Inf or NaN in the rows";
    if (c->op == NB_OP_DYT) return scales(c->alpha, -k, f) ? NULL : "alpha leaves the normal numbers";
    if (!scales(c->eps, eps_power(c, k), f)) return "eps leaves the normal numbers of the statistics";
    for (int power = 0;; power = k) {
        const double least = ldexp(e.least, power), largest = ldexp(e.largest, power);
        /* Centred, the smallest distance from a mean is of the order of the least number's last place, over n. */
        const double distance = nb_op_centres(c->op) ? least * f->unit_roundoff / n : least;
        if (e.largest > 0 && (!is_normal(least, stored) || !is_normal(largest, stored)))
            return "rows leave the normal numbers";
        if (e.largest > 0 && (distance * distance < f->min_normal || 8 * n * largest * largest > f->max_finite))
            return "squares may leave the normal numbers of the statistics";
        for (int64_t i = 0; i < oracle->n_truth; i++) {
            const double scale = ldexp(oracle->truth[i].scale, -power);
            if (isfinite(scale) && !is_normal(scale, f))
                return "1 / sqrt(v) leaves the normal numbers of the statistics";
            if (isfinite(scale) && !(is_normal(scale * weights.least, f) && is_normal(scale * weights.largest, f)))
                return "1 / sqrt(v) times a weight may leave the normal numbers";
        }
        if (power == k) return NULL;
    }
}

/* ---- where it is exact: backward --------------------------------------------------------------------------------- */

/* Factors of this size leave f32 room for their products: dy w (x - mean) rstd, its sums, and both terms of dx. */
static const double least_factor = 0x1p-24, largest_factor = 0x1p24;

static bool is_moderate(double v) { return v == 0 || (fabs(v) >= least_factor && fabs(v) <= largest_factor); }

static bool all_moderate(const void *array, int64_t n, enum nb_dtype dtype) {
    for (int64_t i = 0; array && i < n; i++)
        if (!is_moderate(nb_get(array, i, dtype))) return false;
    return true;
}

static const char *backward_excuse(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    const struct nb_case *c = &fixture->c;
    const int64_t n = in->rows * in->cols;
    if (c->stats_dtype == NB_STATS_X && c->dtype == NB_F16) return "intermediate results in f16 may be subnormal";
    if (!all_moderate(in->dy, n, in->dtype) || !all_moderate(in->dresidual_out, n, in->dtype) ||
        !all_moderate(in->x, n, in->dtype) || !all_moderate(in->gamma_f32, in->n_params, NB_F32))
        return "the inputs are near the ends of the numbers";
    for (int i = 0; i < in->n_saved; i++)
        if (!all_moderate(in->saved[i].rstd, in->saved[i].n, NB_F32)) return "rstd is near the ends of the numbers";
    return NULL;
}

const char *nb_scale_excuse(struct nb_fixture *fixture, const struct nb_oracle *oracle, int k) {
    nb_fixture_reset(fixture);
    return fixture->c.pass == NB_BACKWARD ? backward_excuse(fixture) : forward_excuse(fixture, oracle, k);
}

/* ---- rows on which the last rounding is the only one ---- */

/* Columns come in fours, (a, -a, b, -b) beside (d, d, -d, -d) as dy: the sums of x, of dy w and of dy w x vanish if the four share a
 * weight but for its sign. Lagrange's four squares make up what the drawn numbers leave of the sum of squares. */

/* Integers of 8 bits, which bf16 holds; 2^24 is the largest sum of squares that f32 holds with all addends. */
enum {
    LARGEST = 255,
    FEWEST = 16,
    MEAN_SQUARE = 4096,
    TRIES = 64,
    OVER = 129 /* above twice the root of MEAN_SQUARE */
};

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* What the statistics are of. */
static int64_t length(const struct nb_fixture *fixture) {
    const struct nb_inputs *in = &fixture->in;
    if (fixture->c.op == NB_OP_BATCHNORM) return in->rows * in->cols / in->n_params;
    return fixture->c.op == NB_OP_PRMSNORM ? fixture->c.k : in->cols;
}

/* The root may be an estimate, a sum rounded to a narrow dtype; running means pass numbers that are no integers. */
static const char *refusal(const struct nb_fixture *fixture) {
    const struct nb_case *c = &fixture->c;
    const struct nb_inputs *in = &fixture->in;
    const bool by_channel = c->op == NB_OP_BATCHNORM;
    if (c->op == NB_OP_DYT) return "the op has no such rows";
    if (by_channel && (c->pass == NB_BACKWARD || c->mode == NB_INFERENCE)) return "it uses statistics that it is given";
    if (c->stats_dtype == NB_STATS_X && c->dtype != NB_F32) return "the statistics are rounded to the dtype";
    if (c->variance == NB_VAR_WELFORD) return "a running mean is rounded";
    if (c->formula.root == NB_ROOT_RSQRT_NR || c->formula.root == NB_ROOT_RSQRT_RAW) return "the root is an estimate";
    const int64_t seen = length(fixture);
    if (!is_power_of_two(seen) || seen < FEWEST) return "the length is no power of two, or below 16";
    if ((double)seen * 2 * MEAN_SQUARE > 0x1p24) return "the sum of squares may be rounded";
    return by_channel || in->cols % 4 == 0 ? NULL : "the length is no multiple of 4";
}

/* Four squares, each at most LARGEST^2, whose sum is given. */
static bool four_squares(int64_t sum, int *roots) {
    for (int a = 1; a <= LARGEST && (int64_t)a * a <= sum; a += 2)
        for (int b = 0; b <= LARGEST && (int64_t)a * a + b * b <= sum; b++)
            for (int c = 0; c <= b && (int64_t)a * a + b * b + c * c <= sum; c++) {
                const int64_t left = sum - a * a - b * b - c * c;
                const int d = (int)(sqrt((double)left) + 0.5);
                if (d > LARGEST || (int64_t)d * d != left) continue;
                memcpy(roots, (int[]){a, b, c, d}, 4 * sizeof *roots);
                return true;
            }
    return false;
}

/* n magnitudes, most of them odd, the sum of whose squares is given. */
static bool draw_magnitudes(int *m, int64_t n, int64_t squares, bool overflows, uint64_t *random) {
    for (int attempt = 0; attempt < TRIES; attempt++) {
        int64_t left = squares;
        for (int64_t i = 0; i + 4 < n; i++) {
            const double reach = fmin(sqrt(3 * (double)left / (double)(n - i)), 0.7 * LARGEST);
            m[i] = (int)((double)(nb_random_next(random) >> 11) * 0x1p-53 * reach) | 1;
            if (overflows && i == 0) m[i] = OVER + 2 * (int)(nb_random_next(random) % 10);
            left -= (int64_t)m[i] * m[i];
        }
        if (left > 0 && four_squares(left, m + n - 4)) return true;
    }
    return false;
}

/* Odd multiples of 2^-f in [1, 2): an odd number of 7 bits times such a one has p + 1 or p + 2 bits, and is a tie with p + 1. In a
 * backward call dy * w * x must be exact in f32 too, lest an fma leaves the rounding of a product that the next one cancels; so of f32
 * no dx is rounded. */
static double draw_weight(const struct nb_fixture *fixture, uint64_t *random) {
    const bool exact = fixture->c.pass == NB_BACKWARD && fixture->c.dtype == NB_F32;
    const int f = exact ? 4 : nb_formats[fixture->c.dtype].precision - 6;
    const uint64_t bits = nb_random_next(random);
    if (fixture->c.formula.affine == NB_AFFINE_NONE) return 1;
    const double w = ldexp((double)((bits >> 16 & ((1u << f) - 1)) | (1u << f) | 1u), -f);
    return bits & 1 && !fixture->c.formula.weight_offset ? -w : w;
}

void nb_fixture_set_weight(struct nb_fixture *fixture, int64_t i, double w) {
    struct nb_inputs *in = &fixture->in;
    const double gamma = fixture->c.formula.weight_offset ? w - 1 : w;
    in->gamma_f32[i] = (float)gamma;
    in->beta_f32[i] = 0;
    nb_set(in->gamma_x, i, in->dtype, gamma);
    nb_set(in->beta_x, i, in->dtype, 0);
}

/* x, or for add_* the two whose sum it is: in a backward call x is the sum itself. */
static void set_x(struct nb_fixture *fixture, int64_t at, double x, double unit, uint64_t *random) {
    struct nb_inputs *in = &fixture->in;
    double residual = 0;
    if (in->residual && nb_op_adds(fixture->c.op) && fixture->c.pass == NB_FORWARD) {
        do residual = (double)(int)(nb_random_next(random) % 201) - 100;
        while (fabs(x - residual) > LARGEST);
        nb_set(in->residual, at, in->dtype, residual * unit);
    }
    nb_set(in->x, at, in->dtype, (x - residual) * unit);
}

/* Where element j of a row, or of a channel, lies. */
static int64_t place(const struct nb_fixture *fixture, int64_t unit, int64_t j) {
    const struct nb_case *c = &fixture->c;
    const int64_t cols = fixture->in.cols, channels = fixture->in.n_params;
    if (c->op != NB_OP_BATCHNORM) return unit * cols + j;
    if (c->shape.layout == NB_NHWC) return j * channels + unit;
    return (j / cols * channels + unit) * cols + j % cols;
}

/* A product beyond the numbers of the dtype is infinite, as IEEE 754 rounds it: of the first two columns, whose weights are as large as may
 * be. */
static bool has_overflow(const struct nb_case *c) {
    return c->pass == NB_FORWARD && c->op != NB_OP_BATCHNORM && c->op != NB_OP_L2NORM &&
           c->formula.affine != NB_AFFINE_NONE && !c->formula.weight_offset;
}

static void draw_weights(struct nb_fixture *fixture, bool overflows, double *weights, uint64_t *random) {
    const struct nb_format *f = &nb_formats[fixture->in.dtype];
    for (int64_t i = 0; i < fixture->in.n_params; i++) {
        /* in a backward call the four of a group share a weight */
        weights[i] = fixture->c.pass == NB_BACKWARD && i % 4 ? weights[i - 1] : draw_weight(fixture, random);
        if (overflows && i < 2) weights[i] = ldexp(weights[i], f->emax);
        nb_fixture_set_weight(fixture, i, weights[i]);
    }
}

/* Of one row or channel. dy: beside each x in a backward call. */
static void set_unit(struct nb_fixture *fixture, int64_t unit, const int *m, const double *weights, double root,
                     uint64_t *random, double *want) {
    static const int powers[] = {0, 3, -5, 5, -2};
    struct nb_inputs *in = &fixture->in;
    const bool backward = fixture->c.pass == NB_BACKWARD, by_channel = fixture->c.op == NB_OP_BATCHNORM;
    const int64_t seen = length(fixture), n = by_channel ? seen : in->cols;
    const double scale = ldexp(1, powers[unit % 5]);
    int dy = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place(fixture, unit, i);
        const double x = (i % 2 ? -1 : 1) * (double)m[i % seen / 2], w = weights[by_channel ? unit : i];
        if (i % 4 == 0) dy = (int)(nb_random_next(random) % 64) * 2 + 1;
        set_x(fixture, at, x, scale, random);
        if (backward) nb_set(in->dy, at, in->dtype, i % 4 < 2 ? dy : -dy);
        if (backward && in->dresidual_out) nb_set(in->dresidual_out, at, in->dtype, 0);
        want[at] = backward ? (i % 4 < 2 ? dy : -dy) * w / (root * scale) : x / root * w;
    }
}

const char *nb_exact_rows(struct nb_fixture *fixture, double *want) {
    const struct nb_inputs *in = &fixture->in;
    const char *why = refusal(fixture);
    if (why) return why;
    const bool sums = fixture->c.op == NB_OP_L2NORM;
    const int64_t seen = length(fixture), n = fixture->c.op == NB_OP_BATCHNORM ? in->n_params : in->rows;
    const int log_n = (int)log2((double)seen);
    const int64_t squares = seen * (sums && log_n % 2 ? 2 : 1) * MEAN_SQUARE; /* a power of four, or its mean is */
    const double root = sums ? sqrt((double)squares) : sqrt(MEAN_SQUARE);
    const bool overflows = has_overflow(&fixture->c);
    uint64_t random = fixture->c.seed;
    int m[(1 << 24) / MEAN_SQUARE / 2];
    double weights[4 * (1 << 24) / MEAN_SQUARE];
    if (in->n_params > (int64_t)(sizeof weights / sizeof *weights)) return "the rows are too long";
    draw_weights(fixture, overflows, weights, &random);
    for (int64_t unit = 0; unit < n; unit++) {
        if (!draw_magnitudes(m, seen / 2, squares / 2, overflows, &random)) return "no such rows were found";
        set_unit(fixture, unit, m, weights, root, &random, want);
    }
    fixture->c.eps = 0;
    return NULL;
}
