// SPDX-License-Identifier: Apache-2.0
/* One launch of a group: cases and copies as arms, timed; then what was timed is compared with what was checked. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/lines.h"
#include "src/measure/worker.h"

/* The fastest of a few runs of each loop, and what that means for a case. */

/* What the core at hand can do when memory is no hindrance, measured by small loops of our own that stay in the first cache and wait
 * for nothing: multiply-adds, conversions between 16 bits and f32, and a chain of dependent additions, which is its clock.
 *
 * They give a bound for every kernel, and so none is compared with itself: a call of E elements on T threads takes at least
 *     E / T * max(flops / 2 * t_fma, loads * t_widen + stores * t_narrow)
 * with the fewest flops that any built-in kernel of the op declares, two to a multiply-add, the tensors that the op must read and
 * write, and of each loop the fastest way that this CPU has at any width. Loads and stores themselves are the copy's. */

struct core_rates {
    double clock_ghz;              /* dependent additions per ns; of a launch the mean of before and behind */
    double fma_ns;                 /* of one f32 element; NaN: no loop for this instruction set */
    double widen_ns[NB_N_DTYPES];  /* load and conversion of an element to f32; 0 for f32 */
    double narrow_ns[NB_N_DTYPES]; /* conversion from f32, rounding to nearest even, and store */
};

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
    {WORK_NARROW_BF16, NB_CPU_AVX2, NB_256, narrow_bf16_up_256},
    {WORK_FMA, NB_CPU_AVX512, NB_512, fma_512},
    {WORK_WIDEN_F16, NB_CPU_AVX512, NB_512, widen_f16_512},
    {WORK_WIDEN_BF16, NB_CPU_AVX512, NB_512, widen_bf16_pairs_512},
    {WORK_NARROW_F16, NB_CPU_AVX512, NB_512, narrow_f16_512},
    {WORK_NARROW_BF16, NB_CPU_AVX512, NB_512, narrow_bf16_pairs_512},
    {WORK_NARROW_BF16, NB_CPU_AVX512, NB_512, narrow_bf16_up_512},
    {WORK_NARROW_BF16, NB_CPU_AVX512 | NB_CPU_AVX512BF16, NB_512, narrow_bf16_native},
#endif
    {.run = NULL}};

enum { RUNS = 7, ROUNDS_FMA = 1000, ROUNDS_CONVERT = 16, ADDITIONS = 20000 };

/* ---- loops ---- */

/* Seconds of one addition that waits for the one before. */
static double dependent_addition_s(void) {
    double least = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        const double begin = nb_now_s();
        nb_add_in_turn(ADDITIONS);
        nb_worked("addition", NULL, ADDITIONS, 0);
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
        nb_worked(loop->work == WORK_FMA ? "multiply-add" : "conversion", NULL, (double)elements, 0);
        least = fmin(least, 1e9 * (nb_now_s() - begin) / (double)elements);
    }
    return least;
}

/* NaN is what is not known yet. */
static void take(double *best, double value) {
    if (!(*best <= value)) *best = value;
}

/* About a millisecond. */
static void core_rates_measure(struct core_rates *rates) {
    _Alignas(64) unsigned char buffer[LOOP_BUFFER] = {0};
    double best[N_WORKS];
    for (int w = 0; w < N_WORKS; w++) best[w] = NAN;
    for (const struct loop *l = loops; l->run; l++)
        if (!nb_cpu_refuses(l->features, l->width)) take(&best[l->work], element_ns(l, buffer));
    *rates = (struct core_rates){.clock_ghz = 1e-9 / dependent_addition_s(),
                                 .fma_ns = best[WORK_FMA],
                                 .widen_ns = {[NB_F16] = best[WORK_WIDEN_F16], [NB_BF16] = best[WORK_WIDEN_BF16]},
                                 .narrow_ns = {[NB_F16] = best[WORK_NARROW_F16], [NB_BF16] = best[WORK_NARROW_BF16]}};
}

