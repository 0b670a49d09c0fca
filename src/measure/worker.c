// SPDX-License-Identifier: Apache-2.0
/* A worker's start, its job, its line to the parent, and the buffers that its arms share. */
#include "src/measure/worker.h"

#include <alloca.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/accuracy/gradient.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/tuning.h"
#include "src/measure/answers.h"
#include "src/measure/faults.h"
#include "src/measure/judge.h"
#include "src/measure/kept_memory.h"
#include "src/measure/kept_programs.h"
#include "src/measure/pool.h"
#include "src/measure/status.h"
#include "src/measure/system.h"
#include "src/programs/program_process.h"

/* A job as text and back. Cases travel as keys: whatever a worker needs to know stands in them. */

#define NB_JOB_ENTRY(name) extern const struct nb_job_type nb_##name##_job;
#include "job_list.h"
#undef NB_JOB_ENTRY

static const struct {
    const char *kind;
    const struct nb_job_type *type;
} types[] = {
#define NB_JOB_ENTRY(name) {#name, &nb_##name##_job},
#include "job_list.h"
#undef NB_JOB_ENTRY
};

/* Null: no such kind. */
static const struct nb_job_type *find_type(const char *kind) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(kind, types[i].kind) == 0) return types[i].type;
    return NULL;
}

#define J(KIND, field) NB_MEMBER(KIND, struct nb_job, field)
static const struct nb_member members[] = {
    J(BORROWED, kind),  J(INDEX, group),      J(INDEX, launch),        J(BOOL, check_only),  J(BOOL, single_width),
    J(COUNT, blocks),   J(NUMBER, sample_s),  J(NUMBER, floor),        J(UINT64, seed),      J(NUMBER, cold_bytes),
    J(NUMBER, until_s), J(INDEX, digests_at), J(COUNT, digests_bytes), J(COUNT, n_programs), NB_MEMBERS_END};

static const struct nb_member asked_members[] = {NB_MEMBER(BORROWED, struct nb_asked, key),
                                                 NB_MEMBER(COUNT, struct nb_asked, sample),
                                                 NB_MEMBER(POSITIVE, struct nb_asked, copy),
                                                 NB_MEMBER(POSITIVE, struct nb_asked, other_copy),
                                                 NB_MEMBER(BOOL, struct nb_asked, step),
                                                 NB_MEMBER(BOOL, struct nb_asked, many),
                                                 NB_MEMBERS_END};

bool nb_job_needs(const struct nb_job *job, const char *file) {
    bool is_known = false;
    for (int i = 0; i < job->n_cases; i++) {
        struct nb_case c;
        const struct nb_entry *entry = nb_case_parse(&c, job->asked[i].key) == 0 ? nb_registry_find(c.variant) : NULL;
        if (entry && entry->file && strcmp(entry->file, file) == 0) return true;
    }
    for (size_t i = 0; i < nb_registry_size() && !is_known; i++)
        is_known = nb_registry_at(i)->file && strcmp(nb_registry_at(i)->file, file) == 0;
    return job->n_cases == 0 || !is_known;
}

/* What a plugin does when it is loaded is no matter of the cases of others. */
static void add_plugins(cJSON *json, const struct nb_job *job) {
    cJSON *array = cJSON_AddArrayToObject(json, "plugins");
    for (int i = 0; i < job->n_plugins; i++)
        if (nb_job_needs(job, job->plugins[i])) cJSON_AddItemToArray(array, cJSON_CreateString(job->plugins[i]));
}

