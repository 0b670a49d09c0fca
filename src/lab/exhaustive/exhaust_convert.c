// SPDX-License-Identifier: Apache-2.0
/* All 2^32 floats into each narrow format, by every conversion there is, against one that uses integers alone: shift the
 * significand by as many bits as the format lacks there, look at what fell off. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/simd_functions.h"

/* ---- by integers ---- */

/* significand >> shift, to nearest even; shift from 1 on. */
static uint32_t shift_to_even(uint32_t significand, int shift) {
    if (shift > 25) return 0; /* below a quarter of the last bit: significands have 24 bits */
    const uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

uint32_t nb_convert_by_integers(uint32_t bits, const struct nb_narrow *to) {
    const uint32_t sign = bits >> 31 << (to->exponent_bits + to->fraction_bits), magnitude = bits & 0x7fffffffu;
    const uint32_t infinity = ((1u << to->exponent_bits) - 1) << to->fraction_bits;
    if (magnitude > 0x7f800000u || (magnitude == 0x7f800000u && !to->has_inf)) return sign | to->nan;
    const int biased = (int)(magnitude >> 23);
    const uint32_t fraction = magnitude & 0x7fffffu, significand = biased ? fraction | 0x800000u : fraction;
    const int emin = 2 - (1 << (to->exponent_bits - 1)), exponent = (biased ? biased : 1) - 127;
    const int lacking = 23 - to->fraction_bits;
    const int below = exponent < emin ? emin - exponent : 0; /* subnormals keep fewer bits */
    const uint32_t kept = shift_to_even(significand, lacking + below);
    /* A carry out of the fraction goes into the exponent, which is what the next binade's code is. */
    const uint32_t field = below ? 0 : (uint32_t)(exponent - emin); /* the hidden bit of kept adds the 1 */
    const uint32_t code = magnitude >= 0x7f800000u ? infinity : (field << to->fraction_bits) + kept;
    if (to->has_inf) return sign | (code > infinity ? infinity : code);
    return sign | (code >= to->nan ? to->nan : code);
}

const struct nb_narrow nb_narrow_f16 = {"f16", 5, 10, true, 0x7e00}, nb_narrow_bf16 = {"bf16", 8, 7, true, 0x7fc0},
                       nb_narrow_e5m2 = {"e5m2", 5, 2, true, 0x7e}, nb_narrow_e4m3 = {"e4m3", 4, 3, false, 0x7f};

/* Does the code a stand for what b does? NaNs are all the same. */
static bool narrow_same(uint32_t a, uint32_t b, const struct nb_narrow *f) {
    const uint32_t magnitude = (1u << (f->exponent_bits + f->fraction_bits)) - 1;
    const uint32_t infinity = ((1u << f->exponent_bits) - 1) << f->fraction_bits;
    const uint32_t first_nan = f->has_inf ? infinity + 1 : f->nan;
    if ((b & magnitude) >= first_nan) return (a & magnitude) >= first_nan;
    return a == b;
}

/* ---- the conversions ---- */

#if defined(__x86_64__)
/* AVX512-BF16's vcvtneps2bf16; the kernels do not use it. */
static __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void avx512bf16_to_bf16(const float *x,
                                                                                               uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i += 16) {
        const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
        memcpy(y + i, &rounded, sizeof rounded);
    }
}
#endif

struct conversion {
    const struct nb_narrow *format;
    char name[64];
    uint32_t needs;                               /* mask of enum nb_cpu_feature */
    bool is_ieee;                                 /* must be right on every input */
    void (*convert)(const float *x, uint16_t *y); /* NB_BATCH of them */
};
enum { MAX_CONVERSIONS = 32 };

