// SPDX-License-Identifier: Apache-2.0
/* A fixture of a few rows, one call as it is, then every relation against it. */
#include "src/measure/metamorphic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/bound.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/fixture.h"

/* ---- what trials share ------------------------------------------------------------------------------------------- */

/* What the trials of one case share. */
struct trials {
    struct nb_fixture *fixture;
    const struct nb_oracle *oracle; /* of the whole case */
    struct nb_bound bound;
    struct nb_metamorphic *out;
    void *first, *y;           /* of the first call and of the last, packed */
    double *exact, *tolerance; /* one row */
    int64_t n_compared;        /* elements or rows that a ratio was taken of */
};

static bool is_batchnorm(const struct trials *t) { return t->fixture->c.op == NB_OP_BATCHNORM; }

static struct nb_relation_result *conclude(struct trials *t, enum nb_relation relation, enum nb_holds verdict,
                                           const char *reason) {
    struct nb_relation_result *r = &t->out->relations[relation];
    r->verdict = verdict;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    return r;
}

static void trial_skip(struct trials *t, enum nb_relation relation, const char *reason) {
    conclude(t, relation, NB_NOT_PROMISED, reason)->figure = NAN;
}

/* Where this holds, the relation is not tried. */
static bool is_skipped(struct trials *t, enum nb_relation relation, bool holds, const char *reason) {
    if (holds) trial_skip(t, relation, reason);
    return holds;
}

/* Calls, and takes y; false after a failure, which is judged. */
static bool trial_call(struct trials *t, enum nb_relation relation, int64_t rows, int64_t range) {
    if (nb_fixture_call(t->fixture, rows, range, t->y) == 0) return true;
    conclude(t, relation, NB_BROKEN, "run() returned an error");
    return false;
}

/* A difference; the first one's place is kept: element i of the packed result. */
static void count(struct trials *t, enum nb_relation relation, int64_t i) {
    struct nb_relation_result *r = &t->out->relations[relation];
    if (r->figure++ > 0) return;
    r->row = i / t->fixture->in.cols;
    r->col = i % t->fixture->in.cols;
}

/* Passed when nothing was counted. */
static void trial_judge(struct trials *t, enum nb_relation relation, const char *what_failed) {
    const bool broken = t->out->relations[relation].figure > 0;
    conclude(t, relation, broken ? NB_BROKEN : NB_HOLDS, broken ? what_failed : "");
}

/* Passed when the figure is at most the threshold; not applicable when nothing was compared. */
static void trial_judge_ratio(struct trials *t, enum nb_relation relation, double threshold, const char *what_failed) {
    const bool broken = t->out->relations[relation].figure > threshold;
    if (t->n_compared == 0)
        trial_skip(t, relation, "every row is lost, as the formula predicts");
    else
        conclude(t, relation, broken ? NB_BROKEN : NB_HOLDS, broken ? what_failed : "");
}

/* Fills exact and tolerance of a row. */
static void trial_exact(struct trials *t, const struct nb_oracle *oracle, const struct nb_bound *bound, int64_t row) {
    nb_oracle_row(oracle, row, t->exact);
    nb_bound_row(bound, row, t->exact, t->tolerance);
}

/* ---- transformations --------------------------------------------------------------------------------------------- */

static void flip(void *array, int64_t n, enum nb_dtype dtype) {
    for (int64_t i = 0; array && i < n; i++) nb_set(array, i, dtype, -nb_get(array, i, dtype));
}

/* x, residual, running means and beta with the other sign; backward: dy and dresidual_out. */
static void negate(struct nb_fixture *fixture) {
    const int64_t n = fixture->in.rows * fixture->in.cols;
    if (fixture->c.pass == NB_BACKWARD) {
        flip(fixture->in.dy, n, fixture->in.dtype);
        flip(fixture->in.dresidual_out, n, fixture->in.dtype);
        return;
    }
    flip(fixture->in.x, n, fixture->in.dtype);
    flip(fixture->in.residual, n, fixture->in.dtype);
    flip(fixture->in.beta_f32, fixture->in.n_params, NB_F32);
    flip(fixture->in.beta_x, fixture->in.n_params, fixture->in.dtype);
    flip(fixture->in.running_mean, fixture->in.n_params, NB_F32);
}

