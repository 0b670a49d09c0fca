// SPDX-License-Identifier: Apache-2.0
/* The modes row1 and row2: short rows of a 16-bit dtype through kernels and designs, which are made alike first: each turns rows into
 * rows. */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/measure/pool.h"

/* What computes the rows: a kernel with a formula, or a design. */
struct row_source {
    const struct nb_entry *entry; /* null: the design */
    struct nb_formula formula;
    struct nb_design design;
    char text[256]; /* as the user would write it */
    double gamma;   /* of all elements, representable in the dtype */
    double weight;  /* that the exact result has: gamma, 1 + gamma, or 1 without */
    uint32_t op;    /* enum nb_op */
};

/* Memory for so many rows of cols elements, of one thread. */
struct row_buffers {
    int64_t rows, cols;
    uint16_t *x, *y, *zero, *residual_out, gamma_x[8];
    float gamma_f32[8];
    void *scratch;
    size_t scratch_bytes;
};

struct list {
    struct row_source *items;
    int n;
};

static void append(struct list *l, const struct row_source *s) {
    l->items = nb_realloc(l->items, (unsigned)l->n + 1, sizeof *l->items);
    l->items[l->n++] = *s;
}

/* ---- kernels ---- */

static bool is_row_norm(const struct nb_kernel *k) {
    static const uint32_t ops[] = {NB_OP_RMSNORM, NB_OP_PRMSNORM,    NB_OP_LAYERNORM,
                                   NB_OP_L2NORM,  NB_OP_ADD_RMSNORM, NB_OP_ADD_LAYERNORM};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (k->op == ops[i]) return k->pass == NB_FORWARD;
    return false;
}

/* Roots, and with a weight the two cast orders. Parameters in f32 unless the kernel has them in its dtype alone. */
static void append_formulas(struct list *l, const struct nb_entry *entry, const struct nb_exhaust_options *o) {
    const struct nb_kernel *k = entry->kernel;
    for (uint32_t root = 0; root < NB_N_ROOTS; root++)
        for (int form = 0; form < 3; form++) {
            struct row_source s = {.entry = entry, .gamma = 1, .weight = 1, .op = k->op};
            s.formula = (struct nb_formula){.struct_size = sizeof s.formula, .root = root, .affine = NB_AFFINE_NONE};
            if (form > 0) {
                s.gamma = s.weight = nb_round_to(o->gamma, o->dtype);
                s.formula.affine = NB_AFFINE_GAMMA;
                s.formula.cast = form == 2 ? NB_CAST_BEFORE : NB_CAST_AFTER;
            }
            if (nb_kernel_refuses(k, &s.formula)) s.formula.param = NB_PARAM_X;
            if (nb_kernel_refuses(k, &s.formula)) continue;
            snprintf(s.text, sizeof s.text, "%s/root:%s%s%s", entry->kernel_id, nb_root_names[root],
                     form ? "/affine:gamma" : "/affine:none",
                     form == 0   ? ""
                     : form == 1 ? "/cast:after"
                                 : "/cast:before");
            append(l, &s);
        }
}

static bool is_named(const struct nb_entry *entry, const struct nb_exhaust_options *o) {
    for (int i = 0; i < o->n_names; i++)
        if (nb_entry_is_named(entry, o->names[i])) return true;
    return o->n_names == 0;
}

static int no_such_kernel(const struct nb_exhaust_options *o) {
    struct nb_strbuf near = {0};
    nb_registry_suggest(o->names[0], &near);
    nb_error(
        "--kernel %s: no %s kernel of rows that can run here has this name%s; `normbench list kernels` has the names",
        o->names[0], nb_dtype_names[o->dtype], near.text ? near.text : "");
    nb_strbuf_release(&near);
    return -1;
}

static int add_kernels(struct list *l, const struct nb_exhaust_options *o) {
    const int before = l->n;
    bool on_gpu = false;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        const struct nb_kernel *k = entry->kernel;
        if ((entry->plugin != NULL) != o->of_plugins || k->dtype != o->dtype || !is_row_norm(k) || !is_named(entry, o))
            continue;
        on_gpu |= k->backend == NB_BACKEND_CUDA;
        if (k->backend == NB_BACKEND_CUDA) continue;
        if (!nb_cpu_refuses(k->cpu_features, k->width)) append_formulas(l, entry, o);
    }
    if (l->n > before) return 0;
    if (on_gpu) return nb_error("a kernel for a GPU cannot be called on the host's memory; its emulation can");
    if (o->n_names > 0) return no_such_kernel(o);
    return o->of_plugins ? nb_error("no kernel of rows in %s comes from a plugin; --dtype names another dtype",
                                    nb_dtype_names[o->dtype])
                         : 0;
}