char *nb_job_print(const struct nb_job *job) {
    assert(find_type(job->kind));
    cJSON *json released_by(nb_json_release) = nb_json_of_members(members, job);
    add_plugins(json, job);
    cJSON_AddItemToObject(json, "copies", cJSON_CreateStringArray(job->copies, job->n_copies));
    if (nb_tuning_used()) cJSON_AddItemToObject(json, "tuning", nb_tuning_to_json(nb_tuning_used()));
    cJSON_AddItemToObject(json, "cpus", cJSON_CreateIntArray(job->cpus, job->n_cpus));
    if (job->options) cJSON_AddItemToObject(json, "options", cJSON_Duplicate(job->options, 1));
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (int i = 0; i < job->n_cases; i++)
        cJSON_AddItemToArray(cases, nb_json_of_members(asked_members, &job->asked[i]));
    struct nb_strbuf text = {0};
    nb_json_print(json, &text);
    return text.text;
}

/* Texts of an array, borrowed. */
static const char **get_texts(const cJSON *json, const char *name, int *n) {
    const cJSON *array = nb_json_get(json, name), *item;
    *n = 0;
    const char **texts = nb_alloc((unsigned)cJSON_GetArraySize(array), sizeof *texts);
    cJSON_ArrayForEach(item, array) if (cJSON_IsString(item)) texts[(*n)++] = item->valuestring;
    return texts;
}

static int get_case(struct nb_job *job, int i, const cJSON *json) {
    struct nb_asked *a = &job->asked[i];
    if (nb_json_get_members(json, asked_members, a, "a case of a worker's job") != 0) return -1;
    if (!a->key || nb_case_parse(&job->cases[i], a->key) != 0) return -1;
    if (a->copy > job->n_copies || a->other_copy > job->n_copies)
        return nb_error("%s: has no copy in its worker's job", a->key);
    job->entries[i] = nb_registry_find(job->cases[i].variant);
    if (!job->entries[i]) return nb_error("no kernel %s", job->cases[i].variant);
    nb_case_set_entry(&job->cases[i], job->entries[i]);
    return 0;
}

/* Before any case is read, since cases take it along. */
static int use_tuning(const cJSON *json) {
    struct nb_tuning tuning = {0};
    if (!json) return 0;
    if (nb_tuning_from_json(&tuning, json) != 0) return -1;
    nb_tuning_use(&tuning);
    return 0;
}

static int load_kernels(struct nb_job *job) {
    const bool is_forked = nb_registry_size() > 0; /* from a fork server, which has them but for programs */
    if (!is_forked && nb_registry_load_builtin() != 0) return -1;
    for (int i = 0; i < job->n_plugins; i++)
        if ((!is_forked || nb_kernel_program_is(job->plugins[i])) && nb_registry_load(job->plugins[i]) != 0) return -1;
    return 0;
}

static int job_read(struct nb_job *job, const char *text) {
    *job = (struct nb_job){.json = cJSON_Parse(text)};
    const cJSON *json = job->json, *item;
    const bool read = json && nb_json_get_members(json, members, job, "a worker's job") == 0;
    job->type = read && job->kind ? find_type(job->kind) : NULL;
    if (!job->type) return nb_error("a worker's job cannot be read");
    job->plugins = get_texts(json, "plugins", &job->n_plugins);
    job->copies = get_texts(json, "copies", &job->n_copies);
    job->options = nb_json_get(json, "options");
    const cJSON *cpus = nb_json_get(json, "cpus");
    job->cpus = nb_alloc((unsigned)cJSON_GetArraySize(cpus), sizeof(int));
    cJSON_ArrayForEach(item, cpus) job->cpus[job->n_cpus++] = item->valueint;
    for (int i = 0; i < job->n_cpus; i++)
        if (job->cpus[i] < 0 || job->cpus[i] >= NB_MAX_CPUS)
            return nb_error("a worker's job names CPU %d", job->cpus[i]);
    const unsigned n = (unsigned)cJSON_GetArraySize(nb_json_get(json, "cases"));
    job->cases = nb_alloc(n, sizeof *job->cases);
    job->asked = nb_alloc(n, sizeof *job->asked);
    job->entries = nb_alloc(n, sizeof *job->entries);
    return 0;
}

