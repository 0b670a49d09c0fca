// SPDX-License-Identifier: Apache-2.0
/* Every significand and exponent parity, or every one of the 2^32 inputs, through each way to form 1/sqrt(x).
 *
 * [1, 4) has them all: 1/sqrt(4 x) is half of 1/sqrt(x), and every operation involved is exact under scaling by powers of two as
 * long as nothing overflows or becomes subnormal. Only --all-inputs shows what happens where that ends. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/root_check.h"
#include "src/lab/exhaustive/root_variants.h"

/* Inputs whose bits follow one another. */
struct segment {
    const char *class;
    uint32_t first;
    int64_t count;
    enum nb_root_outcome wanted; /* IEEE 754's rSqrt */
};
static const struct segment period[] = {{"[1,4)", 0x3f800000u, 0x01000000, NB_ROOT_POSITIVE}};
static const struct segment everything[] = {
    {"normal", 0x00800000u, 0x7f000000, NB_ROOT_POSITIVE},
    {"subnormal", 0x00000001u, 0x007fffff, NB_ROOT_POSITIVE},
    {"zero", 0x00000000u, 1, NB_ROOT_INF},
    {"-zero", 0x80000000u, 1, NB_ROOT_MINUS_INF},
    {"inf", 0x7f800000u, 1, NB_ROOT_ZERO},
    {"negative", 0x80000001u, 0x7f800000, NB_ROOT_NAN},
    {"nan", 0x7f800001u, 0x007fffff, NB_ROOT_NAN},
    {"-nan", 0xff800001u, 0x007fffff, NB_ROOT_NAN},
};

enum { CHUNK = 1 << 20, MAX_SEGMENTS = 8 };

struct task {
    nb_root_fill fill;
    const struct segment *segments;
    int n_segments;
    int64_t stride, first_chunk[MAX_SEGMENTS + 1];
    struct nb_root_sums *sums; /* one for each chunk */
};

static int64_t inputs_of(const struct segment *s, int64_t stride) { return (s->count + stride - 1) / stride; }

static void check_chunk(int64_t chunk, void *arg) {
    const struct task *t = arg;
    float x[NB_BATCH], r[NB_BATCH];
    uint32_t bits[NB_BATCH];
    struct nb_root_sums sums = {0};
    int s = 0;
    while (chunk >= t->first_chunk[s + 1]) s++;
    const struct segment *segment = &t->segments[s];
    const int64_t n = inputs_of(segment, t->stride), begin = (chunk - t->first_chunk[s]) * CHUNK;
    const int64_t end = begin + CHUNK < n ? begin + CHUNK : n;
    const uint32_t stride = (uint32_t)t->stride;
    for (int64_t at = begin; at < end; at += NB_BATCH) {
        const int here = (int)(end - at < NB_BATCH ? end - at : NB_BATCH);
        const uint32_t base = segment->first + (uint32_t)at * stride;
        for (uint32_t i = 0; i < NB_BATCH; i++) bits[i] = base + i * stride;
        for (int i = here; i < NB_BATCH; i++) bits[i] = 0x3f800000u;
        memcpy(x, bits, sizeof x);
        t->fill(x, r);
        if (segment->wanted == NB_ROOT_POSITIVE)
            nb_root_check(x, r, here, &sums);
        else
            nb_root_tally(r, here, &sums);
    }
    t->sums[chunk] = sums;
}

static void task_init(struct task *t, const struct nb_root_variant *v, const struct nb_exhaust_options *o) {
    *t = (struct task){.fill = nb_root_variant_fill(v), .stride = o->stride};
    t->segments = o->all_inputs ? everything : period;
    t->n_segments = o->all_inputs ? (int)(sizeof everything / sizeof everything[0]) : 1;
    for (int s = 0; s < t->n_segments; s++)
        t->first_chunk[s + 1] = t->first_chunk[s] + (inputs_of(&t->segments[s], o->stride) + CHUNK - 1) / CHUNK;
    t->sums = nb_alloc((uint64_t)t->first_chunk[t->n_segments], sizeof *t->sums);
}

/* ---- the answer ---- */

