// SPDX-License-Identifier: Apache-2.0
/* From the journal's lines to the state of each group; then its session in a worker: check, copies, launches, counters. */
#include "src/measure/session.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/counters.h"
#include "src/measure/judge.h"
#include "src/measure/launcher.h"
#include "src/measure/lines.h"
#include "src/plan/estimate.h"
#include "src/programs/program_process.h"

/* ---- what the run knows ------------------------------------------------------------------------------------------ */

/* The index of a key in a group, or -1. */
static int find_case(const struct nb_plan *plan, int group, const char *key) {
    const struct nb_group *g = &plan->groups[group];
    for (int i = 0; key && i < (int)g->n; i++)
        if (strcmp(plan->keys[g->cases[i]], key) == 0) return i;
    return -1;
}

int nb_checks_at_once(const struct nb_plan *plan, int n_cpus) {
    const int n = n_cpus < NB_MAX_SEATS ? n_cpus : NB_MAX_SEATS, n_groups = (int)plan->n_groups;
    return n < 1 || n_groups < 1 ? 1 : n < n_groups ? n : n_groups;
}

static double elements(const struct nb_case *c) { return (double)c->shape.rows * (double)c->shape.cols; }

static void choose_smallest(struct nb_run *run) {
    const struct nb_plan *plan = run->plan;
    struct nb_text_map first released_by(nb_text_map_release) = {0};
    size_t *smallest freed = nb_alloc(plan->n_cases, sizeof *smallest);
    run->calls_many = nb_alloc(plan->n_cases, sizeof *run->calls_many);
    for (size_t i = 0; i < plan->n_cases; i++) {
        const size_t seen = nb_text_map_add(&first, plan->cases[i].variant, i), at = seen == NB_NOWHERE ? i : seen;
        if (seen != NB_NOWHERE && elements(&plan->cases[i]) >= elements(&plan->cases[smallest[at]])) continue;
        if (seen != NB_NOWHERE) run->calls_many[smallest[at]] = false;
        run->calls_many[smallest[at] = i] = true;
    }
}

static void init_groups(struct nb_run *run) {
    const struct nb_plan *plan = run->plan;
    run->groups = nb_alloc(plan->n_groups, sizeof *run->groups);
    for (size_t g = 0; g < plan->n_groups; g++) {
        run->groups[g].cases = nb_alloc(plan->groups[g].n, sizeof *run->groups[g].cases);
        run->groups[g].launched = nb_alloc((unsigned)plan->most_launches * plan->groups[g].n, sizeof(bool));
        run->groups[g].digests_at = -1;
    }
    nb_schedule_init(&run->schedule, plan, nb_checks_at_once(plan, run->n_cpus), !run->options->no_counters);
}

void nb_run_release(struct nb_run *run) {
    for (size_t g = 0; g < run->plan->n_groups; g++) {
        free(run->groups[g].cases);
        free(run->groups[g].launched);
        cJSON_Delete(run->groups[g].copies);
    }
    free(run->groups);
    free(run->calls_many);
    nb_strings_release(&run->hung);
    nb_known_counts_release(&run->known_counts);
    nb_schedule_release(&run->schedule);
    if (run->digests_fd >= 0) close(run->digests_fd);
}

/* ---- from the journal --------------------------------------------------------------------------------------------- */

static int take_run(struct nb_run *run, const cJSON *line) {
    const char *hash = nb_json_get_text(nb_json_get(line, "plan"), "hash");
    const cJSON *groups = nb_json_get(line, "groups");
    if (hash && strcmp(hash, run->plan->hash) == 0 && cJSON_GetArraySize(groups) == (int)run->plan->n_groups) return 0;
    return nb_error(
        "the journal belongs to another plan: another config, other kernels or another CPU; start a new run");
}

/* Of a checked case or a failure; journaled: as the journal says. */
static void take_status(struct nb_run *run, int g, const cJSON *json, bool journaled) {
    const int i = find_case(run->plan, g, nb_json_get_text(json, "key"));
    const char *status = nb_json_get_text(json, "status");
    if (i >= 0 && status) run->groups[g].cases[i] = (struct nb_case_state){true, journaled, nb_status_parse(status)};
}

/* What earlier processes of this run took, by the lines of all stages; checks ran side by side. */
static double take_time(struct nb_run *run, const cJSON *line, int at_once) {
    const double elapsed_s = fmax(nb_json_get_number(line, "elapsed_s"), 0);
    run->used_s += elapsed_s / at_once;
    return elapsed_s;
}

static void take_check(struct nb_run *run, int g, const cJSON *line) {
    const cJSON *c, *copies = nb_json_get(line, "copies");
    take_time(run, line, cJSON_GetArraySize(copies) > 0 ? 1 : run->schedule.checks_at_once);
    cJSON_ArrayForEach(c, nb_json_get(line, "cases")) take_status(run, g, c, true);
    if (cJSON_GetArraySize(copies) > 0) {
        cJSON_Delete(run->groups[g].copies);
        run->groups[g].copies = cJSON_Duplicate(copies, 1);
        run->groups[g].copy_trials = NB_COPY_TRIALS;
    }
}

