// SPDX-License-Identifier: Apache-2.0
/* A worker for each case: a new process takes 10 ms, and nothing that a kernel did to the last is left. */
#include "src/measure/launcher.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"

static void keep_answer(cJSON *line, void *arg) {
    cJSON **answer = arg;
    const char *type = nb_json_get_text(line, "type");
    if (*answer || strcmp(type, "answer") != 0) {
        cJSON_Delete(line);
        return;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(line, "type");
    *answer = line;
}

static cJSON *no_answer(enum nb_status status, const char *reason) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(status));
    nb_json_text(answer, "reason", reason);
    return answer;
}

cJSON *nb_launcher_ask(const struct nb_job *job, double silence_s, struct nb_outcome *o) {
    cJSON *answer = NULL;
    char reason[200];
    nb_process_run(NULL, job, -1, silence_s, keep_answer, &answer, o);
    if (!answer && o->had_company &&
        (o->ending == NB_ENDED_BADLY || o->ending == NB_ENDED_BY_SIGNAL || o->ending == NB_ENDED_SILENT)) {
        struct nb_job again = *job; /* what other kernels left behind may have ended it */
        again.programs_anew = true;
        nb_process_run(NULL, &again, -1, silence_s, keep_answer, &answer, o);
    }
    if (o->ending == NB_NOT_STARTED || o->ending == NB_ENDED_BY_USER) {
        cJSON_Delete(answer);
        return NULL;
    }
    return answer ? answer : no_answer(nb_outcome_blame(o, reason, sizeof reason), reason);
}

int nb_launcher_ends(const struct nb_outcome *o) {
    return o->ending == NB_NOT_STARTED ? -1 : o->ending == NB_ENDED_BY_USER ? nb_interrupted() : 0;
}

static bool is_of_node(int cpu, int node) {
    char path[80];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
    return access(path, F_OK) == 0;
}

/* Is the same memory the nearest to both? */
static bool same_node(int cpu, int other) {
    enum { MOST_NODES = 64 };
    for (int node = 0; node < MOST_NODES; node++)
        if (is_of_node(cpu, node)) return is_of_node(other, node);
    return true;
}

int nb_launcher_cpus(int *cpus, int n_threads, int launch) {
    int allowed[NB_MAX_CPUS], n_cpus = n_threads;
    const int n = nb_cpu_allowed(allowed, NB_MAX_CPUS);
    for (int t = 0; t < n_threads; t++) cpus[t] = n > 0 ? allowed[(launch + t) % n] : 0;
    for (int i = 1; i < n && n_threads == 1 && n_cpus < NB_MOST_MOVES; i++) {
        const int cpu = allowed[(launch + i) % n];
        if (same_node(cpus[0], cpu)) cpus[n_cpus++] = cpu;
    }
    return n_cpus;
}

/* ---- side by side ------------------------------------------------------------------------------------------------ */

struct seat {
    const struct nb_crew *crew;
    pthread_mutex_t *lock;
    int number;
    pthread_t thread;
};

static void *sit(void *arg) {
    const struct seat *s = arg;
    const struct nb_crew *crew = s->crew;
    for (;;) {
        pthread_mutex_lock(s->lock);
        const int piece = crew->next(crew->arg, s->number);
        pthread_mutex_unlock(s->lock);
        if (piece < 0) return NULL;
        crew->work(crew->arg, piece, s->number);
        pthread_mutex_lock(s->lock);
        crew->settle(crew->arg, piece, s->number);
        pthread_mutex_unlock(s->lock);
    }
}

int nb_crew_run(const struct nb_crew *crew, int n_seats) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct seat seats[NB_MAX_SEATS];
    int started = 1;
    assert(n_seats >= 1 && n_seats <= NB_MAX_SEATS);
    for (int i = 0; i < n_seats; i++) seats[i] = (struct seat){.crew = crew, .lock = &lock, .number = i};
    while (started < n_seats && pthread_create(&seats[started].thread, NULL, sit, &seats[started]) == 0) started++;
    sit(&seats[0]);
    for (int i = 1; i < started; i++) pthread_join(seats[i].thread, NULL);
    return started;
}

/* ---- studies ----------------------------------------------------------------------------------------------------- */

