// SPDX-License-Identifier: Apache-2.0
/* Functions that are no kernels, in the worker: each arm has a state of its own from its own build, and is timed as a kernel of one row
 * would be (src/measure/measure.h). Where states come to lie is drawn anew in each launch: the arms are set up in random order, with
 * blocks of random size between them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/function.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/gate/gate.h"
#include "src/measure/counters.h"
#include "src/measure/pool.h"
#include "src/measure/worker.h"

enum { STEP_LIMIT = 100000, MOST_GAP = 1 << 16, MOST_BYTES = 1 << 30, SPOT = 64 };

struct subject {
    const char *file;
    void *functions[NB_N_FUNCTION_ROLES]; /* null: the build has none */
    void *state;
    unsigned char *expected; /* its bytes, as the first call left them; null: it has none to compare */
    size_t n_expected, spoilt;
    uint64_t random;
};

/* One worker's subjects: as many as arms. */
struct bench {
    struct nb_workplace *w;
    struct subject subjects[NB_GATE_ARMS];
    void *gaps[NB_GATE_ARMS];
    int n;
};

static void call(const struct subject *s) { ((nb_function_timed *)s->functions[NB_FUNCTION_TIMED])(s->state); }

static const unsigned char *bytes_of(const struct subject *s, size_t *n) {
    *n = 0;
    return ((nb_function_bytes *)s->functions[NB_FUNCTION_BYTES])(s->state, n);
}

/* ---- from the files to states ----------------------------------------------------------------------------------------------------- */

/* The job's file of an arm: "candidate:parse" is of .../candidate.so. */
static const char *file_of(const struct nb_job *job, const char *arm) {
    const size_t len = strcspn(arm, ":");
    for (int i = 0; i < job->n_plugins; i++) {
        const char *slash = strrchr(job->plugins[i], '/'), *name = slash ? slash + 1 : job->plugins[i];
        if (strncmp(name, arm, len) == 0 && strcmp(name + len, ".so") == 0) return job->plugins[i];
    }
    return NULL;
}

static int find_functions(struct subject *s, const struct nb_job *job, int arm) {
    const cJSON *names = nb_json_get(job->options, "names");
    const char *key = cJSON_GetStringValue(cJSON_GetArrayItem(nb_json_get(job->options, "arms"), arm));
    const char *file = key ? file_of(job, key) : NULL;
    s->file = file;
    void *handle = file ? nb_object_open(file) : NULL;
    for (int role = 0; role < NB_N_FUNCTION_ROLES && handle; role++) {
        const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(names, role));
        if (name) s->functions[role] = nb_function_find(handle, file, name, (enum nb_function_role)role);
    }
    return s->functions[NB_FUNCTION_TIMED] ? 0 : nb_error("%s: cannot be timed", key ? key : "an arm without a name");
}