static bool *launched_at(const struct nb_run *run, int group, int launch, int index) {
    return &run->groups[group].launched[(size_t)launch * run->plan->groups[group].n + (size_t)index];
}

/* A launch has one line, or several with different cases. */
static int take_launch(struct nb_run *run, int g, int launch, const cJSON *line) {
    const cJSON *c;
    cJSON_ArrayForEach(c, nb_json_get(line, "cases")) {
        const int i = find_case(run->plan, g, nb_json_get_text(c, "key"));
        if (i >= 0) *launched_at(run, g, launch, i) = true;
    }
    return nb_schedule_take(&run->schedule, g, line);
}

static int take_launch_done(struct nb_run *run, int g, const cJSON *line) {
    const double launch = nb_json_get_number(line, "launch");
    if (!(launch >= 0 && launch < run->plan->most_launches)) return 0;
    run->schedule.groups[g].spent[NB_STAGE_LAUNCH].s += take_time(run, line, 1);
    return take_launch(run, g, (int)launch, line);
}

static int take_stop(struct nb_run *run, int g, const cJSON *line) {
    run->groups[g].stop_written = true;
    return nb_schedule_take(&run->schedule, g, line);
}

static int take_line(const cJSON *line, void *arg) {
    struct nb_run *run = arg;
    const char *type = nb_json_get_text(line, "type");
    if (strcmp(type, "run") == 0) return take_run(run, line);
    const double group = nb_json_get_number(line, "group");
    if (!(group >= 0 && group < (double)run->plan->n_groups)) return 0;
    const int g = (int)group;
    if (strcmp(type, "check") == 0)
        take_check(run, g, line);
    else if (strcmp(type, "failure") == 0)
        take_status(run, g, line, true);
    else if (strcmp(type, "counters") == 0) {
        take_time(run, line, 1);
        nb_schedule_spent(&run->schedule, g, NB_STAGE_COUNTERS, 0);
    } else if (strcmp(type, "launch") == 0)
        return take_launch_done(run, g, line);
    else if (strcmp(type, "stop") == 0)
        return take_stop(run, g, line);
    return 0;
}

/* Does the journal say how each case came out of its check? */
static bool is_checked(const struct nb_run *run, int group) {
    bool is_checked = true;
    for (size_t i = 0; i < run->plan->groups[group].n; i++) is_checked &= run->groups[group].cases[i].journaled;
    return is_checked;
}

/* Has the journal no samples of a case that may be timed? */
static bool lacks_launch(const struct nb_run *run, int group, int launch) {
    const struct nb_group_state *state = &run->groups[group];
    for (int i = 0; i < (int)run->plan->groups[group].n; i++)
        if ((!state->cases[i].checked || nb_status_timed(state->cases[i].status)) &&
            !*launched_at(run, group, launch, i))
            return true;
    return false;
}

/* Launches that the journal holds whole; of others the cases that it lacks are launched again, also in a group that had stopped. */
static void mark_launched(struct nb_run *run) {
    for (int g = 0; g < (int)run->plan->n_groups; g++) {
        struct nb_scheduled_group *scheduled = &run->schedule.groups[g];
        for (int l = 0; l < run->plan->most_launches; l++) {
            bool began = false;
            for (int i = 0; i < (int)run->plan->groups[g].n; i++) began |= *launched_at(run, g, l, i);
            const bool lacks = lacks_launch(run, g, l);
            if (began && !lacks) nb_schedule_tried(&run->schedule, g, l, 0);
            if (!lacks || l >= scheduled->n_when_stopped) continue;
            scheduled->stopped = NB_STOP_UNKNOWN;
            scheduled->left_out = false;
            run->groups[g].stop_written = false;
        }
    }
}

/* What a group that has all its launches, or all that it is to have, is not checked or tried for again. */
static void mark_done(struct nb_run *run) {
    for (int g = 0; g < (int)run->plan->n_groups; g++) {
        const bool tried = run->groups[g].copy_trials == NB_COPY_TRIALS, due = nb_run_is_due(run, g);
        if (!due && is_checked(run, g)) nb_schedule_spent(&run->schedule, g, NB_STAGE_CHECK, 0);
        for (int i = 0; i < NB_COPY_TRIALS && (tried || !due); i++)
            nb_schedule_spent(&run->schedule, g, NB_STAGE_ROOFS, 0);
    }
}

int nb_run_init(struct nb_run *run, const char *dir) {
    init_groups(run);
    choose_smallest(run);
    pthread_mutex_init(&run->shared, NULL);
    nb_floors_load(&run->schedule.floors);
    if (nb_journal_read(dir, take_line, run) != 0) return -1;
    mark_launched(run);
    mark_done(run);
    return 0;
}