static void f16_by_dtype(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i++) y[i] = nb_f16_encode(x[i]);
}
static void bf16_by_dtype(const float *x, uint16_t *y) {
    for (int i = 0; i < NB_BATCH; i++) y[i] = nb_bf16_encode(x[i]);
}
static void by_formats(const float *x, uint16_t *y, enum nb_number number) {
    for (int i = 0; i < NB_BATCH; i++) {
        const double v = nb_number_round(x[i], 0, number, NB_ROUND_NEAREST, 0);
        y[i] = (uint16_t)nb_number_encode(v, number);
    }
}
static void f16_by_formats(const float *x, uint16_t *y) { by_formats(x, y, NB_NUM_F16); }
static void bf16_by_formats(const float *x, uint16_t *y) { by_formats(x, y, NB_NUM_BF16); }
static void e5m2_by_formats(const float *x, uint16_t *y) { by_formats(x, y, NB_NUM_E5M2); }
static void e4m3_by_formats(const float *x, uint16_t *y) { by_formats(x, y, NB_NUM_E4M3); }

/* All, into out[MAX_CONVERSIONS]; returns how many. */
static size_t list_conversions(struct conversion *out) {
    const struct conversion plain[] = {
        {&nb_narrow_f16, "src/core/dtype.c", 0, true, f16_by_dtype},
        {&nb_narrow_f16, "src/core/dtype.c", 0, true, f16_by_formats},
        {&nb_narrow_bf16, "src/core/dtype.c", 0, true, bf16_by_dtype},
        {&nb_narrow_bf16, "src/core/dtype.c", 0, true, bf16_by_formats},
        {&nb_narrow_e5m2, "src/core/dtype.c", 0, true, e5m2_by_formats},
        {&nb_narrow_e4m3, "src/core/dtype.c", 0, true, e4m3_by_formats},
    };
    size_t n = sizeof plain / sizeof plain[0];
    memcpy(out, plain, sizeof plain);
    for (size_t i = 0; i < nb_n_simd_functions; i++) {
        const struct nb_simd_functions *w = nb_simd_functions[i];
        const struct conversion both[] = {{&nb_narrow_f16, "", w->needs, true, w->to_f16},
                                          {&nb_narrow_f16, "", w->needs, true, w->to_f16_single},
                                          {&nb_narrow_bf16, "", w->needs, true, w->to_bf16},
                                          {&nb_narrow_bf16, "", w->needs, true, w->to_bf16_single}};
        for (int k = 0; k < 4; k++) {
            out[n] = both[k];
            snprintf(out[n++].name, sizeof out[0].name, "kernels/simd/%s.h %s", w->width, k % 2 ? "single" : "vector");
        }
    }
#if defined(__x86_64__)
    out[n++] = (struct conversion){&nb_narrow_bf16, "vcvtneps2bf16 (subnormals as 0, by its specification)",
                                   NB_CPU_AVX512 | NB_CPU_AVX512BF16, false, avx512bf16_to_bf16};
#endif
    return n;
}

/* ---- the sweep ---- */

struct wrong {
    int64_t n, subnormal; /* outputs that differ; of them from subnormal floats */
    uint32_t first;       /* the first input */
};
enum { CHUNK = 1 << 20, N_INPUTS_LOG2 = 32 };

struct task {
    const struct nb_narrow *format;
    struct conversion conversions[MAX_CONVERSIONS]; /* of the format, those that run here */
    int n;
    int64_t stride, n_inputs;
    struct wrong *wrong; /* chunk by chunk, n each */
};

static void compare(const struct task *t, const struct conversion *c, const uint32_t *bits, const float *x,
                    const uint16_t *want, int n, struct wrong *wrong) {
    uint16_t got[NB_BATCH];
    c->convert(x, got);
    if (memcmp(got, want, (size_t)n * sizeof *got) == 0) return;
    for (int i = 0; i < n; i++) {
        if (narrow_same(got[i], want[i], t->format)) continue;
        if (wrong->n++ == 0) wrong->first = bits[i];
        wrong->subnormal += (bits[i] & 0x7f800000u) == 0;
    }
}