/* Loads the kernels and plugins that the job names and finds every case's kernel. -1 after nb_error. */
static int find_kernels(struct nb_job *job) {
    const cJSON *item;
    if (job->type->no_kernels) return 0;
    if (use_tuning(nb_json_get(job->json, "tuning")) != 0 || load_kernels(job) != 0) return -1;
    cJSON_ArrayForEach(item, nb_json_get(job->json, "cases")) if (get_case(job, job->n_cases++, item) != 0) return -1;
    return job->n_cases > 0 || job->type->no_cases ? 0 : nb_error("a worker's job has no case");
}

static void job_release(struct nb_job *job) {
    nb_free_all(job->plugins, job->copies, job->cpus, job->cases, job->asked, job->entries);
    cJSON_Delete(job->json);
    *job = (struct nb_job){0};
}

/* A worker that cannot speak (a kernel closed its descriptors) ends where it is, so that the case under way gets the blame. What a
 * kernel forked and let run on is not the worker, and ends likewise. */
void nb_worker_say(cJSON *json) {
    struct nb_strbuf line released_by(nb_strbuf_release) = {0};
    nb_json_print(json, &line);
    if (!nb_answers_say(line.text, line.len, false)) _exit(1);
    cJSON_Delete(json);
}

void nb_worker_say_skipped(const char *reason) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "fault");
    nb_json_text(line, "status", nb_status_name(NB_SKIPPED));
    nb_json_text(line, "reason", reason);
    nb_worker_say(line);
}

void nb_worker_at(struct nb_workplace *w, int current) {
    w->shared->current = current;
    w->shared->beats = w->shared->beats + 1;
}

static size_t digest_bytes(const struct nb_workplace *w) {
    return (size_t)nb_n_digests(w->job.cases[0].shape.rows) * sizeof(uint64_t);
}

static uint64_t *digests_in(const struct nb_workplace *w, uint64_t *of_group, int case_index) {
    return of_group + (size_t)w->job.asked[case_index].sample * (digest_bytes(w) / sizeof *of_group);
}

