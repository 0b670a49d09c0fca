// SPDX-License-Identifier: Apache-2.0
/* The fast row kernels: a row has the same bits alone, beside others of any kind, split over threads, streamed, at any alignment and
 * whatever the tuning, its sum made before or by the kernel; the shift of LayerNorm is guarded, its mean folded where that costs little; ties
 * go to even; NaN stays in its row or column. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/registry.h"
#include "src/measure/pool.h"

enum { MAX_ROWS = 9, ROOM = 64, POISON = 0xa5 };

static bool is_fast(const struct nb_kernel *k) {
    const char *ending = strstr(k->name, "_fast");
    return ending && !ending[5] && k->pass == NB_FORWARD && k->op != NB_OP_BATCHNORM &&
           !nb_cpu_refuses(k->cpu_features, k->width);
}
typedef void (*check_fn)(const struct nb_kernel *k);
/* Every variant that can run here; at least one. */
static void for_each_fast(check_fn check) {
    int n = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (is_fast(nb_registry_at(i)->kernel)) {
            check(nb_registry_at(i)->kernel);
            n++;
        }
    cr_expect_gt(n, 0);
    nb_registry_release();
}

/* ---- calls ---- */

/* Inputs of a call, and what its outputs should be. */
struct bench {
    const struct nb_kernel *kernel;
    enum nb_dtype dtype;
    int64_t rows, cols;
    void *x, *residual;  /* packed */
    float *gamma, *beta; /* f32 */
    double eps;
    unsigned char *y, *sum, *wants; /* packed rows: of this call and, in wants, y of each row alone */
    float *mean, *rstd;             /* of this call, where a manner wants them */
    float *wants_mean, *wants_rstd; /* of each row alone */
    struct nb_formula formula;
};

static bool adds(const struct bench *b) {
    return b->kernel->op == NB_OP_ADD_RMSNORM || b->kernel->op == NB_OP_ADD_LAYERNORM;
}
static size_t item_of(const struct bench *b) { return nb_formats[b->dtype].bytes; }
static double any_value(int64_t i) { return (double)((i * 2654435761u) >> 7 & 0xffff) / 32768 - 0.75; }

static struct bench bench_new(const struct nb_kernel *k, int64_t rows, int64_t cols) {
    struct bench b = {.kernel = k, .dtype = (enum nb_dtype)k->dtype, .rows = rows, .cols = cols, .eps = 1e-5};
    const size_t bytes = (size_t)(rows * cols) * item_of(&b) + 1;
    b.x = malloc(bytes);
    b.residual = malloc(bytes);
    b.y = malloc(bytes);
    b.sum = malloc(bytes);
    b.wants = malloc(bytes);
    b.gamma = malloc((size_t)cols * sizeof(float));
    b.beta = malloc((size_t)cols * sizeof(float));
    b.mean = calloc(4 * (size_t)rows, sizeof(float));
    b.rstd = b.mean + rows;
    b.wants_mean = b.rstd + rows;
    b.wants_rstd = b.wants_mean + rows;
    for (int64_t i = 0; i < rows * cols; i++) {
        nb_set(b.x, i, b.dtype, any_value(i) * (double)(1 + i / cols));
        nb_set(b.residual, i, b.dtype, any_value(3 * i + 1));
    }
    for (int64_t i = 0; i < cols; i++) {
        b.gamma[i] = 1.0f + 0.125f * (float)(i % 7);
        b.beta[i] = 0.25f * (float)(i % 5) - 0.5f;
    }
    const bool beta = k->formulas.affines == 0 || k->formulas.affines >> NB_AFFINE_GAMMA_BETA & 1;
    b.formula = (struct nb_formula){.struct_size = sizeof b.formula,
                                    .root = NB_ROOT_MUL_RECIP,
                                    .affine = beta ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA,
                                    .round_sum = (uint32_t)(cols % 2)};
    return b;
}
static void bench_release(struct bench *b) {
    free(b->x);
    free(b->residual);
    free(b->y);
    free(b->sum);
    free(b->wants);
    free(b->gamma);
    free(b->beta);
    free(b->mean);
}

/* How a call is made. */
struct manner {
    const struct nb_tuning *tuning;
    int64_t range, pad, shift; /* of ranges; between rows; elements by which tensors are off a line of the cache */
    bool numbers;              /* are mean and rstd wanted? */
};