/* ---- designs ---- */

static int append_design(struct list *l, const char *text, bool weighted, const struct nb_exhaust_options *o) {
    struct row_source s = {.gamma = 1, .weight = 1};
    if (nb_design_parse(&s.design, text) != 0) return -1;
    if (s.design.store != nb_number_of(o->dtype))
        return nb_error("--design %s stores %s, --dtype says %s: they must be the same", text,
                        nb_numbers[s.design.store].name, nb_dtype_names[o->dtype]);
    s.op = s.design.op;
    s.design.k = 1; /* pRMSNorm sees the whole of so short a row */
    if (weighted) {
        const double offset = s.design.weight_offset ? 1 : 0; /* the weight is nearly the same for all */
        s.gamma = nb_round_to(o->gamma - offset, o->dtype);
        s.weight = offset + s.gamma;
    }
    snprintf(s.text, sizeof s.text, "%s%s", text, weighted ? ", with a weight" : "");
    append(l, &s);
    return 0;
}

/* Where each operation may be done in the dtype (@) instead of f32. */
static const struct {
    const char *text;
    bool only_weighted; /* without a weight it is the first one */
} usual[] = {
    {"rmsnorm/store:@/weight:@", false},
    {"rmsnorm/store:@/weight:@/cast:before", true},
    {"rmsnorm/store:@/weight:@/weight_offset:1/offset:@", true},
    {"rmsnorm/store:@/weight:@/rstd:@", false},
    {"rmsnorm/store:@/weight:@/sqrt:@/root:div_sqrt", false},
    {"rmsnorm/store:@/weight:@/stat:@", false},
    {"rmsnorm/store:@/weight:@/store_round:rz", false},
    {"rmsnorm/all:@", false},
};

static int add_usual_designs(struct list *l, const struct nb_exhaust_options *o) {
    int result = 0;
    for (int weighted = 0; weighted < 2; weighted++)
        for (size_t i = 0; i < sizeof usual / sizeof usual[0] && result == 0; i++) {
            struct nb_strbuf text = {0};
            if (usual[i].only_weighted && !weighted) continue;
            for (const char *p = usual[i].text; *p; p++)
                nb_strbuf_addn(&text, *p == '@' ? nb_dtype_names[o->dtype] : p,
                               *p == '@' ? strlen(nb_dtype_names[o->dtype]) : 1);
            result = append_design(l, text.text, weighted, o);
            nb_strbuf_release(&text);
        }
    return result;
}

static int add_designs(struct list *l, const struct nb_exhaust_options *o) {
    int result = 0;
    for (int i = 0; i < o->n_designs && result == 0; i++) {
        result = append_design(l, o->designs[i], false, o);
        if (result == 0) result = append_design(l, o->designs[i], true, o);
    }
    return result;
}

/* The sources that the options name, each formula of a kernel that matters for short rows by itself: root, cast order with a weight.
 * -1 after nb_error. */
static int list_sources(struct list *l, const struct nb_exhaust_options *o) {
    int result = 0;
    if (o->n_names == 0 && o->n_designs == 0 && !o->of_plugins) result = add_usual_designs(l, o);
    if (result == 0 && (o->n_designs == 0 || o->n_names > 0)) result = add_kernels(l, o);
    return result == 0 ? add_designs(l, o) : result;
}

/* ---- rows ---- */

static void row_buffers_init(struct row_buffers *b, int64_t rows, int64_t cols) {
    const uint64_t n = (uint64_t)(rows * cols);
    assert(cols <= 8);
    *b = (struct row_buffers){.rows = rows, .cols = cols};
    b->x = nb_alloc(n, sizeof *b->x);
    b->y = nb_alloc(n, sizeof *b->y);
    b->zero = nb_alloc(n, sizeof *b->zero);
    b->residual_out = nb_alloc(n, sizeof *b->residual_out);
}

