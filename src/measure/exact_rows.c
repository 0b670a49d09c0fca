// SPDX-License-Identifier: Apache-2.0
/* Columns come in fours, (a, -a, b, -b) beside (d, d, -d, -d) as dy: the sums of x, of dy w and of dy w x vanish if the four share a
 * weight but for its sign. Lagrange's four squares make up what the drawn numbers leave of the sum of squares. */
#include "src/measure/exact_rows.h"

#include <math.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/random.h"

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

static void set_parameters(struct nb_fixture *fixture, int64_t i, double w) {
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
        set_parameters(fixture, i, weights[i]);
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