/* ---- names, and JSON --------------------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"not_applicable", "passed", "failed", NULL};

#define R(KIND, field) NB_MEMBER(KIND, struct nb_relation_result, field)
#define R_OPTIONAL(KIND, field) NB_MEMBER_OPTIONAL(KIND, struct nb_relation_result, field)
static const struct nb_member result_members[] = {NB_MEMBER_NAMED(struct nb_relation_result, verdict, verdicts),
                                                  R(AMOUNT, figure),
                                                  R_OPTIONAL(INDEX, row),
                                                  R_OPTIONAL(INDEX, col),
                                                  R_OPTIONAL(TEXT, reason),
                                                  NB_MEMBERS_END};

#define RELATION(name, i)                                                                                              \
    {                                                                                                                  \
        name, NB_MEMBER_OBJECT, offsetof(struct nb_metamorphic, relations[i]), 0, NULL, result_members,                \
            (i) == NB_REL_EXACT                                                                                        \
    }
const struct nb_member nb_metamorphic_members[] = {
    RELATION("scale", NB_REL_SCALE),   RELATION("negate", NB_REL_NEGATE),       RELATION("permute", NB_REL_PERMUTE),
    RELATION("shift", NB_REL_SHIFT),   RELATION("row_order", NB_REL_ROW_ORDER), RELATION("batch", NB_REL_BATCH),
    RELATION("ranges", NB_REL_RANGES), RELATION("twice", NB_REL_TWICE),         RELATION("squares", NB_REL_SQUARES),
    RELATION("sum", NB_REL_SUM),       RELATION("exact", NB_REL_EXACT),         NB_MEMBERS_END};

const char *nb_relation_name(enum nb_relation r) { return nb_metamorphic_members[r].name; }

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

/* Relations that keep every bit: place of a row, size of the batch, ranges, repetition, sign. Each transforms the fixture's rows,
 * calls, and compares with the first call's bits. */

/* NaN are all alike. */
static bool same_bits(const void *a, int64_t i, const void *b, int64_t j, enum nb_dtype dtype) {
    return nb_bits(a, i, dtype) == nb_bits(b, j, dtype) || (isnan(nb_get(a, i, dtype)) && isnan(nb_get(b, j, dtype)));
}

/* What has a row of its own for each row; returns how many. */
static int tensors_by_row(const struct nb_inputs *in, unsigned char *out[4]) {
    void *const all[] = {in->x, in->residual, in->dy, in->dresidual_out};
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (all[i]) out[n++] = all[i];
    return n;
}

/* Counts a row of the last call (t->y) against one of the first. */
static void compare_row(struct trials *t, enum nb_relation relation, int64_t row, int64_t of_first) {
    const struct nb_inputs *in = &t->fixture->in;
    int64_t col = 0;
    while (col < in->cols && same_bits(t->y, row * in->cols + col, t->first, of_first * in->cols + col, in->dtype))
        col++;
    if (col < in->cols) count(t, relation, of_first * in->cols + col);
}

static void try_row_order(struct trials *t) {
    struct nb_inputs *in = &t->fixture->in;
    const size_t bytes = (size_t)in->cols * t->fixture->item;
    unsigned char *tensors[4];
    const int n_tensors = tensors_by_row(in, tensors);
    if (is_skipped(t, NB_REL_ROW_ORDER, is_batchnorm(t), "the statistics go over the rows")) return;
    nb_fixture_reset(t->fixture);
    for (int i = 0; i < n_tensors; i++) {
        unsigned char *copy freed = nb_alloc((unsigned long long)in->rows, bytes);
        memcpy(copy, tensors[i], (size_t)in->rows * bytes);
        for (int64_t r = 0; r < in->rows; r++)
            memcpy(tensors[i] + (size_t)r * bytes, copy + (size_t)(in->rows - 1 - r) * bytes, bytes);
    }
    if (!trial_call(t, NB_REL_ROW_ORDER, in->rows, 0)) return;
    for (int64_t r = 0; r < in->rows; r++) compare_row(t, NB_REL_ROW_ORDER, r, in->rows - 1 - r);
    trial_judge(t, NB_REL_ROW_ORDER, "a row's result depends on its place");
}

/* Where kernels are known to change their ways. */
enum { MANY_ROWS = 4096, FEW_FOR_MANY = 255, MANY_ELEMENTS = 1 << 20 };

