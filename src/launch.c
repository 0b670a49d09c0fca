// SPDX-License-Identifier: Apache-2.0
/* Checks, launches and counters of a plan, each a worker process; a case that ends its worker is named, left out, and the rest
 * goes on in a fresh one. */
#include "src/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/cpu.h"
#include "src/json.h"
#include "src/log.h"
#include "src/process.h"
#include "src/progress.h"
#include "src/step_memory.h"
#include "src/timer.h"

enum { MAX_CPUS = 1024, COLD_BYTES_MAX = 512 << 20, COLD_BYTES_UNKNOWN = 64 << 20 };
/* What a check may take for an element, many times over: a dozen calls, the oracle, the error figures. */
static const double silence_s_per_element = 2e-6;

struct run {
    const struct nb_plan *plan;
    struct nb_journal *journal;
    const struct nb_run_options *options;
    struct nb_run_state state;
    struct nb_step_memory steps;
    int cpus[MAX_CPUS], n_cpus;
    double started_s;
    int steps_done, steps_total;
    int failed; /* the journal cannot be written */
};

/* One group's stay in workers: which cases go in, what came back. */
struct visit {
    struct run *run;
    int group, launch;
    int *members; /* indices of the group's cases that are in the job */
    int n;
    cJSON *answers; /* "case" lines, by arrival */
    bool whole;     /* the journal line of a launch came */
};

static void write_line(struct run *run, const cJSON *line) {
    if (!run->failed && nb_journal_write(run->journal, line) != 0) run->failed = 1;
}

