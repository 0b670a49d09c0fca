// SPDX-License-Identifier: Apache-2.0
/* Predictions. Where an output has few bits, two ways that differ in the last bits of f32 agree in nearly all outputs: rows where they
 * do not, one in thousands, are searched for on paper and only then given to the kernel. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/lab/probe/probe_box.h"
#include "src/lab/roots/root_variants.h"

/* ---- Rows of integers whose squares have a sum that is exact in f32 in any order, so that v is known: by chance, or by taking the largest square that is left away, again and again: sums of squares need few terms ---- */

/* cols 4^bits <= 2^24. */
static const struct integers {
    int64_t cols;
    int bits; /* elements below 2^bits */
} integers_of[NB_N_DTYPES] = {[NB_F32] = {16, 10}, [NB_F16] = {64, 9}, [NB_BF16] = {128, 8}};

/* All rows of the box: odd integers of up to 2 .. bits bits, a row each; where the mean is taken off in pairs of +-. */
static void fill_integers(struct nb_box *b) {
    const struct nb_random random = nb_random_stream(11, 0);
    const int most = integers_of[b->p->dtype].bits;
    for (int64_t r = 0; r < b->rows; r++) {
        const uint64_t bits = 2 + nb_random_bits(random, (uint64_t)r) % (uint64_t)(most - 1), mask = (1u << bits) - 1;
        for (int64_t i = 0; i < b->cols; i += 2) {
            const uint64_t at = (uint64_t)(b->rows + r * b->cols + i);
            const double x = (double)((nb_random_bits(random, at) & mask) | 1);
            const double other = (double)((nb_random_bits(random, at + 1) & mask) | 1);
            nb_box_set(b, r, i, x);
            nb_box_set(b, r, i + 1, b->p->centres ? -x : other);
        }
    }
}

/* One row with the element x in column 0 and the sum of squares `sum` (centred: an even one, and -x beside it). -1: no room. */
static int integers_set(struct nb_box *b, int64_t row, int64_t x, int64_t sum) {
    const bool pairs = b->p->centres;
    const int64_t most = ((int64_t)1 << integers_of[b->p->dtype].bits) - 1, step = pairs ? 2 : 1;
    int64_t left = sum / step, next = x;
    for (int64_t i = 0; i < b->cols; i += step) {
        nb_box_set(b, row, i, (double)next);
        if (pairs) nb_box_set(b, row, i + 1, -(double)next);
        left -= next * next;
        next = left > 0 ? (int64_t)sqrt((double)left) : 0;
        if (next > most) next = most;
    }
    return left == 0 ? 0 : -1;
}

/* v of a row: exact. */
static float integers_variance(const struct nb_box *b, int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < b->cols; i++) sum += b->x[row * b->cols + i] * b->x[row * b->cols + i];
    return (float)(b->p->of_sum ? sum : sum / (double)b->cols);
}

/* ---- the ways to form x / sqrt(v) that are in use, as predictions of the bits of an output ---- */

enum way_kind { BY_PRODUCT, BY_QUOTIENT, BY_DOUBLE };
struct way {
    const char *root; /* div_sqrt, mul_recip, rsqrt_nr ... */
    const char *name, *formula;
    enum way_kind kind;                    /* x r, x / sqrtf(v), or x / sqrt(v) in double */
    const struct nb_root_variant *variant; /* that gives r */
    int64_t n_wrong;                       /* outputs that differ; counting ends at GIVEN_UP */
};
enum { MAX_WAYS = 40, GIVEN_UP = 8 };

static const char *root_of(const char *variant) {
    if (strcmp(variant, "double") == 0) return "correctly_rounded";
    if (strcmp(variant, "recip_sqrt") == 0) return "mul_recip";
    if (strncmp(variant, "quake", 5) == 0) return "quake";
    return strchr(variant, '_') ? "rsqrt_nr" : "rsqrt_raw";
}

/* Those that this machine has. */
static int ways_list(struct way ways[MAX_WAYS]) {
    int n = 0;
    ways[n++] = (struct way){"div_sqrt", "div_sqrt", "x / sqrtf(v)", BY_QUOTIENT, NULL, 0};
    ways[n++] = (struct way){"correctly_rounded", "double_div", "x / sqrt(v) in double", BY_DOUBLE, NULL, 0};
    for (size_t i = 0; i < nb_n_root_variants; i++) {
        const struct nb_root_variant *v = &nb_root_variants[i];
        if (nb_root_variant_refuses(v) || strncmp(v->name, "kernel", 6) == 0) continue;
        assert(n < MAX_WAYS);
        ways[n++] = (struct way){root_of(v->name), v->name, v->formula, BY_PRODUCT, v, 0};
    }
    return n;
}