static void row_buffers_release(struct row_buffers *b) {
    free(b->x);
    free(b->y);
    free(b->zero);
    free(b->residual_out);
    free(b->scratch);
    *b = (struct row_buffers){0};
}

static void fill_call(const struct row_source *s, struct row_buffers *b, enum nb_dtype dtype, int64_t n, double eps,
                      struct nb_call *call) {
    for (int64_t i = 0; i < b->cols; i++) {
        b->gamma_f32[i] = (float)s->gamma;
        nb_set(b->gamma_x, i, dtype, s->gamma);
    }
    const bool wants_gamma = s->formula.affine != NB_AFFINE_NONE;
    const void *gamma = s->formula.param == NB_PARAM_X ? (const void *)b->gamma_x : b->gamma_f32;
    *call = (struct nb_call){
        .struct_size = sizeof *call, .n_threads = 1, .rows = n, .cols = b->cols, .k = b->cols, .eps = eps};
    call->formula = s->formula;
    call->x = b->x;
    call->y = b->y;
    call->gamma = wants_gamma ? gamma : NULL;
    call->x_stride = call->y_stride = call->residual_stride = call->residual_out_stride = b->cols;
    call->residual = b->zero;
    call->residual_out = b->residual_out;
}

static void run_kernel(const struct row_source *s, struct row_buffers *b, enum nb_dtype dtype, int64_t n, double eps) {
    struct nb_call call;
    fill_call(s, b, dtype, n, eps, &call);
    const size_t bytes = (nb_kernel_scratch_bytes(s->entry->kernel, &call) + 63) / 64 * 64;
    if (bytes > b->scratch_bytes) {
        free(b->scratch);
        b->scratch = aligned_alloc(64, bytes);
        b->scratch_bytes = b->scratch ? bytes : 0;
        if (!b->scratch) abort();
    }
    call.scratch = b->scratch;
    nb_run_in_ranges(s->entry->kernel, &call, 0);
}

static void run_design(const struct row_source *s, struct row_buffers *b, enum nb_dtype dtype, int64_t n, double eps) {
    struct nb_design d = s->design;
    double x[8], y[8], gamma[8];
    d.eps = eps;
    for (int64_t i = 0; i < b->cols; i++) gamma[i] = s->gamma;
    for (int64_t row = 0; row < n; row++) {
        for (int64_t i = 0; i < b->cols; i++) x[i] = nb_get(b->x, row * b->cols + i, dtype);
        nb_emulate_row(&d, b->cols, x, s->gamma == 1 ? NULL : gamma, NULL, y, (uint64_t)row + 1);
        for (int64_t i = 0; i < b->cols; i++) nb_set(b->y, row * b->cols + i, dtype, y[i]);
    }
}

/* x -> y, n <= rows of b->x. Kernels are called as they are, in this process: those of plugins in a worker (exhaust_job.c). */
static void row_source_run(const struct row_source *s, struct row_buffers *b, enum nb_dtype dtype, int64_t n,
                           double eps) {
    if (s->entry)
        run_kernel(s, b, dtype, n, eps);
    else
        run_design(s, b, dtype, n, eps);
}

/* ---- Rows of one element: y = weight x / sqrt(x^2 + eps), a function of one number, so that a kernel's or a design's every rounding
 * from end to end is seen. The exact value: x^2 of 11 bits or fewer is exact in double; the sum, the root and the division leave a
 * relative 2^-51. A LayerNorm's row of one element is 0. */

enum { N_CODES = 1 << 16 };

struct answer1 {
    struct nb_judged judged;
    uint64_t hash; /* of all outputs */
};
struct row1_task {
    const struct nb_exhaust_options *o;
    const struct row_source *sources;
    int n_sources;
    struct answer1 *answers; /* by source and eps */
};

static double row1_exact(const struct row_source *s, double x, double eps) {
    if (nb_op_centres(s->op)) return eps > 0 ? 0 : NAN;
    return s->weight * x / sqrt(x * x + eps);
}

static struct nb_twofold row1_exact_twofold(const struct row_source *s, double x, double eps) {
    const struct nb_twofold root = nb_twofold_sqrt(nb_two_sum(x * x, eps));
    return nb_twofold_div(nb_twofold_of(s->weight * x), root);
}

