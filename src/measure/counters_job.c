// SPDX-License-Identifier: Apache-2.0
/* The counter pass of a group: events around calls on the case's own shape, and exact instruction counts of a small call. Both see the
 * calling thread alone, so that where others take part there is no figure, but a reason. */
#include <math.h>
#include <stdio.h>

#include "src/accuracy/gradient.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/counters.h"
#include "src/measure/measure.h"
#include "src/measure/pool.h"
#include "src/measure/worker.h"

enum {
    STEP_COLS = 512,     /* the longest row that is stepped through */
    STEP_LIMIT = 100000, /* instructions; a kernel that takes more on one such row is not stepped to its end */
};

struct counted_calls {
    struct nb_pool *pool;
    const struct nb_arm *arm;
    int n_sets, next; /* cold: each call has the rows of the next set */
};
static void run_counted(void *arg) {
    struct counted_calls *c = arg;
    nb_pool_run(c->pool, c->arm->entry->kernel, &c->arm->calls[c->next]);
    c->next = (c->next + 1) % c->n_sets;
}

/* May other threads than the caller have a part in a call? The harness's have one where the call goes through the pool
 * (pooled) and is not one thread's. A library's, which open() or the first call starts, may have one if there are any:
 * how long they run says nothing on a busy machine. */
static bool others_take_part(const struct nb_entry *entry, int n_threads, bool pooled, char *reason, size_t n) {
    if (nb_kernel_is_of_program(entry->kernel)) {
        snprintf(reason, n, "the kernel runs in another process, which is not counted");
        return true;
    }
    const size_t of_harness = (size_t)n_threads - 1, all = nb_threads_others();
    const bool own = entry->kernel->flags & NB_FLAG_OWN_THREADS, has_library = own || entry->plugin;
    const size_t others = (pooled && !own ? of_harness : 0) + (has_library && all > of_harness ? all - of_harness : 0);
    if (others == 0) return false;
    snprintf(reason, n, "%zu other thread%s may take part; only the calling thread is counted", others,
             others == 1 ? "" : "s");
    return true;
}

/* One row, or for BatchNorm a few values of each channel, of at most STEP_COLS columns. */
static void shrink(struct nb_case *c) {
    struct nb_shape *s = &c->shape;
    int64_t cols = s->cols < STEP_COLS ? s->cols : STEP_COLS;
    if (c->op != NB_OP_BATCHNORM) {
        *s = (struct nb_shape){.layout = NB_ROWS, .rows = 1, .cols = cols};
    } else if (s->layout == NB_NCHW) {
        *s = (struct nb_shape){.layout = NB_NCHW, .n = 2, .c = 1, .hw = cols, .rows = 2, .cols = cols};
    } else {
        *s = (struct nb_shape){.layout = s->layout, .n = 4, .c = cols, .hw = 1, .rows = 4, .cols = cols};
    }
    snprintf(s->text, sizeof s->text, "%lldx%lld", (long long)s->rows, (long long)s->cols);
    if (c->k > cols) c->k = cols;
    snprintf(c->data, sizeof c->data, "normal");
    c->pad = 0;
    c->threads = 1;
}