/* A tensor with poison between and round its rows. */
struct padded {
    unsigned char *area, *data;
    size_t bytes, item;
    int64_t rows, cols, stride;
};
static struct padded padded_new(const struct bench *b, int64_t rows, const struct manner *m, const void *packed) {
    struct padded p = {.item = item_of(b), .rows = rows, .cols = b->cols, .stride = b->cols + m->pad};
    p.bytes = ((size_t)(rows * p.stride + m->shift) * p.item + 2 * ROOM + 63) / 64 * 64;
    p.area = aligned_alloc(64, p.bytes);
    memset(p.area, POISON, p.bytes);
    p.data = p.area + ROOM + (size_t)m->shift * p.item;
    const size_t row_bytes = (size_t)b->cols * p.item;
    for (int64_t r = 0; packed && r < rows; r++)
        memcpy(p.data + (size_t)(r * p.stride) * p.item, (const unsigned char *)packed + (size_t)r * row_bytes,
               row_bytes);
    return p;
}
/* Out of it into packed rows; false where poison was written over. */
static bool padded_take(struct padded *p, unsigned char *packed) {
    const size_t row_bytes = (size_t)p->cols * p->item;
    bool whole = true;
    for (int64_t r = 0; r < p->rows; r++) {
        unsigned char *row = p->data + (size_t)(r * p->stride) * p->item;
        memcpy(packed + (size_t)r * row_bytes, row, row_bytes);
        memset(row, POISON, row_bytes);
    }
    for (size_t i = 0; i < p->bytes; i++) whole = whole && p->area[i] == POISON;
    free(p->area);
    return whole;
}

/* Rows [first, first + rows) into b->y and b->sum. */
static void call_rows(struct bench *b, int64_t first, int64_t rows, const struct manner *m) {
    const size_t at = (size_t)(first * b->cols) * item_of(b);
    struct padded x = padded_new(b, rows, m, (char *)b->x + at), r = padded_new(b, rows, m, (char *)b->residual + at);
    struct padded y = padded_new(b, rows, m, NULL), sum = padded_new(b, rows, m, NULL);
    struct nb_call call = {.struct_size = sizeof call,
                           .rows = rows,
                           .cols = b->cols,
                           .k = b->cols / 2 + 1,
                           .eps = b->eps,
                           .formula = b->formula,
                           .x = x.data,
                           .y = y.data,
                           .gamma = b->gamma,
                           .beta = b->beta,
                           .x_stride = x.stride,
                           .y_stride = y.stride,
                           .n_threads = 1,
                           .tuning = m->tuning};
    if (adds(b)) {
        call.residual = r.data;
        call.residual_out = b->cols % 3 ? sum.data : NULL;
        call.residual_stride = call.residual_out_stride = r.stride;
    }
    if (m->numbers) {
        const bool centres = b->kernel->op == NB_OP_LAYERNORM || b->kernel->op == NB_OP_ADD_LAYERNORM;
        call.mean = centres ? b->mean + first : NULL;
        call.rstd = b->rstd + first;
        memset(b->mean + first, POISON, (size_t)rows * sizeof(float));
        memset(b->rstd + first, POISON, (size_t)rows * sizeof(float));
    }
    const size_t scratch = nb_kernel_scratch_bytes(b->kernel, &call);
    call.scratch = aligned_alloc(64, (scratch + 64) / 64 * 64);
    cr_assert_eq(nb_run_in_ranges(b->kernel, &call, m->range), 0);
    free(call.scratch);
    unsigned char *other = malloc((size_t)(rows * b->cols) * item_of(b) + 1);
    padded_take(&x, other);
    padded_take(&r, other);
    cr_expect(padded_take(&y, b->y + at), "%s, %lld columns: y is written outside", b->kernel->variant,
              (long long)b->cols);
    cr_expect(padded_take(&sum, b->sum + at), "%s, %lld columns: residual_out is written outside", b->kernel->variant,
              (long long)b->cols);
    free(other);
}
static void expect_same(const struct bench *b, const struct manner *m, const char *what) {
    const size_t row_bytes = (size_t)b->cols * item_of(b);
    for (int64_t r = 0; r < b->rows; r++)
        cr_expect(memcmp(b->y + (size_t)r * row_bytes, b->wants + (size_t)r * row_bytes, row_bytes) == 0,
                  "%s, %lldx%lld, pad %lld, shift %lld, ranges of %lld, %s: row %lld differs", b->kernel->variant,
                  (long long)b->rows, (long long)b->cols, (long long)m->pad, (long long)m->shift, (long long)m->range,
                  what, (long long)r);
    if (!m->numbers) return;
    for (int64_t r = 0; r < b->rows; r++)
        cr_expect(memcmp(b->mean + r, b->wants_mean + r, sizeof(float)) == 0 &&
                      memcmp(b->rstd + r, b->wants_rstd + r, sizeof(float)) == 0,
                  "%s, %lldx%lld, ranges of %lld, %s: mean %g and rstd %g of row %lld, alone %g and %g",
                  b->kernel->variant, (long long)b->rows, (long long)b->cols, (long long)m->range, what, b->mean[r],
                  b->rstd[r], (long long)r, b->wants_mean[r], b->wants_rstd[r]);
}
/* What was computed now is what is wanted from now on. */
static void keep_as_wanted(struct bench *b) {
    memcpy(b->wants, b->y, (size_t)(b->rows * b->cols) * item_of(b));
    memcpy(b->wants_mean, b->mean, (size_t)b->rows * sizeof(float));
    memcpy(b->wants_rstd, b->rstd, (size_t)b->rows * sizeof(float));
}