/* The rows of a long case again and again, in one call and in shorter ones. */
static void compare_batches(struct trials *t, struct nb_fixture *many) {
    static const int64_t sizes[] = {1, 255, 256, 257};
    const unsigned long long n = (unsigned long long)many->in.rows * (unsigned long long)many->in.cols;
    struct trials of_many = *t;
    of_many.fixture = many;
    of_many.first = nb_alloc(n, many->item);
    of_many.y = nb_alloc(n, many->item);
    bool called = nb_fixture_call(many, many->in.rows, 0, of_many.first) == 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && called; i++) {
        called = trial_call(&of_many, NB_REL_BATCH, sizes[i], 0);
        for (int64_t r = 0; called && r < sizes[i]; r++) compare_row(&of_many, NB_REL_BATCH, r, r);
    }
    free(of_many.first);
    free(of_many.y);
}

static void try_many_rows(struct trials *t) {
    const struct nb_fixture *f = t->fixture;
    const int64_t rows = MANY_ELEMENTS / f->in.cols;
    struct nb_fixture many released_by(nb_fixture_release) = {0};
    if (f->source_rows < FEW_FOR_MANY || rows < 4 * FEW_FOR_MANY) return;
    if (nb_fixture_init(&many, t->oracle->c, f->entry, f->source, rows < MANY_ROWS ? rows : MANY_ROWS) == 0)
        compare_batches(t, &many);
}

/* The first and the last row, each alone; of a case with many rows some hundreds of them. */
static void try_batch(struct trials *t) {
    struct nb_inputs *in = &t->fixture->in;
    const int64_t rows = in->rows, last = rows - 1;
    const size_t bytes = (size_t)in->cols * t->fixture->item;
    unsigned char *tensors[4];
    const int n_tensors = tensors_by_row(in, tensors);
    if (is_skipped(t, NB_REL_BATCH, is_batchnorm(t), "the statistics go over the rows")) return;
    for (int64_t r = 0; r <= last; r += last > 0 ? last : 1) {
        nb_fixture_reset(t->fixture);
        for (int i = 0; i < n_tensors; i++) memmove(tensors[i], tensors[i] + (size_t)r * bytes, bytes);
        if (!trial_call(t, NB_REL_BATCH, 1, 0)) return;
        compare_row(t, NB_REL_BATCH, 0, r);
    }
    try_many_rows(t);
    trial_judge(t, NB_REL_BATCH, "a row's result depends on the size of the batch");
}

static void try_ranges(struct trials *t) {
    const int64_t units = nb_kernel_n_units(t->fixture->entry->kernel, &t->fixture->call, 0),
                  rows = t->fixture->in.rows;
    nb_fixture_reset(t->fixture);
    for (int64_t range = 1; range <= units && range <= 3; range += 2) {
        if (!trial_call(t, NB_REL_RANGES, rows, range)) return;
        for (int64_t r = 0; r < rows; r++) compare_row(t, NB_REL_RANGES, r, r);
    }
    trial_judge(t, NB_REL_RANGES, "the result depends on how the call is cut into ranges");
}

static void try_twice(struct trials *t) {
    nb_fixture_reset(t->fixture);
    if (!trial_call(t, NB_REL_TWICE, t->fixture->in.rows, 0)) return;
    for (int64_t r = 0; r < t->fixture->in.rows; r++) compare_row(t, NB_REL_TWICE, r, r);
    trial_judge(t, NB_REL_TWICE, "the same call gives other bits");
}

/* ---- the other sign ---- */

static void try_negate(struct trials *t) {
    const enum nb_dtype dtype = t->fixture->in.dtype;
    const int64_t n = t->fixture->in.rows * t->fixture->in.cols;
    nb_fixture_reset(t->fixture);
    negate(t->fixture);
    if (!trial_call(t, NB_REL_NEGATE, t->fixture->in.rows, 0)) return;
    for (int64_t i = 0; i < n; i++) {
        const double v = nb_get(t->y, i, dtype), w = -nb_get(t->first, i, dtype);
        /* 0 has no sign to be held to: c - c is +0 on either side */
        if (v != w && !(isnan(v) && isnan(w))) count(t, NB_REL_NEGATE, i);
    }
    trial_judge(t, NB_REL_NEGATE, "one-sided rounding: negating the input does not negate the result");
}

