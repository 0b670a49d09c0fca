// SPDX-License-Identifier: Apache-2.0
/* Jobs of one group, and what their workers answer. */
#include "src/measure/session.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/judge.h"

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

enum nb_status nb_session_blame(const struct nb_outcome *o, char *reason, size_t n) {
    if (o->ending == NB_ENDED_SILENT) {
        snprintf(reason, n, "no end within the time allowed");
        return NB_TIMED_OUT;
    }
    if (o->fault_status[0]) {
        size_t len = (size_t)snprintf(reason, n, "%s", o->fault_reason);
        if (o->signal && len < n) snprintf(reason + len, n - len, " (signal %d)", o->signal);
        enum nb_status status = nb_status_parse(o->fault_status);
        return status == NB_N_STATUSES ? NB_CRASHED : status;
    }
    if (o->ending == NB_ENDED_BY_SIGNAL && o->signal == SIGKILL)
        snprintf(reason, n, "killed (signal 9), as a system out of memory does");
    else if (o->ending == NB_ENDED_BY_SIGNAL)
        snprintf(reason, n, "signal %d, %s", o->signal, strsignal(o->signal));
    else
        snprintf(reason, n, "ended the process by exit code %d", o->exit_code);
    return NB_CRASHED;
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
