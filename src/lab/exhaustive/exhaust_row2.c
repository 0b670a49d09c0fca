// SPDX-License-Identifier: Apache-2.0
/* Rows of two elements, every pair of non-negative finite numbers of a 16-bit dtype: some 10^9. A sign goes through a norm without
 * centring untouched (every operation is odd or even in each element, and rounding to nearest is odd), so the other three quarters
 * follow; for a LayerNorm (x, y) -> (-x, -y) does, and pairs of unlike signs are not looked at.
 *
 * The exact values in double: squares of 11 bits or fewer are exact, and each of the four operations after leaves 2^-53. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/exhaust_judge.h"
#include "src/lab/exhaustive/exhaust_rows.h"

struct task {
    const struct nb_row_source *source;
    double eps;
    enum nb_dtype dtype;
    int64_t stride, n;        /* n numbers in each place */
    const float *decoded;     /* of all 2^16 codes */
    struct nb_judged *judged; /* by the first element */
};

struct pair {
    double y0, y1;
};
static inline struct pair exact_of(const struct task *t, double x0, double x1) {
    const struct nb_row_source *s = t->source;
    if (nb_op_centres(s->op)) {
        const double d = (x0 - x1) / 2, y = s->weight * d / sqrt(d * d + t->eps);
        return (struct pair){y, -y};
    }
    const double squares = x0 * x0 + x1 * x1, v = s->op == NB_OP_L2NORM ? squares : squares / 2;
    const double root = sqrt(v + t->eps);
    return (struct pair){s->weight * x0 / root, s->weight * x1 / root};
}

/* Element `at` to 100 bits. */
static struct nb_twofold exact_twofold(const struct task *t, double x0, double x1, int at) {
    const struct nb_row_source *s = t->source;
    struct nb_twofold numerator = nb_twofold_of(s->weight * (at ? x1 : x0)), v;
    if (nb_op_centres(s->op)) {
        const struct nb_twofold twice = at ? nb_two_sum(x1, -x0) : nb_two_sum(x0, -x1);
        const struct nb_twofold d = {twice.hi / 2, twice.lo / 2};
        numerator = nb_twofold_mul(d, nb_twofold_of(s->weight));
        v = nb_twofold_mul(d, d);
    } else {
        const double share = s->op == NB_OP_L2NORM ? 1 : 0.5;
        v = nb_two_sum(share * (x0 * x0), share * (x1 * x1));
    }
    return nb_twofold_div(numerator, nb_twofold_sqrt(nb_twofold_add(v, nb_twofold_of(t->eps))));
}

static void judge_one(const struct task *t, const struct nb_judge *judge, struct nb_judged *judged, const uint16_t *row,
                      uint16_t got, double exact, int at) {
    const int64_t index = (int64_t)row[0] << 32 | (int64_t)row[1] << 16 | at;
    const double y = (double)t->decoded[got];
    if (nb_judge_add(judge, judged, index, exact, y))
        nb_judge_resolve(judge, judged, exact_twofold(t, (double)t->decoded[row[0]], (double)t->decoded[row[1]], at),
                         y);
}

/* One first element with all second ones. */
static void check_chunk(int64_t chunk, void *arg) {
    const struct task *t = arg;
    const struct nb_judge judge = nb_judge_of(t->dtype);
    const uint16_t first = (uint16_t)(chunk * t->stride);
    struct nb_judged judged = {0};
    struct nb_row_buffers b;
    nb_row_buffers_init(&b, t->n, 2);
    for (int64_t i = 0; i < t->n; i++) {
        b.x[2 * i] = first;
        b.x[2 * i + 1] = (uint16_t)(i * t->stride);
    }
    nb_row_source_run(t->source, &b, t->dtype, t->n, t->eps);
    for (int64_t i = 0; i < t->n; i++) {
        const uint16_t *row = b.x + 2 * i;
        const struct pair y = exact_of(t, (double)t->decoded[first], (double)t->decoded[row[1]]);
        judge_one(t, &judge, &judged, row, b.y[2 * i], y.y0, 0);
        judge_one(t, &judge, &judged, row, b.y[2 * i + 1], y.y1, 1);
    }
    nb_row_buffers_release(&b);
    t->judged[chunk] = judged;
}