/* ---- powers of two ----------------------------------------------------------------------------------------------- */

/* Multiplying by 2^k commutes with every rounding as long as nothing leaves the normal numbers. A gradient is linear in what comes in, so
 * that dy and dresidual_out times 2^k give dx times 2^k, wherever both are normal numbers. */

/* A number below the smallest normal one may have been rounded to it; to 0 what is below half the smallest of all. */
static bool must_scale(double from, double to, const struct nb_format *f) {
    if (from == 0) return !(fabs(to) <= ldexp(f->min_subnormal, 4));
    return fabs(from) > f->min_normal && fabs(from) <= f->max_finite;
}

static void compare_gradient(struct trials *t, int k) {
    const enum nb_dtype dtype = t->fixture->in.dtype;
    const struct nb_format *f = &nb_formats[dtype];
    const int64_t n = t->fixture->in.rows * t->fixture->in.cols;
    for (int64_t i = 0; i < n; i++) {
        const double now = nb_get(t->y, i, dtype), before = nb_get(t->first, i, dtype), want = ldexp(before, k);
        if (now != want && must_scale(before, now, f) && must_scale(want, now, f)) count(t, NB_REL_SCALE, i);
    }
}

static void compare_bits(struct trials *t) {
    const struct nb_inputs *in = &t->fixture->in;
    for (int64_t i = 0; i < in->rows * in->cols; i++)
        if (!same_bits(t->y, i, t->first, i, in->dtype)) count(t, NB_REL_SCALE, i);
}

/* Of a gradient every power is tried, or none. */
static void try_scale(struct trials *t) {
    static const int powers[] = {1, -1, 4, -4};
    const uint32_t root = t->fixture->c.formula.root;
    const bool backward = t->fixture->c.pass == NB_BACKWARD;
    const bool estimate =
        !backward && t->fixture->c.op != NB_OP_DYT && (root == NB_ROOT_RSQRT_NR || root == NB_ROOT_RSQRT_RAW);
    const char *why = NULL;
    int tried = 0;
    for (size_t i = 0; i < sizeof powers / sizeof powers[0] && !(backward && why); i++) {
        const char *excused = nb_scale_excuse(t->fixture, t->oracle, powers[i]);
        if (!excused && !nb_scale(t->fixture, powers[i]))
            excused = backward ? "dy leaves the normal numbers" : "rows leave the normal numbers";
        if (excused) {
            why = excused;
            continue;
        }
        if (!trial_call(t, NB_REL_SCALE, t->fixture->in.rows, 0)) return;
        if (backward)
            compare_gradient(t, powers[i]);
        else
            compare_bits(t);
        tried++;
    }
    nb_fixture_reset(t->fixture);
    if (tried == 0 || (backward && why))
        trial_skip(t, NB_REL_SCALE, why);
    else if (estimate && t->out->relations[NB_REL_SCALE].figure > 0)
        trial_skip(t, NB_REL_SCALE, "the hardware's estimate is declared, and it need not scale");
    else
        trial_judge(t, NB_REL_SCALE,
                    backward ? "a power of two of dy changes more than the power of dx"
                             : "a power of two changes the bits");
}

/* ---- within the bound -------------------------------------------------------------------------------------------- */

/* Both results are within the bound of their own rows, whose exact results are the same: they differ by the sum at most. */

/* A row of y beside the same of another call: the tolerances of both hold. place[i]: where column i went; null: nowhere. */
static void compare_within(struct trials *t, enum nb_relation relation, const void *other, int64_t row,
                           const int64_t *place, const double *tolerance) {
    struct nb_relation_result *worst = &t->out->relations[relation];
    const enum nb_dtype dtype = t->fixture->in.dtype;
    const int64_t cols = t->fixture->in.cols;
    for (int64_t i = 0; i < cols; i++) {
        const double v = nb_get(t->y, row * cols + (place ? place[i] : i), dtype),
                     w = nb_get(other, row * cols + i, dtype);
        if (!isfinite(tolerance[i]) || !(tolerance[i] > 0)) continue;
        const double difference = fabs(v - w);
        double ratio = isfinite(difference) ? difference / tolerance[i] : INFINITY;
        if (isnan(v) && isnan(w)) ratio = 0; /* the check has said so */
        t->n_compared++;
        if (!(ratio > worst->figure)) continue;
        worst->figure = ratio;
        worst->row = row;
        worst->col = i;
    }
}

