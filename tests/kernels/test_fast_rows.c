// SPDX-License-Identifier: Apache-2.0
/* The fast row kernels: a row has the same bits alone, beside others, split over threads, streamed, at any alignment and whatever
 * the tuning; the shift of LayerNorm is guarded; NaN stays in its row or column. */
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
    void *x, *residual;             /* packed */
    float *gamma, *beta;            /* f32 */
    unsigned char *y, *sum, *wants; /* packed rows: of this call and, in wants, y of each row alone */
    struct nb_formula formula;
};

static bool adds(const struct bench *b) {
    return b->kernel->op == NB_OP_ADD_RMSNORM || b->kernel->op == NB_OP_ADD_LAYERNORM;
}
static size_t item_of(const struct bench *b) { return nb_formats[b->dtype].bytes; }
static double any_value(int64_t i) { return (double)((i * 2654435761u) >> 7 & 0xffff) / 32768 - 0.75; }

static struct bench bench_new(const struct nb_kernel *k, int64_t rows, int64_t cols) {
    struct bench b = {.kernel = k, .dtype = (enum nb_dtype)k->dtype, .rows = rows, .cols = cols};
    const size_t bytes = (size_t)(rows * cols) * item_of(&b) + 1;
    b.x = malloc(bytes);
    b.residual = malloc(bytes);
    b.y = malloc(bytes);
    b.sum = malloc(bytes);
    b.wants = malloc(bytes);
    b.gamma = malloc((size_t)cols * sizeof(float));
    b.beta = malloc((size_t)cols * sizeof(float));
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
}

/* How a call is made. */
struct manner {
    const struct nb_tuning *tuning;
    int64_t range, pad, shift; /* of ranges; between rows; elements by which tensors are off a line of the cache */
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
                           .eps = 1e-5,
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
static void check_bits_of(const struct nb_kernel *k, int64_t rows, int64_t cols, uint32_t native) {
    struct bench b = bench_new(k, rows, cols);
    const struct nb_tuning singly = with_native(&no_cache, native);
    const struct manner alone = {.tuning = &singly};
    if (cols % 4 == 3) b.formula.affine = cols % 8 == 3 ? NB_AFFINE_NONE : NB_AFFINE_GAMMA;
    b.formula.root = cols / 2 % 2 ? NB_ROOT_RSQRT_NR : NB_ROOT_MUL_RECIP;
    b.formula.eps_place = cols / 3 % 2 ? NB_EPS_CLAMP : NB_EPS_INSIDE;
    for (int64_t r = 0; r < rows; r++) call_rows(&b, r, 1, &alone);
    memcpy(b.wants, b.y, (size_t)(rows * cols) * item_of(&b));
    for (int i = 0; i < N_MANNERS; i++) {
        const struct nb_tuning t = with_native(manners[i].tuning, native);
        const bool none = !manners[i].tuning && !native;
        const struct manner m = {none ? NULL : &t, manners[i].range, i % 2 ? cols % 17 : 0, (cols + i) % 5};
        call_rows(&b, 0, rows, &m);
        expect_same(&b, &m, manners[i].what);
    }
    bench_release(&b);
}
static uint32_t native_here(const struct nb_kernel *k) {
    return k->dtype == NB_BF16 ? nb_cpu_light()->features & NB_CPU_AVX512BF16 : 0;
}
static void check_bits(const struct nb_kernel *k, int64_t rows, int64_t cols) {
    check_bits_of(k, rows, cols, 0);
    if (native_here(k)) check_bits_of(k, rows, cols, native_here(k));
}
static void check_all_lengths(const struct nb_kernel *k) {
    for (int64_t cols = 1; cols <= 600; cols += cols < 40 ? 1 : cols < 140 ? 3 : 29)
        check_bits(k, 1 + cols % MAX_ROWS, cols);
    for (int64_t cols = 128; cols <= 1024; cols *= 2) check_bits(k, MAX_ROWS, cols);
    check_bits(k, MAX_ROWS, 4165);
}
Test(fast_rows, a_row_has_the_same_bits_in_any_company) { for_each_fast(check_all_lengths); }

/* Fewer than four rows are split, four are not. */
static void check_split(const struct nb_kernel *k) {
    static const int64_t lengths[] = {16384, 20011};
    for (int i = 0; i < 2; i++) {
        struct bench b = bench_new(k, 4, lengths[i]);
        const struct nb_tuning t = with_native(NULL, i == 0 ? native_here(k) : 0);
        const struct manner whole = {.tuning = &t}, cut = {.tuning = &t, .range = 5, .shift = i};
        call_rows(&b, 0, 4, &whole);
        memcpy(b.wants, b.y, (size_t)(4 * b.cols) * item_of(&b));
        call_rows(&b, 0, 3, &cut);
        call_rows(&b, 3, 1, &cut);
        expect_same(&b, &cut, "split");
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
 * ramp. One sweep about a bad shift would have no digit left in 1 and 2. */
static double hard_value(int64_t row, int64_t i, int64_t n) {
    const double noise = any_value(i) * 2;
    if (row == 0) return 1e4 + noise;
    if (row == 1) return i < 32 ? 5000 + noise : noise / 64;
    if (row == 2) return i == 0 ? 30000 : noise / 64;
    return (double)i / (double)n * 100 + noise;
}
static void check_guard(const struct nb_kernel *k) {
    if (k->op != NB_OP_LAYERNORM || k->dtype != NB_F32) return;
    static const int64_t lengths[] = {100, 4096, 65536};
    for (int t = 0; t < 3; t++) {
        const int64_t n = lengths[t];
        struct bench b = bench_new(k, 4, n);
        double *exact = malloc((size_t)n * sizeof *exact);
        const struct manner plain = {.tuning = &big_cache};
        b.formula.affine = NB_AFFINE_NONE;
        for (int64_t i = 0; i < 4 * n; i++) nb_set(b.x, i, b.dtype, hard_value(i / n, i % n, n));
        call_rows(&b, 0, 4, &plain);
        for (int64_t r = 0; r < 4; r++) {
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
