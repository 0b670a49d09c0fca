// SPDX-License-Identifier: Apache-2.0
/* The stages of a run over all groups: checks side by side, then copies, rounds of launches and counters, one group at a time. */
#include "src/measure/session.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/kept_programs.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"

static bool stopped(const struct nb_run *run) { return nb_interrupted() || run->failed; }

/* ---- time --------------------------------------------------------------------------------------------------------- */

/* Of the budget. */
static double left_s(const struct nb_run *run) {
    return run->plan->budget_s - run->plan->kept_s - run->used_s - (nb_now_s() - run->started_s);
}

static void say_step(const struct nb_run *run, int group, const char *what) {
    const double elapsed_s = nb_now_s() - run->started_s;
    int n_done = 0;
    char text[160];
    for (size_t g = 0; g < run->plan->n_groups; g++) n_done += run->schedule.groups[g].stopped != NB_STOP_UNKNOWN;
    const int length =
        snprintf(text, sizeof text, "%s %s", what, run->plan->cases[run->plan->groups[group].cases[0]].shape.text);
    if (nb_plan_is_adaptive(run->plan) && n_done > 0 && length < (int)sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, "; %d of %zu groups are done", n_done,
                 run->plan->n_groups);
    const double least_s = nb_schedule_to_come_s(&run->schedule, left_s(run));
    const bool is_open =
        nb_plan_is_adaptive(run->plan) && nb_schedule_lacks(&run->schedule); /* how wide, is not known */
    const double most_s = (is_open ? fmax(least_s, left_s(run)) : least_s) + run->plan->kept_s;
    nb_progress_between(elapsed_s, elapsed_s + least_s, elapsed_s + most_s, elapsed_s, text);
}

/* ---- checks, side by side ---------------------------------------------------------------------------------------- */

struct checker {
    struct nb_fork_server fork_server; /* of its own: one forks one worker at a time */
    int result;                        /* of the last group */
    double began_s;
};

/* What the checkers share: the next group to take, and whether one of them failed. */
struct checking {
    struct nb_run *run;
    struct checker checkers[NB_MAX_SEATS];
    int next;
    bool failed;
};

static bool is_to_check(const struct nb_run *run, int group) {
    return nb_run_is_due(run, group) && run->schedule.groups[group].spent[NB_STAGE_CHECK].n == 0;
}

/* The next group that is due; -1: none, or no use to go on. */
static int next_group(void *arg, int seat) {
    struct checking *c = arg;
    const int n = (int)c->run->plan->n_groups;
    nb_schedule_keep_budget(&c->run->schedule, left_s(c->run));
    for (; c->next < n && !is_to_check(c->run, c->next); c->next++) continue;
    if (c->next == n || c->failed || stopped(c->run)) return -1;
    c->checkers[seat].began_s = nb_now_s();
    return c->next++;
}

static void check_next(void *arg, int group, int seat) {
    struct checking *c = arg;
    struct checker *checker = &c->checkers[seat];
    checker->result = nb_session_check(c->run, group, seat, c->run->fork_server ? &checker->fork_server : NULL);
}

static void settle_group(void *arg, int group, int seat) {
    struct checking *c = arg;
    if (c->checkers[seat].result < 0) c->failed = true;
    if (c->checkers[seat].result > 0) nb_schedule_leave_out(&c->run->schedule, group);
    nb_schedule_spent(&c->run->schedule, group, NB_STAGE_CHECK, nb_now_s() - c->checkers[seat].began_s);
    say_step(c->run, group, "checking");
}

/* All groups that have something to come, as many at once as there are CPUs: nothing is timed meanwhile. One whose check is in the journal
 * already is checked for its digests alone. -1 after nb_error. */
static int check_all(struct nb_run *run) {
    struct checking c = {.run = run};
    const struct nb_crew crew = {.next = next_group, .work = check_next, .settle = settle_group, .arg = &c};
    const int n = run->schedule.checks_at_once;
    if (run->fork_server) nb_fork_server_renew(run->fork_server); /* each seat starts one of its own */
    for (int i = 0; i < n; i++) {
        if (run->fork_server) c.checkers[i].fork_server = *run->fork_server;
        c.checkers[i].fork_server.seed += (uint64_t)i << 32;
    }
    const int started = nb_crew_run(&crew, n);
    for (int i = 0; i < started; i++) {
        nb_fork_server_renew(&c.checkers[i].fork_server);
        if (run->fork_server) run->fork_server->refused |= c.checkers[i].fork_server.refused;
    }
    return c.failed ? -1 : 0;
}