/* 1/sqrt of v as a way has it; what is not multiplied by is left 0. */
static void fill_roots(const struct way *way, const float v[NB_BATCH], float r[NB_BATCH]) {
    if (way->variant)
        way->variant->fill(v, r);
    else
        memset(r, 0, NB_BATCH * sizeof *r);
}

static double predict(const struct way *way, double x, float v, float r, enum nb_dtype dtype) {
    if (way->kind == BY_DOUBLE) return nb_round_to(x / sqrt((double)v), dtype);
    const float y = way->kind == BY_QUOTIENT ? (float)x / sqrtf(v) : (float)x * r;
    return nb_round_to((double)y, dtype);
}

static void test_rows(struct way *way, const struct nb_box *b, int64_t row, int64_t n, const float v[NB_BATCH]) {
    float r[NB_BATCH];
    fill_roots(way, v, r);
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < b->cols && way->n_wrong < GIVEN_UP; i++) {
            const double y = predict(way, b->x[(row + k) * b->cols + i], v[k], r[k], b->p->dtype);
            way->n_wrong += y != nb_box_y(b, row + k, i);
        }
}

/* Counts the outputs of the last call, on rows of integers, that each way would have given otherwise. */
static void ways_test(struct way *ways, int n, const struct nb_box *b) {
    float v[NB_BATCH];
    for (int64_t row = 0; row < b->rows; row += NB_BATCH) {
        const int64_t rows = b->rows - row < NB_BATCH ? b->rows - row : NB_BATCH;
        for (int64_t k = 0; k < NB_BATCH; k++) v[k] = k < rows ? integers_variance(b, row + k) : 1;
        for (int i = 0; i < n; i++)
            if (ways[i].n_wrong < GIVEN_UP) test_rows(&ways[i], b, row, rows, v);
    }
}

/* ---- rows on which ways differ ---- */

enum { WANTED = 12, BATCHES = 64 };

struct search {
    const struct way *ways[MAX_WAYS]; /* those left */
    int n;
    int rows_of_pair[MAX_WAYS][MAX_WAYS];
    float v[NB_BATCH], r[MAX_WAYS][NB_BATCH];
    int64_t sums[NB_BATCH];
};

static bool is_done(const struct search *s) {
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < i; j++)
            if (s->rows_of_pair[i][j] < WANTED) return false;
    return true;
}

/* Does x with the k-th v part a pair that has not been parted often enough? Counts all that it parts. */
static bool parts_pair(struct search *s, double x, int64_t k, enum nb_dtype dtype) {
    double y[MAX_WAYS];
    bool wanted = false;
    for (int i = 0; i < s->n; i++) y[i] = predict(s->ways[i], x, s->v[k], s->r[i][k], dtype);
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < i; j++) wanted = wanted || (y[i] != y[j] && s->rows_of_pair[i][j] < WANTED);
    for (int i = 0; wanted && i < s->n; i++)
        for (int j = 0; j < i; j++) s->rows_of_pair[i][j] += y[i] != y[j];
    return wanted;
}

/* Is x / sqrt(v) within 2^-20 of the middle between two numbers of the format? Elsewhere no two ways left differ. */
static bool is_near_middle(double y, const struct nb_format *format) {
    const double spacing = ldexp(1, ilogb(y) - format->precision + 1), at = y / spacing - floor(y / spacing);
    return fabs(at - 0.5) * spacing < y * 0x1p-20;
}

static void draw_sums(struct search *s, const struct nb_box *b, int batch) {
    const struct integers *plan = &integers_of[b->p->dtype];
    const struct nb_random random = nb_random_stream(23, (uint64_t)batch);
    const int64_t least = (int64_t)1 << (2 * plan->bits + 1), most = least * plan->cols / 4;
    for (int64_t k = 0; k < NB_BATCH; k++) {
        s->sums[k] = (least + (int64_t)(nb_random_bits(random, (uint64_t)k) % (uint64_t)(most - least))) & ~(int64_t)1;
        s->v[k] = (float)((double)s->sums[k] / (b->p->of_sum ? 1 : (double)b->cols));
    }
    for (int i = 0; i < s->n; i++) fill_roots(s->ways[i], s->v, s->r[i]);
}