/* ---- the same bits ---- */

static const struct nb_tuning no_cache = {.struct_size = sizeof no_cache, .l1_bytes = 1},
                              out_of_cache = {.struct_size = sizeof out_of_cache,
                                              .l1_bytes = 1 << 15,
                                              .l2_bytes = 1 << 10},
                              big_cache = {.struct_size = sizeof big_cache, .l1_bytes = 1 << 24},
                              streaming = {.struct_size = sizeof streaming, .l1_bytes = 1 << 15, .stream_bytes = 1},
                              stream_singly = {.struct_size = sizeof stream_singly, .l1_bytes = 1, .stream_bytes = 1};
static const struct {
    const char *what;
    const struct nb_tuning *tuning;
    int64_t range;
} manners[] = {{"no tuning", NULL, 0},
               {"ranges", NULL, 2},
               {"no cache", &no_cache, 0},
               {"no cache, ranges", &no_cache, 5},
               {"out of the second cache", &out_of_cache, 0},
               {"big cache", &big_cache, 0},
               {"ranges, big", &big_cache, 4},
               {"streaming", &streaming, 0},
               {"streaming singly", &stream_singly, 3}};
enum { N_MANNERS = sizeof manners / sizeof manners[0] };

/* The tuning, and which instructions may be used besides. */
static struct nb_tuning with_native(const struct nb_tuning *t, uint32_t native) {
    struct nb_tuning with = t ? *t : (struct nb_tuning){.struct_size = sizeof with};
    with.native = native;
    return with;
}
static void check_bench(struct bench b, uint32_t native) {
    const int64_t rows = b.rows, cols = b.cols;
    const struct nb_tuning singly = with_native(&no_cache, native);
    const struct manner alone = {.tuning = &singly, .numbers = true};
    if (cols % 4 == 3) b.formula.affine = cols % 8 == 3 ? NB_AFFINE_NONE : NB_AFFINE_GAMMA;
    b.formula.root = cols / 2 % 2 ? NB_ROOT_RSQRT_NR : NB_ROOT_MUL_RECIP;
    b.formula.eps_place = cols / 3 % 2 ? NB_EPS_CLAMP : NB_EPS_INSIDE;
    for (int64_t r = 0; r < rows; r++) call_rows(&b, r, 1, &alone);
    keep_as_wanted(&b);
    for (int i = 0; i < 2 * N_MANNERS; i++) {
        const int how = i % N_MANNERS;
        const struct nb_tuning t = with_native(manners[how].tuning, native);
        const bool none = !manners[how].tuning && !native;
        const struct manner m = {none ? NULL : &t, manners[how].range, i % 2 ? cols % 17 : 0, (cols + i) % 5,
                                 .numbers = i >= N_MANNERS};
        call_rows(&b, 0, rows, &m);
        expect_same(&b, &m, manners[how].what);
    }
}
static uint32_t native_here(const struct nb_kernel *k) {
    return k->dtype == NB_BF16 ? nb_cpu_light()->features & NB_CPU_AVX512BF16 : 0;
}
static void check_bits(const struct nb_kernel *k, int64_t rows, int64_t cols) {
    struct bench b = bench_new(k, rows, cols);
    check_bench(b, 0);
    if (native_here(k)) check_bench(b, native_here(k));
    bench_release(&b);
}
static void check_all_lengths(const struct nb_kernel *k) {
    for (int64_t cols = 1; cols <= 600; cols += cols < 40 ? 1 : cols < 140 ? 3 : 29)
        check_bits(k, 1 + cols % MAX_ROWS, cols);
    for (int64_t cols = 128; cols <= 1024; cols *= 2) check_bits(k, MAX_ROWS, cols);
    check_bits(k, MAX_ROWS, 4165);
}
Test(fast_rows, a_row_has_the_same_bits_in_any_company) { for_each_fast(check_all_lengths); }