uint64_t *nb_worker_digests(const struct nb_workplace *w, int case_index) {
    return w->digests ? digests_in(w, w->digests, case_index) : NULL;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------ */

/* How many sets a cold case takes. What counts is what the leanest arm touches of a set: the tensors that others read (a copy's pattern may
 * have more of them, an unfused op has scratch) keep nothing of its own out of the cache. A device's last cache is its own. */
static int n_cold_sets(double set_bytes, double cold_bytes, const struct nb_arm *arms, int n_arms) {
    const struct nb_device_api *device = nb_device_of(arms[0].entry->kernel->backend);
    if (cold_bytes == 0) return 1;
    if (!nb_device_is_host(device)) cold_bytes = 3 * device->l2_bytes();
    for (int a = 0; a < n_arms; a++) {
        const double own = nb_case_bytes(arms[a].c);
        if (own > 0 && own < set_bytes) set_bytes = own;
    }
    return cold_bytes > set_bytes ? (int)ceil(cold_bytes / set_bytes) : 1;
}

/* Non-temporal stores leave y in memory, and it takes a shared last cache several ordinary calls to hold it again (8 MiB on an Intel
 * Emerald Rapids: 29, 28, 21, 16, 15 cycles a line). So from half of the second cache on the two kinds of arms do not
 * share their tensors (of 2 MiB in 2 MiB a plain copy took 80 us instead of 33 behind one that streams, and the copy was four times too slow). */
static bool streams(const struct nb_arm *arm) {
    const uint32_t flags = arm->entry->kernel->flags;
    const int64_t limit = arm->c->tuning ? arm->c->tuning->stream_bytes : 0;
    if (flags & NB_FLAG_STREAMING) return true;
    return (flags & NB_FLAG_STREAMS_BEYOND) && limit > 0 && nb_case_bytes(arm->c) > (double)limit;
}
/* Gives arms their homes; returns how many there are. */
static int settle_arms(struct nb_arm *arms, int n_arms, bool one_home) {
    const double l2 = (double)nb_cpu_light()->l2_bytes;
    int n_streaming = 0;
    for (int a = 0; a < n_arms; a++) n_streaming += streams(&arms[a]);
    const bool apart = !one_home && n_streaming > 0 && n_streaming < n_arms && nb_case_bytes(arms[0].c) > l2 / 2;
    for (int a = 0; a < n_arms; a++) arms[a].home = apart && streams(&arms[a]);
    return apart ? 2 : 1;
}

/* At which distances tensors lie makes a ratio of two kernels 1 % and more larger or smaller. A launch that sees several layouts knows their
 * mean better than many that see one each. As many as are filled and looked through in a millisecond or two, and as a shared last cache may be
 * expected to hold. The number is odd: over two rounds each meets an order of the arms and its reverse. */
enum { MOST_LAYOUTS = 15, LAYOUTS_BYTES = 16 << 20 };

static int n_layouts(double set_bytes) {
    const double n = fmin(LAYOUTS_BYTES, (double)nb_cpu_light()->l3_bytes / 4) / set_bytes;
    return n < 1 ? 1 : n > MOST_LAYOUTS ? MOST_LAYOUTS : (int)n;
}

/* A copy of one tensor leaves the other pair of its pattern alone: laid out for nothing, it was half of what cold cases fill. */
static uint32_t wants_of(const struct nb_arm *arm) {
    const struct nb_kernel *k = arm->entry->kernel;
    const bool backward = arm->c->pass == NB_BACKWARD;
    uint32_t wants = nb_buffers_wants(arm->c, false);
    if (arm->c->op != NB_OP_COPY) return wants;
    if (k->loads <= (backward ? 2 : 1)) wants &= ~(1u << (backward ? NB_T_DRESIDUAL_OUT : NB_T_RESIDUAL));
    if (!backward && k->stores <= 1) wants &= ~(1u << NB_T_RESIDUAL_OUT);
    return wants;
}

static int init_sets(struct nb_bench *b, const struct nb_workplace *w) {
    struct nb_sets *const s = &b->sets;
    struct nb_arm *const arms = b->arms;
    const int n_arms = b->n;
    const struct nb_job *job = &w->job;
    const struct nb_device_api *const device = nb_device_of(arms[0].entry->kernel->backend);
    const bool hot = job->cold_bytes == 0, hot_on_host = hot && nb_device_is_host(device);
    const bool in_one =
        nb_device_is_host(device) && !nb_arms_have_program(arms, n_arms); /* its message is of all sets */
    struct nb_layout_request q = {.placement = NB_PLACE_SLAB,
                                  .rows = job->cases[0].shape.rows,
                                  .pad = job->cases[0].pad,
                                  .n_stats = w->inputs.n_params,
                                  .saved = NB_ALL_SAVED,
                                  .seed = job->seed,
                                  .huge_pages = hot || in_one,
                                  .poison = NB_POISON_NAN,
                                  .device = device};
    for (int a = 0; a < n_arms; a++) {
        struct nb_call call;
        nb_case_call(arms[a].c, &call);
        size_t scratch = nb_kernel_scratch_bytes(arms[a].entry->kernel, &call);
        if (scratch > q.scratch_bytes) q.scratch_bytes = scratch;
        q.wants |= wants_of(&arms[a]);
    }
    const bool several = b->several_layouts && hot && in_one;
    *s = (struct nb_sets){.sets = nb_alloc(1, sizeof *s->sets), .n = 1};
    if (nb_buffers_init(&s->sets[0], &w->inputs, &q) != 0) return -1;
    const int n_cold = n_cold_sets(nb_buffers_bytes(&s->sets[0]), job->cold_bytes, arms, n_arms);
    const int n_homes = hot_on_host ? settle_arms(arms, n_arms, b->one_home) : 1;
    const double bytes = nb_buffers_bytes(&s->sets[0]) + (double)q.scratch_bytes;
    s->n_of_arm = several ? n_layouts(n_homes * bytes) : hot_on_host ? 1 : n_cold;
    const int n = n_homes * s->n_of_arm;
    for (int a = 0; a < n_arms; a++) arms[a].home *= s->n_of_arm;
    s->sets = nb_realloc(s->sets, (unsigned)n, sizeof *s->sets);
    if (in_one && n > 1) { /* once more, with room for the others: how many these are followed from its size */
        q.room_bytes = (size_t)(n - 1) * nb_slab_bytes_at_most(&s->sets[0]);
        q.kept = !hot;
        nb_buffers_release(&s->sets[0]);
        if (nb_buffers_init(&s->sets[0], &w->inputs, &q) != 0) return -1;
        q.beside = &s->sets[0];
    }
    for (; s->n < n; s->n++) {
        q.seed++;
        if (nb_buffers_init(&s->sets[s->n], &w->inputs, &q) != 0) return -1;
    }
    return 0;
}

static void release_sets(struct nb_sets *s) {
    for (int i = 0; i < s->n; i++) nb_buffers_release(&s->sets[i]);
    free(s->sets);
    *s = (struct nb_sets){0};
}

/* ---- arms that are timed ------------------------------------------------------------------------------------------ */

static void init_arms(struct nb_arm *arms, int n_arms, const struct nb_sets *all, int blocks) {
    const int n_sets = all->n_of_arm;
    for (int a = 0; a < n_arms; a++) {
        struct nb_arm *arm = &arms[a];
        const struct nb_buffers *sets = &all->sets[arm->home];
        arm->calls = nb_alloc((unsigned)n_sets, sizeof *arm->calls);
        for (int s = 0; s < n_sets; s++) {
            nb_case_call(arm->c, &arm->calls[s]);
            nb_buffers_attach(&sets[s], arm->c, &arm->calls[s]);
        }
        arm->sample_ns = nb_alloc((unsigned)blocks, sizeof *arm->sample_ns);
        arm->preempted = nb_alloc((unsigned)blocks, sizeof *arm->preempted);
        arm->position = nb_alloc((unsigned)blocks, sizeof *arm->position);
        for (int b = 0; b < blocks; b++) arm->sample_ns[b] = NAN;
        arm->outputs = nb_alloc((unsigned)n_sets, sizeof *arm->outputs);
        for (int s = 0; s < n_sets; s++) arm->outputs[s] = nb_buffers_outputs(&sets[s], arm->c);
    }
}

static void release_arms(struct nb_arm *arms, int n_arms) {
    for (int a = 0; a < n_arms; a++) {
        nb_free_all(arms[a].calls, arms[a].sample_ns, arms[a].preempted, arms[a].position, arms[a].probe,
                    arms[a].outputs);
    }
}

/* Are the cores those of the pool's threads, if nobody else uses them? */
static bool may_probe(const struct nb_bench *b) {
    bool here = nb_device_is_host(nb_device_of(b->arms[0].entry->kernel->backend));
    for (int a = 0; a < b->n; a++) {
        const struct nb_kernel *k = b->arms[a].entry->kernel;
        here &= !nb_kernel_is_of_program(k) && !(b->arms[a].c->threads > 1 && (k->flags & NB_FLAG_OWN_THREADS));
    }
    return here;
}

int nb_bench_init(struct nb_bench *b, struct nb_workplace *w) {
    assert(b && w && b->arms && b->n > 0);
    const struct nb_job *job = &w->job;
    const int blocks = b->blocks > 0 ? b->blocks : job->blocks;
    b->owns_pool = !b->pool;
    if (b->owns_pool) b->pool = nb_pool_new(job->cases[0].threads, job->cpus);
    if (!b->pool || init_sets(b, w) != 0) {
        nb_worker_say_skipped(b->pool ? "no memory for the buffers that are timed" : "its threads cannot be started");
        return -1;
    }
    init_arms(b->arms, b->n, &b->sets, blocks);
    const struct nb_device_api *const device = nb_device_of(b->arms[0].entry->kernel->backend);
    const bool on_device = !nb_device_is_host(device), cold = job->cases[0].cache == NB_COLD;
    b->options =
        (struct nb_measure_options){.blocks = blocks,
                                    .sample_s = job->sample_s,
                                    .seed = job->seed,
                                    .cold = cold,
                                    .watched = (!cold || b->sets.n_of_arm == 1) && !on_device ? b->sets.sets : NULL,
                                    .n_watched = b->sets.n,
                                    .probed = may_probe(b),
                                    .floor = job->floor,
                                    .cpus = job->cpus,
                                    .n_cpus = nb_pool_threads(b->pool) == 1 ? job->n_cpus : 0,
                                    .device = on_device ? device : NULL,
                                    .current_arm = &w->shared->current,
                                    .beats = &w->shared->beats};
    return 0;
}

struct nb_buffers *nb_bench_home(const struct nb_bench *b, const struct nb_arm *arm) {
    return &b->sets.sets[arm->home];
}

/* One of the arms may have hidden what it did. Which of them is not known. */
static void look_for_handlers(struct nb_arm *first) {
    const int number = nb_faults_unwatched();
    if (!number || first->damage != NB_INTACT) return;
    first->damage = NB_DAMAGED_OUTSIDE;
    snprintf(first->where, sizeof first->where, "replaced the handler of signal %d", number);
}

void nb_bench_time(struct nb_bench *b) {
    nb_faults_set_buffers(&b->sets.sets[0]);
    nb_measure_group(b->arms, b->n, b->sets.n_of_arm, b->pool, &b->options, &b->noise);
    nb_faults_set_buffers(NULL);
    look_for_handlers(&b->arms[0]);
    for (int i = 0; i < b->sets.n; i++) nb_buffers_from_device(&b->sets.sets[i]); /* what failed is the arms' */
}

void nb_bench_release(struct nb_bench *b) {
    release_arms(b->arms, b->n);
    if (b->owns_pool) nb_pool_free(b->pool);
    release_sets(&b->sets);
}

static void add_blocks(cJSON *arm, const char *name, const bool *is_listed, size_t n) {
    cJSON *list = cJSON_AddArrayToObject(arm, name);
    for (size_t b = 0; b < n; b++)
        if (is_listed[b]) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)b));
}