static void tell(const struct task *t, int64_t done, double seconds, cJSON *rows) {
    struct nb_judged sum = {0};
    char text[64];
    for (int64_t i = 0; i < done; i++) nb_judged_merge(&sum, &t->judged[i]);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(rows, row);
    nb_json_text(row, "source", t->source->entry ? "kernel" : "design");
    nb_json_text(row, "formula", t->source->text);
    nb_json_text(row, "variant", t->source->entry ? t->source->entry->id : NULL);
    nb_shortest_text(t->eps, text);
    nb_json_text(row, "eps", text);
    nb_judged_tell(&sum, row);
    nb_json_number(row, "n_rows", (double)(done * t->n));
    snprintf(text, sizeof text, "(0x%04x, 0x%04x)[%d]", (unsigned)(sum.witness >> 32),
             (unsigned)(sum.witness >> 16 & 0xffff), (int)(sum.witness & 1));
    nb_json_text(row, "witness", sum.max_ulp > 0 ? text : NULL);
    cJSON_AddBoolToObject(row, "complete", t->stride == 1 && done == t->n);
    nb_json_number(row, "seconds", seconds);
}

static int run_one(struct task *t, int threads, cJSON *rows) {
    const struct nb_sweep sweep = {t->source->text, t->n, check_chunk, t};
    const double start_s = nb_now_s();
    int64_t done = 0;
    const int result = nb_sweep_run(&sweep, threads, &done);
    tell(t, done, nb_now_s() - start_s, rows);
    return result;
}

/* Without a wish: the widest RMSNorm kernel here. */
static void choose(const struct nb_exhaust_options *o, const struct nb_row_source *sources, int *first, int *n) {
    if (o->n_names > 0 || o->n_designs > 0) return;
    for (int i = 0; i < *n; i++) {
        const struct nb_entry *entry = sources[i].entry;
        if (!entry || strcmp(entry->kernel->name, "rmsnorm_twopass") != 0) continue;
        if (sources[i].formula.root == NB_ROOT_MUL_RECIP && sources[i].formula.affine == NB_AFFINE_NONE) *first = i;
    }
    *n = *first + 1;
}

static int run_all(const struct nb_exhaust_options *o, struct task *t, const struct nb_row_source *sources, int first,
                   int end, cJSON *rows) {
    double seconds = 0;
    int result = 0;
    for (int s = first; s < end; s++) {
        t->source = &sources[s];
        const struct nb_sweep sweep = {"", t->n, check_chunk, t};
        seconds += nb_sweep_estimate(&sweep, o->threads) * o->n_eps;
    }
    nb_exhaust_announce("rows of two elements", (double)t->n * (double)t->n * o->n_eps * (end - first), seconds, o);
    for (int s = first; s < end; s++)
        for (int e = 0; e < o->n_eps && result == 0; e++) {
            t->source = &sources[s];
            t->eps = o->eps[e];
            result = run_one(t, o->threads, rows);
        }
    return result;
}

int nb_exhaust_row2(const struct nb_exhaust_options *o, cJSON *answer) {
    const int64_t infinity = o->dtype == NB_F16 ? 0x7c00 : 0x7f80;
    struct nb_row_source *sources = NULL;
    struct task t = {.dtype = o->dtype, .stride = o->stride, .eps = o->eps[0]};
    int n = 0, first = 0, result = nb_row_sources(o, &sources, &n);
    float *decoded = nb_alloc(1 << 16, sizeof *decoded);
    if (result == 0) {
        for (int i = 0; i < 1 << 16; i++) decoded[i] = (float)nb_get(&(uint16_t){(uint16_t)i}, 0, o->dtype);
        t.n = (infinity + o->stride - 1) / o->stride;
        t.decoded = decoded;
        t.judged = nb_alloc((uint64_t)t.n, sizeof *t.judged);
        choose(o, sources, &first, &n);
        cJSON *rows = nb_exhaust_answer(answer, "row2", o);
        nb_json_text(answer, "dtype", nb_dtype_names[o->dtype]);
        result = run_all(o, &t, sources, first, n, rows);
    }
    free(t.judged);
    free(decoded);
    free(sources);
    return result;
}