/* Of two measurements the faster in each figure: a bound may be too low, never too high. */
static void core_rates_best(struct core_rates *rates, const struct core_rates *other) {
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

/* Time that the core needs for the case at least; NaN: not known. */
static double core_bound_ns(const struct nb_case *c, const struct core_rates *rates) {
    int loads, stores;
    if (c->op == NB_OP_COPY || c->backend != NB_BACKEND_CPU) return NAN;
    nb_op_tensors(c->op, c->pass, &loads, &stores);
    const double fma = fewest_flops(c->op, c->pass) / 2 * rates->fma_ns;
    const double convert = loads * rates->widen_ns[c->dtype] + stores * rates->narrow_ns[c->dtype];
    const double elements = (double)c->shape.rows * (double)c->shape.cols / c->threads;
    return isfinite(fma) && isfinite(convert) ? elements * fmax(fma, convert) : (double)NAN;
}

/* Where the case's tensors lie while it is timed: "L1", "L2", "L3" or "DRAM", by their bytes for each thread and the caches of the CPU,
 * of which 9/10, 8/10 and, since it is shared with others, half count as the case's own; of a device 8/10 of its last cache. */
static const char *case_level(const struct nb_case *c) {
    const struct nb_cpu *cpu = nb_cpu_light();
    const double bytes = nb_case_bytes(c), own = bytes / c->threads;
    if (c->cache == NB_COLD) return "DRAM";
    const struct nb_device_api *device = nb_device_of(c->backend);
    if (!nb_device_is_host(device)) return bytes <= 0.8 * device->l2_bytes() ? "L2" : "DRAM";
    if (own <= 0.9 * (double)cpu->l1d_bytes) return "L1";
    if (own <= 0.8 * (double)cpu->l2_bytes) return "L2";
    return bytes <= 0.5 * (double)cpu->l3_bytes ? "L3" : "DRAM";
}

/* {"clock_ghz","fma_ns","widen_ns":{"f16","bf16"},"narrow_ns":{"f16","bf16"}} */
/* Four digits: a nanosecond's thousandth is below what the clock resolves. */
static void add_rate(cJSON *json, const char *name, double value) {
    nb_json_number(json, name, isfinite(value) ? round(value * 1e6) / 1e6 : (double)NAN);
}

static cJSON *rates_to_json(const struct core_rates *rates) {
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

/* What bounds a case that is timed in the first place: the core, or a level of memory. */
static const char *copy_at(const struct nb_job *job, int copy) { return copy > 0 ? job->copies[copy - 1] : NULL; }
static struct nb_timed timed_case(const struct nb_job *job, int i, const struct nb_arm *arm,
                                  const struct core_rates *rates, double floor_ns) {
    const double core_ns = core_bound_ns(&job->cases[i], rates);
    return (struct nb_timed){.key = job->asked[i].key,
                             .copy = copy_at(job, job->asked[i].copy),
                             .other_copy = copy_at(job, job->asked[i].other_copy),
                             .level = case_level(&job->cases[i]),
                             .chunked = arm->chunked,
                             .per_sample = (double)arm->per_sample,
                             .floor_ns = isfinite(floor_ns) ? round(floor_ns * 10) / 10 : (double)NAN,
                             .core_ns = isfinite(core_ns) ? round(core_ns * 10) / 10 : (double)NAN};
}

/* floor_ns: of each case; device: its state before and after, or null, taken over. */
static void say_launch(const struct nb_job *job, const struct nb_bench *bench, const struct core_rates *rates,
                       const double *floor_ns, cJSON *device, double elapsed_s) {
    const struct nb_arm *arms = bench->arms;
    const int n_named = job->n_cases + job->n_copies;
    const struct nb_launch_line l = {.group = job->group,
                                     .launch = job->launch,
                                     .floor = bench->n > n_named ? arms[n_named].entry->id : NULL,
                                     .noise = bench->noise,
                                     .elapsed_s = elapsed_s};
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "launch");
    nb_json_add_members(line, nb_launch_line_members, &l);
    if (device) cJSON_AddItemToObject(line, "device", device);
    cJSON *cases = cJSON_AddArrayToObject(line, "cases"), *copies = cJSON_AddArrayToObject(line, "copies");
    for (int i = 0; i < bench->n; i++) {
        const bool is_case = i < job->n_cases;
        const struct nb_timed t = is_case ? timed_case(job, i, &arms[i], rates, floor_ns[i])
                                          : (struct nb_timed){.variant = arms[i].entry->id};
        cJSON *arm = nb_json_of_members(is_case ? nb_timed_case_members : nb_timed_copy_members, &t);
        nb_arm_to_json(arm, &arms[i], job->blocks, false);
        cJSON_AddItemToArray(is_case ? cases : copies, arm);
    }
    cJSON_AddItemToObject(line, "core", rates_to_json(rates));
    nb_worker_say(line);
}

/* ---- after timing -------------------------------------------------------------------------------------------------- */

struct aftermath {
    struct nb_workplace *w;
    const struct nb_bench *bench;
    bool *failed; /* by case */
};

static void fail(const struct aftermath *a, int i, enum nb_status status, const char *reason) {
    const struct nb_job *job = &a->w->job;
    nb_worker_say(nb_failure_to_json(&(struct nb_failure){job->group, job->launch, job->asked[i].key, reason, status}));
    a->failed[i] = true;
}

static enum nb_status status_of(enum nb_damage damage) {
    return damage == NB_DAMAGED_INPUT ? NB_CHANGED_INPUT : NB_WROTE_OUTSIDE;
}

/* One more sample of the case, on memory as it was at first: the same result as in the check, and nothing harmed? */
static void recheck(const struct aftermath *a, int i) {
    const struct nb_arm *arm = &a->bench->arms[i];
    const uint64_t *digests = nb_worker_digests(a->w, i);
    struct nb_buffers *set = nb_bench_home(a->bench, arm);
    char reason[240], where[160];
    int64_t row = 0;
    nb_worker_at(a->w, i);
    if (arm->damage != NB_INTACT) {
        snprintf(reason, sizeof reason, "%s while timed", arm->where);
        fail(a, i, status_of(arm->damage), reason);
        return;
    }
    if (arm->error) {
        if (arm->where[0])
            snprintf(reason, sizeof reason, "%s while timed", arm->where);
        else
            nb_say_returned(reason, sizeof reason, arm->entry->kernel, arm->error);
        fail(a, i, NB_RETURNED_ERROR, reason);
        return;
    }
    if (!digests || arm->c->op == NB_OP_COPY) return;
    bool same = !arm->is_wrong && nb_measure_recheck(&a->bench->arms[i], set, a->bench->pool, digests, &row);
    if (arm->is_wrong) row = arm->wrong_row;
    enum nb_damage damage = nb_buffers_verify(set, where, sizeof where);
    if (damage != NB_INTACT) {
        nb_buffers_fill(set);
        snprintf(reason, sizeof reason, "%s while timed", where);
        fail(a, i, status_of(damage), reason);
    } else if (!same) {
        if (arm->is_wrong && nb_wrong_deed(row))
            snprintf(reason, sizeof reason, "%s while it was timed", nb_wrong_deed(row));
        else if (row < arm->c->shape.rows)
            snprintf(reason, sizeof reason, "row %lld of the timed output differs from the checked one",
                     (long long)row);
        else
            snprintf(reason, sizeof reason,
                     "what the timed calls wrote for all rows together differs from the checked");
        fail(a, i, NB_WRONG_WHEN_TIMED, reason);
    }
}

/* Where memory was harmed and no case is convicted, none can be believed; whose doing it was is known where a case is alone. */
static void settle(const struct aftermath *a) {
    const struct nb_job *job = &a->w->job;
    enum nb_damage damage = NB_INTACT;
    char where[160] = "", reason[240];
    bool convicted = false;
    for (int s = 0; s < a->bench->sets.n && damage == NB_INTACT; s++)
        damage = nb_buffers_verify(&a->bench->sets.sets[s], where, sizeof where);
    if (damage != NB_INTACT)
        for (int s = 0; s < a->bench->sets.n; s++) nb_buffers_fill(&a->bench->sets.sets[s]);
    for (int i = 0; i < job->n_cases; i++) recheck(a, i);
    for (int i = 0; i < job->n_cases; i++) convicted |= a->failed[i];
    if (damage == NB_INTACT || convicted) return;
    snprintf(reason, sizeof reason, "%s while timed", where);
    fail(a, 0, status_of(damage), reason);
}

/* On a device: the copy of nothing, which says what a call costs at least. Null: there is none. */
static const struct nb_entry *floor_of(const struct nb_job *job) {
    const struct nb_case *c = &job->cases[0];
    if (nb_device_is_host(nb_device_of(c->backend))) return NULL;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        const struct nb_kernel *k = e->kernel;
        if (k->op == NB_OP_COPY && k->backend == c->backend && k->dtype == c->dtype && k->loads + k->stores == 0)
            return e;
    }
    return NULL;
}