bool nb_run_is_due(const struct nb_run *run, int group) {
    assert(run && group >= 0 && group < (int)run->plan->n_groups);
    const bool is_open =
        run->schedule.groups[group].stopped == NB_STOP_UNKNOWN && nb_schedule_next(&run->schedule, group) >= 0;
    return !run->schedule.groups[group].left_out && (is_open || !is_checked(run, group));
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

/* A group's stay in one worker process after another. */
struct session {
    struct nb_run *run;
    const struct nb_group *group;
    struct nb_group_state *state;
    struct nb_fork_server *fork_server; /* where its workers come from; null: they are executed */
    int number, launch;                 /* of the group; launch: -1 in checks and counter passes */
    int *members;                       /* indices of the group's cases that go in; owned */
    int n;
    bool alone;                /* the first of them alone goes into the next worker */
    bool anew;                 /* and into a program that none was called in */
    int cpu;                   /* how far its CPUs are behind the launch's, where several workers run at once */
    cJSON *answers;            /* "case" lines, of a launch "launch" and "failure" lines, by arrival; owned */
    struct nb_outcome outcome; /* of the last worker */
};

enum { MAX_COPIES = 8 };
/* What a check may take for an element, many times over: a dozen calls, the oracle, the error figures. */
static const double silence_s_per_element = 2e-6;

void nb_run_write(struct nb_run *run, cJSON *line) {
    pthread_mutex_lock(&run->shared);
    if (!run->failed && nb_journal_write(run->journal, line) != 0) run->failed = true;
    pthread_mutex_unlock(&run->shared);
    cJSON_Delete(line);
}

static cJSON *new_line(const char *type, int group) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", type);
    cJSON_AddNumberToObject(line, "group", group);
    return line;
}

static void init_session(struct session *v, struct nb_run *run, int group, int launch) {
    assert(run && group >= 0 && group < (int)run->plan->n_groups);
    *v = (struct session){.run = run,
                          .group = &run->plan->groups[group],
                          .state = &run->groups[group],
                          .fork_server = run->fork_server,
                          .number = group,
                          .launch = launch,
                          .members = nb_alloc(run->plan->groups[group].n, sizeof(int)),
                          .answers = cJSON_CreateArray(),
                          .outcome = {.ending = NB_ENDED_WELL}};
}

/* -1: no worker can be started. */
static int end_session(struct session *v) {
    cJSON_Delete(v->answers);
    free(v->members);
    return v->outcome.ending == NB_NOT_STARTED ? -1 : 0;
}

static const char *key_of(const struct session *v, int member) { return v->run->plan->keys[v->group->cases[member]]; }
static const struct nb_case *case_of(const struct session *v, int member) {
    return &v->run->plan->cases[v->group->cases[member]];
}

/* The group's cases that may be timed go in, of a launch those that it lacks; with unchecked those that are not checked yet, too. */
static void take_members(struct session *v, bool unchecked) {
    v->n = 0;
    for (int i = 0; i < (int)v->group->n; i++) {
        const struct nb_case_state *c = &v->state->cases[i];
        if (v->launch >= 0 && *launched_at(v->run, v->number, v->launch, i)) continue;
        if (c->checked ? nb_status_timed(c->status) : unchecked) v->members[v->n++] = i;
    }
}

/* How many of them the next worker gets. */
static int n_sent(const struct session *v) { return v->alone && v->n > 1 ? 1 : v->n; }

/* A failure line, and the case's status from now on. */
static void fail(struct session *v, int member, enum nb_status status, const char *reason) {
    assert(nb_status_ends(status));
    v->state->cases[member] = (struct nb_case_state){true, true, status};
    nb_run_write(v->run,
                 nb_failure_to_json(&(struct nb_failure){v->number, v->launch, key_of(v, member), reason, status}));
    pthread_mutex_lock(&v->run->shared);
    if (status == NB_TIMED_OUT) nb_strings_add(&v->run->hung, case_of(v, member)->variant);
    pthread_mutex_unlock(&v->run->shared);
}

static void leave_out(struct session *v, int position) {
    memmove(v->members + position, v->members + position + 1, (size_t)(v->n - position - 1) * sizeof *v->members);
    v->n--;
}

/* A kernel that hung once is not waited for again in this group; nor in others where waiting took half of the budget. */
static bool is_given_up(const struct session *v, const char *variant) {
    struct nb_run *run = v->run;
    bool has_hung = false;
    for (int i = 0; i < (int)v->group->n; i++)
        has_hung |= v->state->cases[i].status == NB_TIMED_OUT && strcmp(case_of(v, i)->variant, variant) == 0;
    pthread_mutex_lock(&run->shared);
    for (size_t i = 0; i < run->hung.n && 2 * run->silent_s >= run->plan->budget_s - run->plan->kept_s; i++)
        has_hung |= strcmp(run->hung.items[i], variant) == 0;
    pthread_mutex_unlock(&run->shared);
    return has_hung;
}

static void give_up_hung(struct session *v) {
    for (int at = v->n - 1; at >= 0; at--) {
        if (!is_given_up(v, case_of(v, v->members[at])->variant)) continue;
        fail(v, v->members[at], NB_SKIPPED, "not tried: the kernel hung in a case before");
        leave_out(v, at);
    }
}

