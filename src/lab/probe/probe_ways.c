// SPDX-License-Identifier: Apache-2.0
/* Predictions. Where an output has few bits, two ways that differ in the last bits of f32 agree in nearly all outputs: rows where they
 * do not, one in thousands, are searched for on paper and only then given to the kernel. */
#include "src/lab/probe/probe_ways.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/lab/probe/probe_integers.h"

static const char *root_of(const char *variant) {
    if (strcmp(variant, "double") == 0) return "correctly_rounded";
    if (strcmp(variant, "recip_sqrt") == 0) return "mul_recip";
    if (strncmp(variant, "quake", 5) == 0) return "quake";
    return strchr(variant, '_') ? "rsqrt_nr" : "rsqrt_raw";
}

int nb_ways_list(struct nb_way ways[NB_MAX_WAYS]) {
    int n = 0;
    ways[n++] = (struct nb_way){"div_sqrt", "div_sqrt", "x / sqrtf(v)", NB_BY_QUOTIENT, NULL, 0};
    ways[n++] = (struct nb_way){"correctly_rounded", "double_div", "x / sqrt(v) in double", NB_BY_DOUBLE, NULL, 0};
    for (size_t i = 0; i < nb_n_root_variants; i++) {
        const struct nb_root_variant *v = &nb_root_variants[i];
        if (nb_root_variant_refuses(v) || strncmp(v->name, "kernel", 6) == 0) continue;
        assert(n < NB_MAX_WAYS);
        ways[n++] = (struct nb_way){root_of(v->name), v->name, v->formula, NB_BY_PRODUCT, v, 0};
    }
    return n;
}

/* 1/sqrt of v as a way has it; what is not multiplied by is left 0. */
static void fill_roots(const struct nb_way *way, const float v[NB_BATCH], float r[NB_BATCH]) {
    if (way->variant)
        nb_root_variant_fill(way->variant)(v, r);
    else
        memset(r, 0, NB_BATCH * sizeof *r);
}

static double predict(const struct nb_way *way, double x, float v, float r, enum nb_dtype dtype) {
    if (way->kind == NB_BY_DOUBLE) return nb_round_to(x / sqrt((double)v), dtype);
    const float y = way->kind == NB_BY_QUOTIENT ? (float)x / sqrtf(v) : (float)x * r;
    return nb_round_to((double)y, dtype);
}

static void test_rows(struct nb_way *way, const struct nb_box *b, int64_t row, int64_t n, const float v[NB_BATCH]) {
    float r[NB_BATCH];
    fill_roots(way, v, r);
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < b->cols && way->n_wrong < NB_GIVEN_UP; i++) {
            const double y = predict(way, b->x[(row + k) * b->cols + i], v[k], r[k], (enum nb_dtype)b->p->c.dtype);
            way->n_wrong += y != nb_box_y(b, row + k, i);
        }
}

void nb_ways_test(struct nb_way *ways, int n, const struct nb_box *b) {
    float v[NB_BATCH];
    for (int64_t row = 0; row < b->rows; row += NB_BATCH) {
        const int64_t rows = b->rows - row < NB_BATCH ? b->rows - row : NB_BATCH;
        for (int64_t k = 0; k < NB_BATCH; k++) v[k] = k < rows ? nb_integers_variance(b, row + k) : 1;
        for (int i = 0; i < n; i++)
            if (ways[i].n_wrong < NB_GIVEN_UP) test_rows(&ways[i], b, row, rows, v);
    }
}

/* ---- rows on which ways differ ---- */

enum { WANTED = 12, BATCHES = 64 };

struct search {
    const struct nb_way *ways[NB_MAX_WAYS]; /* those left */
    int n;
    int rows_of_pair[NB_MAX_WAYS][NB_MAX_WAYS];
    float v[NB_BATCH], r[NB_MAX_WAYS][NB_BATCH];
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
    double y[NB_MAX_WAYS];
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
    const struct nb_integers *plan = &nb_integers[b->p->c.dtype];
    const struct nb_random random = nb_random_stream(23, (uint64_t)batch);
    const int64_t least = (int64_t)1 << (2 * plan->bits + 1), most = least * plan->cols / 4;
    for (int64_t k = 0; k < NB_BATCH; k++) {
        s->sums[k] = (least + (int64_t)(nb_random_bits(random, (uint64_t)k) % (uint64_t)(most - least))) & ~(int64_t)1;
        s->v[k] = (float)((double)s->sums[k] / (b->p->of_sum ? 1 : (double)b->cols));
    }
    for (int i = 0; i < s->n; i++) fill_roots(s->ways[i], s->v, s->r[i]);
}

int64_t nb_ways_tell_apart(const struct nb_way *ways, int n, struct nb_box *b) {
    struct search *s = nb_alloc(1, sizeof *s);
    const int64_t most = (int64_t)1 << nb_integers[b->p->c.dtype].bits;
    int64_t row = 0;
    for (int i = 0; i < n; i++)
        if (ways[i].n_wrong == 0) s->ways[s->n++] = &ways[i];
    for (int batch = 0; batch < BATCHES && row < b->rows && !is_done(s); batch++) {
        draw_sums(s, b, batch);
        for (int64_t k = 0; k < NB_BATCH && row < b->rows; k++) {
            const double rstd = 1 / sqrt((double)s->v[k]);
            for (int64_t x = 1; x < most && row < b->rows; x += 2)
                if (is_near_middle((double)x * rstd, b->p->format) &&
                    parts_pair(s, (double)x, k, (enum nb_dtype)b->p->c.dtype))
                    row += nb_integers_set(b, row, x, s->sums[k]) == 0;
        }
    }
    for (int64_t r = row; r < b->rows; r++) nb_integers_set(b, r, 1, 2); /* the rest: any row whose v is known */
    free(s);
    return row;
}