static uint64_t mix(uint64_t seed, uint64_t a, uint64_t b) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u * (a * 1000003u + b + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- failures ----------------------------------------------------------------------------------------------------- */

static void record_failure(struct visit *v, int member, enum nb_status status, const char *reason) {
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
    write_line(v->run, line);
    cJSON_Delete(line);
}

/* What the end of a worker says of the case it was at. */
static enum nb_status blame(const struct nb_outcome *o, char *reason, size_t n) {
    if (o->ending == NB_ENDED_SILENT) {
        snprintf(reason, n, "no end within the time allowed");
        return NB_TIMED_OUT;
    }
    if (o->fault_status[0]) {
        snprintf(reason, n, "%s (signal %d)", o->fault_reason, o->signal);
        enum nb_status status = nb_status_parse(o->fault_status);
        return status == NB_N_STATUSES ? NB_CRASHED : status;
    }
    if (o->ending == NB_ENDED_BY_SIGNAL)
        snprintf(reason, n, "signal %d, %s", o->signal, strsignal(o->signal));
    else
        snprintf(reason, n, "ended the process");
    return NB_CRASHED;
}

static void leave_out(struct visit *v, int position) {
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

static double silence(const struct run *run, const struct nb_case *c) {
    return run->options->case_timeout_s + silence_s_per_element * (double)c->shape.rows * (double)c->shape.cols;
}

/* Sends the visit's members to a worker. twins: for launches. */
static void visit_worker(struct visit *v, enum nb_job_kind kind, void (*take)(cJSON *line, void *arg),
                         struct nb_outcome *o) {
    struct run *run = v->run;
    const struct nb_plan *plan = run->plan;
    struct nb_group_state *state = &run->state.groups[v->group];
    const struct nb_case *first = nb_group_case(plan, v->group, v->members[0]);
    const char *keys[NB_GROUP_ARMS + 2], *twins[4];
    int slots[NB_GROUP_ARMS + 2], twin_of[NB_GROUP_ARMS + 2], cpus[MAX_CPUS];
    bool steps[NB_GROUP_ARMS + 2];
    uint64_t seed = mix(plan->order_seed, (uint64_t)v->group, (uint64_t)(v->launch + 1));
    struct nb_job job = {.kind = kind,
                         .group = v->group,
                         .launch = v->launch,
                         .plugins = run->options->plugins,
                         .n_plugins = run->options->n_plugins,
                         .max_width = run->options->max_width,
                         .keys = keys,
                         .slots = slots,
                         .steps = steps,
                         .n_cases = v->n,
                         .twins = twins,
                         .twin_of = twin_of,
                         .blocks = plan->blocks,
                         .slot_s = 1e-3 * plan->slot_ms,
                         .seed = seed,
                         .cold_bytes = cold_bytes(first),
                         .cpus = cpus,
                         .n_cpus = first->threads};
    for (int t = 0; t < job.n_cpus; t++) cpus[t] = run->cpus[(v->launch + 1 + t) % run->n_cpus];
    for (int i = 0; i < v->n; i++) {
        const struct nb_case *c = nb_group_case(plan, v->group, v->members[i]);
        keys[i] = nb_group_key(plan, v->group, v->members[i]);
        slots[i] = v->members[i];
        steps[i] = kind == NB_JOB_COUNTERS && !nb_step_memory_find(&run->steps, c);
        twin_of[i] = -1;
        int n_loads, n_stores;
        nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
        const char *twin =
            kind == NB_JOB_LAUNCH && c->op != NB_OP_TWIN ? nb_group_twin(state, n_loads, n_stores) : NULL;
        for (int t = 0; twin && t < job.n_twins; t++)
            if (strcmp(twins[t], twin) == 0) twin_of[i] = t;
        if (twin && twin_of[i] < 0 && job.n_twins < 4) {
            twin_of[i] = job.n_twins;
            twins[job.n_twins++] = twin;
        }
    }
    nb_process_run(&job, state->digests_fd, silence(run, first), seed, take, v, o);
}

static void take_answer(cJSON *line, void *arg) {
    struct visit *v = arg;
    const char *type = nb_json_get_text(line, "type");
    if (strcmp(type, "case") == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(line, "type");
        cJSON_AddItemToArray(v->answers, line);
        return;
    }
    if (strcmp(type, "twins") == 0) {
        struct nb_group_state *g = &v->run->state.groups[v->group];
        cJSON_Delete(g->twins);
        g->twins = cJSON_DetachItemFromObjectCaseSensitive(line, "twins");
    } else if (strcmp(type, "failure") == 0) {
        int member = nb_group_find(v->run->plan, v->group, nb_json_get_text(line, "key"));
        const char *status = nb_json_get_text(line, "status"), *reason = nb_json_get_text(line, "reason");
        if (member >= 0 && status) record_failure(v, member, nb_status_parse(status), reason ? reason : "");
    } else if (strcmp(type, "launch") == 0) {
        write_line(v->run, line);
        v->whole = true;
    }
    cJSON_Delete(line);
}

/* ---- check -------------------------------------------------------------------------------------------------------- */

/* Takes over the statuses of the answers, and drops their cases from the visit. */
static void settle(struct visit *v, const cJSON *answers, bool keep_status) {
    const cJSON *c;
    cJSON_ArrayForEach(c, answers) {
        int member = nb_group_find(v->run->plan, v->group, nb_json_get_text(c, "key"));
        const char *status = nb_json_get_text(c, "status");
        if (member < 0) continue;
        if (status && !keep_status)
            v->run->state.groups[v->group].cases[member] = (struct nb_case_state){true, nb_status_parse(status)};
        for (int i = 0; i < v->n; i++)
            if (v->members[i] == member) {
                leave_out(v, i);
                break;
            }
    }
}

static int make_digests(struct nb_group_state *g, const struct nb_plan *plan, int group) {
    double bytes = (double)plan->groups[group].n * (double)nb_group_case(plan, group, 0)->shape.rows * sizeof(uint64_t);
    g->digests_fd = memfd_create("normbench-digests", MFD_CLOEXEC);
    if (g->digests_fd < 0 || ftruncate(g->digests_fd, (off_t)bytes) != 0)
        return nb_error("no memory for the row digests");
    return 0;
}

/* Checks a group: again and again with what is left, as long as a worker dies of a case. */
static int check_group(struct run *run, int group) {
    struct nb_group_state *state = &run->state.groups[group];
    const size_t n = run->plan->groups[group].n;
    struct visit v = {
        .run = run, .group = group, .launch = -1, .members = nb_alloc(n, sizeof(int)), .answers = cJSON_CreateArray()};
    const bool again = state->checked; /* after --resume: for the digests alone */
    double start = nb_now_s();
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    int result = make_digests(state, run->plan, group);
    for (int i = 0; i < (int)n; i++)
        if (!state->cases[i].checked || nb_status_timed(state->cases[i].status)) v.members[v.n++] = i;
    while (result == 0 && v.n > 0) {
        int known = cJSON_GetArraySize(v.answers);
        visit_worker(&v, NB_JOB_CHECK, take_answer, &o);
        if (o.ending == NB_ENDED_WELL || o.ending == NB_ENDED_BY_USER || o.ending == NB_NOT_STARTED) break;
        char reason[200];
        int culprit = o.current >= 0 && o.current < v.n ? v.members[o.current] : -1;
        enum nb_status status = blame(&o, reason, sizeof reason);
        settle(&v, v.answers, again);
        if (culprit >= 0)
            record_failure(&v, culprit, status, reason);
        else if (cJSON_GetArraySize(v.answers) == known)
            result = nb_error("a worker ended before its first case: %s", reason);
        for (int i = 0; i < v.n; i++)
            if (v.members[i] == culprit) leave_out(&v, i);
    }
    settle(&v, v.answers, again);
    if (o.ending == NB_NOT_STARTED) result = -1;
    if (result == 0 && o.ending != NB_ENDED_BY_USER && !again) {
        cJSON *line = cJSON_CreateObject();
        nb_json_text(line, "type", "check");
        cJSON_AddNumberToObject(line, "group", group);
        cJSON_AddItemToObject(line, "cases", v.answers);
        v.answers = NULL;
        cJSON_AddItemToObject(line, "twins", state->twins ? cJSON_Duplicate(state->twins, 1) : cJSON_CreateArray());
        nb_json_number(line, "elapsed_s", nb_now_s() - start);
        write_line(run, line);
        cJSON_Delete(line);
        state->checked = true;
    }
    cJSON_Delete(v.answers);
    free(v.members);
    return result;
}

/* ---- launches and counters ---------------------------------------------------------------------------------------- */

static void timed_members(struct visit *v) {
    const struct nb_group_state *state = &v->run->state.groups[v->group];
    v->n = 0;
    for (int i = 0; i < (int)v->run->plan->groups[v->group].n; i++)
        if (state->cases[i].checked && nb_status_timed(state->cases[i].status)) v->members[v->n++] = i;
}

/* One launch. A case that ends the worker is out from then on, and the launch is made again without it. */
static int launch_group(struct run *run, int group, int launch) {
    struct visit v = {
        .run = run, .group = group, .launch = launch, .members = nb_alloc(run->plan->groups[group].n, sizeof(int))};
    int result = 0;
    for (;;) {
        struct nb_outcome o;
        char reason[200];
        timed_members(&v);
        if (v.n == 0) break;
        visit_worker(&v, NB_JOB_LAUNCH, take_answer, &o);
        if (o.ending == NB_ENDED_BY_USER || v.whole) break;
        if (o.ending == NB_NOT_STARTED) {
            result = -1;
            break;
        }
        enum nb_status status = blame(&o, reason, sizeof reason);
        int culprit = o.current >= 0 && o.current < v.n ? v.members[o.current] : -1;
        if (culprit < 0) {
            result = nb_error("group %d, launch %d: the worker ended outside of any case: %s", group, launch, reason);
            break;
        }
        record_failure(&v, culprit, status, reason);
    }
    free(v.members);
    return result;
}

static int count_group(struct run *run, int group) {
    struct visit v = {.run = run,
                      .group = group,
                      .launch = -1,
                      .members = nb_alloc(run->plan->groups[group].n, sizeof(int)),
                      .answers = cJSON_CreateArray()};
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    timed_members(&v);
    if (v.n > 0) visit_worker(&v, NB_JOB_COUNTERS, take_answer, &o);
    if (o.ending != NB_ENDED_BY_USER && o.ending != NB_NOT_STARTED) {
        /* A case that fails here has been checked and timed all right: its counters are missing, no more. */
        cJSON *line = cJSON_CreateObject(), *c;
        nb_json_text(line, "type", "counters");
        cJSON_AddNumberToObject(line, "group", group);
        cJSON_ArrayForEach(c, v.answers) {
            int member = nb_group_find(run->plan, group, nb_json_get_text(c, "key"));
            if (member >= 0) nb_step_memory_exchange(&run->steps, nb_group_case(run->plan, group, member), c);
        }
        cJSON_AddItemToObject(line, "cases", v.answers);
        v.answers = NULL;
        write_line(run, line);
        cJSON_Delete(line);
    }
    cJSON_Delete(v.answers);
    free(v.members);
    return o.ending == NB_NOT_STARTED ? -1 : 0;
}

/* ---- the run ------------------------------------------------------------------------------------------------------ */

static bool stopped(const struct run *run) { return nb_interrupted() || run->failed; }

static void step_done(struct run *run, int group, const char *what) {
    char text[160];
    run->steps_done++;
    snprintf(text, sizeof text, "%s %s", what, nb_group_case(run->plan, group, 0)->shape.text);
    nb_progress(run->steps_done, run->steps_total, nb_now_s() - run->started_s, text);
}

static bool launches_left(const struct run *run, int group) {
    for (int l = 0; l < run->plan->launches; l++)
        if (!run->state.groups[group].launched[l]) return true;
    return false;
}

static int run_rounds(struct run *run) {
    const int n = (int)run->plan->n_groups, launches = run->plan->launches;
    for (int g = 0; g < n && !stopped(run); g++) {
        if ((!run->state.groups[g].checked || launches_left(run, g)) && check_group(run, g) != 0) return -1;
        step_done(run, g, "checking");
    }
    for (int l = 0; l < launches; l++)
        for (int g = 0; g < n && !stopped(run); g++) {
            if (!run->state.groups[g].launched[l] && launch_group(run, g, l) != 0) return -1;
            step_done(run, g, "timing");
        }
    for (int g = 0; g < n && !stopped(run) && !run->options->no_counters; g++) {
        if (!run->state.groups[g].counted && count_group(run, g) != 0) return -1;
        step_done(run, g, "counting");
    }
    return run->failed ? -1 : 0;
}

static double peak_memory_mib(void) {
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(self.ru_maxrss > children.ru_maxrss ? self.ru_maxrss : children.ru_maxrss) /
           1024; /* of one process */
}

static void write_end(struct run *run) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "end");
    nb_json_number(line, "elapsed_s", nb_now_s() - run->started_s);
    nb_json_number(line, "peak_memory_mib", peak_memory_mib());
    if (nb_interrupted())
        cJSON_AddNumberToObject(line, "interrupted", nb_interrupted());
    else
        cJSON_AddNullToObject(line, "interrupted");
    write_line(run, line);
    cJSON_Delete(line);
}

int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options) {
    struct run run = {.plan = plan, .journal = journal, .options = options, .started_s = nb_now_s()};
    int result = -1;
    nb_run_state_init(&run.state, plan);
    if (nb_run_state_read(&run.state, dir) != 0) goto out;
    run.n_cpus = nb_cpu_allowed(run.cpus, MAX_CPUS);
    run.steps_total = (int)plan->n_groups * (plan->launches + (options->no_counters ? 1 : 2));
    nb_watch_interrupts();
    result = run_rounds(&run);
    nb_progress_end();
    write_end(&run);
    if (result == 0) result = nb_interrupted();
out:
    nb_step_memory_release(&run.steps);
    nb_run_state_release(&run.state);
    return result;
}