void nb_arm_to_json(cJSON *json, const struct nb_arm *arm, int blocks, bool with_position) {
    cJSON *samples = cJSON_AddArrayToObject(json, "sample_ns");
    for (int at = 0; at < blocks; at++) {
        /* A hundredth of a nanosecond is far below what a sample resolves. */
        const double ns = round(arm->sample_ns[at] * 100) / 100;
        cJSON_AddItemToArray(samples, isfinite(ns) && ns > 0 ? cJSON_CreateNumber(ns) : cJSON_CreateNull());
    }
    add_blocks(json, "preempted", arm->preempted, (size_t)blocks);
    if (with_position) cJSON_AddItemToObject(json, "position", cJSON_CreateIntArray(arm->position, blocks));
    cJSON *probes = arm->probe ? cJSON_AddArrayToObject(json, "probe") : NULL;
    for (int at = 0; at < blocks && probes; at++) {
        const double cycles = round(arm->probe[at]);
        cJSON_AddItemToArray(probes, cycles > 0 && isfinite(cycles) ? cJSON_CreateNumber(cycles) : cJSON_CreateNull());
    }
}

/* ---- start -------------------------------------------------------------------------------------------------------- */

int nb_worker_make_inputs(struct nb_workplace *w, int from, int to) {
    const struct nb_case *cases = w->job.cases;
    nb_inputs_release(&w->inputs);
    int result = nb_inputs_init(&w->inputs, &cases[from]);
    for (int i = from + 1; i < to && result == 0; i++)
        if (cases[i].op != cases[i - 1].op) result = nb_inputs_add(&w->inputs, &cases[i]);
    for (int i = from; i < to && result == 0; i++) result = nb_saved_statistics_add(&w->inputs, &cases[i]);
    if (result != 0) nb_worker_say_skipped("its inputs cannot be made: no memory, or no data file (stderr says which)");
    return result;
}

