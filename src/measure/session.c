// SPDX-License-Identifier: Apache-2.0
/* The state of a run, from its plan and its journal. */
#include "src/measure/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/measure/journal.h"
#include "src/measure/judge.h"

/* ---- what the run knows ------------------------------------------------------------------------------------------ */

const struct nb_case *nb_group_case(const struct nb_plan *plan, int group, int index) {
    return &plan->cases[plan->groups[group].cases[index]];
}
const char *nb_group_key(const struct nb_plan *plan, int group, int index) {
    return plan->keys[plan->groups[group].cases[index]];
}
int nb_group_find(const struct nb_plan *plan, int group, const char *key) {
    for (int i = 0; key && i < (int)plan->groups[group].n; i++)
        if (strcmp(nb_group_key(plan, group, i), key) == 0) return i;
    return -1;
}

void nb_run_state_init(struct nb_run_state *s, const struct nb_plan *plan) {
    *s = (struct nb_run_state){.plan = plan, .groups = nb_alloc(plan->n_groups, sizeof *s->groups)};
    for (size_t g = 0; g < plan->n_groups; g++) {
        s->groups[g].cases = nb_alloc(plan->groups[g].n, sizeof *s->groups[g].cases);
        s->groups[g].launched = nb_alloc((unsigned)plan->launches, sizeof(bool));
        s->groups[g].digests_at = -1;
    }
}

void nb_run_state_release(struct nb_run_state *s) {
    for (size_t g = 0; s->plan && g < s->plan->n_groups; g++) {
        free(s->groups[g].cases);
        free(s->groups[g].launched);
        cJSON_Delete(s->groups[g].copies);
    }
    free(s->groups);
    *s = (struct nb_run_state){0};
}

const char *nb_group_copy(const struct nb_group_state *g, int n_loads, int n_stores) {
    const char *best = NULL;
    double best_ns = INFINITY;
    const cJSON *copy;
    cJSON_ArrayForEach(copy, g->copies) {
        const char *variant = nb_json_get_text(copy, "variant");
        double ns = nb_json_get_number(copy, "ns");
        const struct nb_entry *entry = variant ? nb_registry_find(variant) : NULL;
        if (!entry || entry->kernel->loads != (float)n_loads || entry->kernel->stores != (float)n_stores) continue;
        if (ns < best_ns) {
            best_ns = ns;
            best = variant;
        }
    }
    return best;
}

/* ---- from the journal --------------------------------------------------------------------------------------------- */

static int take_run(struct nb_run_state *s, const cJSON *line) {
    const char *hash = nb_json_get_text(cJSON_GetObjectItemCaseSensitive(line, "plan"), "hash");
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(line, "groups");
    if (hash && strcmp(hash, s->plan->hash) == 0 && cJSON_GetArraySize(groups) == (int)s->plan->n_groups) return 0;
    return nb_error(
        "the journal belongs to another plan: another config, other kernels or another CPU; start a new run");
}

static void take_check(struct nb_run_state *s, int g, const cJSON *line) {
    const cJSON *c, *copies = cJSON_GetObjectItemCaseSensitive(line, "copies");
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(line, "cases")) {
        int i = nb_group_find(s->plan, g, nb_json_get_text(c, "key"));
        const char *status = nb_json_get_text(c, "status");
        if (i < 0 || !status) continue;
        s->groups[g].cases[i] = (struct nb_case_state){true, nb_status_parse(status)};
    }
    s->groups[g].checked = true;
    if (cJSON_GetArraySize(copies) > 0) {
        cJSON_Delete(s->groups[g].copies);
        s->groups[g].copies = cJSON_Duplicate(copies, 1);
    }
}

static void take_failure(struct nb_run_state *s, int g, const cJSON *line) {
    int i = nb_group_find(s->plan, g, nb_json_get_text(line, "key"));
    const char *status = nb_json_get_text(line, "status");
    if (i >= 0 && status) s->groups[g].cases[i] = (struct nb_case_state){true, nb_status_parse(status)};
}

