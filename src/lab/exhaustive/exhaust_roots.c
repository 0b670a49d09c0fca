// SPDX-License-Identifier: Apache-2.0
/* Every significand and exponent parity, or every one of the 2^32 inputs, through each way to form 1/sqrt(x).
 *
 * [1, 4) has them all: 1/sqrt(4 x) is half of 1/sqrt(x), and every operation involved is exact under scaling by powers of two as
 * long as nothing overflows or becomes subnormal. Only --all-inputs shows what happens where that ends. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/root_variants.h"

/* ---- how wrong values of 1/sqrt(x) in f32 are, x positive and finite: error in ulp of the exact value, and whether each is correctly
 * rounded, which is decided exactly (src/lab/README.md) ---- */

/* Representable numbers between r and the correctly rounded one: 0, 1, 2, 3, 4, 5-8, 9-16, ... 2^15+1 - 2^16, more. */
enum { ROOT_BUCKETS = 18 };
/* What came instead of a positive finite number, or for an input that is none. */
enum root_outcome { ROOT_NAN, ROOT_INF, ROOT_MINUS_INF, ROOT_ZERO, ROOT_NEGATIVE, ROOT_POSITIVE, N_ROOT_OUTCOMES };

struct root_sums {
    int64_t n;                         /* inputs */
    int64_t outcomes[N_ROOT_OUTCOMES]; /* only the last takes part in what follows */
    int64_t n_misrounded;
    int64_t histogram[ROOT_BUCKETS];
    double sum_ulp;               /* signed; summed in an order that is the same everywhere */
    double max_ulp, max_relative; /* of |error| */
    uint32_t reproducer;          /* the first x with max_ulp; 0 where max_ulp is 0 */
    float reproducer_got;
};

static const char *const outcome_names[N_ROOT_OUTCOMES] = {"nan", "inf", "-inf", "zero", "negative", "positive"};

static enum root_outcome outcome_of(float r) {
    if (isnan(r)) return ROOT_NAN;
    if (isinf(r)) return r > 0 ? ROOT_INF : ROOT_MINUS_INF;
    return r > 0 ? ROOT_POSITIVE : r < 0 ? ROOT_NEGATIVE : ROOT_ZERO;
}

static int root_bucket(uint32_t distance) {
    if (distance <= 4) return (int)distance;
    const int log2_up = 32 - __builtin_clz(distance - 1); /* 5..8: 3 */
    const int bucket = 5 + log2_up - 3;
    return bucket < ROOT_BUCKETS ? bucket : ROOT_BUCKETS - 1;
}

/* 1/sqrt(x) of a positive float is a normal number of f32, so one ulp of it is 2^(e - 23), e its exponent: 1/ulp has the biased
 * exponent 1023 + 23 - e. Two roundings of a double leave 2^-28 ulp of f32. */
static double inverse_ulp(double y) { return nb_double_of((2069 - (nb_double_bits(y) >> 52)) << 52); }

/* Signed. */
static double root_error_ulp(float x, float r) {
    const double y = 1.0 / sqrt((double)x);
    return ((double)r - y) * inverse_ulp(y);
}

/* Half an ulp of f32 is bit 28 of a double's fraction. Below a power of two the borrow halves it, as it should. */
static int is_misrounded(double x, double r) {
    const uint64_t half_ulp = 1ull << 28, bits = nb_double_bits(r);
    const double down = nb_double_of(bits - half_ulp), up = nb_double_of(bits + half_ulp);
    return !(fma(down * down, x, -1.0) < 0 && fma(up * up, x, -1.0) > 0);
}

/* sums->max_ulp was raised to this by one of the n values: finds the first. */
static void root_find_reproducer(const float *x, const float *r, int n, struct root_sums *sums) {
    for (int i = 0; i < n; i++) {
        if (outcome_of(r[i]) != ROOT_POSITIVE || fabs(root_error_ulp(x[i], r[i])) != sums->max_ulp) continue;
        sums->reproducer = nb_float_bits(x[i]);
        sums->reproducer_got = r[i];
        return;
    }
}

/* Below it an error is less than half an ulp, whatever its own roundings. */
#define NEARLY_HALF (0.5 - 0x1p-20)

static void root_check(const float *x, const float *r, int n, struct root_sums *sums) {
    double lanes[8] = {0}, max_ulp = 0;
    for (int i = 0; i < n; i++) {
        const enum root_outcome outcome = outcome_of(r[i]);
        sums->outcomes[outcome]++;
        if (outcome != ROOT_POSITIVE) continue;
        const double root = sqrt((double)x[i]), y = 1.0 / root, error = (double)r[i] - y;
        const double ulps = error * inverse_ulp(y), relative = fabs(error * root);
        const uint32_t got = nb_float_bits(r[i]), want = nb_float_bits((float)y);
        lanes[i % 8] += ulps;
        sums->histogram[root_bucket(got > want ? got - want : want - got)]++;
        sums->n_misrounded += fabs(ulps) < NEARLY_HALF ? 0 : is_misrounded(x[i], r[i]);
        if (fabs(ulps) > max_ulp) max_ulp = fabs(ulps);
        if (relative > sums->max_relative) sums->max_relative = relative;
    }
    sums->n += n;
    sums->sum_ulp += ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    if (max_ulp > sums->max_ulp) {
        sums->max_ulp = max_ulp;
        root_find_reproducer(x, r, n, sums);
    }
}