static char *read_all(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0) return NULL;
    char *text = nb_alloc((unsigned long long)st.st_size + 1, 1);
    return pread(fd, text, (size_t)st.st_size, 0) == st.st_size ? text : (free(text), NULL);
}

/* fd: -1: of no file. */
static void *map_shared(int fd, int64_t at, int64_t bytes, bool may_write) {
    const int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
    void *p = mmap(NULL, (size_t)bytes, PROT_READ | (may_write ? PROT_WRITE : 0), flags, fd, at);
    return p == MAP_FAILED ? NULL : p;
}

/* From the descriptors that the parent gave, which no kernel shall find. The job's text, owned; null: there is none. */
static char *take_inheritance(struct nb_workplace *w, bool is_forked) {
    if (!is_forked)
        close_range(NB_FD_JOB + NB_N_WORKER_FDS, ~0u, 0); /* a fork server's libraries have descriptors of their own */
    char *text = read_all(NB_FD_JOB);
    w->shared = map_shared(NB_FD_SHARED, 0, sizeof *w->shared, true);
    if (!text || !w->shared) {
        nb_error("only `normbench run` starts the worker");
        free(text);
        return NULL;
    }
    nb_program_watch(w->shared->groups, sizeof w->shared->groups / sizeof w->shared->groups[0], &w->shared->beats);
    if (job_read(&w->job, text) == 0 && w->job.digests_at >= 0) /* written by the check, read by the launches */
        w->digests = map_shared(NB_FD_DIGESTS, w->job.digests_at, w->job.digests_bytes, w->job.launch < 0);
    close(NB_FD_JOB);
    close(NB_FD_SHARED);
    close(NB_FD_DIGESTS);
    nb_kept_memory_take(NB_FD_MEMORY);
    close(NB_FD_MEMORY); /* before descriptors of programs come, which may get its number */
    nb_kept_programs_take(NB_FD_PROGRAMS, w->job.n_programs);
    close(NB_FD_PROGRAMS);
    nb_answers_begin(NB_FD_ANSWERS, w->shared->secret, false);
    explicit_bzero(&w->shared->secret, sizeof w->shared->secret);
    return text;
}