/* Rows about which LayerNorm decides each by itself: about 0 or not, its mean folded or
 * not, swept once or twice. The sum has their kind, too. */
enum { N_KINDS = 10 };
static double value_of_kind(int64_t kind, int64_t i, enum nb_dtype dtype) {
    const double noise = any_value(i + 7 * kind) - 0.25, sign = i % 2 ? -1 : 1;
    switch (kind) {
    case 0:
        return noise;
    case 1:
        return noise + 1.2; /* two standard deviations */
    case 2:
        return 3;
    case 3:
        return -1.5 - noise;
    case 4:
        return i == 5 ? (dtype == NB_F16 ? 3e4 : 1e30) : noise; /* all else is lost beside it */
    case 5:
        return noise / 65536; /* eps outweighs the variance */
    case 6:
        return i % 3 ? -0.0 : 0.0;
    case 7:
        return i < 64 ? sign : 300 + noise; /* a bad shift of 0 */
    case 8:
        return i < 32 ? 40 : noise; /* a bad mean of the first 32 */
    default:
        return noise + 0.3; /* about half a standard deviation: swept twice or not, folded or not */
    }
}
/* Row by row the next of them, or every step-th. */
static void fill_kinds(struct bench *b, int64_t first, int64_t step) {
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        const double x = value_of_kind((first + i / b->cols * step) % N_KINDS, i % b->cols, b->dtype);
        nb_set(b->x, i, b->dtype, adds(b) ? x / 2 : x);
        nb_set(b->residual, i, b->dtype, x / 2);
    }
}
static void check_kinds(const struct nb_kernel *k) {
    static const int64_t lengths[] = {31, 32, 33, 63, 64, 65, 100, 512, 4165};
    for (int i = 0; i < 9; i++)
        for (int64_t step = 1; step <= 3; step += 2) {
            struct bench b = bench_new(k, N_KINDS + 3, lengths[i]);
            fill_kinds(&b, 0, step);
            check_bench(b, 0);
            if (native_here(k)) check_bench(b, native_here(k));
            bench_release(&b);
        }
}
Test(fast_rows, a_row_has_the_same_bits_beside_rows_of_any_kind) { for_each_fast(check_kinds); }

/* The plain op of add_OP in the same width and dtype; null where it is not built. */
static const struct nb_kernel *without_add(const struct nb_kernel *k) {
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (strcmp(nb_registry_at(i)->kernel->variant, k->variant + strlen("add_")) == 0)
            return nb_registry_at(i)->kernel;
    return NULL;
}
static void check_sum(const struct nb_kernel *k) {
    struct bench b = bench_new(k, N_KINDS + 3, 512);
    const struct nb_kernel *plain = adds(&b) ? without_add(k) : NULL;
    const struct manner manner = {.tuning = &big_cache};
    fill_kinds(&b, 0, 1);
    b.formula.round_sum = 1;
    if (plain) {
        call_rows(&b, 0, b.rows, &manner);
        memcpy(b.wants, b.y, (size_t)(b.rows * b.cols) * item_of(&b));
        memcpy(b.x, b.sum, (size_t)(b.rows * b.cols) * item_of(&b));
        b.kernel = plain;
        b.formula.round_sum = 0;
        call_rows(&b, 0, b.rows, &manner);
        expect_same(&b, &manner, "sum made before");
    }
    bench_release(&b);
}
Test(fast_rows, a_sum_has_the_same_bits_made_before_or_by_the_kernel) { for_each_fast(check_sum); }

