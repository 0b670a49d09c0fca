// SPDX-License-Identifier: Apache-2.0
/* Checks in worker processes, one on each CPU; then, one after another, what is timed before the launches. */
#include "src/measure/check_session.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"

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

struct checking;
struct checker {
    struct checking *shared;
    int cpu;
    struct nb_fork_server fork_server; /* of its own: one brings forth one worker at a time */
    pthread_t thread;
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
        enum nb_status status = nb_session_blame(&o, reason, sizeof reason);
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

enum { MAX_CHECKERS = 64 };

/* What the checkers share: the next group to take, and whether one of them failed. */
struct checking {
    struct nb_run *run;
    void (*done)(struct nb_run *run, int group);
    pthread_mutex_t lock;
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
static int take_group(struct checking *c) {
    const int n = (int)c->run->plan->n_groups;
    pthread_mutex_lock(&c->lock);
    while (c->next < n && !is_due(c->run, c->next)) c->done(c->run, c->next++);
    const bool stop = c->failed || c->run->failed || nb_interrupted();
    const int group = c->next < n && !stop ? c->next++ : -1;
    if (group >= 0 && c->run->plan->launches > 0 && make_digests(c->run, group) != 0) c->failed = true;
    const bool failed = c->failed;
    pthread_mutex_unlock(&c->lock);
    return failed ? -1 : group;
}

static void *check_groups(void *arg) {
    struct checker *checker = arg;
    struct checking *c = checker->shared;
    for (int group; (group = take_group(c)) >= 0;) {
        const int result = check_group(c->run, group, checker);
        pthread_mutex_lock(&c->lock);
        if (result != 0) c->failed = true;
        c->done(c->run, group);
        pthread_mutex_unlock(&c->lock);
    }
    nb_fork_server_renew(&checker->fork_server);
    return NULL;
}

int nb_checks_at_once(const struct nb_plan *plan, int n_cpus) {
    const int n = n_cpus < MAX_CHECKERS ? n_cpus : MAX_CHECKERS, n_groups = (int)plan->n_groups;
    return n < n_groups ? n : n_groups;
}

int nb_check_all(struct nb_run *run, void (*done)(struct nb_run *run, int group)) {
    struct checking c = {.run = run, .done = done, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct checker checkers[MAX_CHECKERS];
    const int n = nb_checks_at_once(run->plan, run->n_cpus);
    int started = n > 0;
    for (int i = 0; i < n; i++) {
        checkers[i] = (struct checker){.shared = &c, .cpu = i};
        if (run->fork_server) checkers[i].fork_server = *run->fork_server;
        checkers[i].fork_server.seed += (uint64_t)i << 32;
    }
    while (started < n && pthread_create(&checkers[started].thread, NULL, check_groups, &checkers[started]) == 0)
        started++;
    if (n > 0) check_groups(&checkers[0]);
    for (int i = 1; i < started; i++) pthread_join(checkers[i].thread, NULL);
    for (int i = 0; i < started && run->fork_server; i++) run->fork_server->refused |= checkers[i].fork_server.refused;
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

int nb_choose_copies(struct nb_run *run, int group) {
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
        nb_session_blame(&o, reason, sizeof reason);
        nb_warn("no roof for %s: %s", nb_group_case(run->plan, group, 0)->shape.text, reason);
    }
    nb_session_release(&v);
    return o.ending == NB_NOT_STARTED ? -1 : 0;
}