/* ---- all values ---- */

static void tally(const float *r, int n, struct root_sums *sums) {
    sums->n += n;
    for (int i = 0; i < n; i++) sums->outcomes[outcome_of(r[i])]++;
}

static void merge(struct root_sums *a, const struct root_sums *b) {
    a->n += b->n;
    for (int i = 0; i < N_ROOT_OUTCOMES; i++) a->outcomes[i] += b->outcomes[i];
    a->n_misrounded += b->n_misrounded;
    for (int i = 0; i < ROOT_BUCKETS; i++) a->histogram[i] += b->histogram[i];
    a->sum_ulp += b->sum_ulp;
    if (b->max_relative > a->max_relative) a->max_relative = b->max_relative;
    if (!(b->max_ulp > a->max_ulp)) return;
    a->max_ulp = b->max_ulp;
    a->reproducer = b->reproducer;
    a->reproducer_got = b->reproducer_got;
}

/* ---- the sweep ---- */

/* Inputs whose bits follow one another. */
struct segment {
    const char *class;
    uint32_t first;
    int64_t count;
    enum root_outcome wanted; /* IEEE 754's rSqrt */
};
static const struct segment period[] = {{"[1,4)", 0x3f800000u, 0x01000000, ROOT_POSITIVE}};
static const struct segment everything[] = {
    {"normal", 0x00800000u, 0x7f000000, ROOT_POSITIVE},
    {"subnormal", 0x00000001u, 0x007fffff, ROOT_POSITIVE},
    {"zero", 0x00000000u, 1, ROOT_INF},
    {"-zero", 0x80000000u, 1, ROOT_MINUS_INF},
    {"inf", 0x7f800000u, 1, ROOT_ZERO},
    {"negative", 0x80000001u, 0x7f800000, ROOT_NAN},
    {"nan", 0x7f800001u, 0x007fffff, ROOT_NAN},
    {"-nan", 0xff800001u, 0x007fffff, ROOT_NAN},
};

enum { CHUNK = 1 << 20, MAX_SEGMENTS = 8 };

struct task {
    void (*fill)(const float *x, float *r);
    const struct segment *segments;
    int n_segments;
    int64_t stride, first_chunk[MAX_SEGMENTS + 1];
    struct root_sums *sums; /* one for each chunk */
};

static int64_t inputs_of(const struct segment *s, int64_t stride) { return (s->count + stride - 1) / stride; }

static void check_chunk(int64_t chunk, void *arg) {
    const struct task *t = arg;
    float x[NB_BATCH], r[NB_BATCH];
    uint32_t bits[NB_BATCH];
    struct root_sums sums = {0};
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
        if (segment->wanted == ROOT_POSITIVE)
            root_check(x, r, here, &sums);
        else
            tally(r, here, &sums);
    }
    t->sums[chunk] = sums;
}

static void task_init(struct task *t, const struct nb_root_variant *v, const struct nb_exhaust_options *o) {
    *t = (struct task){.fill = v->fill, .stride = o->stride};
    t->segments = o->all_inputs ? everything : period;
    t->n_segments = o->all_inputs ? (int)(sizeof everything / sizeof everything[0]) : 1;
    for (int s = 0; s < t->n_segments; s++)
        t->first_chunk[s + 1] = t->first_chunk[s] + (inputs_of(&t->segments[s], o->stride) + CHUNK - 1) / CHUNK;
    t->sums = nb_alloc((uint64_t)t->first_chunk[t->n_segments], sizeof *t->sums);
}

/* ---- the answer ---- */

static void add_histogram(cJSON *row, const struct root_sums *sums) {
    cJSON *histogram = cJSON_AddObjectToObject(row, "histogram");
    for (int i = 0; i < ROOT_BUCKETS; i++) {
        char name[32];
        if (sums->histogram[i] == 0) continue;
        if (i < 5)
            snprintf(name, sizeof name, "%d", i);
        else if (i < ROOT_BUCKETS - 1)
            snprintf(name, sizeof name, "%d-%d", (1 << (i - 3)) + 1, 1 << (i - 2));
        else
            snprintf(name, sizeof name, ">%d", 1 << (i - 3));
        nb_json_number(histogram, name, (double)sums->histogram[i]);
    }
}