static int take_line(const cJSON *line, void *arg) {
    struct nb_run_state *s = arg;
    const char *type = nb_json_get_text(line, "type");
    if (!type) return 0;
    if (strcmp(type, "run") == 0) return take_run(s, line);
    double group = nb_json_get_number(line, "group"), launch = nb_json_get_number(line, "launch");
    if (!(group >= 0 && group < (double)s->plan->n_groups)) return 0;
    int g = (int)group;
    if (strcmp(type, "check") == 0)
        take_check(s, g, line);
    else if (strcmp(type, "failure") == 0)
        take_failure(s, g, line);
    else if (strcmp(type, "counters") == 0)
        s->groups[g].counted = true;
    else if (strcmp(type, "launch") == 0 && launch >= 0 && launch < s->plan->launches)
        s->groups[g].launched[(int)launch] = true;
    return 0;
}

int nb_run_state_read(struct nb_run_state *s, const char *dir) { return nb_journal_read(dir, take_line, s); }

/* ---- instructions counted once ----------------------------------------------------------------------------------- */

/* Known instruction counts, by what decides them. */

/* A library that is opened for more threads takes another way through the same call. */
static bool has_own_threads(const struct nb_case *c) {
    const struct nb_entry *entry = nb_registry_find(c->variant);
    return entry && entry->kernel->flags & NB_FLAG_OWN_THREADS;
}

/* The case with everything that the count does not depend on at its default. */
static char *what_decides(const struct nb_case *c) {
    struct nb_case plain = *c;
    struct nb_strbuf key = {0};
    struct nb_case defaults;
    nb_case_init(&defaults);
    plain.seed = defaults.seed;
    if (!has_own_threads(c)) plain.threads = defaults.threads;
    plain.cache = defaults.cache;
    plain.pad = defaults.pad;
    memcpy(plain.data, defaults.data, sizeof plain.data);
    memset(plain.shape.text, 0, sizeof plain.shape.text);
    nb_case_key(&plain, &key);
    nb_strbuf_addf(&key, " %u %lld", c->shape.layout, (long long)c->shape.cols);
    return key.text;
}

const cJSON *nb_step_memory_find(const struct nb_step_memory *m, const struct nb_case *c) {
    char *what = what_decides(c);
    const cJSON *found = NULL;
    for (size_t i = 0; i < m->n && !found; i++)
        if (strcmp(m->steps[i].what, what) == 0) found = m->steps[i].counter;
    free(what);
    return found;
}

void nb_step_memory_exchange(struct nb_step_memory *m, const struct nb_case *c, cJSON *answer) {
    cJSON *counters = cJSON_GetObjectItemCaseSensitive(answer, "counters"), *counter;
    cJSON_ArrayForEach(counter, counters) {
        const char *name = nb_json_get_text(counter, "name");
        if (!name || strcmp(name, "instructions_exact") != 0) continue;
        m->steps = nb_realloc(m->steps, m->n + 1, sizeof *m->steps);
        m->steps[m->n++] = (struct nb_step){what_decides(c), cJSON_Duplicate(counter, 1)};
        return;
    }
    const cJSON *known = nb_step_memory_find(m, c);
    if (known) cJSON_AddItemToArray(counters, cJSON_Duplicate(known, 1));
}

