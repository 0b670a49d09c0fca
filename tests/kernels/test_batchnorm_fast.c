// SPDX-License-Identifier: Apache-2.0
/* batchnorm_fast where it decides something: the second look at a channel whose first value is far off, data with a large offset,
 * planes from 1x1 to longer than a block, padded rows, calls that stream. Against statistics in double, and one way of going
 * through a tensor against another bit by bit. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/measure/pool.h"
#include "tests/support/batchnorm.h"
#include "tests/support/plans.h"

TestSuite(batchnorm_fast, .init = load_kernels);

/* Strips, row blocks, slabs, few channels in blocks of planes and of parts of planes, and the lengths beside a vector's. */
static const struct size sizes[] = {{1, 40, 2},   {64, 70, 1}, {3, 5, 49},   {9, 33, 15},   {600, 3, 2},
                                    {5, 20, 300}, {2, 2, 513}, {1, 3, 7000}, {40, 1, 4000}, {1, 1, 140001},
                                    {2, 17, 128}, {700, 9, 1}, {1, 3, 17000}};
static const struct walk every_fast = {.pass = NB_FORWARD,
                                       .name = "batchnorm_fast",
                                       .sizes = sizes,
                                       .n_sizes = sizeof sizes / sizeof sizes[0],
                                       .longest = 2000};

struct problem {
    struct nb_call call;
    struct nb_tuning tuning;
    enum nb_dtype dtype;
    int64_t n_stored;
    struct memory memory;
};

static void setup(struct problem *p, const struct nb_kernel *k, struct size size, uint32_t layout, int64_t pad) {
    *p = (struct problem){.dtype = (enum nb_dtype)k->dtype, .tuning = {.struct_size = sizeof p->tuning}};
    struct nb_call *call = &p->call;
    *call = batchnorm_call(size, layout, NB_TRAINING, pad);
    call->formula.affine = NB_AFFINE_NONE;
    p->n_stored = call->rows * call->x_stride;
    call->x = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
    call->y = take(&p->memory, p->n_stored, nb_formats[p->dtype].bytes);
    call->mean = take(&p->memory, size.c, sizeof(float));
    call->rstd = take(&p->memory, size.c, sizeof(float));
    call->running_mean_in = take(&p->memory, size.c, sizeof(float));
    call->running_var_in = take(&p->memory, size.c, sizeof(float));
    call->running_mean_out = take(&p->memory, size.c, sizeof(float));
    call->running_var_out = take(&p->memory, size.c, sizeof(float));
    take_scratch(&p->memory, k, call);
}
/* x = offset + sigma * draw, and the first value of a channel `first` instead where that is a number. */
static void fill(struct problem *p, double offset, double sigma, double first) {
    struct nb_call *call = &p->call;
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            const bool is_first = call->layout == NB_NCHW ? r < call->c && i == 0 : r == 0;
            const double v = is_first && !isnan(first) ? first : offset + sigma * scattered(r * call->cols + i);
            nb_set((void *)call->x, r * call->x_stride + i, p->dtype, v);
        }
}

typedef void (*visit_fn)(struct problem *p, const struct nb_kernel *k);
static int for_all(int64_t pad, visit_fn session) {
    struct walk w = every_fast;
    int n_sessions = 0;
    for (; walk_on(&w); n_sessions++) {
        struct problem p;
        setup(&p, w.kernel, w.size, w.layout, pad);
        session(&p, w.kernel);
        release_memory(&p.memory);
    }
    return n_sessions;
}