/* Fills b with rows on which ways that have not been wrong differ; each pair on several, if such rows are found. The number of rows. */
static int64_t distinguish_ways(const struct way *ways, int n, struct nb_box *b) {
    struct search *s freed = nb_alloc(1, sizeof *s);
    const int64_t most = (int64_t)1 << integers_of[b->p->dtype].bits;
    int64_t row = 0;
    for (int i = 0; i < n; i++)
        if (ways[i].n_wrong == 0) s->ways[s->n++] = &ways[i];
    for (int batch = 0; batch < BATCHES && row < b->rows && !is_done(s); batch++) {
        draw_sums(s, b, batch);
        for (int64_t k = 0; k < NB_BATCH && row < b->rows; k++) {
            const double rstd = 1 / sqrt((double)s->v[k]);
            for (int64_t x = 1; x < most && row < b->rows; x += 2)
                if (is_near_middle((double)x * rstd, b->p->format) && parts_pair(s, (double)x, k, b->p->dtype))
                    row += integers_set(b, row, x, s->sums[k]) == 0;
        }
    }
    for (int64_t r = row; r < b->rows; r++) integers_set(b, r, 1, 2); /* the rest: any row whose v is known */
    return row;
}

/* ---- Which root, by its bits: on rows of integers v is known, so that every output can be predicted for each way to form x / sqrt(v) that is
 * in use, estimates as this CPU gives them. One output that differs disproves a way. How outputs are rounded is seen first, without any
 * root: x r = y must hold for one r in all columns. */

enum { TO_NEAREST, TO_ZERO, FROM_ZERO, DOWN, UP, N_ROUNDINGS };

/* How far below |y| and above it |x r| may lie, in ulp of y; beside 0, what goes down or up changes sides. */
static const struct {
    const char *name;
    double below[2], above[2]; /* of y > 0, of y < 0 */
} roundings[N_ROUNDINGS] = {[TO_NEAREST] = {"nearest", {0.5, 0.5}, {0.5, 0.5}},
                            [TO_ZERO] = {"towards zero", {0, 0}, {1, 1}},
                            [FROM_ZERO] = {"away from zero", {1, 1}, {0, 0}},
                            [DOWN] = {"down", {0, 1}, {1, 0}},
                            [UP] = {"up", {1, 0}, {0, 1}}};

/* Is there an r with x r rounded to y in all columns of a row? The slack is that of a product rounded to f32 first. */
static bool is_consistent(const struct nb_box *b, int64_t row, int rounding) {
    const enum nb_dtype dtype = b->p->dtype;
    const double slack = dtype == NB_F32 ? 0x1p-50 : 0x1p-23;
    double low = 0, high = INFINITY;
    for (int64_t i = 0; i < b->cols; i++) {
        const double x = b->x[row * b->cols + i], y = fabs(nb_box_y(b, row, i)), ulp = nb_ulp(y, dtype);
        low = fmax(low, (y - roundings[rounding].below[x < 0] * ulp) / fabs(x) * (1 - slack));
        high = fmin(high, (y + roundings[rounding].above[x < 0] * ulp) / fabs(x) * (1 + slack));
    }
    return low <= high;
}

/* Rows that each rounding explains; n: zeros at first. */
static void count_consistent(const struct nb_box *b, int64_t n[N_ROUNDINGS]) {
    for (int64_t r = 0; r < b->rows; r++)
        for (int i = 0; i < N_ROUNDINGS; i++) n[i] += is_consistent(b, r, i);
}

/* Null where none explains all rows, or several do. */
static const char *rounding_of(const int64_t n[N_ROUNDINGS], int64_t rows) {
    const char *name = NULL;
    for (int i = 0, explain = 0; i < N_ROUNDINGS; i++)
        if (n[i] == rows) name = explain++ ? NULL : roundings[i].name;
    return name;
}