/* Those of n cases, and the device that they run on. Libraries that kernels wrap start their threads
 * now, while this one may still hand on all of its CPUs. */
static int open_kernels(struct nb_workplace *w, int first, int n) {
    const struct nb_job *job = &w->job;
    char reason[160];
    int threads = 1;
    for (int i = first; i < first + n; i++)
        if (job->cases[i].threads > threads) threads = job->cases[i].threads;
    const int *cpus = job->n_cpus >= threads ? job->cpus : NULL;
    const int result = nb_kernels_open(job->entries + first, (size_t)n, threads, cpus, reason, sizeof reason);
    if (result != 0) nb_worker_say_skipped(reason);
    for (int i = first; i < first + n && result == 0; i++) {
        const char *refusal = nb_device_of(job->entries[i]->kernel->backend)->open();
        if (refusal) nb_worker_say_skipped(refusal);
        if (refusal) return -1;
    }
    if (result == 0 && job->n_cpus > 0) nb_cpu_pin(job->cpus[0]);
    nb_faults_watch(); /* again: a library may have handlers of its own, which it sets when it is opened */
    return result;
}

/* ---- a process for each case -------------------------------------------------------------------------------------- */

static void die_alike(int status) {
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(1);
}

/* Libraries that are known (peers) may have threads when they are loaded, and are trusted. */
static bool has_foreign_plugin(const struct nb_job *job) {
    for (int i = 0; i < job->n_cases; i++)
        if (job->entries[i]->plugin && !job->entries[i]->is_peer) return true;
    return false;
}

