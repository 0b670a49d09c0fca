// SPDX-License-Identifier: Apache-2.0
/* Checks, launches and counters of a plan, each a worker process; a case that ends its worker is named, left out, and the rest
 * goes on in a fresh one. */
#include "src/measure/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/check_session.h"
#include "src/measure/counters.h"
#include "src/measure/session.h"
#include "src/measure/turns.h"

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
        enum nb_status status = nb_session_blame(&o, reason, sizeof reason);
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
        nb_session_blame(&o, reason, sizeof reason);
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
    step_done(run, group, run->plan->groups[group].estimate.check / nb_checks_at_once(run->plan, run->n_cpus),
              "checking");
}

static int run_rounds(struct nb_run *run) {
    const int n = (int)run->plan->n_groups, launches = run->plan->launches;
    if (nb_check_all(run, check_done) != 0) return -1;
    for (int g = 0; g < n && launches > 0 && !stopped(run); g++)
        if (nb_choose_copies(run, g) != 0) return -1;
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
    const int at_once = nb_checks_at_once(plan, nb_cpu_allowed(cpus, NB_MAX_CPUS));
    double s = 0;
    for (size_t g = 0; g < plan->n_groups; g++) {
        const struct nb_estimate *e = &plan->groups[g].estimate;
        s += e->check / at_once + plan->launches * e->launch + (no_counters ? 0 : e->counters);
    }
    return s;
}

int nb_run_plan(const struct nb_plan *plan, struct nb_journal *journal, const char *dir,
                const struct nb_run_options *options) {
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
