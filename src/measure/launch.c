// SPDX-License-Identifier: Apache-2.0
/* Checks, launches and counters of a plan, each a worker process; a case that ends its worker is named, left out, and the rest
 * goes on in a fresh one. */
#include "src/measure/launch.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/counters.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"
#include "src/measure/session.h"

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Each group's part begins with a page, so that a worker can map it alone. */
static int make_digests(struct nb_run *run, int group) {
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = nb_session_digest_bytes(run->plan, group);
    if (run->digests_fd < 0) run->digests_fd = memfd_create("normbench-digests", MFD_CLOEXEC);
    run->state.groups[group].digests_at = run->digests_end;
    run->digests_end += (bytes + page - 1) / page * page;
    if (run->digests_fd < 0 || ftruncate(run->digests_fd, run->digests_end) != 0)
        return nb_error("no memory for the row digests: %s", strerror(errno));
    return 0;
}

static void write_check(struct nb_session *v, double elapsed_s) {
    const cJSON *copies = v->run->state.groups[v->group].copies;
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "check");
    cJSON_AddNumberToObject(line, "group", v->group);
    cJSON_AddItemToObject(line, "cases", v->answers);
    v->answers = NULL;
    cJSON_AddItemToObject(line, "copies", copies ? cJSON_Duplicate(copies, 1) : cJSON_CreateArray());
    nb_json_number(line, "elapsed_s", elapsed_s);
    nb_run_write(v->run, line);
    cJSON_Delete(line);
    v->run->state.groups[v->group].checked = true;
}

struct checker {
    int cpu;
    struct nb_fork_server fork_server; /* of its own: one brings forth one worker at a time */
    int result;                        /* of the last group */
};
static int check_group(struct nb_run *run, int group, struct checker *checker) {
    struct nb_group_state *state = &run->state.groups[group];
    const double start = nb_now_s();
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    struct nb_session v;
    nb_session_init(&v, run, group, -1);
    v.cpu = checker->cpu;
    if (run->fork_server) v.fork_server = &checker->fork_server;
    int result = 0;
    for (int i = 0; i < (int)run->plan->groups[group].n; i++)
        if (!state->cases[i].checked || nb_status_timed(state->cases[i].status)) v.members[v.n++] = i;
    while (result == 0 && v.n > 0) {
        const int before = v.n;
        char reason[200];
        nb_session_worker(&v, "check", &o);
        const int culprit = o.current >= 0 && o.current < v.n ? v.members[o.current] : -1;
        nb_session_settle(&v, !state->checked);
        if (o.ending == NB_NOT_STARTED) result = -1;
        /* A worker that ended well but left cases out was ended by one of them. */
        if (o.ending == NB_NOT_STARTED || o.ending == NB_ENDED_BY_USER || v.n == 0) break;
        enum nb_status status = nb_outcome_blame(&o, reason, sizeof reason);
        for (int i = 0; i < v.n; i++) {
            if (v.members[i] != culprit) continue;
            nb_session_failure(&v, culprit, status, reason);
            nb_session_leave_out(&v, i);
        }
        if (v.n == before) nb_session_give_up(&v, status, reason);
    }
    if (result == 0 && o.ending != NB_ENDED_BY_USER && !state->checked) write_check(&v, nb_now_s() - start);
    nb_session_release(&v);
    return result;
}

/* ---- all at once -------------------------------------------------------------------------------------------------- */

/* What the checkers share: the next group to take, and whether one of them failed. */
struct checking {
    struct nb_run *run;
    void (*done)(struct nb_run *run, int group);
    struct checker checkers[NB_MAX_SEATS];
    int next;
    bool failed;
};

/* Is something to come that the journal does not hold yet? */
static bool is_due(const struct nb_run *run, int group) {
    const struct nb_group_state *state = &run->state.groups[group];
    for (int l = 0; l < run->plan->launches; l++)
        if (!state->launched[l]) return true;
    return !state->checked;
}