static void row1_chunk(int64_t chunk, void *arg) {
    const struct row1_task *t = arg;
    const struct row_source *s = &t->sources[chunk / t->o->n_eps];
    const double eps = t->o->eps[chunk % t->o->n_eps];
    const struct nb_judge judge = nb_judge_of(t->o->dtype);
    if (t->o->beat) t->o->beat(t->o->context);
    const int64_t n = (N_CODES + t->o->stride - 1) / t->o->stride;
    struct answer1 answer = {0};
    struct row_buffers b;
    row_buffers_init(&b, n, 1);
    for (int64_t i = 0; i < n; i++) b.x[i] = (uint16_t)(i * t->o->stride);
    row_source_run(s, &b, t->o->dtype, n, eps);
    for (int64_t i = 0; i < n; i++) {
        const double x = nb_get(b.x, i, t->o->dtype);
        if (!isfinite(x)) continue;
        const double got = nb_get(b.y, i, t->o->dtype);
        if (nb_judge_add(&judge, &answer.judged, b.x[i], row1_exact(s, x, eps), got))
            nb_judge_resolve(&judge, &answer.judged, row1_exact_twofold(s, x, eps), got);
    }
    answer.hash = nb_hash(NB_HASH_EMPTY, b.y, (size_t)n * sizeof *b.y);
    row_buffers_release(&b);
    t->answers[chunk] = answer;
}

/* Variants of a kernel follow one another; those whose outputs are the same bit for bit share a row. */
static bool is_same(const struct row1_task *t, int a, int b) {
    if (!t->sources[a].entry || !t->sources[b].entry || strcmp(t->sources[a].text, t->sources[b].text) != 0)
        return false;
    for (int e = 0; e < t->o->n_eps; e++)
        if (t->answers[a * t->o->n_eps + e].hash != t->answers[b * t->o->n_eps + e].hash) return false;
    return true;
}

static void row1_answer(const struct row1_task *t, int s, const char *widths, cJSON *rows) {
    for (int e = 0; e < t->o->n_eps; e++) {
        const struct nb_judged *judged = &t->answers[s * t->o->n_eps + e].judged;
        char text[32];
        cJSON *row = nb_json_add_object(rows);
        nb_json_text(row, "source", t->sources[s].entry ? "kernel" : "design");
        nb_json_text(row, "formula", t->sources[s].text);
        nb_shortest_text(t->o->eps[e], text);
        nb_json_text(row, "eps", text);
        nb_judged_to_json(judged, row);
        snprintf(text, sizeof text, "0x%04x", (unsigned)judged->witness);
        nb_json_text(row, "witness", judged->max_ulp > 0 ? text : NULL);
        nb_json_text(row, "widths", *widths ? widths : NULL);
    }
}

/* Sources whose chunks are all done. */
static void report_all(const struct row1_task *t, int n_done, cJSON *rows) {
    bool *reported = nb_alloc((unsigned)t->n_sources, sizeof *reported);
    for (int s = 0; s < n_done; s++) {
        struct nb_strbuf widths = {0};
        if (reported[s]) continue;
        nb_strbuf_add(&widths, "");
        for (int k = s; k < n_done; k++) {
            if (k != s && !is_same(t, s, k)) continue;
            reported[k] = true;
            if (t->sources[k].entry)
                nb_strbuf_addf(&widths, "%s%s", widths.len ? " " : "",
                               nb_width_names[t->sources[k].entry->kernel->width]);
        }
        row1_answer(t, s, widths.text, rows);
        nb_strbuf_release(&widths);
    }
    free(reported);
}

static int exhaust_row1(const struct nb_exhaust_options *o, cJSON *answer) {
    struct list sources = {0};
    struct row1_task t = {.o = o};
    int result = list_sources(&sources, o);
    if (result == 0) {
        const int64_t n = (int64_t)sources.n * o->n_eps;
        t.sources = sources.items;
        t.n_sources = sources.n;
        t.answers = nb_alloc((uint64_t)n, sizeof *t.answers);
        struct nb_sweep sweep = {.label = "rows of one element", .n_chunks = n, .chunk = row1_chunk, .arg = &t};
        cJSON *rows = nb_exhaust_begin(answer, "row1", sweep.label, (double)n * N_CODES / (double)o->stride,
                                       nb_sweep_estimate(&sweep, o->threads), o);
        nb_json_text(answer, "dtype", nb_dtype_names[o->dtype]);
        result = nb_sweep_run(&sweep, o->threads);
        report_all(&t, (int)(sweep.done / o->n_eps), rows);
    }
    free(t.answers);
    free(sources.items);
    return result;
}