/* Fewer than four rows are split, four are not. Of every kind. */
static void check_split(const struct nb_kernel *k) {
    static const int64_t lengths[] = {16384, 20011, 16384, 16391, 16640};
    static const int64_t ranges[] = {
        5, 37, 0}; /* of the 13 or 16 segments of each row: of one row or two, of three, all at once */
    for (int i = 0; i < 5; i++) {
        struct bench b = bench_new(k, 4, lengths[i]);
        if (i >= 2) fill_kinds(&b, 4 * (i - 2), 1);
        const struct nb_tuning t = with_native(NULL, i == 0 ? native_here(k) : 0);
        const struct manner whole = {.tuning = &t, .numbers = true};
        call_rows(&b, 0, 4, &whole);
        keep_as_wanted(&b);
        for (int r = 0; r < 3; r++) {
            const struct manner cut = {.tuning = &t, .range = ranges[r], .shift = i % 2, .numbers = true};
            call_rows(&b, 0, 3, &cut);
            call_rows(&b, 3, 1, &cut);
            expect_same(&b, &cut, "split");
        }
        bench_release(&b);
    }
}
Test(fast_rows, few_long_rows_are_split_without_a_trace) { for_each_fast(check_split); }

/* ---- the guard of the shift ---- */

/* LayerNorm without parameters, in double, of the stored elements. */
static void exact_layernorm(const struct bench *b, int64_t row, double *y) {
    double mean = 0, var = 0;
    const int64_t n = b->cols;
    for (int64_t i = 0; i < n; i++) {
        y[i] = nb_get(b->x, row * n + i, b->dtype);
        mean += y[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) var += (y[i] - mean) * (y[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) y[i] = (y[i] - mean) / sqrt(var + 1e-5);
}
/* Row 0: an offset of 1e4 over a spread of 1. Row 1: its first 32 elements far off the others. Row 2: the first alone. Row 3: a
 * ramp. Row 4: the first 64 about 0, as the others are not. Row 5: the same of numbers whose squares overflow about 0 and about the mean of
 * the first 32, but not about their own. One sweep about a bad shift would have no digit left in 1, 2, 4 and 5. */
enum { HARD_ROWS = 6 };
static double hard_value(int64_t row, int64_t i, int64_t n) {
    const double noise = any_value(i) * 2;
    if (row == 0) return 1e4 + noise;
    if (row == 1) return i < 32 ? 5000 + noise : noise / 64;
    if (row == 2) return i == 0 ? 30000 : noise / 64;
    if (row == 4) return i < 64 ? noise - 0.5 : 5000 + noise;
    if (row == 5) return i < 64 && i % 5 < 2 ? -1 : 3e18 + 1e16 * noise;
    return (double)i / (double)n * 100 + noise;
}
static void check_guard(const struct nb_kernel *k) {
    if (k->op != NB_OP_LAYERNORM || k->dtype != NB_F32) return;
    static const int64_t lengths[] = {100, 4096, 65536};
    for (int t = 0; t < 3; t++) {
        const int64_t n = lengths[t];
        struct bench b = bench_new(k, HARD_ROWS, n);
        double *exact = malloc((size_t)n * sizeof *exact);
        const struct manner plain = {.tuning = &big_cache};
        b.formula.affine = NB_AFFINE_NONE;
        for (int64_t i = 0; i < HARD_ROWS * n; i++) nb_set(b.x, i, b.dtype, hard_value(i / n, i % n, n));
        call_rows(&b, 0, HARD_ROWS, &plain);
        for (int64_t r = 0; r < HARD_ROWS; r++) {
            double worst = 0;
            exact_layernorm(&b, r, exact);
            for (int64_t i = 0; i < n; i++) {
                const double size = fabs(exact[i]) > 1 ? fabs(exact[i]) : 1;
                worst = fmax(worst, fabs(nb_get(b.y, r * n + i, b.dtype) - exact[i]) / size);
            }
            /* the mean to half a spacing of 1e4; else a few hundred roundings */
            cr_expect_lt(worst, r == 0 ? 2e-3 : 3e-5, "%s, %lld columns, row %lld: off by %g", k->variant, (long long)n,
                         (long long)r, worst);
        }
        free(exact);
        bench_release(&b);
    }
}
Test(fast_rows, a_bad_shift_is_noticed_and_mended) { for_each_fast(check_guard); }

/* An offset of 1.0 to 1.5e-3 over a spread of a thousandth of it, where eps = 1e-5 makes mean * scale less than half: the mean must not be
 * folded, whose product is rounded by as much as the mean itself is. */
static void check_folding(const struct nb_kernel *k) {
    enum { ROWS = 64, COLS = 96 };
    if (k->op != NB_OP_LAYERNORM || k->dtype != NB_F32) return;
    struct bench b = bench_new(k, ROWS, COLS);
    const struct manner plain = {.tuning = &big_cache};
    double exact[COLS];
    b.formula.affine = NB_AFFINE_NONE;
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        const double offset = 1e-3 * (1 + (double)(i / COLS) / 128);
        nb_set(b.x, i, NB_F32, offset * (1 + any_value(i) / 1024));
    }
    call_rows(&b, 0, ROWS, &plain);
    for (int64_t r = 0; r < ROWS; r++) {
        const double mean = 1e-3 * (1 + (double)r / 128), scale = 1 / sqrt(1e-5);
        double worst = 0;
        exact_layernorm(&b, r, exact);
        for (int64_t i = 0; i < COLS; i++) worst = fmax(worst, fabs(nb_get(b.y, r * COLS + i, NB_F32) - exact[i]));
        cr_expect_leq(worst, (nb_ulp(mean, NB_F32) / 2 + 64 * 0x1p-24 * mean / 1024) * scale, "%s, row %lld: off by %g",
                      k->variant, (long long)r, worst);
    }
    bench_release(&b);
}
Test(fast_rows, a_mean_is_not_folded_where_eps_outweighs_the_variance) { for_each_fast(check_folding); }

/* ---- ties ---- */

/* Rows of 1 and -1, whose scale is a power of two: what is rounded to the dtype are the parameters, many of them half way between two bf16
 * numbers, in all blocks or in one. */
static void check_ties(const struct nb_kernel *k, int64_t cols, int64_t columns_each) {
    struct bench b = bench_new(k, MAX_ROWS, cols);
    const double scale = k->op == NB_OP_L2NORM ? 1 / sqrt((double)cols) : 1;
    const bool has_beta = b.formula.affine == NB_AFFINE_GAMMA_BETA;
    b.eps = 0;
    b.formula.round_sum = 0;
    for (int64_t i = 0; i < cols; i++) {
        b.gamma[i] = 1.0f + (float)(i % 64) / 128 + (i % columns_each == 3 ? 0x1p-8f : 0.0f);
        b.beta[i] = i % 5 == 0 ? 0x1p-8f : 0.0f;
    }
    for (int64_t i = 0; i < b.rows * cols; i++) {
        const double sign = (i / cols + i % cols) % 2 ? -1 : 1;
        nb_set(b.x, i, b.dtype, sign);
        nb_set(b.residual, i, b.dtype, 0);
        nb_set(b.wants, i, b.dtype,
               sign * scale * (double)b.gamma[i % cols] + (has_beta ? (double)b.beta[i % cols] : 0));
    }
    for (int m = 0; m < N_MANNERS; m++) {
        const struct manner manner = {.tuning = manners[m].tuning, .range = manners[m].range};
        call_rows(&b, 0, b.rows, &manner);
        expect_same(&b, &manner, manners[m].what);
    }
    bench_release(&b);
}
static void check_all_ties(const struct nb_kernel *k) {
    static const int64_t lengths[] = {16, 64, 256, 1024, 4096, 16384}; /* L2 has powers of two for scales of these */
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        check_ties(k, lengths[i], 4);
        check_ties(k, lengths[i], 4096);
    }
}
Test(fast_rows, ties_go_to_even) { for_each_fast(check_all_ties); }