/* A shuffle of [from, to). */
static void shuffle(int64_t *place, int64_t from, int64_t to, uint64_t seed) {
    for (int64_t i = to - 1; i > from; i--) {
        const int64_t j = from + (int64_t)(nb_random_next(&seed) % (uint64_t)(i - from + 1)), other = place[i];
        place[i] = place[j];
        place[j] = other;
    }
}

static void move_columns(void *row, int64_t cols, size_t item, const int64_t *place) {
    if (!row) return;
    unsigned char *copy freed = nb_alloc((unsigned long long)cols, item), *to = row;
    memcpy(copy, row, (size_t)cols * item);
    for (int64_t i = 0; i < cols; i++) memcpy(to + (size_t)place[i] * item, copy + (size_t)i * item, item);
}

/* The first column stays, since a shifted variance is taken about it; what pRMSNorm looks at stays among itself. */
static void try_permute(struct trials *t) {
    struct nb_inputs *in = &t->fixture->in;
    const int64_t cols = in->cols, seen = t->oracle->n_stats < cols ? t->oracle->n_stats : cols;
    const size_t bytes = (size_t)cols * t->fixture->item;
    unsigned char *tensors[4];
    const int n_tensors = tensors_by_row(in, tensors);
    if (is_skipped(t, NB_REL_PERMUTE, cols < 3, "fewer than 3 columns") ||
        is_skipped(t, NB_REL_PERMUTE, is_batchnorm(t) || t->fixture->c.op == NB_OP_DYT,
                   "nothing is summed along a row"))
        return;
    int64_t *place freed = nb_alloc((unsigned long long)cols, sizeof *place);
    for (int64_t i = 0; i < cols; i++) place[i] = i;
    shuffle(place, 1, seen, t->fixture->c.seed + 1);
    shuffle(place, seen, cols, t->fixture->c.seed + 2);
    nb_fixture_reset(t->fixture);
    for (int i = 0; i < n_tensors; i++)
        for (int64_t r = 0; r < in->rows; r++)
            move_columns(tensors[i] + (size_t)r * bytes, cols, t->fixture->item, place);
    move_columns(in->gamma_f32, cols, sizeof(float), place);
    move_columns(in->beta_f32, cols, sizeof(float), place);
    move_columns(in->gamma_x, cols, t->fixture->item, place);
    move_columns(in->beta_x, cols, t->fixture->item, place);
    t->n_compared = 0;
    if (trial_call(t, NB_REL_PERMUTE, in->rows, 0)) {
        for (int64_t r = 0; r < in->rows; r++) {
            trial_exact(t, t->oracle, &t->bound, r % t->fixture->source_rows);
            for (int64_t i = 0; i < cols; i++) t->tolerance[i] *= 2;
            compare_within(t, NB_REL_PERMUTE, t->first, r, place, t->tolerance);
        }
        trial_judge_ratio(t, NB_REL_PERMUTE, 1, "another order of the columns changes y beyond the bound");
    }
}

/* ---- shift ---- */

/* Every x on a grid so coarse that the shift by a power of two beyond the largest is exact. 0: no such shift in the dtype. */
static double make_coarse(struct nb_fixture *fixture) {
    const struct nb_format *f = &nb_formats[fixture->in.dtype];
    const int64_t n = fixture->in.rows * fixture->in.cols;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(nb_get(fixture->in.x, i, fixture->in.dtype));
        if (!isfinite(v)) return 0;
        largest = fmax(largest, v);
    }
    if (!(largest > 0)) return 0;
    const int top = ilogb(largest), grid = top - f->precision + 4;
    if (top + 2 > f->emax || grid < f->emin) return 0;
    for (int64_t i = 0; i < n; i++) {
        nb_set(fixture->in.x, i, fixture->in.dtype,
               ldexp(rint(ldexp(nb_get(fixture->in.x, i, fixture->in.dtype), -grid)), grid));
        if (fixture->in.residual) nb_set(fixture->in.residual, i, fixture->in.dtype, 0);
    }
    return ldexp(1, top + 1);
}