static void add_histogram(cJSON *row, const struct nb_root_sums *sums) {
    cJSON *histogram = cJSON_AddObjectToObject(row, "histogram");
    for (int i = 0; i < NB_ROOT_BUCKETS; i++) {
        char name[32];
        if (sums->histogram[i] == 0) continue;
        if (i < 5)
            snprintf(name, sizeof name, "%d", i);
        else if (i < NB_ROOT_BUCKETS - 1)
            snprintf(name, sizeof name, "%d-%d", (1 << (i - 3)) + 1, 1 << (i - 2));
        else
            snprintf(name, sizeof name, ">%d", 1 << (i - 3));
        nb_json_number(histogram, name, (double)sums->histogram[i]);
    }
}

static void add_outcomes(cJSON *row, const struct nb_root_sums *sums) {
    cJSON *outcomes = cJSON_AddObjectToObject(row, "outcomes");
    for (int i = 0; i < NB_N_ROOT_OUTCOMES; i++)
        if (sums->outcomes[i]) nb_json_number(outcomes, nb_root_outcome_names[i], (double)sums->outcomes[i]);
}

static void add_errors(cJSON *row, const struct nb_root_sums *sums, const struct nb_root_variant *v, bool is_normal) {
    const int64_t n = sums->outcomes[NB_ROOT_POSITIVE];
    char witness[16];
    float x;
    memcpy(&x, &sums->witness, sizeof x);
    snprintf(witness, sizeof witness, "0x%08x", sums->witness);
    nb_json_number(row, "max_ulp", n ? sums->max_ulp : NAN);
    nb_json_text(row, "witness", n && sums->max_ulp > 0 ? witness : NULL);
    nb_json_exact(row, "witness_x", x);
    nb_json_exact(row, "witness_got", sums->witness_got);
    nb_json_number(row, "max_relative", n ? sums->max_relative : NAN);
    nb_json_number(row, "max_relative_log2", n ? log2(sums->max_relative) : NAN);
    nb_json_number(row, "bias_ulp", n ? sums->sum_ulp / (double)n : NAN);
    nb_json_number(row, "misrounded", (double)sums->n_misrounded);
    nb_json_number(row, "misrounded_share", n ? (double)sums->n_misrounded / (double)n : NAN);
    add_histogram(row, sums);
    if (!is_normal || v->relative_limit == 0) return;
    nb_json_number(row, "relative_limit", v->relative_limit);
    cJSON_AddBoolToObject(row, "within_limit", sums->max_relative <= v->relative_limit);
}

/* Inputs at the ends of the classes. */
static void add_special_values(cJSON *row, const struct nb_root_variant *v) {
    static const struct {
        const char *name;
        uint32_t bits;
    } specials[] = {{"0", 0},
                    {"-0", 0x80000000u},
                    {"inf", 0x7f800000u},
                    {"nan", 0x7fc00000u},
                    {"-1", 0xbf800000u},
                    {"min_subnormal", 1},
                    {"max_subnormal", 0x007fffffu},
                    {"min_normal", 0x00800000u},
                    {"max", 0x7f7fffffu}};
    enum { N = sizeof specials / sizeof specials[0] };
    float x[NB_BATCH], r[NB_BATCH];
    for (int i = 0; i < NB_BATCH; i++) memcpy(&x[i], i < N ? &specials[i].bits : &(uint32_t){0x3f800000u}, 4);
    nb_root_variant_fill(v)(x, r);
    cJSON *values = cJSON_AddObjectToObject(row, "special");
    for (int i = 0; i < N; i++) {
        char text[32];
        snprintf(text, sizeof text, isnan(r[i]) ? "nan" : "%.9g", (double)r[i]);
        nb_json_text(values, specials[i].name, text);
    }
}

static cJSON *add_row(cJSON *rows, const struct nb_root_variant *v) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(rows, row);
    nb_json_text(row, "variant", v->name);
    nb_json_text(row, "formula", v->formula);
    return row;
}