/* ---- NaN ---- */

static void check_nan_row(const struct nb_kernel *k) {
    struct bench b = bench_new(k, MAX_ROWS, 256);
    const struct nb_tuning t = with_native(&big_cache, native_here(k));
    const struct manner plain = {.tuning = &t};
    call_rows(&b, 0, b.rows, &plain);
    memcpy(b.wants, b.y, (size_t)(b.rows * b.cols) * item_of(&b));
    nb_set(b.x, 4 * b.cols + 7, b.dtype, NAN);
    call_rows(&b, 0, b.rows, &plain);
    for (int64_t i = 0; i < b.rows * b.cols; i++) {
        const double got = nb_get(b.y, i, b.dtype), want = nb_get(b.wants, i, b.dtype);
        cr_expect(i / b.cols == 4 ? isnan(got) : got == want, "%s: element %lld is %g", k->variant, (long long)i, got);
    }
    bench_release(&b);
}
Test(fast_rows, a_nan_takes_its_row_and_no_other) { for_each_fast(check_nan_row); }

/* Rounded on integers, a NaN with all bits set would carry over into a number. */
static void check_nan_param(const struct nb_kernel *k) {
    static const uint32_t payloads[] = {0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0x7f800001u};
    for (int p = 0; p < 16; p++) {
        struct bench b = bench_new(k, 5, 131);
        const struct nb_tuning t = with_native(&big_cache, p < 8 ? 0 : native_here(k));
        const struct manner plain = {.tuning = &t};
        if (p % 8 >= 4 && b.formula.affine != NB_AFFINE_GAMMA_BETA) b.formula.affine = NB_AFFINE_GAMMA;
        const bool in_beta = p % 8 >= 4 && b.formula.affine == NB_AFFINE_GAMMA_BETA;
        memcpy((in_beta ? b.beta : b.gamma) + 9, &payloads[p % 4], sizeof(float));
        call_rows(&b, 0, b.rows, &plain);
        for (int64_t i = 0; i < b.rows * b.cols; i++) {
            const double got = nb_get(b.y, i, b.dtype);
            cr_expect_eq(isnan(got), i % b.cols == 9, "%s, NaN %08x: element %lld is %g", k->variant, payloads[p % 4],
                         (long long)i, got);
        }
        bench_release(&b);
    }
}
Test(fast_rows, a_nan_parameter_takes_its_column_and_no_other) { for_each_fast(check_nan_param); }