static cJSON *device_state(const struct nb_job *job) {
    const struct nb_device_api *device = nb_device_of(job->cases[0].backend);
    if (nb_device_is_host(device)) return NULL;
    cJSON *state = cJSON_CreateObject();
    device->state(state);
    return state;
}

/* Arms: the job's cases, then its copies, each on the case it serves, then the floor, if there is one. */
static int init_arms(struct nb_workplace *w, struct nb_arm *arms, struct nb_case *copy_cases,
                     const struct nb_entry *floor) {
    const struct nb_job *job = &w->job;
    for (int i = 0; i < job->n_cases; i++)
        arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &job->cases[i], .digests = nb_worker_digests(w, i)};
    for (int t = 0; t < job->n_copies + (floor != NULL); t++) {
        const struct nb_entry *entry = t < job->n_copies ? nb_registry_find(job->copies[t]) : floor;
        if (!entry) return nb_error("no kernel %s", job->copies[t]);
        copy_cases[t] = job->cases[0];
        nb_case_set_entry(&copy_cases[t], entry);
        copy_cases[t].pass = job->cases[0].pass; /* the floor's is forward alone */
        arms[job->n_cases + t] = (struct nb_arm){.entry = entry, .c = &copy_cases[t]};
    }
    return 0;
}

/* A clock moves by less; by more a neighbour does, who had the core for all of one measurement. */
static double clock_of(const struct core_rates *before, const struct core_rates *behind) {
    const double higher = fmax(before->clock_ghz, behind->clock_ghz),
                 lower = fmin(before->clock_ghz, behind->clock_ghz);
    return lower < 0.7 * higher ? higher : (lower + higher) / 2;
}