/* The next group that is due; -1: none, or no use to go on. */
static int next_group(void *arg, int seat) {
    struct checking *c = arg;
    const int n = (int)c->run->plan->n_groups;
    (void)seat;
    while (c->next < n && !is_due(c->run, c->next)) c->done(c->run, c->next++);
    if (c->next == n || c->failed || c->run->failed || nb_interrupted()) return -1;
    const int group = c->next++;
    if (c->run->plan->launches > 0 && make_digests(c->run, group) != 0) c->failed = true;
    return c->failed ? -1 : group;
}

static void check_next(void *arg, int group, int seat) {
    struct checking *c = arg;
    c->checkers[seat].result = check_group(c->run, group, &c->checkers[seat]);
}

static void settle_group(void *arg, int group, int seat) {
    struct checking *c = arg;
    if (c->checkers[seat].result != 0) c->failed = true;
    c->done(c->run, group);
}

/* How many are under way at once. */
static int checks_at_once(const struct nb_plan *plan, int n_cpus) {
    const int n = n_cpus < NB_MAX_SEATS ? n_cpus : NB_MAX_SEATS, n_groups = (int)plan->n_groups;
    return n < n_groups ? n : n_groups;
}

/* All groups that have something to come, as many at once as there are CPUs: nothing is timed meanwhile. One whose check is in the journal
 * already is checked for its digests alone. done() is called for every group, one at a time. -1 after nb_error. */
static int check_all(struct nb_run *run, void (*done)(struct nb_run *run, int group)) {
    struct checking c = {.run = run, .done = done};
    const struct nb_crew crew = {.next = next_group, .work = check_next, .settle = settle_group, .arg = &c};
    const int n = checks_at_once(run->plan, run->n_cpus);
    for (int i = 0; i < n; i++) {
        c.checkers[i] = (struct checker){.cpu = i};
        if (run->fork_server) c.checkers[i].fork_server = *run->fork_server;
        c.checkers[i].fork_server.seed += (uint64_t)i << 32;
    }
    const int started = n > 0 ? nb_crew_run(&crew, n) : 0;
    for (int i = 0; i < started; i++) {
        nb_fork_server_renew(&c.checkers[i].fork_server);
        if (run->fork_server) run->fork_server->refused |= c.checkers[i].fork_server.refused;
    }
    return c.failed ? -1 : 0;
}

/* ---- roofs -------------------------------------------------------------------------------------------------------- */

/* One case that may be timed for each pattern of loads and stores. */
static void one_of_each_pattern(struct nb_session *v) {
    bool seen[4][4] = {{false}};
    int kept = 0;
    nb_session_timed_members(v);
    for (int i = 0; i < v->n; i++) {
        const struct nb_case *c = nb_group_case(v->run->plan, v->group, v->members[i]);
        int n_loads, n_stores;
        nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
        if (c->op == NB_OP_COPY || n_loads > 3 || n_stores > 3 || seen[n_loads][n_stores]) continue;
        seen[n_loads][n_stores] = true;
        v->members[kept++] = v->members[i];
    }
    v->n = kept;
}

/* Chooses the roofs of a group that are not known yet, with nothing else running: the fastest copy for each pattern of loads and stores.
 * -1 after nb_error. */