void nb_step_memory_release(struct nb_step_memory *m) {
    for (size_t i = 0; i < m->n; i++) {
        free(m->steps[i].what);
        cJSON_Delete(m->steps[i].counter);
    }
    free(m->steps);
    *m = (struct nb_step_memory){0};
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

/* Jobs of one group, and what their workers answer. */

enum { MAX_COPYS = 4, COLD_BYTES_MAX = 512 << 20, COLD_BYTES_UNKNOWN = 64 << 20 };
/* What a check may take for an element, many times over: a dozen calls, the oracle, the error figures. */
static const double silence_s_per_element = 2e-6;

void nb_run_write(struct nb_run *run, const cJSON *line) {
    pthread_mutex_lock(&run->writing);
    if (!run->failed && nb_journal_write(run->journal, line) != 0) run->failed = true;
    pthread_mutex_unlock(&run->writing);
}

static uint64_t mix(uint64_t seed, uint64_t a, uint64_t b) { return nb_random_bits(nb_random_stream(seed, a), b); }

void nb_session_init(struct nb_session *v, struct nb_run *run, int group, int launch) {
    *v = (struct nb_session){.run = run,
                             .fork_server = run->fork_server,
                             .group = group,
                             .launch = launch,
                             .members = nb_alloc(run->plan->groups[group].n, sizeof(int)),
                             .answers = cJSON_CreateArray()};
}

void nb_session_release(struct nb_session *v) {
    cJSON_Delete(v->answers);
    free(v->members);
    *v = (struct nb_session){0};
}

void nb_session_timed_members(struct nb_session *v) {
    const struct nb_group_state *state = &v->run->state.groups[v->group];
    v->n = 0;
    for (int i = 0; i < (int)v->run->plan->groups[v->group].n; i++)
        if (state->cases[i].checked && nb_status_timed(state->cases[i].status)) v->members[v->n++] = i;
}

/* ---- failures ----------------------------------------------------------------------------------------------------- */

void nb_session_failure(struct nb_session *v, int member, enum nb_status status, const char *reason) {
    struct nb_case_state *state = &v->run->state.groups[v->group].cases[member];
    *state = (struct nb_case_state){true, status};
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "failure");
    cJSON_AddNumberToObject(line, "group", v->group);
    if (v->launch >= 0)
        cJSON_AddNumberToObject(line, "launch", v->launch);
    else
        cJSON_AddNullToObject(line, "launch");
    nb_json_text(line, "key", nb_group_key(v->run->plan, v->group, member));
    nb_json_text(line, "status", nb_status_name(status));
    nb_json_text(line, "reason", reason);
    nb_run_write(v->run, line);
    cJSON_Delete(line);
}

void nb_session_leave_out(struct nb_session *v, int position) {
    memmove(v->members + position, v->members + position + 1, (size_t)(v->n - position - 1) * sizeof *v->members);
    v->n--;
}

/* ---- one worker --------------------------------------------------------------------------------------------------- */

static double cold_bytes(const struct nb_case *c) {
    if (c->cache != NB_COLD) return 0;
    double llc = (double)nb_cpu_light()->l3_bytes;
    double bytes = llc > 0 ? 2 * llc : COLD_BYTES_UNKNOWN;
    return bytes < COLD_BYTES_MAX ? bytes : COLD_BYTES_MAX;
}

int64_t nb_session_digest_bytes(const struct nb_plan *plan, int group) {
    const int64_t rows = nb_group_case(plan, group, 0)->shape.rows;
    return (int64_t)plan->groups[group].n * nb_n_digests(rows) * (int64_t)sizeof(uint64_t);
}

static double silence(const struct nb_session *v) {
    double largest = 0;
    for (int i = 0; i < v->n; i++) {
        const struct nb_shape *shape = &nb_group_case(v->run->plan, v->group, v->members[i])->shape;
        largest = fmax(largest, (double)shape->rows * (double)shape->cols);
    }
    return v->run->options->case_timeout_s + silence_s_per_element * largest;
}

static void take_answer(cJSON *line, void *arg) {
    struct nb_session *v = arg;
    const char *type = nb_json_get_text(line, "type");
    if (strcmp(type, "case") == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(line, "type");
        cJSON_AddItemToArray(v->answers, line);
        return;
    }
    if (strcmp(type, "copies") == 0) {
        struct nb_group_state *g = &v->run->state.groups[v->group];
        cJSON_Delete(g->copies);
        g->copies = cJSON_DetachItemFromObjectCaseSensitive(line, "copies");
    } else if (strcmp(type, "failure") == 0) {
        int member = nb_group_find(v->run->plan, v->group, nb_json_get_text(line, "key"));
        const char *status = nb_json_get_text(line, "status"), *reason = nb_json_get_text(line, "reason");
        if (member >= 0 && status) nb_session_failure(v, member, nb_status_parse(status), reason ? reason : "");
    } else if (strcmp(type, "launch") == 0) {
        nb_run_write(v->run, line);
        v->whole = true;
    }
    cJSON_Delete(line);
}