/* On numbers of full precision, or, where their mean is missed, on integers. */
static void say_rounding(struct nb_probe *p, const int64_t normal[N_ROUNDINGS], const int64_t integers[N_ROUNDINGS],
                         int64_t rows) {
    const char *value = rounding_of(normal, rows);
    const int64_t *n = value ? normal : integers;
    nb_probe_say(
        p, "rounding", value ? value : rounding_of(integers, rows), "certain",
        "one factor explains all outputs of a row, rounded to nearest, in %lld of %lld rows; towards zero in %lld",
        (long long)n[TO_NEAREST], (long long)rows, (long long)n[TO_ZERO]);
}

/* ---- the root ---- */

/* The largest distance of y / x from 1 / sqrt(v), relative. */
static double largest_error(const struct nb_box *b) {
    double largest = 0;
    for (int64_t row = 0; row < b->rows; row++) {
        const double root = sqrt((double)integers_variance(b, row));
        for (int64_t i = 0; i < b->cols; i++) {
            const double x = b->x[row * b->cols + i];
            if (x != 0) largest = fmax(largest, fabs(nb_box_y(b, row, i) / x * root - 1));
        }
    }
    return largest;
}

static int n_left(const struct way *ways, int n) {
    int left = 0;
    for (int i = 0; i < n; i++) left += ways[i].n_wrong == 0;
    return left;
}

static void say_root(struct nb_probe *p, const struct way *ways, int n, long long outputs, double error) {
    const char *root = NULL;
    struct nb_strbuf names released_by(nb_strbuf_release) = {0};
    bool one_class = true;
    const int left = n_left(ways, n);
    for (int i = 0; i < n; i++) {
        if (ways[i].n_wrong) continue;
        one_class = one_class && (!root || strcmp(root, ways[i].root) == 0);
        root = ways[i].root;
        nb_strbuf_addf(&names, "%s%s (%s)", names.len ? " or " : "", ways[i].name, ways[i].formula);
    }
    if (left == 0) {
        nb_probe_say(p, "root", NULL, NULL, "none of %d ways gives all of %lld outputs", n, outputs);
        nb_probe_say(p, "root_instruction", NULL, NULL, "the largest relative error of an output is 2^%.1f",
                     log2(error));
    } else {
        nb_probe_say(p, "root", one_class ? root : NULL, "certain", "of %d ways %s alone give%s all of %lld outputs", n,
                     names.text, left > 1 ? "" : "s", outputs);
        nb_probe_say(p, "root_instruction", left == 1 ? names.text : NULL, "certain",
                     "the largest relative error of an output is 2^%.1f%s", log2(error),
                     left > 1 ? "; more than one way fits" : "");
    }
}

/* Integers have an exact mean of 0 and v in every plain sum; in others v is off by a few spacings, which few bits of y do not show. */
static bool is_variance_exact(struct nb_probe *p) {
    const bool plain =
        p->variance == NB_VAR_TWOPASS || p->variance == NB_VAR_CORRECTED || p->variance == NB_VAR_ONEPASS;
    if (!p->centres || p->dtype == NB_F32 || plain) return true;
    nb_probe_say(p, "root", NULL, NULL, "the variance is not known to be exact on rows of integers");
    nb_probe_say(p, "root_instruction", NULL, NULL, "the variance is not known to be exact on rows of integers");
    return false;
}

void nb_probe_root(struct nb_probe *p) {
    enum { ROWS = 512 };
    struct way ways[MAX_WAYS];
    struct nb_box b released_by(nb_box_release);
    const int64_t cols = integers_of[p->dtype].cols;
    int64_t normal[N_ROUNDINGS] = {0}, integers[N_ROUNDINGS] = {0};
    const int n = ways_list(ways);
    if (nb_box_init(&b, p, ROWS, cols, 0) != 0) return;
    nb_box_fill_normal(&b, 0);
    if (nb_box_run(&b) != 0) return;
    count_consistent(&b, normal);
    fill_integers(&b);
    if (nb_box_run(&b) != 0) return;
    count_consistent(&b, integers);
    say_rounding(p, normal, integers, ROWS);
    if (!is_variance_exact(p)) return;
    ways_test(ways, n, &b);
    const double error = largest_error(&b);
    if (n_left(ways, n) > 1 && distinguish_ways(ways, n, &b) > 0) {
        if (nb_box_run(&b) != 0) return;
        ways_test(ways, n, &b);
    }
    say_root(p, ways, n, (long long)(2 * ROWS * cols), error);
}