static int choose_copies(struct nb_run *run, int group) {
    const double start = nb_now_s();
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    struct nb_session v;
    char reason[200];
    if (!is_due(run, group) || run->state.groups[group].copies) return 0;
    nb_session_init(&v, run, group, -1);
    one_of_each_pattern(&v);
    if (v.n > 0) nb_session_worker(&v, "copies", &o);
    if (run->state.groups[group].copies) write_check(&v, nb_now_s() - start);
    if (o.ending != NB_ENDED_WELL && o.ending != NB_ENDED_BY_USER && o.ending != NB_NOT_STARTED) {
        nb_outcome_blame(&o, reason, sizeof reason);
        nb_warn("no roof for %s: %s", nb_group_case(run->plan, group, 0)->shape.text, reason);
    }
    nb_session_release(&v);
    return o.ending == NB_NOT_STARTED ? -1 : 0;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* ---- launches and counters ---------------------------------------------------------------------------------------- */

/* One launch. A case that ends the worker is out from then on, and the launch is made again without it. */
static int launch_group(struct nb_run *run, int group, int launch) {
    struct nb_session v;
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    nb_session_init(&v, run, group, launch);
    for (;;) {
        char reason[200];
        nb_session_timed_members(&v);
        if (v.n == 0) break;
        nb_session_worker(&v, "launch", &o);
        if (o.ending == NB_NOT_STARTED || o.ending == NB_ENDED_BY_USER || v.whole) break;
        enum nb_status status = nb_outcome_blame(&o, reason, sizeof reason);
        if (o.current >= 0 && o.current < v.n)
            nb_session_failure(&v, v.members[o.current], status, reason);
        else
            nb_session_give_up(&v, status, reason);
    }
    nb_session_release(&v);
    return o.ending == NB_NOT_STARTED ? -1 : 0;
}

/* A case that fails here has been checked and timed all right: its counters are missing, no more. */
static void add_uncounted(struct nb_session *v, int member, const char *reason) {
    struct nb_counter counter = {.name = "instructions_exact", .value = NAN, .source = "single_step"};
    cJSON *c = cJSON_CreateObject();
    snprintf(counter.reason, sizeof counter.reason, "its process died while counting: %.80s", reason);
    nb_json_text(c, "key", nb_group_key(v->run->plan, v->group, member));
    cJSON_AddItemToArray(cJSON_AddArrayToObject(c, "counters"), nb_counter_to_json(&counter));
    cJSON_AddItemToArray(v->answers, c);
}

static int count_group(struct nb_run *run, int group) {
    struct nb_session v;
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    nb_session_init(&v, run, group, -1);
    nb_session_timed_members(&v);
    while (v.n > 0) {
        char reason[200];
        nb_session_worker(&v, "counters", &o);
        const int culprit = o.current >= 0 && o.current < v.n ? v.members[o.current] : -1;
        nb_session_settle(&v, false);
        if (o.ending == NB_NOT_STARTED || o.ending == NB_ENDED_BY_USER || v.n == 0) break;
        nb_outcome_blame(&o, reason, sizeof reason);
        bool named = false;
        for (int i = 0; i < v.n; i++) named |= v.members[i] == culprit;
        for (int i = 0; i < v.n; i++) {
            if (named && v.members[i] != culprit) continue;
            add_uncounted(&v, v.members[i], reason);
            nb_session_leave_out(&v, i--);
        }
    }
    if (o.ending != NB_ENDED_BY_USER && o.ending != NB_NOT_STARTED) {
        cJSON *line = cJSON_CreateObject(), *c;
        nb_json_text(line, "type", "counters");
        cJSON_AddNumberToObject(line, "group", group);
        cJSON_ArrayForEach(c, v.answers) {
            int member = nb_group_find(run->plan, group, nb_json_get_text(c, "key"));
            if (member >= 0) nb_step_memory_exchange(&run->steps, nb_group_case(run->plan, group, member), c);
        }
        cJSON_AddItemToObject(line, "cases", v.answers);
        v.answers = NULL;
        nb_run_write(run, line);
        cJSON_Delete(line);
    }
    nb_session_release(&v);
    return o.ending == NB_NOT_STARTED ? -1 : 0;
}

/* ---- the run ------------------------------------------------------------------------------------------------------ */

static bool stopped(const struct nb_run *run) { return nb_interrupted() || run->failed; }

static void step_done(struct nb_run *run, int group, double estimate_s, const char *what) {
    char text[160];
    run->done_s += estimate_s;
    snprintf(text, sizeof text, "%s %s", what, nb_group_case(run->plan, group, 0)->shape.text);
    nb_progress(run->done_s, run->total_s, nb_now_s() - run->started_s, text);
}

static int family_size(const struct nb_plan *plan, int group) {
    int n = 1;
    while ((size_t)(group + n) < plan->n_groups && plan->groups[group + n].family == plan->groups[group].family) n++;
    return n;
}

/* The parts of a group one after the other; groups that width alone parts in turns. */
static int launch_family(struct nb_run *run, int first, int n, int launch) {
    int *order = nb_alloc((unsigned)n, sizeof *order), result = 0;
    for (int i = 0; i < n; i++) order[i] = i;
    if (run->plan->groups[first].single_width) nb_turns(order, n, launch);
    for (int i = 0; i < n && result == 0 && !stopped(run); i++) {
        const int g = first + order[i];
        if (!run->state.groups[g].launched[launch]) result = launch_group(run, g, launch);
        if (result == 0) step_done(run, g, run->plan->groups[g].estimate.launch, "timing");
    }
    free(order);
    return result;
}

static void check_done(struct nb_run *run, int group) {
    step_done(run, group, run->plan->groups[group].estimate.check / checks_at_once(run->plan, run->n_cpus), "checking");
}

static int run_rounds(struct nb_run *run) {
    const int n = (int)run->plan->n_groups, launches = run->plan->launches;
    if (check_all(run, check_done) != 0) return -1;
    for (int g = 0; g < n && launches > 0 && !stopped(run); g++)
        if (choose_copies(run, g) != 0) return -1;
    for (int l = 0; l < launches; l++) {
        if (run->fork_server && l > 0) nb_fork_server_renew(run->fork_server); /* no two launches of a group from one */
        for (int g = 0, in_family; g < n && !stopped(run); g += in_family) {
            in_family = family_size(run->plan, g);
            if (launch_family(run, g, in_family, l) != 0) return -1;
        }
    }
    for (int g = 0; g < n && launches > 0 && !stopped(run) && !run->options->no_counters; g++) {
        if (!run->state.groups[g].counted && count_group(run, g) != 0) return -1;
        step_done(run, g, run->plan->groups[g].estimate.counters, "counting");
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

static void write_end(struct nb_run *run) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "end");
    nb_json_number(line, "elapsed_s", nb_now_s() - run->started_s);
    nb_json_number(line, "peak_memory_mib", peak_memory_mib());
    if (nb_interrupted())
        cJSON_AddNumberToObject(line, "interrupted", nb_interrupted());
    else
        cJSON_AddNullToObject(line, "interrupted");
    nb_run_write(run, line);
    cJSON_Delete(line);
}

double nb_run_estimate_s(const struct nb_plan *plan, bool no_counters) {
    int cpus[NB_MAX_CPUS];
    const int at_once = checks_at_once(plan, nb_cpu_allowed(cpus, NB_MAX_CPUS));
    double s = 0;
    for (size_t g = 0; g < plan->n_groups; g++) {
        const struct nb_estimate *e = &plan->groups[g].estimate;
        s += e->check / at_once + plan->launches * e->launch + (no_counters ? 0 : e->counters);
    }
    return s;
}

int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options) {
    assert(plan && journal && dir && options);
    struct nb_run run = {.plan = plan,
                         .journal = journal,
                         .options = options,
                         .writing = PTHREAD_MUTEX_INITIALIZER,
                         .digests_fd = -1,
                         .started_s = nb_now_s()};
    int result = -1;
    nb_run_state_init(&run.state, plan);
    if (nb_run_state_read(&run.state, dir) != 0) goto out;
    run.n_cpus = nb_cpu_allowed(run.cpus, NB_MAX_CPUS);
    struct nb_fork_server fork_server = {.plugins = options->plugins,
                                         .n_plugins = options->n_plugins,
                                         .max_width = options->max_width,
                                         .seed = plan->order_seed};
    if (plan->launches > 0 && nb_fork_server_pays(options->plugins, options->n_plugins)) run.fork_server = &fork_server;
    run.total_s = nb_run_estimate_s(plan, options->no_counters);
    nb_watch_interrupts();
    result = run_rounds(&run);
    nb_progress_end();
    nb_fork_server_renew(&fork_server);
    write_end(&run);
    if (result == 0) result = nb_interrupted();
out:
    if (run.digests_fd >= 0) close(run.digests_fd);
    nb_step_memory_release(&run.steps);
    nb_run_state_release(&run.state);
    return result;
}