/* No worker could be started, or the user has ended the last one. */
static bool is_over(const struct session *v) {
    return v->outcome.ending == NB_NOT_STARTED || v->outcome.ending == NB_ENDED_BY_USER;
}

/* ---- one worker --------------------------------------------------------------------------------------------------- */

/* Of a group's row digests. */
static int64_t digest_bytes(const struct nb_plan *plan, int group) {
    const int64_t rows = plan->cases[plan->groups[group].cases[0]].shape.rows;
    return (int64_t)plan->groups[group].n * nb_n_digests(rows) * (int64_t)sizeof(uint64_t);
}

/* When the time of the run is over, by nb_now_s(). */
static double end_s(const struct nb_run *run) {
    return run->started_s + run->plan->budget_s - run->plan->kept_s - run->used_s;
}

/* The last time by which a case may begin; 0: there is none. */
static double until_s(const struct nb_run *run) {
    return isfinite(run->plan->budget_s) && !run->plan->leaves_none_out ? end_s(run) : 0;
}

static double silence(const struct session *v) {
    const double left_s = fmax(end_s(v->run) - nb_now_s(), 0);
    double largest = 0, limit_s = v->run->options->case_timeout_s;
    for (int i = 0; i < v->n; i++) largest = fmax(largest, elements(case_of(v, v->members[i])));
    const double late_s = v->run->options->late_timeout_s;
    if (late_s > 0) limit_s = fmin(limit_s, left_s + late_s);
    return limit_s + silence_s_per_element * largest;
}

/* Its place among the members, or -1. */
static int find_member(const struct session *v, int member) {
    for (int i = 0; i < v->n; i++)
        if (v->members[i] == member) return i;
    return -1;
}

/* Is the key one of those sent? */
static bool was_sent(const struct session *v, const char *key) {
    const int at = find_member(v, find_case(v->run->plan, v->number, key));
    return at >= 0 && at < n_sent(v);
}

static bool can_read_launch(const struct session *v, const cJSON *line) {
    struct nb_launch_line l released_by(nb_launch_line_release);
    bool fits = nb_launch_line_read(&l, line, &v->run->schedule.floors) == 0 && l.group == v->number &&
                l.launch == v->launch && l.n_cases == (size_t)n_sent(v) && l.n_blocks == (size_t)v->group->blocks;
    for (size_t i = 0; fits && i < l.n_cases; i++) fits = was_sent(v, l.arms[i].key);
    return fits;
}

/* Of a check, or of the counter pass. */
static bool can_read_case(const cJSON *line) {
    struct nb_check_line checked;
    struct nb_counter counters[NB_MAX_COUNTERS];
    if (cJSON_HasObjectItem(line, "counters")) return nb_counters_read(counters, line) >= 0;
    return nb_check_line_read(&checked, line) == 0;
}

/* What a worker says is data from outside: a kernel may have harmed it before it was said. */
static bool can_read(const struct session *v, const cJSON *line) {
    const char *type = nb_json_get_text(line, "type");
    struct nb_failure failure;
    if (strcmp(type, "launch") == 0) return can_read_launch(v, line);
    if (strcmp(type, "copies") == 0) return true; /* those that are no copies are not chosen */
    if (!was_sent(v, nb_json_get_text(line, "key"))) return false;
    return strcmp(type, "failure") == 0 ? nb_failure_read(&failure, line) == 0 : can_read_case(line);
}

/* One more trial. A copy that one of them has no time of has none. */
static void take_copies(struct nb_group_state *state, cJSON *line) {
    const double n = state->copy_trials;
    cJSON *copies = cJSON_DetachItemFromObjectCaseSensitive(line, "copies"), *copy;
    cJSON_ArrayForEach(copy, state->copies) {
        const cJSON *now = nb_json_find(copies, "variant", nb_json_get_text(copy, "variant"));
        const double before_ns = nb_json_get_number(copy, "ns"), now_ns = nb_json_get_number(now, "ns");
        cJSON_SetNumberValue(nb_json_get(copy, "ns"), exp((n * log(before_ns) + log(now_ns)) / (n + 1)));
    }
    if (state->copies)
        cJSON_Delete(copies);
    else
        state->copies = copies;
}

static void take_answer(cJSON *line, void *arg) {
    struct session *v = arg;
    const char *type = nb_json_get_text(line, "type");
    const bool is_case = strcmp(type, "case") == 0;
    if (!can_read(v, line)) {
        nb_warn("a worker's answer cannot be used and is ignored: %s", type);
        cJSON_Delete(line);
        return;
    }
    if (is_case) cJSON_DeleteItemFromObjectCaseSensitive(line, "type");
    if (is_case || strcmp(type, "launch") == 0 || strcmp(type, "failure") == 0) {
        cJSON_AddItemToArray(v->answers, line);
        return;
    }
    if (strcmp(type, "copies") == 0) take_copies(v->state, line);
    cJSON_Delete(line);
}