/* What the seats of a study share. Of a budget: given_s was handed out as budgets, spent_s went by in workers, besides included. */
struct study_run {
    const struct nb_study *study;
    void (*take)(int i, cJSON *answer, void *arg);
    void *arg;
    double start_s, given_s, spent_s;
    int next, n_done, n_seats;
    int cpus[NB_MAX_CPUS];
    bool failed;
    struct study_seat {
        double budget_s, before_s;
        cJSON *answer;
        bool failed;
    } seats[NB_MAX_SEATS];
};

static cJSON *ask_about(const struct nb_study *study, int i, const cJSON *options, int cpu, struct nb_outcome *o) {
    char *key freed = nb_case_key(&study->cases[i]);
    struct nb_asked asked = {.key = key};
    const struct nb_job job = {.kind = study->kind,
                               .launch = -1,
                               .plugins = study->plugins,
                               .n_plugins = study->n_plugins,
                               .asked = &asked,
                               .n_cases = 1,
                               .digests_at = -1,
                               .seed = study->cases[i].seed,
                               .cpus = &cpu,
                               .n_cpus = 1,
                               .options = options};
    return nb_launcher_ask(&job, study->silence_s, o);
}

/* What is left, in equal shares, less what a worker needs besides its budget. Negative: nothing is left. */
static double share(const struct study_run *p, int i) {
    static const double least_s = 0.1;
    const double left_s = p->study->budget_s - (nb_now_s() - p->start_s);
    const double equal_s = left_s * p->n_seats / (p->study->n_cases - i);
    const double besides_s = p->n_done > 0 ? (p->spent_s - p->given_s) / p->n_done : equal_s / 2; /* not known yet */
    const double mine_s = equal_s - besides_s;
    if (p->study->budget_s <= 0) return 0;
    if (left_s <= 0) return -1;
    return mine_s > least_s ? mine_s : least_s;
}

/* The options of one case; owned. */
static cJSON *options_with(const struct nb_study *study, double budget_s) {
    cJSON *options = study->options ? cJSON_Duplicate(study->options, true) : cJSON_CreateObject();
    if (study->budget_s > 0) nb_json_number(options, "budget_s", budget_s);
    return options;
}

static int next_case(void *arg, int seat) {
    struct study_run *p = arg;
    if (p->failed || nb_interrupted() || p->next == p->study->n_cases) return -1;
    const int i = p->next++;
    p->seats[seat] = (struct study_seat){.budget_s = share(p, i), .before_s = nb_now_s()};
    char *label freed = nb_textf("%s %s", p->study->label, p->study->cases[i].variant);
    nb_progress(p->n_done, p->study->n_cases, nb_now_s() - p->start_s, label);
    return i;
}

static void study_case(void *arg, int i, int seat) {
    struct study_run *p = arg;
    struct study_seat *s = &p->seats[seat];
    struct nb_outcome o = {.ending = NB_ENDED_WELL};
    cJSON *options released_by(nb_json_release) = options_with(p->study, s->budget_s);
    s->answer = s->budget_s < 0 ? no_answer(NB_NOT_RUN, "the time allowed for all was used up before")
                                : ask_about(p->study, i, options, p->cpus[seat], &o);
    if (o.ending == NB_NOT_STARTED) s->failed = true;
}

static void settle_case(void *arg, int i, int seat) {
    struct study_run *p = arg;
    const struct study_seat *s = &p->seats[seat];
    if (s->budget_s > 0) p->given_s += s->budget_s;
    p->spent_s += nb_now_s() - s->before_s;
    p->n_done++;
    p->failed |= s->failed;
    if (s->answer) p->take(i, s->answer, p->arg);
}

int nb_study_run(const struct nb_study *study, void (*take)(int i, cJSON *answer, void *arg), void *arg) {
    struct study_run p = {.study = study, .take = take, .arg = arg, .start_s = nb_now_s()};
    const struct nb_crew crew = {.next = next_case, .work = study_case, .settle = settle_case, .arg = &p};
    const int n_cpus = nb_cpu_allowed(p.cpus, NB_MAX_CPUS);
    p.n_seats = study->side_by_side && n_cpus > 1 ? (n_cpus < NB_MAX_SEATS ? n_cpus : NB_MAX_SEATS) : 1;
    nb_watch_interrupts();
    nb_crew_run(&crew, p.n_seats);
    nb_progress_end();
    return p.failed ? -1 : nb_interrupted();
}