static void add_outcomes(cJSON *row, const struct root_sums *sums) {
    cJSON *outcomes = cJSON_AddObjectToObject(row, "outcomes");
    for (int i = 0; i < N_ROOT_OUTCOMES; i++)
        if (sums->outcomes[i]) nb_json_number(outcomes, outcome_names[i], (double)sums->outcomes[i]);
}

static void add_errors(cJSON *row, const struct root_sums *sums, const struct nb_root_variant *v, bool is_promised) {
    const int64_t n = sums->outcomes[ROOT_POSITIVE];
    char reproducer[16];
    const float x = nb_float_of(sums->reproducer);
    snprintf(reproducer, sizeof reproducer, "0x%08x", sums->reproducer);
    nb_json_number(row, "max_ulp", n ? sums->max_ulp : NAN);
    nb_json_text(row, "reproducer", n && sums->max_ulp > 0 ? reproducer : NULL);
    nb_json_exact(row, "reproducer_x", x);
    nb_json_exact(row, "reproducer_got", sums->reproducer_got);
    nb_json_number(row, "max_relative", n ? sums->max_relative : NAN);
    nb_json_number(row, "max_relative_log2", n ? log2(sums->max_relative) : NAN);
    nb_json_number(row, "bias_ulp", n ? sums->sum_ulp / (double)n : NAN);
    nb_json_number(row, "misrounded", (double)sums->n_misrounded);
    nb_json_number(row, "misrounded_share", n ? (double)sums->n_misrounded / (double)n : NAN);
    add_histogram(row, sums);
    if (!is_promised || v->relative_limit == 0) return;
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
    v->fill(x, r);
    cJSON *values = cJSON_AddObjectToObject(row, "special");
    for (int i = 0; i < N; i++) {
        char text[32];
        snprintf(text, sizeof text, isnan(r[i]) ? "nan" : "%.9g", (double)r[i]);
        nb_json_text(values, specials[i].name, text);
    }
}

static cJSON *add_row(cJSON *rows, const struct nb_root_variant *v) {
    cJSON *row = nb_json_add_object(rows);
    nb_json_text(row, "variant", v->name);
    nb_json_text(row, "formula", v->formula);
    return row;
}

/* The chunks done of each segment, put together; a segment that was not begun has no row. */
static void add_rows(const struct task *t, int64_t done, const struct nb_root_variant *v, double seconds, cJSON *rows) {
    for (int s = 0; s < t->n_segments; s++) {
        const struct segment *segment = &t->segments[s];
        struct root_sums sums = {0};
        for (int64_t c = t->first_chunk[s]; c < t->first_chunk[s + 1] && c < done; c++) merge(&sums, &t->sums[c]);
        if (sums.n == 0) continue;
        cJSON *row = add_row(rows, v);
        nb_json_text(row, "class", segment->class);
        nb_json_number(row, "inputs", (double)sums.n);
        cJSON_AddBoolToObject(row, "complete", sums.n == segment->count);
        nb_json_number(row, "other_kind", (double)(sums.n - sums.outcomes[segment->wanted]));
        if (t->n_segments > 1) add_outcomes(row, &sums);
        const bool is_subnormal = strcmp(segment->class, "subnormal") == 0;
        /* All normal numbers of f32 are asked, and f16 holds few of them. */
        const bool is_promised = !is_subnormal && (t->n_segments == 1 || !(v->needs & NB_CPU_AVX512FP16));
        if (segment->wanted == ROOT_POSITIVE) add_errors(row, &sums, v, is_promised);
        if (s == 0) add_special_values(row, v);
        nb_json_number(row, "seconds", s == 0 ? seconds : NAN);
    }
}

static int run_variant(const struct nb_root_variant *v, const struct nb_exhaust_options *o, cJSON *rows) {
    struct task t;
    task_init(&t, v, o);
    struct nb_sweep sweep = {
        .label = v->name, .n_chunks = t.first_chunk[t.n_segments], .chunk = check_chunk, .arg = &t};
    const int result = nb_sweep_run(&sweep, o->threads);
    add_rows(&t, sweep.done, v, sweep.seconds, rows);
    free(t.sums);
    return result;
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
        return nb_error("--variant %s: no such way to form 1/sqrt; %s%s%s`normbench stress --help` lists them",
                        o->names[i], nearest ? "did you mean '" : "", nearest ? nearest : "", nearest ? "'? " : "");
    }
    return 0;
}

int nb_exhaust_roots(const struct nb_exhaust_options *o, cJSON *answer) {
    if (check_names(o) != 0) return -1;
    double inputs = 0;
    for (size_t i = 0; i < nb_n_root_variants; i++)
        if (is_wanted(&nb_root_variants[i], o) && !nb_root_variant_refuses(&nb_root_variants[i]))
            inputs += ceil((o->all_inputs ? 0x1p32 : 0x1p24) / (double)o->stride);
    cJSON *rows = nb_exhaust_begin(answer, "roots", "1/sqrt(x) in f32", inputs, o);
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