/* What a candidate with a pattern of loads and stores takes; NaN: it has another one. */
static double candidate_ns(const cJSON *copy, int n_loads, int n_stores, const struct nb_kernel **kernel) {
    const char *variant = nb_json_get_text(copy, "variant");
    const struct nb_entry *entry = variant ? nb_registry_find(variant) : NULL;
    if (!entry || entry->kernel->loads != (float)n_loads || entry->kernel->stores != (float)n_stores) return NAN;
    *kernel = entry->kernel;
    return nb_json_get_number(copy, "ns");
}

/* The fastest candidate with a pattern, or null. On a CPU of those that are about as fast the widest, since it has the fewest instructions, and
 * loses least beside a neighbour; of one width that which stores plainly, which comes first. */
static const char *choose_candidate(const struct nb_group_state *g, int n_loads, int n_stores) {
    const struct nb_kernel *kernel, *widest = NULL;
    const char *best = NULL;
    double best_ns = INFINITY;
    const cJSON *copy;
    cJSON_ArrayForEach(copy, g->copies) best_ns = fmin(best_ns, candidate_ns(copy, n_loads, n_stores, &kernel));
    cJSON_ArrayForEach(copy, g->copies) {
        const double ns = candidate_ns(copy, n_loads, n_stores, &kernel);
        if (!(ns <= best_ns) && !(ns <= NB_AS_FAST * best_ns && kernel->backend == NB_BACKEND_CPU)) continue;
        if (widest && kernel->width <= widest->width) continue;
        widest = kernel;
        best = nb_json_get_text(copy, "variant");
    }
    return best;
}

/* Whether non-temporal stores are faster changes with what neighbours leave of the last cache, where a case lies about there. */
static bool may_change_copy(const struct nb_case *c) {
    const struct nb_cpu *cpu = nb_cpu_light();
    const double bytes = nb_case_bytes(c);
    return c->backend == NB_BACKEND_CPU && c->cache != NB_COLD && cpu->l2_bytes > 0 &&
           bytes > (double)cpu->l2_bytes / 2 && (cpu->l3_bytes == 0 || bytes <= 2 * (double)cpu->l3_bytes);
}
/* The runner-up: the fastest candidate of the other kind of store, unless it takes far longer; or null. */
static const char *choose_other(const struct nb_group_state *g, const char *chosen, int n_loads, int n_stores) {
    const double far_longer = 1.5;
    const bool streams = nb_registry_find(chosen)->kernel->flags & NB_FLAG_STREAMING;
    const struct nb_kernel *kernel;
    const char *best = NULL;
    double best_ns = far_longer * candidate_ns(nb_json_find(g->copies, "variant", chosen), n_loads, n_stores, &kernel);
    const cJSON *copy;
    cJSON_ArrayForEach(copy, g->copies) {
        const double ns = candidate_ns(copy, n_loads, n_stores, &kernel);
        if (!(ns <= best_ns) || (bool)(kernel->flags & NB_FLAG_STREAMING) == streams) continue;
        best_ns = ns;
        best = nb_json_get_text(copy, "variant");
    }
    return best;
}

/* Its number among the job's copies, from 1, which grow by it; 0: null. */
static int add_copy(struct nb_job *job, const char *copy) {
    if (!copy) return 0;
    for (int t = 0; t < job->n_copies; t++)
        if (strcmp(job->copies[t], copy) == 0) return t + 1;
    if (job->n_copies == MAX_COPIES) return 0;
    job->copies[job->n_copies] = copy;
    return ++job->n_copies;
}
/* The copy of a case and the runner-up. */
static void choose_copies(struct nb_job *job, int i, const struct nb_group_state *state, const struct nb_case *c) {
    int n_loads, n_stores;
    nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
    const char *copy = c->op == NB_OP_COPY ? NULL : choose_candidate(state, n_loads, n_stores);
    const char *other = copy && may_change_copy(c) ? choose_other(state, copy, n_loads, n_stores) : NULL;
    job->asked[i].copy = add_copy(job, copy);
    job->asked[i].other_copy = add_copy(job, other);
}