bool nb_worker_apart(struct nb_workplace *w, int i, void (*work)(struct nb_workplace *w, int i, void *arg), void *arg) {
    assert(w && work && i >= 0 && i < w->job.n_cases);
    const uint64_t said = nb_answers_said();
    int status;
    if (nb_kernel_is_of_program(
            w->job.entries[i]->kernel)) { /* apart already: its program is not started for each case */
        if (open_kernels(w, i, 1) != 0) _exit(1);
        work(w, i, arg);
        return true;
    }
    if (nb_threads_others() > 0) {
        if (i == 0 && open_kernels(w, 0, w->job.n_cases) != 0) _exit(1);
        work(w, i, arg);
        return !has_foreign_plugin(&w->job);
    }
    uint64_t *const digests = w->digests ? map_shared(-1, 0, w->job.digests_bytes, true) : NULL;
    fflush(NULL);
    const pid_t pid = w->digests && !digests ? -1 : fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        nb_answers_take_over();
        if (w->digests) munmap(w->digests, (size_t)w->job.digests_bytes); /* the other cases' are out of reach */
        munmap(w->shared, sizeof *w->shared);
        w->digests = digests;
        if (open_kernels(w, i, 1) != 0) _exit(1);
        work(w, i, arg);
        _exit(0);
    }
    if (pid < 0) {
        nb_worker_say_skipped(errno == EAGAIN ? "the user may have no more processes (`ulimit -u`)"
                                              : "no memory for the process of a case");
        _exit(1);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    nb_answers_take_over();
    if (status != 0 || nb_answers_said() == said) die_alike(status);
    if (digests) memcpy(digests_in(w, w->digests, i), digests_in(w, digests, i), digest_bytes(w));
    if (digests) munmap(digests, (size_t)w->job.digests_bytes);
    return true;
}

/* Below a random stretch of stack, so that stack addresses differ between launches beyond what the system randomizes. */
static __attribute__((noinline)) int work_below(struct nb_workplace *w, size_t stretch) {
    // cppcheck-suppress allocaCalled ; a stretch of stack is what is wanted, and 4 KiB of it cannot overflow
    volatile char *stack = alloca(stretch + 1);
    stack[0] = 0;
    return w->job.type->work(w);
}

int nb_worker_main(void) {
    struct nb_workplace w = {0};
    const struct nb_fp_state state = nb_fp_state();
    const bool is_forked = nb_registry_size() > 0;
    bool opened = false;
    int result = 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    char *text freed = take_inheritance(&w, is_forked);
    if (!text) goto out;
    nb_worker_at(&w, -1);
    nb_limit_memory();
    if (!w.job.type || find_kernels(&w.job) != 0) goto out;
    nb_fp_state_set(state); /* a library may set it when it is loaded */
    opened = !w.job.type->apart;
    if (opened && open_kernels(&w, 0, w.job.n_cases) != 0) goto out;
    nb_faults_watch();
    if (!w.job.type->own_inputs && nb_worker_make_inputs(&w, 0, w.job.n_cases) != 0) goto out;
    result = work_below(&w, (size_t)(w.job.seed % 256) * 16) == 0 ? 0 : 1;
out:
    nb_inputs_release(&w.inputs);
    if (opened) nb_kernels_close(w.job.entries, (size_t)w.job.n_cases);
    job_release(&w.job);
    if (is_forked)
        nb_registry_rest();
    else
        nb_registry_release();
    return result;
}
