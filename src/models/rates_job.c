// SPDX-License-Identifier: Apache-2.0
/* One launch of the rates (rates.h), in a worker process:
 *
 *   options  {"products":[{"rows","inner","cols","hot"}],"check"?:{likewise}}     as they are timed
 *   answer   {"status":"ok","cpu":0,"products":[samples],"copies":[{"bytes",samples}],"call":samples,"check"?:samples}
 *
 * samples: {"sample_ns":[..],"preempted":[..],"probe":[..]} as an arm of a launch has them (src/measure/journal.h), of one product, of a byte of a copy, of an
 * operation. A product's second matrix is taken from another place of an arena larger than the caches each time, as the weights of a model
 * lie, unless it is hot; the first one and the result stay where they are. One row is a product of a matrix and a vector, as frameworks
 * launch it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/worker.h"
#include "src/models/blas.h"
#include "src/models/rates.h"

enum { SAMPLES = 9, MOST_CALLS = 10000 };
static const double SAMPLE_FLOPS = 2e7, SAMPLE_BYTES = 4 << 20;

struct sampled {
    double ns[SAMPLES], probe[SAMPLES];
    bool preempted[SAMPLES];
};

struct task { /* something that is called */
    void (*call)(struct task *t);
    double work; /* flops of a product, bytes of a copy; for the played clock */
    const char *name;
    int calls;
    const struct nb_blas *blas;
    const struct arena {
        float *floats;
        int64_t n;
    } * arena;
    int64_t rows, inner, cols, at; /* at: of the second matrix in the arena */
    bool hot;
    float *a, *c;
    const struct nb_kernel *kernel; /* of an operation */
    struct nb_call *kernel_call;
};

static void multiply(struct task *t) {
    const int64_t size = t->inner * t->cols;
    const float *b = t->arena->floats + t->at;
    if (t->rows == 1)
        t->blas->sgemv(NB_BLAS_ROW_MAJOR, NB_BLAS_AS_STORED, (int)t->cols, (int)t->inner, 1, b, (int)t->inner, t->a, 1,
                       0, t->c, 1);
    else
        t->blas->sgemm(NB_BLAS_ROW_MAJOR, NB_BLAS_AS_STORED, NB_BLAS_AS_STORED, (int)t->rows, (int)t->cols,
                       (int)t->inner, 1, t->a, (int)t->inner, b, (int)t->cols, 0, t->c, (int)t->cols);
    if (!t->hot) t->at = t->at + 2 * size <= t->arena->n ? t->at + size : 0;
}

/* Part of a copy of t->cols floats, and the next one the next time. */
static void copy(struct task *t) {
    const int64_t n = (int64_t)(t->work / 2 / sizeof(float));
    memcpy(t->arena->floats + t->arena->n / 2 + t->at, t->arena->floats + t->at, (size_t)n * sizeof(float));
    __asm__ volatile("" : : "r"(t->arena->floats) : "memory");
    t->at = t->at + 2 * n <= t->cols ? t->at + n : 0;
}

static void call_kernel(struct task *t) { nb_run_in_ranges(t->kernel, t->kernel_call, 0); }

/* The first call, untimed, touches pages and lets the library settle. */
static void take_samples(struct nb_workplace *w, struct task *t, struct sampled *out) {
    t->call(t);
    for (int s = 0; s < SAMPLES; s++) {
        nb_worker_at(w, -1);
        const struct nb_thread_usage before = nb_thread_usage();
        const double probe = nb_core_probe(), start = nb_now_s();
        for (int i = 0; i < t->calls; i++) t->call(t);
        nb_worked(t->name, NULL, t->calls, t->work);
        out->ns[s] = 1e9 * (nb_now_s() - start) / t->calls;
        out->probe[s] = fmax(probe, nb_core_probe());
        const struct nb_thread_usage after = nb_thread_usage();
        out->preempted[s] = after.involuntary != before.involuntary || after.cpu != before.cpu;
    }
}

static void add_samples(cJSON *json, const struct sampled *s, double divisor) {
    cJSON *ns = cJSON_AddArrayToObject(json, "sample_ns"), *preempted = cJSON_AddArrayToObject(json, "preempted"),
          *probe = cJSON_AddArrayToObject(json, "probe");
    for (int i = 0; i < SAMPLES; i++) {
        cJSON_AddItemToArray(ns, cJSON_CreateNumber(s->ns[i] / divisor));
        cJSON_AddItemToArray(probe, cJSON_CreateNumber(s->probe[i]));
        if (s->preempted[i]) cJSON_AddItemToArray(preempted, cJSON_CreateNumber(i));
    }
}

/* Numbers whose products neither overflow nor vanish. */
static void fill(float *values, int64_t n) {
    enum { PATTERN = 4096 };
    uint64_t state = 1;
    for (int64_t i = 0; i < n && i < PATTERN; i++) values[i] = (float)(nb_random_next(&state) >> 40) * 0x1p-24f - 0.5f;
    for (int64_t i = PATTERN; i < n; i += PATTERN)
        memcpy(values + i, values, sizeof *values * (size_t)(n - i < PATTERN ? n - i : PATTERN));
}

static float *filled(int64_t n) {
    float *values = nb_alloc((unsigned long long)n, sizeof *values);
    fill(values, n);
    return values;
}

/* ---- products ---- */