/* Tolerances of all rows of the fixture as it stands, added to sums. */
static bool add_tolerances(struct trials *t, double *sums) {
    struct nb_oracle oracle;
    struct nb_bound bound;
    const int64_t cols = t->fixture->in.cols;
    if (nb_oracle_init(&oracle, &t->fixture->c, &t->fixture->in) != 0) return false;
    nb_bound_init(&bound, &t->fixture->c, &oracle, t->bound.chain);
    for (int64_t r = 0; r < t->fixture->in.rows; r++) {
        trial_exact(t, &oracle, &bound, r);
        for (int64_t i = 0; i < cols; i++) sums[r * cols + i] += t->tolerance[i];
    }
    nb_bound_release(&bound);
    nb_oracle_release(&oracle);
    return true;
}

static void shift_rows(struct trials *t, double by) {
    struct nb_inputs *in = &t->fixture->in;
    const int64_t cols = in->cols, n = in->rows * cols;
    double *sums freed = nb_alloc((unsigned long long)n, sizeof *sums);
    void *before freed = nb_alloc((unsigned long long)n, t->fixture->item);
    t->n_compared = 0;
    bool whole = add_tolerances(t, sums) && trial_call(t, NB_REL_SHIFT, in->rows, 0);
    if (whole) {
        memcpy(before, t->y, (size_t)n * t->fixture->item);
        for (int64_t i = 0; i < n; i++) nb_set(in->x, i, in->dtype, nb_get(in->x, i, in->dtype) + by);
        whole = add_tolerances(t, sums) && trial_call(t, NB_REL_SHIFT, in->rows, 0);
    }
    for (int64_t r = 0; whole && r < in->rows; r++) compare_within(t, NB_REL_SHIFT, before, r, NULL, sums + r * cols);
    if (whole) trial_judge_ratio(t, NB_REL_SHIFT, 1, "a constant added to the row changes y beyond the bound");
}

/* Two rows are enough for a relation that needs oracles of its own. */
static void try_shift(struct trials *t) {
    const int64_t rows = t->fixture->in.rows;
    const bool centres = nb_op_centres(t->fixture->c.op) && !(is_batchnorm(t) && t->fixture->c.mode == NB_INFERENCE);
    if (is_skipped(t, NB_REL_SHIFT, !centres, "the op does not centre its rows")) return;
    nb_fixture_reset(t->fixture);
    if (!is_batchnorm(t) && rows > 2) t->fixture->in.rows = 2;
    const double by = make_coarse(t->fixture);
    if (by > 0)
        shift_rows(t, by);
    else
        trial_skip(t, NB_REL_SHIFT, "no shift of these rows is exact in the dtype");
    t->fixture->in.rows = rows;
}

/* ---- sums over y ------------------------------------------------------------------------------------------------- */

static void judge_residual(struct trials *t, enum nb_relation relation, const struct nb_residual *worst,
                           const char *what_failed) {
    t->out->relations[relation].figure = worst->ratio;
    t->out->relations[relation].row = worst->row;
    t->n_compared = worst->n;
    trial_judge_ratio(t, relation, NB_RESIDUAL_THRESHOLD, what_failed);
}

/* Judges NB_REL_SQUARES and NB_REL_SUM. */
static void try_residuals(struct trials *t) {
    const struct nb_case *c = &t->fixture->c;
    const bool given = c->op == NB_OP_BATCHNORM && c->mode == NB_INFERENCE;
    struct nb_residuals residuals;
    if (c->op == NB_OP_DYT || given) {
        const char *reason = given ? "the statistics are not the batch's" : "the op has no statistics";
        trial_skip(t, NB_REL_SQUARES, reason);
        trial_skip(t, NB_REL_SUM, reason);
        return;
    }
    nb_fixture_reset(t->fixture);
    for (int64_t i = 0; i < t->fixture->in.n_params; i++) nb_fixture_set_weight(t->fixture, i, 1);
    if (!trial_call(t, NB_REL_SQUARES, t->fixture->in.rows, 0)) return;
    nb_residuals(&t->bound, t->y, t->fixture->in.rows, &residuals);
    judge_residual(t, NB_REL_SQUARES, &residuals.squares, "the mean of y^2 is not v / (v + eps)");
    if (nb_op_centres(c->op))
        judge_residual(t, NB_REL_SUM, &residuals.sum, "the mean of y is not 0");
    else
        trial_skip(t, NB_REL_SUM, "the op does not centre its rows");
}

/* ---- the last rounding alone ------------------------------------------------------------------------------------- */