/* The copy of a case as an index into the job's copies, which grow by it; -1: none. */
static int choose_copy(struct nb_job *job, const struct nb_group_state *state, const struct nb_case *c) {
    int n_loads, n_stores;
    nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
    const char *copy = c->op == NB_OP_COPY ? NULL : nb_group_copy(state, n_loads, n_stores);
    if (!copy) return -1;
    for (int t = 0; t < job->n_copies; t++)
        if (strcmp(job->copies[t], copy) == 0) return t;
    if (job->n_copies == MAX_COPYS) return -1;
    job->copies[job->n_copies] = copy;
    return job->n_copies++;
}

void nb_session_worker(struct nb_session *v, const char *kind, struct nb_outcome *o) {
    const struct nb_run *run = v->run;
    const struct nb_plan *plan = run->plan;
    const struct nb_group_state *state = &run->state.groups[v->group];
    const struct nb_case *first = nb_group_case(plan, v->group, v->members[0]);
    const char **keys = nb_alloc((unsigned)v->n, sizeof *keys), *copies[MAX_COPYS];
    int *copy_of = nb_alloc((unsigned)v->n, sizeof *copy_of), cpus[NB_MAX_CPUS];
    bool *steps = nb_alloc((unsigned)v->n, sizeof *steps);
    const uint64_t seed = mix(plan->order_seed, (uint64_t)v->group, (uint64_t)(v->launch + 1));
    struct nb_job job = {.kind = kind,
                         .group = v->group,
                         .launch = v->launch,
                         .check_only = plan->launches == 0,
                         .single_width = plan->groups[v->group].single_width,
                         .plugins = run->options->plugins,
                         .n_plugins = run->options->n_plugins,
                         .max_width = run->options->max_width,
                         .keys = keys,
                         .samples = v->members,
                         .steps = steps,
                         .n_cases = v->n,
                         .copies = copies,
                         .copy_of = copy_of,
                         .blocks = plan->blocks,
                         .sample_s = 1e-3 * plan->sample_ms,
                         .seed = seed,
                         .cold_bytes = cold_bytes(first),
                         .digests_at = state->digests_at,
                         .digests_bytes = nb_session_digest_bytes(plan, v->group),
                         .cpus = cpus,
                         .n_cpus = first->threads};
    for (int t = 0; t < job.n_cpus; t++) cpus[t] = run->cpus[(v->launch + 1 + v->cpu + t) % run->n_cpus];
    for (int i = 0; i < v->n; i++) {
        const struct nb_case *c = nb_group_case(plan, v->group, v->members[i]);
        keys[i] = nb_group_key(plan, v->group, v->members[i]);
        steps[i] = strcmp(kind, "counters") == 0 && !nb_step_memory_find(&run->steps, c);
        copy_of[i] = strcmp(kind, "launch") == 0 ? choose_copy(&job, state, c) : -1;
    }
    nb_process_run_from(v->fork_server, &job, run->digests_fd, silence(v), seed, take_answer, v, o);
    free(keys);
    free(copy_of);
    free(steps);
}

void nb_session_settle(struct nb_session *v, bool take_status) {
    const cJSON *c;
    cJSON_ArrayForEach(c, v->answers) {
        int member = nb_group_find(v->run->plan, v->group, nb_json_get_text(c, "key"));
        const char *status = nb_json_get_text(c, "status");
        if (member < 0) continue;
        if (status && take_status)
            v->run->state.groups[v->group].cases[member] = (struct nb_case_state){true, nb_status_parse(status)};
        for (int i = 0; i < v->n; i++)
            if (v->members[i] == member) nb_session_leave_out(v, i--);
    }
}

void nb_session_give_up(struct nb_session *v, enum nb_status status, const char *why) {
    for (int i = 0; i < v->n; i++) nb_session_failure(v, v->members[i], status, why);
    v->n = 0;
}