/* Sends members to a worker and takes its answers. */
static void work(struct session *v, const char *kind) {
    struct nb_run *run = v->run;
    const struct nb_plan *plan = run->plan;
    const struct nb_case *first = case_of(v, v->members[0]);
    const int n = n_sent(v);
    struct nb_asked *asked freed = nb_alloc((unsigned)n, sizeof *asked);
    const char *copies[MAX_COPIES];
    int cpus[NB_MAX_CPUS];
    const struct nb_random random = nb_random_stream(plan->order_seed, (uint64_t)v->number);
    struct nb_job job = {.kind = kind,
                         .group = v->number,
                         .launch = v->launch,
                         .check_only = !nb_group_is_timed(plan, (size_t)v->number),
                         .single_width = v->group->single_width,
                         .plugins = run->options->plugins,
                         .n_plugins = run->options->n_plugins,
                         .asked = asked,
                         .n_cases = n,
                         .copies = copies,
                         .blocks = v->group->blocks,
                         .sample_s = 1e-3 * plan->sample_ms,
                         .seed = nb_random_bits(random, (uint64_t)(v->launch + 1)),
                         .cold_bytes = strcmp(kind, "check") == 0 ? 0 : nb_cold_bytes(first),
                         .until_s = until_s(run),
                         .programs_anew = v->anew || (v->alone && v->launch < 0),
                         .digests_at = v->state->digests_at,
                         .digests_bytes = digest_bytes(plan, v->number),
                         .cpus = cpus,
                         .n_cpus = nb_launcher_cpus(cpus, first->threads, v->launch + 1 + v->cpu)};
    job.floor = nb_floors_get(&run->schedule.floors, cpus[0], first->threads);
    for (int i = 0; i < n; i++) {
        const struct nb_case *c = case_of(v, v->members[i]);
        asked[i] = (struct nb_asked){.key = key_of(v, v->members[i]), .sample = v->members[i]};
        asked[i].step = strcmp(kind, "counters") == 0 && !nb_known_counts_find(&run->known_counts, c);
        asked[i].many = strcmp(kind, "check") == 0 && run->calls_many[v->group->cases[v->members[i]]];
        if (strcmp(kind, "launch") == 0) choose_copies(&job, i, v->state, c);
    }
    nb_process_run(v->fork_server, &job, run->digests_fd, silence(v), take_answer, v, &v->outcome);
    pthread_mutex_lock(&run->shared);
    if (v->outcome.ending == NB_ENDED_SILENT) run->silent_s += v->outcome.silence_s;
    pthread_mutex_unlock(&run->shared);
}

/* Drops the answered cases from the members; with take_statuses those not in the journal are the run's from now on. Returns the case that the
 * worker ended at: an index of the group, or -1. */