static int launch_job(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    const struct nb_entry *floor = floor_of(job);
    const int n_copies = job->n_copies + (floor != NULL), n_arms = job->n_cases + n_copies;
    const double start = nb_now_s();
    struct nb_arm *arms freed = nb_alloc((unsigned)n_arms, sizeof *arms);
    struct nb_case *copy_cases freed = nb_alloc((unsigned)n_copies, sizeof *copy_cases);
    bool *failed freed = nb_alloc((unsigned)job->n_cases, sizeof *failed);
    double *floor_ns freed = nb_alloc((unsigned)job->n_cases, sizeof *floor_ns);
    struct nb_bench bench released_by(nb_bench_release) = {.arms = arms, .n = n_arms, .several_layouts = true};
    struct core_rates rates, after; /* a clock that moves shows in one of them */
    cJSON *device = NULL;
    if (init_arms(w, arms, copy_cases, floor) != 0 || nb_bench_init(&bench, w) != 0) return -1;
    core_rates_measure(&rates);
    cJSON *before = device_state(job);
    nb_bench_time(&bench);
    for (int i = 0; i < job->n_cases; i++) floor_ns[i] = nb_measure_empty_ns(&arms[i], bench.sets.n_of_arm, bench.pool);
    if (before) {
        device = cJSON_CreateObject();
        cJSON_AddItemToObject(device, "before", before);
        cJSON_AddItemToObject(device, "after", device_state(job));
    }
    core_rates_measure(&after);
    const double clock_ghz = clock_of(&rates, &after);
    core_rates_best(&rates, &after);
    rates.clock_ghz = clock_ghz;
    settle(&(struct aftermath){w, &bench, failed});
    nb_worker_at(w, -1);
    say_launch(job, &bench, &rates, floor_ns, device, nb_now_s() - start);
    return 0;
}

const struct nb_job_type nb_launch_job = {.work = launch_job};