/* Statistics of the stored values in double against those written: the variance within `room` of itself. */
static void expect_statistics(const struct problem *p, const struct nb_kernel *k, double room) {
    const struct nb_call *call = &p->call;
    const double n = (double)(call->n * call->hw);
    double *mean = calloc((size_t)call->c, sizeof *mean), *var = calloc((size_t)call->c, sizeof *var);
    channel_statistics(call, p->dtype, mean, var);
    for (int64_t c = 0; c < call->c; c++) {
        const double rstd = 1 / sqrt(var[c] + call->eps);
        cr_expect(fabs(call->mean[c] - mean[c]) <= 0x1p-23 * fabs(mean[c]) + room * sqrt(var[c]),
                  "%s, %lldx%lldx%lld: mean %g, not %g", k->variant, (long long)call->n, (long long)call->c,
                  (long long)call->hw, call->mean[c], mean[c]);
        cr_expect(fabs(call->rstd[c] / rstd - 1) <= room, "%s, %lldx%lldx%lld: rstd %g, not %g", k->variant,
                  (long long)call->n, (long long)call->c, (long long)call->hw, call->rstd[c], rstd);
        const double kept = call->momentum * var[c] * n / (n - 1);
        cr_expect(fabs(call->running_var_out[c] - kept) <= 2 * room * kept, "%s: running variance %g, not %g",
                  k->variant, call->running_var_out[c], kept);
    }
    free(mean);
    free(var);
}

/* rho = 10^4: a mean in the elements' place would be off by 10^4 u sigma, and E[x^2] - mean^2 would have no digit. */
static void visit_offset(struct problem *p, const struct nb_kernel *k) {
    if (p->dtype != NB_F32) return;
    fill(p, 1e4, 1, NAN);
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    expect_statistics(p, k, 0x1p-18);
    const struct nb_call *call = &p->call;
    for (int64_t r = 0; r < call->rows; r++)
        for (int64_t i = 0; i < call->cols; i++) {
            const int64_t c = channel_of(call, r, i), at = r * call->x_stride + i;
            const double y = nb_get(call->y, at, p->dtype);
            const double back = call->mean[c] + y / call->rstd[c];
            cr_assert(fabs(back - nb_get(call->x, at, p->dtype)) < 1e-3, "%s: x %g comes back as %g", k->variant,
                      nb_get(call->x, at, p->dtype), back);
        }
}
Test(batchnorm_fast, an_offset_costs_no_digit) { cr_expect_gt(for_all(0, visit_offset), 0); }

/* The first value is 10^4 sigma off the rest: about it alone the variance would keep a digit or two. */
static void visit_outlier(struct problem *p, const struct nb_kernel *k) {
    fill(p, 0.25, 1, 1e4);
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    expect_statistics(p, k, 0x1p-17);
}
Test(batchnorm_fast, looks_again_where_the_first_value_is_far_off) { cr_expect_gt(for_all(0, visit_outlier), 0); }

/* All values alike: the variance is 0 and not what rounding left of it. */
static void visit_constant(struct problem *p, const struct nb_kernel *k) {
    fill(p, 3, 0, NAN);
    cr_assert_eq(nb_run_in_ranges(k, &p->call, 0), 0);
    for (int64_t c = 0; c < p->call.c; c++) {
        cr_expect_eq(p->call.mean[c], 3);
        cr_expect_float_eq(p->call.rstd[c], (float)(1 / sqrt(1e-5)), 1e-3);
        cr_expect_eq(p->call.running_var_out[c], 0);
    }
    for (int64_t r = 0; r < p->call.rows; r++) cr_assert_eq(nb_get(p->call.y, r * p->call.y_stride, p->dtype), 0);
}
Test(batchnorm_fast, a_constant_channel_has_no_variance) { cr_expect_gt(for_all(2, visit_constant), 0); }