/* ---- instructions beyond the variant's ---- */

/* With them a result is within a spacing of that without: both are right to little more than half of one. Where it is subnormal it may be
 * 0, as those of row 4 are. */
static void check_native(const struct nb_kernel *k) {
    if (!native_here(k)) return;
    struct bench b = bench_new(k, MAX_ROWS, 531);
    const struct nb_tuning with = with_native(&big_cache, native_here(k)), without = with_native(&big_cache, 0);
    const struct manner plain = {.tuning = &without}, native = {.tuning = &with};
    const double least = nb_formats[NB_BF16].min_normal;
    int64_t n_zero = 0, n_subnormal = 0;
    for (int64_t i = 0; i < b.cols; i++) {
        b.gamma[i] = 0x1p-16f;
        b.beta[i] = 0;
        nb_set(b.x, 4 * b.cols + i, NB_BF16, any_value(i) * 0x1p-120);
        nb_set(b.residual, 4 * b.cols + i, NB_BF16, 0);
    }
    call_rows(&b, 0, b.rows, &plain);
    memcpy(b.wants, b.y, (size_t)(b.rows * b.cols) * item_of(&b));
    call_rows(&b, 0, b.rows, &native);
    for (int64_t i = 0; i < b.rows * b.cols; i++) {
        const double got = nb_get(b.y, i, NB_BF16), want = nb_get(b.wants, i, NB_BF16);
        const bool subnormal = fabs(want) < least && want != 0;
        n_subnormal += subnormal;
        n_zero += subnormal && got == 0;
        cr_expect(fabs(got - want) <= nb_ulp(want, NB_BF16) || (subnormal && got == 0),
                  "%s: element %lld is %g, not %g", k->variant, (long long)i, got, want);
    }
    cr_expect_gt(n_subnormal, 0);
    cr_expect((k->flags & NB_FLAG_FLUSHES) || n_zero == 0, "%s does not declare that it flushes", k->variant);
    bench_release(&b);
}
Test(fast_rows, native_instructions_change_roundings_and_subnormal_numbers_alone) { for_each_fast(check_native); }