static void set_up(struct bench *b, uint64_t seed) {
    int order[NB_GATE_ARMS];
    for (int i = 0; i < b->n; i++) order[i] = i;
    for (int i = b->n - 1; i > 0; i--) {
        const int j = (int)(nb_random_next(&seed) % (uint64_t)(i + 1)), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (int i = 0; i < b->n; i++) {
        struct subject *s = &b->subjects[order[i]];
        b->gaps[i] = nb_alloc(1 + (size_t)(nb_random_next(&seed) % MOST_GAP), 1);
        nb_worker_at(b->w, order[i]);
        if (s->functions[NB_FUNCTION_SETUP]) s->state = ((nb_function_setup *)s->functions[NB_FUNCTION_SETUP])();
        s->random = nb_random_next(&seed) | 1;
    }
}

static void tear_down(struct bench *b) {
    for (int i = 0; i < b->n; i++) {
        const struct subject *s = &b->subjects[i];
        nb_worker_at(b->w, i);
        if (s->functions[NB_FUNCTION_TEARDOWN]) ((nb_function_teardown *)s->functions[NB_FUNCTION_TEARDOWN])(s->state);
        free(s->expected);
        free(b->gaps[i]);
    }
    nb_worker_at(b->w, -1);
}

/* ---- what a call computes ------------------------------------------------------------------------------------------------------------- */

static void keep_bytes(struct subject *s) {
    if (!s->functions[NB_FUNCTION_BYTES]) return;
    const unsigned char *bytes = bytes_of(s, &s->n_expected);
    if (s->n_expected > MOST_BYTES) return; /* examine() says so */
    s->expected = nb_alloc(s->n_expected + 1, 1);
    if (bytes) memcpy(s->expected, bytes, s->n_expected);
    if (!bytes) s->n_expected = 0;
}

/* Where the state's bytes differ from those; -1: nowhere. */
static int64_t differs_at(const struct subject *s, const unsigned char *expected, size_t n_expected) {
    size_t n;
    const unsigned char *bytes = bytes_of(s, &n);
    if (!bytes) n = 0;
    const size_t least = n < n_expected ? n : n_expected;
    for (size_t i = 0; i < least; i++)
        if (bytes[i] != expected[i]) return (int64_t)i;
    return n == n_expected ? -1 : (int64_t)least;
}

/* A random byte in the output, by the kernel: where memory may not be written it fails, and a store would end the process. By the system
 * call itself, since the C library's function may store from here; without a file, which the code under test could close. */
static void spoil(struct subject *s) {
    size_t n;
    const unsigned char *bytes = s->expected && s->n_expected > 0 ? bytes_of(s, &n) : NULL;
    if (!bytes || n == 0) return;
    s->spoilt = (size_t)(nb_random_next(&s->random) % n);
    if (syscall(SYS_getrandom, bytes + s->spoilt, 1, 0) != 1) s->spoilt = 0;
}

/* Are the bytes about the spoilt one as they were? */
static bool is_mended(const struct subject *s) {
    size_t n;
    const unsigned char *bytes = s->expected && s->n_expected > 0 ? bytes_of(s, &n) : NULL;
    if (!s->expected || s->n_expected == 0) return true;
    const size_t begin = s->spoilt > SPOT / 2 ? s->spoilt - SPOT / 2 : 0;
    const size_t end = s->n_expected - begin > SPOT ? begin + SPOT : s->n_expected;
    return bytes && n == s->n_expected && memcmp(bytes + begin, s->expected + begin, end - begin) == 0;
}

/* By the baseline's own check, so that a change cannot acquit itself. */
static int check(const struct bench *b, const struct subject *s) {
    nb_function_check *const check_baseline = (nb_function_check *)b->subjects[0].functions[NB_FUNCTION_CHECK];
    return check_baseline ? check_baseline(s->state, b->subjects[0].state) : 0;
}

/* ---- timing --------------------------------------------------------------------------------------------------------------------------- */

static int run_function(const struct nb_call *c, int phase, int64_t begin, int64_t end) {
    call(c->x);
    return 0;
}

static struct subject *subject_of(const struct nb_arm *arm) { return (struct subject *)(uintptr_t)arm->calls[0].x; }

static void spoil_before(struct nb_arm *arm) { spoil(subject_of(arm)); }
static void look_behind(struct nb_arm *arm) { arm->is_wrong |= !is_mended(subject_of(arm)); }

/* Once more from spoilt bytes: is all as at first? */
static bool is_reproduced(const struct bench *b, const struct nb_arm *arm) {
    struct subject *s = subject_of(arm);
    if (arm->is_wrong) return false;
    spoil(s);
    call(s);
    if (s->expected && differs_at(s, s->expected, s->n_expected) >= 0) return false;
    return check(b, s) == 0;
}

static int time_arms(struct bench *b, struct nb_pool *pool) {
    static const struct nb_kernel kernel = {
        .struct_size = sizeof kernel, .op = NB_OP_COPY, .name = "function", .variant = "function", .run = run_function};
    static const struct nb_case one_row = {.op = NB_OP_COPY, .threads = 1, .shape = {.rows = 1, .cols = 1}};
    const struct nb_job *job = &b->w->job;
    const cJSON *extra = nb_json_get(job->options, "extra_percent");
    struct nb_arm arms[NB_GATE_ARMS] = {{0}};
    struct nb_entry entries[NB_GATE_ARMS];
    struct nb_call calls[NB_GATE_ARMS] = {{0}};
    bool same[NB_GATE_ARMS];
    struct nb_noise noise;
    const size_t blocks = (size_t)job->blocks;
    double *ns freed = nb_alloc(blocks * (size_t)b->n, sizeof *ns);
    bool *preempted freed = nb_alloc(blocks * (size_t)b->n, sizeof *preempted);
    int *position freed = nb_alloc(blocks * (size_t)b->n, sizeof *position);
    for (size_t i = 0; i < blocks * (size_t)b->n; i++) ns[i] = NAN;
    for (int i = 0; i < b->n; i++) {
        const size_t at = blocks * (size_t)i;
        const cJSON *percent = cJSON_GetArrayItem(extra, i);
        calls[i] = (struct nb_call){.struct_size = sizeof calls[i], .rows = 1, .cols = 1, .x = &b->subjects[i]};
        entries[i] = (struct nb_entry){.kernel = &kernel, .file = b->subjects[i].file};
        arms[i] = (struct nb_arm){.entry = &entries[i], .c = &one_row, .calls = &calls[i], .sample_ns = ns + at};
        arms[i].preempted = preempted + at;
        arms[i].position = position + at;
        arms[i].extra_percent = percent ? percent->valueint : 0;
    }
    const struct nb_measure_options options = {.blocks = job->blocks,
                                               .sample_s = job->sample_s,
                                               .seed = job->seed,
                                               .even_samples = true,
                                               .probed = nb_threads_others() == 0,
                                               .floor = job->floor,
                                               .cpus = job->cpus,
                                               .n_cpus = job->n_cpus,
                                               .before = spoil_before,
                                               .behind = look_behind,
                                               .current_arm = &b->w->shared->current,
                                               .beats = &b->w->shared->beats};
    nb_measure_group(arms, b->n, 1, pool, &options, &noise);
    for (int i = 0; i < b->n; i++) {
        nb_worker_at(b->w, i);
        same[i] = is_reproduced(b, &arms[i]);
    }
    tear_down(b);
    nb_gate_say(job, arms, b->n, &noise, same);
    for (int i = 0; i < b->n; i++) free(arms[i].probe);
    return 0;
}

/* ---- before timing -------------------------------------------------------------------------------------------------------------------- */

/* "" where all is well with the arm, whose first call is made. */
static void examine(const struct bench *b, int arm, char *reason, size_t n) {
    enum { MORE_CALLS = 3 };
    const struct subject *s = &b->subjects[arm], *baseline = &b->subjects[0];
    int64_t at = s->expected && baseline->expected ? differs_at(s, baseline->expected, baseline->n_expected) : -1;
    reason[0] = '\0';
    if (s->n_expected > MOST_BYTES) {
        snprintf(reason, n, "it says that its output has %zu bytes; %d are the most", s->n_expected, MOST_BYTES);
        return;
    }
    if (at >= 0) {
        snprintf(reason, n, "its %zu bytes of output differ from the baseline's %zu, first at byte %lld", s->n_expected,
                 baseline->n_expected, (long long)at);
        return;
    }
    for (int i = 0; i <= MORE_CALLS; i++) {
        const int code = check(b, s);
        if (i > 0 && s->expected) at = differs_at(s, s->expected, s->n_expected);
        if (at >= 0)
            snprintf(reason, n, "call %d leaves other bytes of output than the first, from byte %lld on", i + 1,
                     (long long)at);
        else if (code != 0)
            snprintf(reason, n, "the check returns %d after call %d", code, i + 1);
        if (reason[0]) return;
        if (i < MORE_CALLS) call(s);
    }
}

/* Can a byte of the output be spoilt? Not where bytes are made when asked for, or lie in memory that may not be written. A random byte
 * is the one that was there in 1 of 256. The next call mends it. */
static bool can_spoil(struct subject *s) {
    enum { TRIES = 16 };
    bool is_spoilt = false;
    if (!s->functions[NB_FUNCTION_BYTES]) return true; /* gate_function.c says so */
    if (s->n_expected == 0) return false;
    for (int i = 0; i < TRIES && !is_spoilt; i++) {
        spoil(s);
        is_spoilt = !is_mended(s);
    }
    call(s);
    return is_spoilt;
}

/* The arm that does not mend what was spoilt, or whose bytes cannot be spoilt where the baseline's can; -1: none. */
static int spoil_arms(struct bench *b, bool *is_unspoilt, char *reason, size_t n) {
    for (int i = 0; i < b->n; i++) {
        struct subject *s = &b->subjects[i];
        nb_worker_at(b->w, i);
        const bool can = can_spoil(s);
        if (i == 0) *is_unspoilt = !can;
        if (!can && !*is_unspoilt)
            snprintf(
                reason, n,
                "no byte of its output can be spoilt between calls, as the baseline's can: made when asked for, or in "
                "memory that may not be written");
        else if (!is_mended(s))
            snprintf(reason, n, "a call does not write its output anew: byte %zu stays as it was spoilt", s->spoilt);
        if (reason[0]) return i;
    }
    return -1;
}

static void step(void *arg) { call(arg); }

static void add_count(cJSON *counts, struct subject *s, char *reason, size_t n) {
    int64_t count = -1;
    if (nb_threads_others() > 0)
        snprintf(reason, n, "it has threads of its own, and the calling one alone is counted");
    else
        count = nb_single_step(step, s, STEP_LIMIT, reason, n);
    cJSON_AddItemToArray(counts, count > 0 ? cJSON_CreateNumber((double)count) : cJSON_CreateNull());
}

static int check_arms(struct bench *b) {
    cJSON *answer = cJSON_CreateObject();
    char reason[200] = "", uncounted[200] = "";
    int failed = -1;
    bool is_unspoilt = false;
    nb_json_text(answer, "type", "answer");
    for (int i = 0; i < b->n && failed < 0; i++) {
        nb_worker_at(b->w, i);
        examine(b, i, reason, sizeof reason);
        if (reason[0]) failed = i;
    }
    if (failed < 0) failed = spoil_arms(b, &is_unspoilt, reason, sizeof reason);
    cJSON *counts = cJSON_AddArrayToObject(answer, "instructions");
    for (int i = 0; i < b->n && failed < 0; i++) {
        nb_worker_at(b->w, i);
        add_count(counts, &b->subjects[i], uncounted, sizeof uncounted);
    }
    tear_down(b);
    cJSON_AddNumberToObject(answer, "failed", failed);
    cJSON_AddBoolToObject(answer, "unspoilt", is_unspoilt);
    nb_json_text(answer, "reason", reason);
    nb_json_text(answer, "uncounted", uncounted[0] ? uncounted : NULL);
    nb_worker_say(answer);
    return 0;
}

static int gate_function_job(struct nb_workplace *w) {
    const struct nb_job *job = &w->job;
    struct bench b = {.w = w};
    b.n = cJSON_GetArraySize(nb_json_get(job->options, "arms"));
    if (b.n < 1 || b.n > NB_GATE_ARMS) return nb_error("a launch of %d arms", b.n);
    struct nb_pool *pool = nb_pool_new(1, job->cpus);
    if (!pool) return -1;
    for (int i = 0; i < b.n; i++) {
        nb_worker_at(w, i);
        if (find_functions(&b.subjects[i], job, i) != 0) return -1;
    }
    nb_gate_own_pages(job);
    set_up(&b, job->seed);
    for (int i = 0; i < b.n; i++) {
        nb_worker_at(w, i);
        call(&b.subjects[i]);
        keep_bytes(&b.subjects[i]);
    }
    const int result = job->check_only ? check_arms(&b) : time_arms(&b, pool);
    nb_pool_free(pool);
    return result;
}

const struct nb_job_type nb_gate_function_job = {
    .work = gate_function_job, .own_inputs = true, .no_cases = true, .no_kernels = true};