/* The chunks done of each segment, put together; a segment that was not begun has no row. */
static void add_rows(const struct task *t, int64_t done, const struct nb_root_variant *v, double seconds, cJSON *rows) {
    for (int s = 0; s < t->n_segments; s++) {
        const struct segment *segment = &t->segments[s];
        struct nb_root_sums sums = {0};
        for (int64_t c = t->first_chunk[s]; c < t->first_chunk[s + 1] && c < done; c++)
            nb_root_merge(&sums, &t->sums[c]);
        if (sums.n == 0) continue;
        cJSON *row = add_row(rows, v);
        nb_json_text(row, "class", segment->class);
        nb_json_number(row, "inputs", (double)sums.n);
        cJSON_AddBoolToObject(row, "complete", sums.n == segment->count);
        nb_json_number(row, "other_kind", (double)(sums.n - sums.outcomes[segment->wanted]));
        if (t->n_segments > 1) add_outcomes(row, &sums);
        const bool is_subnormal = strcmp(segment->class, "subnormal") == 0;
        if (segment->wanted == NB_ROOT_POSITIVE) add_errors(row, &sums, v, !is_subnormal);
        if (s == 0) add_special_values(row, v);
        nb_json_number(row, "seconds", s == 0 ? seconds : NAN);
    }
}

static int run_variant(const struct nb_root_variant *v, const struct nb_exhaust_options *o, cJSON *rows) {
    struct task t;
    int64_t done = 0;
    task_init(&t, v, o);
    const struct nb_sweep sweep = {v->name, t.first_chunk[t.n_segments], check_chunk, &t};
    const double start_s = nb_now_s();
    const int result = nb_sweep_run(&sweep, o->threads, &done);
    add_rows(&t, done, v, nb_now_s() - start_s, rows);
    free(t.sums);
    return result;
}

static double estimate(const struct nb_root_variant *v, const struct nb_exhaust_options *o, double *inputs) {
    struct task t;
    task_init(&t, v, o);
    for (int s = 0; s < t.n_segments; s++) *inputs += (double)inputs_of(&t.segments[s], o->stride);
    const struct nb_sweep sweep = {v->name, t.first_chunk[t.n_segments], check_chunk, &t};
    const double seconds = nb_sweep_estimate(&sweep, o->threads);
    free(t.sums);
    return seconds;
}

static bool is_wanted(const struct nb_root_variant *v, const struct nb_exhaust_options *o) {
    if (o->n_names == 0) return true;
    for (int i = 0; i < o->n_names; i++)
        if (strcmp(o->names[i], "all") == 0 || strcmp(o->names[i], v->name) == 0) return true;
    return false;
}

static int check_names(const struct nb_exhaust_options *o) {
    const char *names[64];
    for (size_t k = 0; k < nb_n_root_variants; k++) names[k] = nb_root_variants[k].name;
    for (int i = 0; i < o->n_names; i++) {
        if (strcmp(o->names[i], "all") == 0 || nb_root_variant_find(o->names[i])) continue;
        const char *nearest = nb_nearest(o->names[i], names, nb_n_root_variants);
        return nb_error("--variant %s: no such way to form 1/sqrt; %s%s%s`normbench exhaustive --help` lists them",
                        o->names[i], nearest ? "did you mean '" : "", nearest ? nearest : "", nearest ? "'? " : "");
    }
    return 0;
}

int nb_exhaust_rsqrt(const struct nb_exhaust_options *o, cJSON *answer) {
    if (check_names(o) != 0) return -1;
    cJSON *rows = nb_exhaust_answer(answer, "rsqrt", o);
    double seconds = 0, inputs = 0;
    for (size_t i = 0; i < nb_n_root_variants; i++)
        if (is_wanted(&nb_root_variants[i], o) && !nb_root_variant_refuses(&nb_root_variants[i]))
            seconds += estimate(&nb_root_variants[i], o, &inputs);
    nb_exhaust_announce("1/sqrt(x) in f32", inputs, seconds, o);
    int result = 0;
    for (size_t i = 0; i < nb_n_root_variants && result == 0; i++) {
        const struct nb_root_variant *v = &nb_root_variants[i];
        if (!is_wanted(v, o)) continue;
        const char *reason = nb_root_variant_refuses(v);
        if (reason)
            nb_json_text(add_row(rows, v), "not_here", reason);
        else
            result = run_variant(v, o, rows);
    }
    return result;
}