static void step(const struct nb_case *c, const struct nb_entry *entry, struct nb_pool *pool, cJSON *out) {
    struct nb_case small = *c;
    struct nb_inputs in released_by(nb_inputs_release) = {0};
    struct nb_buffers b released_by(nb_buffers_release) = {0};
    struct nb_counter exact = {.name = "instructions_exact", .value = NAN};
    struct nb_call call;
    shrink(&small);
    nb_case_call(&small, &call);
    snprintf(exact.source, sizeof exact.source, "single_step %.11s", small.shape.text);
    struct nb_layout_request q = {.wants = nb_buffers_wants(&small, false),
                                  .placement = NB_PLACE_SLAB,
                                  .rows = small.shape.rows,
                                  .n_stats = small.shape.rows,
                                  .seed = 1,
                                  .poison = NB_POISON_NUMBER,
                                  .scratch_bytes = nb_kernel_scratch_bytes(entry->kernel, &call)};
    const char *refusal = nb_kernel_applicable(entry->kernel, &call);
    if (refusal) {
        snprintf(exact.reason, sizeof exact.reason, "%.30s: %.80s", small.shape.text, refusal);
    } else if (nb_inputs_init(&in, &small) == 0 && nb_saved_statistics_add(&in, &small) == 0 &&
               nb_buffers_init(&b, &in, &q) == 0) {
        nb_buffers_attach(&b, &small, &call);
        int64_t n = -1;
        nb_pool_make_ready(pool, entry->kernel);
        nb_run_in_ranges(entry->kernel, &call, 0);
        if (!others_take_part(entry, c->threads, false, exact.reason, sizeof exact.reason))
            n = nb_single_step_kernel(entry->kernel, &call, STEP_LIMIT, exact.reason, sizeof exact.reason);
        if (n >= 0) exact.value = (double)n;
    } else {
        snprintf(exact.reason, sizeof exact.reason, "no memory for the small call");
    }
    cJSON_AddItemToArray(out, nb_json_of_members(nb_counter_members, &exact));
}

/* Enough calls to fill a few milliseconds, so that what reading the counters costs is small. */
static int calls_for(struct nb_arm *arm, struct nb_pool *pool) {
    double call_s = nb_measure_quickly(arm, pool, 1e-3);
    double calls = call_s > 0 ? 4e-3 / call_s : 1;
    return calls < 1 ? 1 : calls > 10000 ? 10000 : (int)calls;
}

/* What was counted is a part of what was done. */
static void take_values(struct nb_counter *counters, size_t n, const char *reason) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(counters[i].value)) continue;
        counters[i].value = NAN;
        snprintf(counters[i].reason, sizeof counters[i].reason, "%s", reason);
    }
}

static void count_events(const struct nb_bench *bench, struct nb_arm *arm, cJSON *out) {
    struct nb_counter counters[NB_MAX_COUNTERS];
    const int calls = calls_for(arm, bench->pool);
    struct counted_calls work = {.pool = bench->pool, .arm = arm, .n_sets = bench->sets.n_of_arm};
    char shared[sizeof counters[0].reason];
    nb_pool_make_ready(bench->pool, arm->entry->kernel);
    const bool is_part = others_take_part(arm->entry, arm->c->threads, true, shared, sizeof shared);
    size_t n = nb_counters_measure(run_counted, &work, calls, counters, NB_MAX_COUNTERS - 1);
    if (is_part) take_values(counters, n, shared);
    for (size_t k = 0; k < n; k++) cJSON_AddItemToArray(out, nb_json_of_members(nb_counter_members, &counters[k]));
}

static int counters_job(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    struct nb_arm *arms freed = nb_alloc((unsigned)job->n_cases, sizeof *arms);
    struct nb_bench bench released_by(nb_bench_release) = {.arms = arms, .n = job->n_cases, .blocks = 1};
    struct nb_pool *const pool = bench.pool = nb_pool_new(job->cases[0].threads, job->cpus);
    if (!pool) return -1;
    for (int i = 0; i < job->n_cases; i++) arms[i] = (struct nb_arm){.entry = job->entries[i], .c = &job->cases[i]};
    const bool counts = !job->check_only && nb_bench_init(&bench, w) == 0;
    for (int i = 0; i < job->n_cases; i++) {
        cJSON *line = cJSON_CreateObject();
        nb_worker_at(w, i);
        nb_json_text(line, "type", "case");
        nb_json_text(line, "key", job->asked[i].key);
        cJSON *counters = cJSON_AddArrayToObject(line, "counters");
        if (counts) count_events(&bench, &arms[i], counters);
        if (job->asked[i].step) step(&job->cases[i], job->entries[i], pool, counters);
        nb_worker_say(line);
    }
    nb_worker_at(w, -1);
    nb_pool_free(pool);
    return 0;
}

const struct nb_job_type nb_counters_job = {.work = counters_job};
