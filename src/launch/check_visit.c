// SPDX-License-Identifier: Apache-2.0
/* Checks in worker processes, one after another where something will be timed, else one on each CPU. */
#include "src/launch/check_visit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/timer.h"

/* Each group's part begins with a page, so that a worker can map it alone. */
static int make_digests(struct nb_run *run, int group) {
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = nb_visit_digest_bytes(run->plan, group);
    if (run->digests_fd < 0) run->digests_fd = memfd_create("normbench-digests", MFD_CLOEXEC);
    run->state.groups[group].digests_at = run->digests_end;
    run->digests_end += (bytes + page - 1) / page * page;
    if (run->digests_fd < 0 || ftruncate(run->digests_fd, run->digests_end) != 0)
        return nb_error("no memory for the row digests: %s", strerror(errno));
    return 0;
}

static void write_check(struct nb_visit *v, double elapsed_s) {
    const cJSON *twins = v->run->state.groups[v->group].twins;
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "check");
    cJSON_AddNumberToObject(line, "group", v->group);
    cJSON_AddItemToObject(line, "cases", v->answers);
    v->answers = NULL;
    cJSON_AddItemToObject(line, "twins", twins ? cJSON_Duplicate(twins, 1) : cJSON_CreateArray());
    nb_json_number(line, "elapsed_s", elapsed_s);
    nb_run_write(v->run, line);
    cJSON_Delete(line);
    v->run->state.groups[v->group].checked = true;
}

static int check_group(struct nb_run *run, int group, int cpu) {
    struct nb_group_state *state = &run->state.groups[group];
    const double start = nb_now_s();
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    struct nb_visit v;
    nb_visit_init(&v, run, group, -1);
    v.cpu = cpu;
    int result = run->plan->launches > 0 ? make_digests(run, group) : 0;
    for (int i = 0; i < (int)run->plan->groups[group].n; i++)
        if (!state->cases[i].checked || nb_status_timed(state->cases[i].status)) v.members[v.n++] = i;
    while (result == 0 && v.n > 0) {
        const int before = v.n;
        char reason[200];
        nb_visit_worker(&v, NB_JOB_CHECK, &o);
        const int culprit = o.current >= 0 && o.current < v.n ? v.members[o.current] : -1;
        nb_visit_settle(&v, !state->checked);
        if (o.ending == NB_NOT_STARTED) result = -1;
        /* A worker that ended well but left cases out was ended by one of them. */
        if (o.ending == NB_NOT_STARTED || o.ending == NB_ENDED_BY_USER || v.n == 0) break;
        enum nb_status status = nb_visit_blame(&o, reason, sizeof reason);
        for (int i = 0; i < v.n; i++) {
            if (v.members[i] != culprit) continue;
            nb_visit_failure(&v, culprit, status, reason);
            nb_visit_leave_out(&v, i);
        }
        if (v.n == before) nb_visit_give_up(&v, status, reason);
    }
    if (result == 0 && o.ending != NB_ENDED_BY_USER && !state->checked) write_check(&v, nb_now_s() - start);
    nb_visit_release(&v);
    return result;
}

int nb_check_group(struct nb_run *run, int group) { return check_group(run, group, 0); }

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

struct checker {
    struct checking *shared;
    int cpu;
    pthread_t thread;
};

/* The next group that is not in the journal; -1: none, or no use to go on. */
static int take_group(struct checking *c) {
    const int n = (int)c->run->plan->n_groups;
    pthread_mutex_lock(&c->lock);
    while (c->next < n && c->run->state.groups[c->next].checked) c->done(c->run, c->next++);
    const bool stop = c->failed || c->run->failed || nb_interrupted();
    const int group = c->next < n && !stop ? c->next++ : -1;
    pthread_mutex_unlock(&c->lock);
    return group;
}

static void *check_groups(void *arg) {
    const struct checker *checker = arg;
    struct checking *c = checker->shared;
    for (int group; (group = take_group(c)) >= 0;) {
        const int result = check_group(c->run, group, checker->cpu);
        pthread_mutex_lock(&c->lock);
        if (result != 0) c->failed = true;
        c->done(c->run, group);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

int nb_check_all(struct nb_run *run, void (*done)(struct nb_run *run, int group)) {
    struct checking c = {.run = run, .done = done, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct checker checkers[MAX_CHECKERS];
    int n = run->n_cpus < MAX_CHECKERS ? run->n_cpus : MAX_CHECKERS, started = 1;
    if (n > (int)run->plan->n_groups) n = (int)run->plan->n_groups;
    for (int i = 0; i < n; i++) checkers[i] = (struct checker){.shared = &c, .cpu = i};
    while (started < n && pthread_create(&checkers[started].thread, NULL, check_groups, &checkers[started]) == 0)
        started++;
    if (n > 0) check_groups(&checkers[0]);
    for (int i = 1; i < started; i++) pthread_join(checkers[i].thread, NULL);
    return c.failed ? -1 : 0;
}
