// SPDX-License-Identifier: Apache-2.0
/* The fastest of a few runs of each loop, and what that means for a case. */
#include "src/measure/core_rate.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/core_loops.h"

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

static double element_ns(const struct nb_core_loop *loop, unsigned char *buffer) {
    const int64_t rounds = loop->work == NB_WORK_FMA ? ROUNDS_FMA : ROUNDS_CONVERT;
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

static void try_loops(const struct nb_core_loop *loops, size_t n, unsigned char *buffer, double best[NB_N_WORKS]) {
    for (size_t i = 0; i < n; i++)
        if (!nb_cpu_refuses(loops[i].features, loops[i].width))
            take(&best[loops[i].work], element_ns(&loops[i], buffer));
}

void nb_core_rates_measure(struct nb_core_rates *rates) {
    _Alignas(64) unsigned char buffer[NB_CORE_BUFFER] = {0};
    double best[NB_N_WORKS];
    for (int w = 0; w < NB_N_WORKS; w++) best[w] = NAN;
    try_loops(nb_core_loops_v3, nb_n_core_loops_v3, buffer, best);
    try_loops(nb_core_loops_v4, nb_n_core_loops_v4, buffer, best);
    *rates = (struct nb_core_rates){
        .clock_ghz = 1e-9 / dependent_addition_s(),
        .fma_ns = best[NB_WORK_FMA],
        .widen_ns = {[NB_F16] = best[NB_WORK_WIDEN_F16], [NB_BF16] = best[NB_WORK_WIDEN_BF16]},
        .narrow_ns = {[NB_F16] = best[NB_WORK_NARROW_F16], [NB_BF16] = best[NB_WORK_NARROW_BF16]}};
}

void nb_core_rates_best(struct nb_core_rates *rates, const struct nb_core_rates *other) {
    if (!(rates->clock_ghz >= other->clock_ghz)) rates->clock_ghz = other->clock_ghz;
    take(&rates->fma_ns, other->fma_ns);
    for (int d = 0; d < NB_N_DTYPES; d++) {
        take(&rates->widen_ns[d], other->widen_ns[d]);
        take(&rates->narrow_ns[d], other->narrow_ns[d]);
    }
}

/* Four digits: a nanosecond's thousandth is below what the clock resolves. */
static void add_rate(cJSON *json, const char *name, double value) {
    nb_json_number(json, name, isfinite(value) ? round(value * 1e6) / 1e6 : (double)NAN);
}

cJSON *nb_core_rates_to_json(const struct nb_core_rates *rates) {
    cJSON *json = cJSON_CreateObject();
    add_rate(json, "clock_ghz", rates->clock_ghz);
    add_rate(json, "fma_ns", rates->fma_ns);
    cJSON *widen = cJSON_AddObjectToObject(json, "widen_ns"), *narrow = cJSON_AddObjectToObject(json, "narrow_ns");
    for (int d = NB_F16; d <= NB_BF16; d++) {
        add_rate(widen, nb_formats[d].name, rates->widen_ns[d]);
        add_rate(narrow, nb_formats[d].name, rates->narrow_ns[d]);
    }
    return json;
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