const struct nb_exhaust_mode nb_exhaust_row1 = {
    .name = "row1", .run = exhaust_row1, .kernels = true, .eps = "0,1e-12,1e-8,1e-7,1e-6,1e-5,1e-3"};

/* ---- Rows of two elements, every pair of non-negative finite numbers of a 16-bit dtype: some 10^9. A sign goes through a norm without
 * centring untouched (every operation is odd or even in each element, and rounding to nearest is odd), so the other three quarters
 * follow; for a LayerNorm (x, y) -> (-x, -y) does, and pairs of unlike signs are not looked at.
 *
 * The exact values in double: squares of 11 bits or fewer are exact, and each of the four operations after leaves 2^-53. */

struct row2_task {
    const struct nb_exhaust_options *o;
    const struct row_source *source;
    double eps;
    enum nb_dtype dtype;
    int64_t stride, n;        /* n numbers in each place */
    const float *decoded;     /* of all 2^16 codes */
    struct nb_judged *judged; /* by the first element */
};

struct pair {
    double y0, y1;
};
static inline struct pair row2_exact(const struct row2_task *t, double x0, double x1) {
    const struct row_source *s = t->source;
    if (nb_op_centres(s->op)) {
        const double d = (x0 - x1) / 2, y = s->weight * d / sqrt(d * d + t->eps);
        return (struct pair){y, -y};
    }
    const double squares = x0 * x0 + x1 * x1, v = s->op == NB_OP_L2NORM ? squares : squares / 2;
    const double root = sqrt(v + t->eps);
    return (struct pair){s->weight * x0 / root, s->weight * x1 / root};
}