/* ---- what is timed ----------------------------------------------------------------------------------------------- */

/* The groups that width alone parts in turns. */
static int launch_unit(struct nb_run *run, int first) {
    const int n = nb_schedule_unit_size(run->plan, first), launch = nb_schedule_next(&run->schedule, first);
    int *order freed = nb_alloc((unsigned)n, sizeof *order), result = 0;
    assert(launch >= 0);
    for (int i = 0; i < n; i++) order[i] = i;
    if (n > 1) nb_turns(order, n, launch);
    for (int i = 0; i < n && result == 0 && !stopped(run); i++) {
        const int g = first + order[i];
        const double start_s = nb_now_s();
        if (!run->schedule.groups[g].launched[launch]) result = nb_session_launch(run, g, launch);
        if (!stopped(run)) nb_schedule_tried(&run->schedule, g, launch, nb_now_s() - start_s);
        say_step(run, g, "timing");
    }
    return result;
}

/* Cases that failed keep no group waiting. */
static void drop_failed(struct nb_run *run) {
    for (int g = 0; g < (int)run->plan->n_groups; g++)
        for (int i = 0; i < (int)run->plan->groups[g].n; i++)
            if (!nb_status_timed(run->groups[g].cases[i].status)) nb_schedule_drop(&run->schedule, g, i);
}

/* Of groups whose number of launches does not follow from the plan. */
static void write_stops(struct nb_run *run) {
    for (int g = 0; g < (int)run->plan->n_groups; g++) {
        const struct nb_scheduled_group *scheduled = &run->schedule.groups[g];
        if (run->groups[g].stop_written || scheduled->stopped == NB_STOP_UNKNOWN) continue;
        if (!scheduled->left_out && !(nb_plan_is_adaptive(run->plan) && nb_group_is_timed(run->plan, (size_t)g)))
            continue;
        cJSON *line = cJSON_CreateObject();
        nb_json_text(line, "type", "stop");
        nb_json_number(line, "group", g);
        nb_json_number(line, "launches", scheduled->spent[NB_STAGE_LAUNCH].n);
        nb_json_text(line, "why", nb_stop_names[scheduled->stopped]);
        nb_run_write(run, line);
    }
}

/* A program serves so many rounds of launches, the first of them a new one: what its process differs in from the next (addresses, what it
 * compiled and keeps) belongs to the intervals, and starting it takes as long as several launches where it imports a large library. */
enum { ROUNDS_OF_A_PROGRAM = 3 };

/* fewest: those alone that every group has. */
static int launch_all(struct nb_run *run, bool fewest) {
    int *units freed = nb_alloc(run->plan->n_groups + 1, sizeof *units), result = 0;
    for (int n = 1; n > 0 && result == 0 && !stopped(run); run->n_rounds++) {
        drop_failed(run);
        if (fewest && !nb_schedule_lacks(&run->schedule)) break;
        n = nb_schedule_round(&run->schedule, run->n_rounds, left_s(run), units);
        if (run->fork_server && run->n_rounds > 0 && n > 0)
            nb_fork_server_renew(run->fork_server); /* no two launches of a group from one */
        if (n > 0 && run->n_rounds_served % ROUNDS_OF_A_PROGRAM == 0) nb_kept_programs_end();
        bool launched = false; /* there may be no time for any that the round has */
        for (int i = 0; i < n && result == 0 && !stopped(run); i++) {
            if (!nb_schedule_may_launch(&run->schedule, units[i], left_s(run))) continue;
            launched = true;
            result = launch_unit(run, units[i]);
        }
        run->n_rounds_served += launched;
    }
    return result;
}

/* In rounds: the trials of a group lie apart in time. */
static int try_copies(struct nb_run *run) {
    const int n = (int)run->plan->n_groups;
    int result = 0;
    for (int i = 0; i < NB_COPY_TRIALS * n && result == 0 && !stopped(run); i++) {
        const int g = i % n;
        nb_schedule_keep_budget(&run->schedule, left_s(run));
        const double start_s = nb_now_s();
        const bool is_due = nb_run_is_due(run, g) && run->groups[g].copy_trials < NB_COPY_TRIALS;
        if (is_due) result = nb_session_copies(run, g);
        nb_schedule_spent(&run->schedule, g, NB_STAGE_ROOFS, is_due ? nb_now_s() - start_s : 0);
        if (is_due) say_step(run, g, "trying copies of");
    }
    return result;
}