static void check_chunk(int64_t chunk, void *arg) {
    const struct task *t = arg;
    float x[NB_BATCH];
    uint32_t bits[NB_BATCH];
    uint16_t want[NB_BATCH];
    const int64_t begin = chunk * CHUNK, end = begin + CHUNK < t->n_inputs ? begin + CHUNK : t->n_inputs;
    struct wrong *wrong = &t->wrong[chunk * t->n];
    memset(wrong, 0, (size_t)t->n * sizeof *wrong);
    for (int64_t at = begin; at < end; at += NB_BATCH) {
        const int n = (int)(end - at < NB_BATCH ? end - at : NB_BATCH);
        for (int i = 0; i < NB_BATCH; i++) bits[i] = (uint32_t)((at + i) * t->stride);
        memcpy(x, bits, sizeof x);
        for (int i = 0; i < n; i++) want[i] = (uint16_t)nb_convert_by_integers(bits[i], t->format);
        for (int k = 0; k < t->n; k++) compare(t, &t->conversions[k], bits, x, want, n, &wrong[k]);
    }
}

static void add_rows(const struct task *t, int64_t done, double seconds, cJSON *rows) {
    const int64_t inputs = done * CHUNK < t->n_inputs ? done * CHUNK : t->n_inputs;
    for (int k = 0; k < t->n; k++) {
        struct wrong sum = {0};
        char reproducer[16];
        for (int64_t c = 0; c < done; c++) {
            const struct wrong *w = &t->wrong[c * t->n + k];
            if (sum.n == 0) sum.first = w->first;
            sum.n += w->n;
            sum.subnormal += w->subnormal;
        }
        snprintf(reproducer, sizeof reproducer, "0x%08x", sum.first);
        cJSON *row = nb_json_add_object(rows);
        nb_json_text(row, "format", t->format->name);
        nb_json_text(row, "function", t->conversions[k].name);
        nb_json_number(row, "inputs", (double)inputs);
        nb_json_number(row, "wrong", (double)sum.n);
        nb_json_number(row, "wrong_subnormal", (double)sum.subnormal);
        nb_json_text(row, "reproducer", sum.n ? reproducer : NULL);
        cJSON_AddBoolToObject(row, "complete", inputs == 1ll << N_INPUTS_LOG2);
        if (t->conversions[k].is_ieee) cJSON_AddBoolToObject(row, "within_limit", sum.n == 0);
        nb_json_number(row, "seconds", seconds);
    }
}

static void refuse(const struct conversion *c, const char *reason, cJSON *rows) {
    cJSON *row = nb_json_add_object(rows);
    nb_json_text(row, "format", c->format->name);
    nb_json_text(row, "function", c->name);
    nb_json_text(row, "not_here", reason);
}

static void task_init(struct task *t, const struct nb_narrow *format, const struct nb_exhaust_options *o, cJSON *rows) {
    struct conversion all[MAX_CONVERSIONS];
    const size_t n = list_conversions(all);
    *t = (struct task){.format = format, .stride = o->stride};
    t->n_inputs = ((1ll << N_INPUTS_LOG2) + o->stride - 1) / o->stride;
    for (size_t i = 0; i < n; i++) {
        if (all[i].format != format) continue;
        const char *reason = nb_cpu_refuses(all[i].needs, NB_NATIVE);
        if (!reason)
            t->conversions[t->n++] = all[i];
        else
            refuse(&all[i], reason, rows);
    }
    t->wrong = nb_alloc((uint64_t)((t->n_inputs + CHUNK - 1) / CHUNK * t->n), sizeof *t->wrong);
}

int nb_exhaust_convert(const struct nb_exhaust_options *o, cJSON *answer) {
    const struct nb_narrow *const formats[] = {&nb_narrow_f16, &nb_narrow_bf16, &nb_narrow_e5m2, &nb_narrow_e4m3};
    enum { N = sizeof formats / sizeof formats[0] };
    const double inputs = N * ceil(0x1p32 / (double)o->stride);
    cJSON *rows = nb_exhaust_begin(answer, "convert", "f32 to narrow formats", inputs, o);
    int result = 0;
    for (int f = 0; f < N && result == 0; f++) {
        struct task t;
        task_init(&t, formats[f], o, rows);
        struct nb_sweep sweep = {
            .label = formats[f]->name, .n_chunks = (t.n_inputs + CHUNK - 1) / CHUNK, .chunk = check_chunk, .arg = &t};
        result = nb_sweep_run(&sweep, o->threads);
        add_rows(&t, sweep.done, sweep.seconds, rows);
        free(t.wrong);
    }
    return result;
}