/* Element `at` to 100 bits. */
static struct nb_twofold row2_exact_twofold(const struct row2_task *t, double x0, double x1, int at) {
    const struct row_source *s = t->source;
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

static void judge_one(const struct row2_task *t, const struct nb_judge *judge, struct nb_judged *judged,
                      const uint16_t *row, uint16_t got, double exact, int at) {
    const int64_t index = (int64_t)row[0] << 32 | (int64_t)row[1] << 16 | at;
    const double y = (double)t->decoded[got];
    if (nb_judge_add(judge, judged, index, exact, y))
        nb_judge_resolve(judge, judged,
                         row2_exact_twofold(t, (double)t->decoded[row[0]], (double)t->decoded[row[1]], at), y);
}

/* One first element with all second ones. */
static void row2_chunk(int64_t chunk, void *arg) {
    const struct row2_task *t = arg;
    const struct nb_judge judge = nb_judge_of(t->dtype);
    if (t->o->beat) t->o->beat(t->o->context);
    const uint16_t first = (uint16_t)(chunk * t->stride);
    struct nb_judged judged = {0};
    struct row_buffers b;
    row_buffers_init(&b, t->n, 2);
    for (int64_t i = 0; i < t->n; i++) {
        b.x[2 * i] = first;
        b.x[2 * i + 1] = (uint16_t)(i * t->stride);
    }
    row_source_run(t->source, &b, t->dtype, t->n, t->eps);
    for (int64_t i = 0; i < t->n; i++) {
        const uint16_t *row = b.x + 2 * i;
        const struct pair y = row2_exact(t, (double)t->decoded[first], (double)t->decoded[row[1]]);
        judge_one(t, &judge, &judged, row, b.y[2 * i], y.y0, 0);
        judge_one(t, &judge, &judged, row, b.y[2 * i + 1], y.y1, 1);
    }
    row_buffers_release(&b);
    t->judged[chunk] = judged;
}

/* Appends b, which comes after a. */
static void append_judged(struct nb_judged *a, const struct nb_judged *b) {
    a->n += b->n;
    a->misrounded += b->misrounded;
    a->undecided += b->undecided;
    a->non_finite += b->non_finite;
    if (!(b->max_ulp > a->max_ulp)) return;
    a->max_ulp = b->max_ulp;
    a->witness = b->witness;
}

static void row2_answer(const struct row2_task *t, int64_t done, double seconds, cJSON *rows) {
    struct nb_judged sum = {0};
    char text[64];
    for (int64_t i = 0; i < done; i++) append_judged(&sum, &t->judged[i]);
    cJSON *row = nb_json_add_object(rows);
    nb_json_text(row, "source", t->source->entry ? "kernel" : "design");
    nb_json_text(row, "formula", t->source->text);
    nb_json_text(row, "variant", t->source->entry ? t->source->entry->id : NULL);
    nb_shortest_text(t->eps, text);
    nb_json_text(row, "eps", text);
    nb_judged_to_json(&sum, row);
    nb_json_number(row, "n_rows", (double)(done * t->n));
    snprintf(text, sizeof text, "(0x%04x, 0x%04x)[%d]", (unsigned)(sum.witness >> 32),
             (unsigned)(sum.witness >> 16 & 0xffff), (int)(sum.witness & 1));
    nb_json_text(row, "witness", sum.max_ulp > 0 ? text : NULL);
    cJSON_AddBoolToObject(row, "complete", t->stride == 1 && done == t->n);
    nb_json_number(row, "seconds", seconds);
}

static int run_one(struct row2_task *t, int threads, cJSON *rows) {
    struct nb_sweep sweep = {.label = t->source->text, .n_chunks = t->n, .chunk = row2_chunk, .arg = t};
    const int result = nb_sweep_run(&sweep, threads);
    row2_answer(t, sweep.done, sweep.seconds, rows);
    return result;
}

/* Without a wish: the widest RMSNorm kernel here. */
static void choose(const struct nb_exhaust_options *o, struct list *sources) {
    if (o->n_names > 0 || o->n_designs > 0 || o->of_plugins) return;
    for (int i = 0; i < sources->n; i++) {
        const struct row_source *s = &sources->items[i];
        if (!s->entry || strcmp(s->entry->kernel->name, "rmsnorm_twopass") != 0) continue;
        if (s->formula.root == NB_ROOT_MUL_RECIP && s->formula.affine == NB_AFFINE_NONE) sources->items[0] = *s;
    }
    sources->n = 1;
}

static int run_all(const struct nb_exhaust_options *o, struct row2_task *t, const struct list *sources, cJSON *answer) {
    double seconds = 0;
    int result = 0;
    for (int s = 0; s < sources->n; s++) {
        t->source = &sources->items[s];
        const struct nb_sweep sweep = {.n_chunks = t->n, .chunk = row2_chunk, .arg = t};
        seconds += nb_sweep_estimate(&sweep, o->threads) * o->n_eps;
    }
    cJSON *rows = nb_exhaust_begin(answer, "row2", "rows of two elements",
                                   (double)t->n * (double)t->n * o->n_eps * sources->n, seconds, o);
    nb_json_text(answer, "dtype", nb_dtype_names[o->dtype]);
    for (int s = 0; s < sources->n; s++)
        for (int e = 0; e < o->n_eps && result == 0; e++) {
            t->source = &sources->items[s];
            t->eps = o->eps[e];
            result = run_one(t, o->threads, rows);
        }
    return result;
}

static int exhaust_row2(const struct nb_exhaust_options *o, cJSON *answer) {
    const int64_t infinity = o->dtype == NB_F16 ? 0x7c00 : 0x7f80;
    struct list sources = {0};
    struct row2_task t = {.o = o, .dtype = o->dtype, .stride = o->stride, .eps = o->eps[0]};
    int result = list_sources(&sources, o);
    float *decoded = nb_alloc(N_CODES, sizeof *decoded);
    if (result == 0) {
        for (int i = 0; i < N_CODES; i++) decoded[i] = (float)nb_get(&(uint16_t){(uint16_t)i}, 0, o->dtype);
        t.n = (infinity + o->stride - 1) / o->stride;
        t.decoded = decoded;
        t.judged = nb_alloc((uint64_t)t.n, sizeof *t.judged);
        choose(o, &sources);
        result = run_all(o, &t, &sources, answer);
    }
    free(t.judged);
    free(decoded);
    free(sources.items);
    return result;
}

const struct nb_exhaust_mode nb_exhaust_row2 = {.name = "row2", .run = exhaust_row2, .kernels = true, .eps = "1e-6"};