static void compare_exact(struct trials *t, const double *want) {
    const struct nb_inputs *in = &t->fixture->in;
    for (int64_t i = 0; i < in->rows * in->cols; i++)
        if (!(nb_get(t->y, i, in->dtype) == nb_round_to(want[i], in->dtype))) count(t, NB_REL_EXACT, i);
}

static void try_exact(struct trials *t) {
    struct nb_fixture *fixture = t->fixture;
    if (is_skipped(t, NB_REL_EXACT, strcmp(fixture->c.data, "normal") != 0, "tried with normal data alone")) return;
    double *want freed =
        nb_alloc((unsigned long long)fixture->in.rows * (unsigned long long)fixture->in.cols, sizeof *want);
    nb_fixture_reset(fixture);
    const char *why = nb_exact_rows(fixture, want);
    if (why) {
        trial_skip(t, NB_REL_EXACT, why);
    } else if (trial_call(t, NB_REL_EXACT, fixture->in.rows, 0)) {
        compare_exact(t, want);
        trial_judge(t, NB_REL_EXACT, "not the exact product rounded to nearest even, though nothing else is rounded");
    }
    nb_fixture_reset(fixture);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void skip_all(struct trials *t, const char *reason) {
    for (int i = 0; i < NB_N_RELATIONS; i++) trial_skip(t, (enum nb_relation)i, reason);
}

typedef void (*trial_fn)(struct trials *t);

static void try_all(struct trials *t) {
    static const trial_fn forward[] = {try_scale, try_negate, try_permute, try_shift,     try_row_order,
                                       try_batch, try_ranges, try_twice,   try_residuals, try_exact};
    static const trial_fn backward[] = {try_scale,  try_negate, try_row_order, try_batch,
                                        try_ranges, try_twice,  try_exact};
    const bool is_backward = t->fixture->c.pass == NB_BACKWARD;
    const size_t n = is_backward ? sizeof backward / sizeof backward[0] : sizeof forward / sizeof forward[0];
    if (is_backward) {
        trial_skip(t, NB_REL_PERMUTE, "not asked of gradients");
        trial_skip(t, NB_REL_SHIFT, "not asked of gradients");
        trial_skip(t, NB_REL_SQUARES, "a gradient is not normalized");
        trial_skip(t, NB_REL_SUM, "a gradient is not normalized");
    }
    for (size_t i = 0; i < n; i++) (is_backward ? backward : forward)[i](t);
}

static void check_all(struct trials *t) {
    const int64_t rows = t->fixture->in.rows;
    const unsigned long long cols = (unsigned long long)t->fixture->in.cols;
    t->first = nb_alloc((unsigned long long)rows * cols, t->fixture->item);
    t->y = nb_alloc((unsigned long long)rows * cols, t->fixture->item);
    t->exact = nb_alloc(cols, sizeof *t->exact);
    t->tolerance = nb_alloc(cols, sizeof *t->tolerance);
    if (nb_fixture_call(t->fixture, rows, 0, t->first) == 0)
        try_all(t);
    else
        skip_all(t, "run() returned an error");
    nb_free_all(t->first, t->y, t->exact, t->tolerance);
}

enum { ROWS = 5, LONG_ROWS = 2, LONG = 16384 };

void nb_metamorphic_check(const struct nb_case *c, const struct nb_entry *entry, const struct nb_oracle *oracle,
                          struct nb_metamorphic *out) {
    struct nb_fixture fixture released_by(nb_fixture_release) = {0};
    struct trials t = {.fixture = &fixture, .oracle = oracle, .out = out};
    *out = (struct nb_metamorphic){0};
    for (int i = 0; i < NB_N_RELATIONS; i++) out->relations[i].row = out->relations[i].col = -1;
    if (c->op == NB_OP_COPY) {
        skip_all(&t, "a copy computes nothing");
        return;
    }
    if (nb_fixture_init(&fixture, c, entry, oracle->in, c->shape.cols > LONG ? LONG_ROWS : ROWS) == 0) {
        nb_bound_init(&t.bound, c, oracle, nb_kernel_chain(entry->kernel, &fixture.call));
        check_all(&t);
        nb_bound_release(&t.bound);
    } else {
        skip_all(&t, "the kernel refuses so few rows, or there is no memory");
    }
}
