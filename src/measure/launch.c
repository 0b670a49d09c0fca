// SPDX-License-Identifier: Apache-2.0
/* The stages of a run over all groups: checks side by side, then roofs, rounds of launches and counters, one group at a time. */
#include "src/measure/launch.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"
#include "src/measure/session.h"

/* ---- checks, side by side ---------------------------------------------------------------------------------------- */

struct checker {
    struct nb_fork_server fork_server; /* of its own: one forks one worker at a time */
    int result;                        /* of the last group */
};

/* What the checkers share: the next group to take, and whether one of them failed. */
struct checking {
    struct nb_run *run;
    void (*done)(struct nb_run *run, int group);
    struct checker checkers[NB_MAX_SEATS];
    int next;
    bool failed;
};

/* The next group that is due; -1: none, or no use to go on. */
static int next_group(void *arg, int seat) {
    struct checking *c = arg;
    const int n = (int)c->run->plan->n_groups;
    (void)seat;
    while (c->next < n && !nb_run_is_due(c->run, c->next)) c->done(c->run, c->next++);
    if (c->next == n || c->failed || c->run->failed || nb_interrupted()) return -1;
    return c->next++;
}

static void check_next(void *arg, int group, int seat) {
    struct checking *c = arg;
    struct checker *checker = &c->checkers[seat];
    checker->result = nb_session_check(c->run, group, seat, c->run->fork_server ? &checker->fork_server : NULL);
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

/* ---- the run ------------------------------------------------------------------------------------------------------ */

static bool stopped(const struct nb_run *run) { return nb_interrupted() || run->failed; }

static const char *shape_of(const struct nb_run *run, int group) {
    return run->plan->cases[run->plan->groups[group].cases[0]].shape.text;
}

static void say_step(const struct nb_run *run, int group, const char *what, double done, double total) {
    char text[160];
    snprintf(text, sizeof text, "%s %s", what, shape_of(run, group));
    nb_progress(done, total, nb_now_s() - run->started_s, text);
}

static void check_done(struct nb_run *run, int group) {
    run->done_s += run->plan->groups[group].estimate.check / checks_at_once(run->plan, run->n_cpus);
    say_step(run, group, "checking", run->done_s, run->total_s);
}

/* ---- launches in rounds ---- */

static double counters_to_come_s(const struct nb_run *run) {
    double sum = 0;
    for (size_t g = 0; g < run->plan->n_groups && !run->options->no_counters; g++)
        if (!run->groups[g].counted) sum += run->plan->groups[g].estimate.counters;
    return sum * nb_schedule_slowness(&run->schedule);
}

/* Of the budget, for launches. */
static double left_s(const struct nb_run *run) {
    return run->plan->budget_s - run->used_s - (nb_now_s() - run->started_s) - counters_to_come_s(run);
}

static void say_launches(const struct nb_run *run, int group) {
    const double elapsed_s = nb_now_s() - run->started_s;
    const double launches_s = fmax(fmin(nb_schedule_to_come_s(&run->schedule), left_s(run)), 0);
    int n_stopped = 0;
    char text[160];
    for (size_t g = 0; g < run->plan->n_groups; g++) n_stopped += run->schedule.groups[g].stopped != NB_STOP_UNKNOWN;
    int length = snprintf(text, sizeof text, "timing %s", shape_of(run, group));
    if (nb_plan_is_adaptive(run->plan) && n_stopped > 0 && length < (int)sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, "; %d of %zu groups are done", n_stopped,
                 run->plan->n_groups);
    nb_progress(elapsed_s, elapsed_s + launches_s + counters_to_come_s(run), elapsed_s, text);
}

/* The groups that width alone parts in turns. */
static int launch_unit(struct nb_run *run, int first) {
    const int n = nb_schedule_unit_size(run->plan, first), launch = nb_schedule_next(&run->schedule, first);
    int *order = nb_alloc((unsigned)n, sizeof *order), result = 0;
    assert(launch >= 0);
    for (int i = 0; i < n; i++) order[i] = i;
    if (n > 1) nb_turns(order, n, launch);
    for (int i = 0; i < n && result == 0 && !stopped(run); i++) {
        const int g = first + order[i];
        const double start_s = nb_now_s();
        if (!run->schedule.groups[g].launched[launch]) result = nb_session_launch(run, g, launch);
        if (!stopped(run)) nb_schedule_tried(&run->schedule, g, launch, nb_now_s() - start_s);
        say_launches(run, g);
    }
    free(order);
    return result;
}

/* Cases that failed keep no group waiting. */
static void drop_failed(struct nb_run *run) {
    for (int g = 0; g < (int)run->plan->n_groups; g++)
        for (int i = 0; i < (int)run->plan->groups[g].n; i++)
            if (!nb_status_timed(run->groups[g].cases[i].status)) nb_schedule_drop(&run->schedule, g, i);
}

static void write_stops(struct nb_run *run) {
    for (int g = 0; g < (int)run->plan->n_groups; g++) {
        if (run->groups[g].stop_written || run->schedule.groups[g].stopped == NB_STOP_UNKNOWN) continue;
        cJSON *line = cJSON_CreateObject();
        nb_json_text(line, "type", "stop");
        nb_json_number(line, "group", g);
        nb_json_number(line, "launches", run->schedule.groups[g].n_launches);
        nb_json_text(line, "why", nb_stop_names[run->schedule.groups[g].stopped]);
        nb_run_write(run, line);
    }
}

static int launch_all(struct nb_run *run) {
    int *units = nb_alloc(run->plan->n_groups + 1, sizeof *units), result = 0;
    for (int round = 0, n; result == 0 && !stopped(run); round++) {
        drop_failed(run);
        n = nb_schedule_round(&run->schedule, round, left_s(run), units);
        if (n == 0) break;
        if (run->fork_server && round > 0)
            nb_fork_server_renew(run->fork_server); /* no two launches of a group from one */
        for (int i = 0; i < n && result == 0 && !stopped(run); i++) result = launch_unit(run, units[i]);
    }
    if (result == 0 && !stopped(run) && nb_plan_is_adaptive(run->plan)) write_stops(run);
    free(units);
    return result;
}

static int run_stages(struct nb_run *run) {
    const int n = (int)run->plan->n_groups, launches = run->plan->launches;
    if (check_all(run, check_done) != 0) return -1;
    /* In rounds: the trials of a group lie apart in time. */
    for (int i = 0; i < NB_COPY_TRIALS * n && launches > 0 && !stopped(run); i++)
        if (nb_session_copies(run, i % n) != 0) return -1;
    if (launches > 0 && launch_all(run) != 0) return -1;
    for (int g = 0; g < n && launches > 0 && !stopped(run) && !run->options->no_counters; g++) {
        if (!nb_group_is_counted(run->plan, (size_t)g)) continue;
        if (!run->groups[g].counted && nb_session_count(run, g) != 0) return -1;
        run->groups[g].counted = true;
        const double elapsed_s = nb_now_s() - run->started_s;
        say_step(run, g, "counting", elapsed_s, elapsed_s + counters_to_come_s(run));
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
    nb_json_number(line, "interrupted", nb_interrupted() ? nb_interrupted() : (double)NAN);
    nb_run_write(run, line);
}

double nb_run_estimate_s(const struct nb_plan *plan, int launches, bool no_counters) {
    int cpus[NB_MAX_CPUS];
    const int at_once = checks_at_once(plan, nb_cpu_allowed(cpus, NB_MAX_CPUS));
    double s = 0;
    for (size_t g = 0; g < plan->n_groups; g++) {
        const struct nb_estimate *e = &plan->groups[g].estimate;
        s += e->check / at_once + launches * e->launch + (no_counters ? 0 : e->counters);
    }
    return s;
}

int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options) {
    assert(plan && journal && dir && options);
    struct nb_run run = {
        .plan = plan, .journal = journal, .options = options, .digests_fd = -1, .started_s = nb_now_s()};
    int result = -1;
    if (nb_run_init(&run, dir) != 0) goto out;
    run.n_cpus = nb_cpu_allowed(run.cpus, NB_MAX_CPUS);
    struct nb_fork_server fork_server = {.plugins = options->plugins,
                                         .n_plugins = options->n_plugins,
                                         .max_width = options->max_width,
                                         .seed = plan->order_seed};
    if (plan->launches > 0 && nb_fork_server_pays(options->plugins, options->n_plugins)) run.fork_server = &fork_server;
    run.total_s = nb_run_estimate_s(plan, plan->launches, options->no_counters);
    nb_watch_interrupts();
    result = run_stages(&run);
    nb_progress_end();
    nb_fork_server_renew(&fork_server);
    write_end(&run);
    if (result == 0) result = nb_interrupted();
out:
    nb_run_release(&run);
    return result;
}
