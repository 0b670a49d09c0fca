// SPDX-License-Identifier: Apache-2.0
/* The fastest of a few runs of each loop, and what that means for a case. */
#include "src/measure/core_rate.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/registry.h"
#include "src/core/timer.h"

enum { LOOP_BUFFER = 4096 }; /* bytes, aligned to 64, all of which a round of a conversion reads or writes */
enum work { WORK_FMA, WORK_WIDEN_F16, WORK_WIDEN_BF16, WORK_NARROW_F16, WORK_NARROW_BF16, N_WORKS };

struct loop {
    enum work work;
    uint32_t features, width;                              /* enum nb_cpu_feature, enum nb_width: what it needs */
    int64_t (*run)(unsigned char *buffer, int64_t rounds); /* returns how many elements it worked on */
};

#if defined(__x86_64__)
NB_TARGET_BEGIN(NB_TARGET_V3)
#define LOOP_WIDTH 256
#include "src/measure/core_loops.h"
#undef LOOP_WIDTH
NB_TARGET_END
NB_TARGET_BEGIN(NB_TARGET_V4)
#define LOOP_WIDTH 512
#include "src/measure/core_loops.h"
#undef LOOP_WIDTH
NB_TARGET_END
NB_TARGET_BEGIN(NB_TARGET_V4 ",avx512bf16")

static int64_t narrow_bf16_native(unsigned char *buffer, int64_t rounds) {
    __m512 odd = _mm512_set1_ps(1.25f), even = odd;
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 8
        for (int at = 0; at < LOOP_BUFFER; at += 64) {
            __asm__ volatile("" : "+v"(odd), "+v"(even));
            _mm512_store_si512(buffer + at, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
        }
    return rounds * LOOP_BUFFER / 2;
}

NB_TARGET_END
#endif

static const struct loop loops[] = {
#if defined(__x86_64__)
    {WORK_FMA, NB_CPU_AVX2, NB_256, fma_256},
    {WORK_WIDEN_F16, NB_CPU_AVX2, NB_256, widen_f16_256},
    {WORK_WIDEN_BF16, NB_CPU_AVX2, NB_256, widen_bf16_256},
    {WORK_WIDEN_BF16, NB_CPU_AVX2, NB_256, widen_bf16_pairs_256},
    {WORK_NARROW_F16, NB_CPU_AVX2, NB_256, narrow_f16_256},
    {WORK_NARROW_BF16, NB_CPU_AVX2, NB_256, narrow_bf16_pairs_256},
    {WORK_FMA, NB_CPU_AVX512, NB_512, fma_512},
    {WORK_WIDEN_F16, NB_CPU_AVX512, NB_512, widen_f16_512},
    {WORK_WIDEN_BF16, NB_CPU_AVX512, NB_512, widen_bf16_pairs_512},
    {WORK_NARROW_F16, NB_CPU_AVX512, NB_512, narrow_f16_512},
    {WORK_NARROW_BF16, NB_CPU_AVX512, NB_512, narrow_bf16_pairs_512},
    {WORK_NARROW_BF16, NB_CPU_AVX512 | NB_CPU_AVX512BF16, NB_512, narrow_bf16_native},
#endif
    {.run = NULL}};

enum { RUNS = 7, ROUNDS_FMA = 1000, ROUNDS_CONVERT = 16, ADDITIONS = 20000 };

/* ---- loops ---- */

/* Seconds of one addition that waits for the one before. */
static double dependent_addition_s(void) {
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        uint64_t sum = 1, step = 3;
        const double begin = nb_now_s();
        for (int i = 0; i < ADDITIONS / 20; i++) {
#pragma GCC unroll 20
            for (int j = 0; j < 20; j++) {
                __asm__ volatile("" : "+r"(sum), "+r"(step)); /* neither folded into one nor into a multiplication */
                sum += step;
            }
        }
        __asm__ volatile("" ::"r"(sum));
        least = fmin(least, (nb_now_s() - begin) / ADDITIONS);
    }
    return least;
}

static double element_ns(const struct loop *loop, unsigned char *buffer) {
    const int64_t rounds = loop->work == WORK_FMA ? ROUNDS_FMA : ROUNDS_CONVERT;
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        const double begin = nb_now_s();
        const int64_t elements = loop->run(buffer, rounds);
        least = fmin(least, 1e9 * (nb_now_s() - begin) / (double)elements);
    }
    return least;
}

/* NaN is what is not known yet. */
static void take(double *best, double value) {
    if (!(*best <= value)) *best = value;
}

void nb_core_rates_measure(struct nb_core_rates *rates) {
    _Alignas(64) unsigned char buffer[LOOP_BUFFER] = {0};
    double best[N_WORKS];
    for (int w = 0; w < N_WORKS; w++) best[w] = NAN;
    for (const struct loop *l = loops; l->run; l++)
        if (!nb_cpu_refuses(l->features, l->width)) take(&best[l->work], element_ns(l, buffer));
    *rates =
        (struct nb_core_rates){.clock_ghz = 1e-9 / dependent_addition_s(),
                               .fma_ns = best[WORK_FMA],
                               .widen_ns = {[NB_F16] = best[WORK_WIDEN_F16], [NB_BF16] = best[WORK_WIDEN_BF16]},
                               .narrow_ns = {[NB_F16] = best[WORK_NARROW_F16], [NB_BF16] = best[WORK_NARROW_BF16]}};
}

void nb_core_rates_best(struct nb_core_rates *rates, const struct nb_core_rates *other) {
    if (!(rates->clock_ghz >= other->clock_ghz)) rates->clock_ghz = other->clock_ghz;
    take(&rates->fma_ns, other->fma_ns);
    for (int d = 0; d < NB_N_DTYPES; d++) {
        take(&rates->widen_ns[d], other->widen_ns[d]);
        take(&rates->narrow_ns[d], other->narrow_ns[d]);
    }
}

/* ---- cases ---- */

/* Of the built-in kernels of the op: what the leanest of them declares; NaN: none declares any. */
static double fewest_flops(uint32_t op, uint32_t pass) {
    double fewest = NAN;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (!e->plugin && e->kernel->op == op && e->kernel->pass == pass && e->kernel->flops > 0)
            take(&fewest, (double)e->kernel->flops);
    }
    return fewest;
}

double nb_core_bound_ns(const struct nb_case *c, const struct nb_core_rates *rates) {
    int loads, stores;
    if (c->op == NB_OP_COPY) return NAN;
    nb_op_tensors(c->op, c->pass, &loads, &stores);
    const double fma = fewest_flops(c->op, c->pass) / 2 * rates->fma_ns;
    const double convert = loads * rates->widen_ns[c->dtype] + stores * rates->narrow_ns[c->dtype];
    const double elements = (double)c->shape.rows * (double)c->shape.cols / c->threads;
    return isfinite(fma) && isfinite(convert) ? elements * fmax(fma, convert) : (double)NAN;
}

const char *nb_case_level(const struct nb_case *c) {
    const struct nb_cpu *cpu = nb_cpu_light();
    const double bytes = nb_case_bytes(c), own = bytes / c->threads;
    if (c->cache == NB_COLD) return "DRAM";
    if (own <= 0.9 * (double)cpu->l1d_bytes) return "L1";
    if (own <= 0.8 * (double)cpu->l2_bytes) return "L2";
    return bytes <= 0.5 * (double)cpu->l3_bytes ? "L3" : "DRAM";
}