static int settle(struct session *v, bool take_statuses) {
    const int current = v->outcome.current;
    const int culprit = current >= 0 && current < n_sent(v) ? v->members[current] : -1;
    const cJSON *c;
    cJSON_ArrayForEach(c, v->answers) {
        const int member = find_case(v->run->plan, v->number, nb_json_get_text(c, "key"));
        if (take_statuses && member >= 0 && !v->state->cases[member].journaled)
            take_status(v->run, v->number, c, false);
        const int at = find_member(v, member);
        if (at >= 0) leave_out(v, at);
    }
    return culprit;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Each group's part begins with a page, so that a worker can map it alone. */
static int make_digests(struct nb_run *run, int group) {
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = digest_bytes(run->plan, group);
    int result = 0;
    pthread_mutex_lock(&run->shared);
    if (run->digests_fd < 0) run->digests_fd = memfd_create("normbench-digests", MFD_CLOEXEC);
    run->groups[group].digests_at = run->digests_end;
    run->digests_end += (bytes + page - 1) / page * page;
    if (run->digests_fd < 0 || ftruncate(run->digests_fd, run->digests_end) != 0)
        result = nb_error("row digests: a file in memory of %lld bytes cannot be made: %s%s",
                          (long long)run->digests_end, strerror(errno), errno == EFBIG ? "; raise `ulimit -f`" : "");
    pthread_mutex_unlock(&run->shared);
    return result;
}

/* The cases that the journal does not have yet: others are checked again for their digests. */
static void write_check(struct session *v, double elapsed_s) {
    const cJSON *copies = v->state->copies;
    cJSON *line = new_line("check", v->number), *cases = cJSON_AddArrayToObject(line, "cases"), *c;
    while ((c = cJSON_DetachItemFromArray(v->answers, 0))) {
        const int i = find_case(v->run->plan, v->number, nb_json_get_text(c, "key"));
        if (i < 0 || v->state->cases[i].journaled) {
            cJSON_Delete(c);
            continue;
        }
        v->state->cases[i].journaled = true;
        cJSON_AddItemToArray(cases, c);
    }
    cJSON_AddItemToObject(line, "copies", copies ? cJSON_Duplicate(copies, 1) : cJSON_CreateArray());
    nb_json_number(line, "elapsed_s", elapsed_s);
    nb_run_write(v->run, line);
}

static const char *file_of(const struct session *v, int member) {
    const struct nb_entry *entry = member >= 0 ? nb_registry_find(case_of(v, member)->variant) : NULL;
    return entry && entry->file ? entry->file : "";
}

/* Does the plan call another kernel of its file? */
static bool has_siblings(const struct session *v, int member) {
    const struct nb_plan *plan = v->run->plan;
    for (size_t i = 0; i < plan->n_cases; i++) {
        const struct nb_entry *entry = nb_registry_find(plan->cases[i].variant);
        const bool same_file = entry && entry->file && strcmp(entry->file, file_of(v, member)) == 0;
        if (same_file && strcmp(plan->cases[i].variant, case_of(v, member)->variant) != 0) return true;
    }
    return false;
}

/* A kernel of a program is called behind others of it, whose leftovers (a thread, a timer, harmed memory) may have ended it or kept it from
 * answering. True: this may be so in the worker whose answers come behind the first n_answered, and the next one begins with this kernel. */
static bool begins_anew(struct session *v, int at, int n_answered) {
    const int culprit = at >= 0 ? v->members[at] : -1;
    const char *file = file_of(v, culprit);
    bool had_company = v->outcome.had_company;
    for (const cJSON *c = cJSON_GetArrayItem(v->answers, n_answered); c && !had_company; c = c->next)
        had_company = strcmp(file_of(v, find_case(v->run->plan, v->number, nb_json_get_text(c, "key"))), file) == 0;
    if (!had_company || !nb_kernel_program_is(file) || !has_siblings(v, culprit)) return false;
    memmove(v->members + 1, v->members, (size_t)at * sizeof *v->members);
    v->members[0] = culprit;
    v->anew = true;
    nb_note("%s: its program did not answer after other kernels had run; it is called again without them",
            case_of(v, culprit)->variant);
    return true;
}

int nb_session_check(struct nb_run *run, int group, int cpu, struct nb_fork_server *fork_server) {
    const double start = nb_now_s();
    struct session v;
    bool late = false;
    assert(run && group >= 0 && group < (int)run->plan->n_groups);
    if (run->plan->launches > 0 && make_digests(run, group) != 0) return -1;
    init_session(&v, run, group, -1);
    v.cpu = cpu;
    v.fork_server = fork_server;
    take_members(&v, true);
    give_up_hung(&v);
    while (v.n > 0) {
        char reason[200];
        const int n_answered = cJSON_GetArraySize(v.answers); /* by earlier workers */
        work(&v, "check");
        const int sent = n_sent(&v), before = v.n, culprit = settle(&v, true), at = find_member(&v, culprit);
        if (is_over(&v)) break;
        late = v.n > 0 && v.outcome.ending == NB_ENDED_WELL && until_s(run) > 0 && nb_now_s() > until_s(run);
        if (late) break;
        if (begins_anew(&v, at, n_answered)) continue;
        if (at < 0 && v.n == before && v.outcome.had_company) { /* a program that others left unable to begin */
            v.anew = true;
            continue;
        }
        /* A worker that ended well but left cases out was ended by one of them. */
        const enum nb_status status = nb_outcome_blame(&v.outcome, reason, sizeof reason);
        const int blamed = at < 0 && sent == 1 && v.n == before ? 0 : at;
        v.alone |= blamed < 0 && v.n > 0; /* before the first case, or behind the last: which one shows when alone */
        if (blamed < 0) continue;
        fail(&v, v.members[blamed], status, reason);
        leave_out(&v, blamed);
        give_up_hung(&v);
    }
    if (!is_over(&v) && !is_checked(run, group)) write_check(&v, nb_now_s() - start);
    return end_session(&v) != 0 ? -1 : late;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* One case that may be timed for each pattern of loads and stores. */
static void one_of_each_pattern(struct session *v) {
    bool seen[4][4] = {{false}};
    int kept = 0;
    take_members(v, false);
    for (int i = 0; i < v->n; i++) {
        const struct nb_case *c = case_of(v, v->members[i]);
        int n_loads, n_stores;
        nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
        if (c->op == NB_OP_COPY || n_loads > 3 || n_stores > 3 || seen[n_loads][n_stores]) continue;
        seen[n_loads][n_stores] = true;
        v->members[kept++] = v->members[i];
    }
    v->n = kept;
}

int nb_session_copies(struct nb_run *run, int group) {
    const double start = nb_now_s();
    struct nb_group_state *state = &run->groups[group];
    struct session v;
    char reason[200];
    if (!nb_run_is_due(run, group) || state->copy_trials == NB_COPY_TRIALS) return 0;
    init_session(&v, run, group,
                 state->copy_trials); /* another CPU and other distances between the buffers each time */
    one_of_each_pattern(&v);
    if (v.n > 0) work(&v, "copies");
    /* The trials differ in the CPU, in who uses the other half of it, and in where tensors lie, which a device does not know. */
    const bool is_host = nb_device_is_host(nb_device_of(run->plan->cases[v.group->cases[0]].backend));
    state->copy_trials = is_host ? state->copy_trials + 1 : NB_COPY_TRIALS;
    state->copies_s += nb_now_s() - start;
    if (v.outcome.ending != NB_ENDED_WELL && !is_over(&v)) {
        nb_outcome_blame(&v.outcome, reason, sizeof reason);
        nb_warn("a trial of copies for %s: %s", case_of(&v, 0)->shape.text, reason);
        state->copy_trials = NB_COPY_TRIALS;
    }
    if (state->copies && state->copy_trials == NB_COPY_TRIALS) write_check(&v, state->copies_s);
    return end_session(&v);
}

/* ---- launches and counters ---------------------------------------------------------------------------------------- */

/* All members in one worker. True: the launch came to its end, and nothing went wrong in it. */
static bool launch_together(struct session *v) {
    const cJSON *line;
    cJSON_Delete(v->answers);
    v->answers = cJSON_CreateArray();
    work(v, "launch");
    bool whole = cJSON_GetArraySize(v->answers) > 0;
    cJSON_ArrayForEach(line, v->answers) whole &= nb_json_is(line, "type", "launch");
    return whole;
}

/* What went wrong in a worker that had but one case is that case's. */
static void blame_alone(struct session *v) {
    const cJSON *line;
    char reason[200];
    cJSON_ArrayForEach(line, v->answers) {
        struct nb_failure f;
        if (strcmp(nb_json_get_text(line, "type"), "failure") != 0 || nb_failure_read(&f, line) != 0) continue;
        fail(v, v->members[0], f.status, f.reason);
        return;
    }
    const enum nb_status status = nb_outcome_blame(&v->outcome, reason, sizeof reason);
    fail(v, v->members[0], status, reason);
}

/* Each member in a worker of its own. Those to which something happens there fail; the others' launches, owned. Where several went wrong
 * together, programs are new ones; a case that never had another beside it keeps its program, unless something happens. */
static cJSON *launch_apart(struct session *v) {
    const bool anew = v->n > 1 || v->state->apart;
    cJSON *clean = cJSON_CreateArray();
    for (v->alone = true; v->n > 0; leave_out(v, 0)) {
        v->anew = anew;
        bool is_clean = launch_together(v);
        if (!is_clean && !is_over(v) && !anew && v->outcome.had_company) {
            v->anew = true;
            is_clean = launch_together(v);
        }
        if (is_over(v)) break;
        if (is_clean)
            cJSON_AddItemToArray(clean, cJSON_DetachItemFromArray(v->answers, 0));
        else
            blame_alone(v);
    }
    v->alone = v->anew = false;
    return clean;
}

/* One launch. Where something goes wrong while cases share a process (it dies, or hangs, or memory is harmed, or a result is wrong), any of
 * them may have done it to any other: each is launched alone, those that fail there are out, and the rest is launched together again. If
 * that goes wrong once more, they are never together again, and what was measured alone is what there is of this launch. */
int nb_session_launch(struct nb_run *run, int group, int launch) {
    struct session v;
    cJSON *alone = NULL, *line;
    init_session(&v, run, group, launch);
    take_members(&v, false);
    give_up_hung(&v);
    const bool together = v.n > 1 && !v.state->apart;
    bool is_clean = together && launch_together(&v);
    if (!is_clean && !is_over(&v)) {
        alone = launch_apart(&v);
        take_members(&v, false);
        const bool again = together && v.n > 1 && !is_over(&v);
        is_clean = again && launch_together(&v);
        v.state->apart |= again && !is_clean && !is_over(&v);
    }
    cJSON *const lines = is_clean ? v.answers : alone;
    while (!is_over(&v) && (line = cJSON_DetachItemFromArray(lines, 0))) {
        if (take_launch(run, group, launch, line) != 0) run->failed = true;
        nb_run_write(run, line);
    }
    cJSON_Delete(alone);
    return end_session(&v);
}

/* A case without counters has been checked and timed all right: they are missing, no more. */
static void add_uncounted(struct session *v, int member, const char *what, const char *reason) {
    struct nb_counter counter = {.name = "instructions_exact", .value = NAN, .source = "single_step"};
    cJSON *c = nb_json_add_object(v->answers);
    snprintf(counter.reason, sizeof counter.reason, "%s%.80s", what, reason);
    nb_json_text(c, "key", key_of(v, member));
    cJSON_AddItemToArray(cJSON_AddArrayToObject(c, "counters"), nb_json_of_members(nb_counter_members, &counter));
}

static void write_counters(struct session *v, double elapsed_s) {
    cJSON *line = new_line("counters", v->number), *c;
    cJSON_ArrayForEach(c, v->answers) {
        const int member = find_case(v->run->plan, v->number, nb_json_get_text(c, "key"));
        if (member >= 0) nb_known_counts_exchange(&v->run->known_counts, case_of(v, member), c);
    }
    cJSON_AddItemToObject(line, "cases", v->answers);
    v->answers = NULL;
    nb_json_number(line, "elapsed_s", elapsed_s);
    nb_run_write(v->run, line);
}

int nb_session_count(struct nb_run *run, int group, const char *why_not) {
    const double start = nb_now_s();
    struct session v;
    init_session(&v, run, group, -1);
    take_members(&v, false);
    for (; why_not && v.n > 0; leave_out(&v, 0)) add_uncounted(&v, v.members[0], "", why_not);
    while (v.n > 0) {
        char reason[200];
        work(&v, "counters");
        const int sent = n_sent(&v), before = v.n;
        settle(&v, false);
        if (is_over(&v)) break;
        v.alone = true; /* where the worker died: of which case is known when it is alone */
        if (sent > 1 || v.n < before) continue;
        nb_outcome_blame(&v.outcome, reason, sizeof reason);
        add_uncounted(&v, v.members[0], "its process died while counting: ", reason);
        leave_out(&v, 0);
    }
    if (!is_over(&v)) write_counters(&v, nb_now_s() - start);
    return end_session(&v);
}