static void time_product(struct nb_workplace *w, struct task t, cJSON *out) {
    struct sampled s;
    const double flops = 2.0 * (double)t.rows * (double)t.inner * (double)t.cols;
    t.call = multiply;
    t.name = "product";
    t.work = flops;
    t.calls = (int)fmin(MOST_CALLS, fmax(1, ceil(SAMPLE_FLOPS / flops)));
    t.a = filled(t.rows * t.inner);
    t.c = filled(t.rows * t.cols);
    take_samples(w, &t, &s);
    add_samples(out, &s, 1);
    free(t.a);
    free(t.c);
}

static struct task product_of(const cJSON *json, const struct nb_blas *blas, const struct arena *arena) {
    return (struct task){.blas = blas,
                         .arena = arena,
                         .rows = nb_json_get_index(json, "rows"),
                         .inner = nb_json_get_index(json, "inner"),
                         .cols = nb_json_get_index(json, "cols"),
                         .hot = nb_json_get_bool(json, "hot")};
}

static bool is_product(const struct task *t) {
    return t->rows > 0 && t->inner > 0 && t->cols > 0 && t->inner * t->cols <= NB_TIMED_FLOATS &&
           t->rows * t->inner <= NB_TIMED_FLOATS && t->rows * t->cols <= NB_TIMED_FLOATS;
}

/* Larger than the last cache, where that is not out of proportion: what the program is told of it may be many guests'. */
static int64_t arena_floats(const cJSON *products) {
    const cJSON *json;
    cJSON_ArrayForEach(json, products) {
        const struct task t = product_of(json, NULL, NULL);
        if (!is_product(&t)) return -1;
    }
    return (int64_t)nb_copy_bytes(NB_N_COPY_SIZES - 1) / (int64_t)sizeof(float);
}

static void time_products(struct nb_workplace *w, const struct nb_blas *blas, const struct arena *arena,
                          cJSON *answer) {
    const cJSON *products = nb_json_get(w->job.options, "products"), *check = nb_json_get(w->job.options, "check"),
                *json;
    cJSON *list = cJSON_AddArrayToObject(answer, "products");
    cJSON_ArrayForEach(json, products) { time_product(w, product_of(json, blas, arena), nb_json_add_object(list)); }
    const struct task t = product_of(check, blas, arena);
    if (check && is_product(&t)) time_product(w, t, cJSON_AddObjectToObject(answer, "check"));
}

/* ---- bytes, and a call ---- */

double nb_copy_bytes(int i) { return (double)(32 << 10) * pow(4, i); }

static void time_copies(struct nb_workplace *w, const struct arena *arena, cJSON *answer) {
    cJSON *list = cJSON_AddArrayToObject(answer, "copies");
    for (int i = 0; i < NB_N_COPY_SIZES; i++) {
        struct sampled s;
        const double bytes = nb_copy_bytes(i);
        struct task t = {.call = copy, .name = "memcpy", .work = fmin(bytes, SAMPLE_BYTES), .arena = arena};
        t.cols = (int64_t)(bytes / 2 / sizeof(float));
        t.calls = (int)ceil(SAMPLE_BYTES / t.work);
        memcpy(arena->floats + arena->n / 2, arena->floats, (size_t)bytes / 2); /* into the caches, or past them */
        take_samples(w, &t, &s);
        cJSON *json = nb_json_add_object(list);
        nb_json_number(json, "bytes", bytes);
        add_samples(json, &s, t.work);
    }
}

/* An operation of a composed kernel on a row of few numbers, where its work is next to nothing. */
static void time_call(struct nb_workplace *w, cJSON *answer) {
    enum { CALLS = 500, COLS = 16 };
    const struct nb_entry *e = nb_registry_widest("rmsnorm_composed", NB_F32);
    _Alignas(64) float scratch[1 << 12];
    float x[COLS], y[COLS], gamma[COLS], rstd;
    struct sampled s;
    struct nb_call call = {.struct_size = sizeof call,
                           .rows = 1,
                           .cols = COLS,
                           .x_stride = COLS,
                           .y_stride = COLS,
                           .n_threads = 1,
                           .eps = 1e-5,
                           .formula = {.struct_size = sizeof call.formula, .affine = NB_AFFINE_GAMMA},
                           .x = x,
                           .y = y,
                           .gamma = gamma,
                           .rstd = &rstd,
                           .scratch = scratch};
    fill(x, COLS);
    fill(gamma, COLS);
    if (!e || nb_kernel_scratch_bytes(e->kernel, &call) > sizeof scratch) return;
    struct task t = {
        .call = call_kernel, .name = "operation", .calls = CALLS, .kernel = e->kernel, .kernel_call = &call};
    take_samples(w, &t, &s);
    add_samples(cJSON_AddObjectToObject(answer, "call"), &s, nb_kernel_n_phases(e->kernel, &call));
}

static int rates_job(struct nb_workplace *w) {
    const int64_t n = arena_floats(nb_json_get(w->job.options, "products"));
    if (n < 0) return nb_error("rates: a product that cannot be timed");
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* so that it starts none */
    const struct nb_blas *blas = nb_blas_open(1);
    if (!blas) {
        nb_worker_say_skipped(nb_blas_lacks());
        return 0;
    }
    const struct arena arena = {filled(n), n};
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "type", "answer");
    nb_json_text(answer, "status", "ok");
    nb_json_number(answer, "cpu", w->job.n_cpus > 0 ? w->job.cpus[0] : 0);
    time_call(w, answer);
    time_copies(w, &arena, answer);
    time_products(w, blas, &arena, answer);
    nb_worker_say(answer);
    free(arena.floats);
    return 0;
}

const struct nb_job_type nb_rates_job = {.work = rates_job, .own_inputs = true, .no_cases = true};