static void take_rows(const struct problem *p, const struct nb_call *call, unsigned char *to) {
    const size_t item = nb_formats[p->dtype].bytes, row = (size_t)call->cols * item;
    for (int64_t r = 0; r < call->rows; r++)
        memcpy(to + (size_t)r * row, (const unsigned char *)call->y + (size_t)(r * call->y_stride) * item, row);
    memcpy(to + (size_t)call->rows * row, call->rstd, (size_t)call->c * sizeof(float));
}
/* Streaming, the strips of a small cache and cuts of every kind, from an output at every place in a line. */
static void try_ways(struct problem *p, const struct nb_kernel *k, struct nb_call call) {
    const size_t item = nb_formats[p->dtype].bytes;
    const size_t bytes = (size_t)(p->call.rows * p->call.cols) * item + (size_t)p->call.c * sizeof(float);
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    unsigned char *room = malloc((size_t)p->n_stored * item + 256);
    take_scratch(&p->memory, k, &call);
    cr_assert_eq(nb_run_in_ranges(k, &call, 0), 0);
    take_rows(p, &call, want);
    for (int way = 0; way < 6; way++) {
        struct nb_call other = call;
        struct nb_tuning tuning = p->tuning;
        tuning.stream_bytes = way % 2 ? 1 : 0;
        tuning.slab_bytes = way < 3 ? 1 : 1 << 26;
        other.tuning = &tuning;
        memset(room, 0xa5, (size_t)p->n_stored * item + 256);
        other.y = room + 64 - (uintptr_t)room % 64 + (size_t)(way * 7) * item;
        cr_assert_eq(nb_run_in_ranges(k, &other, way == 0 ? 0 : way), 0);
        take_rows(p, &other, got);
        cr_expect(memcmp(want, got, bytes) == 0,
                  "%s: way %d through %lldx%lldx%lld, layout %u, mode %u, root %u, gives other bits", k->variant, way,
                  (long long)other.n, (long long)other.c, (long long)other.hw, other.layout, other.mode,
                  other.formula.root);
        for (int64_t r = 0; r + 1 < other.rows; r++)
            for (int64_t i = other.cols; i < other.y_stride; i++)
                cr_assert_eq(((const unsigned char *)other.y)[(size_t)(r * other.y_stride + i) * item], 0xa5,
                             "%s: wrote between rows", k->variant);
    }
    free(want);
    free(got);
    free(room);
}
/* In both modes, by a formula that is a line and by one that divides. */
static void visit_ways(struct problem *p, const struct nb_kernel *k) {
    fill(p, 0.5, 1, 100);
    for (int64_t c = 0; c < p->call.c; c++) {
        ((float *)p->call.running_mean_in)[c] = (float)scattered(c);
        ((float *)p->call.running_var_in)[c] = 1 + (float)(c % 3);
    }
    struct nb_call call = p->call;
    for (call.mode = NB_TRAINING; call.mode < NB_N_MODES; call.mode++) {
        call.formula.root = p->call.formula.root;
        try_ways(p, k, call);
        call.formula.root = NB_ROOT_DIV_SQRT;
        try_ways(p, k, call);
    }
}
Test(batchnorm_fast, no_bit_hangs_on_streaming_cuts_or_caches) {
    cr_expect_gt(for_all(0, visit_ways), 0);
    cr_expect_gt(for_all(3, visit_ways), 0);
}

/* Planes next to each other go as one run of columns, padded ones channel by channel: by the same sums. */
Test(batchnorm_fast, padding_changes_no_bit) {
    struct walk w = every_fast;
    int n_compared = 0;
    while (walk_on(&w)) {
        if (w.layout != NB_NCHW) continue;
        struct problem packed, padded;
        setup(&packed, w.kernel, w.size, NB_NCHW, 0);
        setup(&padded, w.kernel, w.size, NB_NCHW, 5);
        const size_t bytes = (size_t)(packed.call.rows * packed.call.cols) * nb_formats[packed.dtype].bytes +
                             (size_t)packed.call.c * sizeof(float);
        unsigned char *a = take(&packed.memory, 1, bytes), *b = take(&packed.memory, 1, bytes);
        fill(&packed, 0.5, 1, NAN);
        fill(&padded, 0.5, 1, NAN);
        cr_assert_eq(nb_run_in_ranges(w.kernel, &packed.call, 0), 0);
        cr_assert_eq(nb_run_in_ranges(w.kernel, &padded.call, 0), 0);
        take_rows(&packed, &packed.call, a);
        take_rows(&padded, &padded.call, b);
        cr_expect(memcmp(a, b, bytes) == 0, "%s: %lldx%lldx%lld", w.kernel->variant, (long long)w.size.n,
                  (long long)w.size.c, (long long)w.size.hw);
        n_compared++;
        release_memory(&packed.memory);
        release_memory(&padded.memory);
    }
    cr_expect_gt(n_compared, 0);
}