static int count_all(struct nb_run *run) {
    int result = 0;
    for (int g = 0; g < (int)run->plan->n_groups && result == 0 && !stopped(run); g++) {
        const struct nb_scheduled_group *scheduled = &run->schedule.groups[g];
        if (!nb_group_is_counted(run->plan, (size_t)g) || scheduled->spent[NB_STAGE_COUNTERS].n > 0) continue;
        if (scheduled->left_out) continue;
        const double start_s = nb_now_s();
        const bool in_time = nb_schedule_step_s(&run->schedule, g, NB_STAGE_COUNTERS) <= left_s(run);
        result = nb_session_count(run, g, in_time ? NULL : "the run's time was up");
        nb_schedule_spent(&run->schedule, g, NB_STAGE_COUNTERS, in_time ? nb_now_s() - start_s : 0);
        say_step(run, g, "counting");
    }
    return result;
}

static void say_left_out(const struct nb_run *run) {
    size_t n_groups = 0, n_cases = 0;
    for (size_t g = 0; g < run->plan->n_groups; g++) {
        if (!run->schedule.groups[g].left_out) continue;
        n_groups++;
        for (size_t i = 0; i < run->plan->groups[g].n; i++)
            n_cases += nb_group_is_timed(run->plan, g) || !run->groups[g].cases[i].checked;
    }
    if (n_groups > 0)
        nb_note("%zu of %zu groups (%zu cases) were left out to hold the budget of %.3g s; the journal names them",
                n_groups, run->plan->n_groups, n_cases, run->plan->budget_s);
}

/* All that every group has to have, before any has more. */
static int run_least(struct nb_run *run) {
    const bool is_timed = run->plan->launches > 0;
    int result;
    do {
        result = check_all(run);
        if (result == 0 && is_timed) result = try_copies(run);
        if (result == 0 && is_timed) result = launch_all(run, true);
    } while (result == 0 && !stopped(run) && nb_schedule_take_back(&run->schedule, left_s(run)) > 0);
    return result;
}

static int run_stages(struct nb_run *run) {
    const bool is_timed = run->plan->launches > 0;
    int result = run_least(run);
    if (result == 0 && is_timed) result = launch_all(run, false);
    if (result == 0 && !stopped(run)) write_stops(run);
    if (result == 0 && is_timed && !run->options->no_counters) result = count_all(run);
    if (result == 0 && !stopped(run)) say_left_out(run);
    return run->failed ? -1 : result;
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

static int n_cpus(void) {
    int cpus[NB_MAX_CPUS];
    return nb_cpu_allowed(cpus, NB_MAX_CPUS);
}

double nb_run_estimate_s(const struct nb_plan *plan, int launches, bool no_counters) {
    const int at_once = nb_checks_at_once(plan, n_cpus());
    double s = 0;
    for (size_t g = 0; g < plan->n_groups; g++) {
        const double *step_s = plan->groups[g].step_s;
        s += step_s[NB_STAGE_CHECK] / at_once + NB_COPY_TRIALS * step_s[NB_STAGE_ROOFS] +
             launches * step_s[NB_STAGE_LAUNCH] + (no_counters ? 0 : step_s[NB_STAGE_COUNTERS]);
    }
    return s;
}

int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options) {
    struct nb_run run released_by(nb_run_release) = {
        .plan = plan, .journal = journal, .options = options, .digests_fd = -1, .started_s = nb_now_s()};
    run.n_cpus = n_cpus();
    if (nb_run_init(&run, dir) != 0) return -1;
    struct nb_fork_server fork_server = {
        .plugins = options->plugins, .n_plugins = options->n_plugins, .seed = plan->order_seed};
    if (plan->launches > 0 && nb_fork_server_pays(options->plugins, options->n_plugins)) run.fork_server = &fork_server;
    nb_watch_interrupts();
    const int result = run_stages(&run);
    nb_progress_end();
    nb_fork_server_renew(&fork_server);
    write_end(&run);
    nb_floors_keep(&run.schedule.floors);
    return result == 0 ? nb_interrupted() : result;
}
