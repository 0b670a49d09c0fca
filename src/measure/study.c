// SPDX-License-Identifier: Apache-2.0
/* A worker for each case: a new process takes 10 ms, and nothing that a kernel did to the last is left. */
#include "src/measure/study.h"

#include <pthread.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/measure/process.h"
#include "src/measure/session.h"

enum { MAX_SEATS = 64 };

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

static cJSON *failure(const struct nb_outcome *o) {
    char reason[200];
    const enum nb_status status = nb_session_blame(o, reason, sizeof reason);
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(status));
    nb_json_text(answer, "reason", reason);
    return answer;
}

/* Null: not started, or ended by the user. */
static cJSON *ask(const struct nb_study *study, int i, const char *key, const cJSON *options, int cpu,
                  struct nb_outcome *o) {
    int sample = 0;
    cJSON *answer = NULL;
    struct nb_job job = {.kind = study->kind,
                         .launch = -1,
                         .plugins = study->plugins,
                         .n_plugins = study->n_plugins,
                         .max_width = study->max_width,
                         .keys = &key,
                         .samples = &sample,
                         .n_cases = 1,
                         .digests_at = -1,
                         .seed = study->cases[i].seed,
                         .cpus = &cpu,
                         .n_cpus = 1,
                         .options = options};
    nb_process_run(&job, -1, study->silence_s, job.seed, keep_answer, &answer, o);
    if (o->ending == NB_NOT_STARTED || o->ending == NB_ENDED_BY_USER) {
        cJSON_Delete(answer);
        return NULL;
    }
    /* An answer stands, whatever the kernel did to the process afterwards. */
    return answer ? answer : failure(o);
}

/* What all workers of a study share. Of a budget: given_s was handed out as budgets, spent_s went by in workers, besides included. */
struct party {
    const struct nb_study *study;
    void (*take)(int i, cJSON *answer, void *arg);
    void *arg;
    pthread_mutex_t lock;
    double start_s, given_s, spent_s;
    int next, n_done, n_seats;
    int cpus[NB_MAX_CPUS];
    bool failed;
};

struct seat {
    struct party *party;
    int cpu;
    pthread_t thread;
};

/* What is left, in equal shares, less what a worker needs besides its budget. Negative: nothing is left. */
static double share(const struct party *p, int i) {
    static const double least_s = 0.1;
    const double left_s = p->study->budget_s - (nb_now_s() - p->start_s);
    const double equal_s = left_s * p->n_seats / (p->study->n_cases - i);
    const double besides_s = p->n_done > 0 ? (p->spent_s - p->given_s) / p->n_done : equal_s / 2; /* not known yet */
    const double mine_s = equal_s - besides_s;
    if (p->study->budget_s <= 0) return 0;
    if (left_s <= 0) return -1;
    return mine_s > least_s ? mine_s : least_s;
}

static cJSON *not_run(void) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(NB_NOT_RUN));
    nb_json_text(answer, "reason", "the time allowed for all was used up before");
    return answer;
}

/* The options of one case; owned. */
static cJSON *options_with(const struct nb_study *study, double budget_s) {
    cJSON *options = study->options ? cJSON_Duplicate(study->options, true) : cJSON_CreateObject();
    if (study->budget_s > 0) nb_json_number(options, "budget_s", budget_s);
    return options;
}

/* The next case, and its budget; -1: none, or no use to go on. */
static int next_case(struct party *p, double *budget_s) {
    struct nb_strbuf label = {0};
    pthread_mutex_lock(&p->lock);
    const bool stop = p->failed || nb_interrupted();
    const int i = p->next < p->study->n_cases && !stop ? p->next++ : -1;
    if (i >= 0) {
        *budget_s = share(p, i);
        nb_strbuf_addf(&label, "%s %s", p->study->label, p->study->cases[i].variant);
        nb_progress(p->n_done, p->study->n_cases, nb_now_s() - p->start_s, label.text);
    }
    pthread_mutex_unlock(&p->lock);
    nb_strbuf_release(&label);
    return i;
}

static void *sit(void *arg) {
    const struct seat *seat = arg;
    struct party *p = seat->party;
    double budget_s;
    for (int i; (i = next_case(p, &budget_s)) >= 0;) {
        struct nb_outcome o = {.ending = NB_ENDED_WELL};
        struct nb_strbuf key = {0};
        const double before_s = nb_now_s();
        cJSON *options = options_with(p->study, budget_s);
        nb_case_key(&p->study->cases[i], &key);
        cJSON *answer = budget_s < 0 ? not_run() : ask(p->study, i, key.text, options, p->cpus[seat->cpu], &o);
        pthread_mutex_lock(&p->lock);
        if (budget_s > 0) p->given_s += budget_s;
        p->spent_s += nb_now_s() - before_s;
        p->n_done++;
        if (o.ending == NB_NOT_STARTED) p->failed = true;
        if (answer) p->take(i, answer, p->arg);
        pthread_mutex_unlock(&p->lock);
        cJSON_Delete(options);
        nb_strbuf_release(&key);
    }
    return NULL;
}

int nb_study_run(const struct nb_study *study, void (*take)(int i, cJSON *answer, void *arg), void *arg) {
    struct party p = {
        .study = study, .take = take, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER, .start_s = nb_now_s()};
    struct seat seats[MAX_SEATS] = {{0}};
    const int n_cpus = nb_cpu_allowed(p.cpus, NB_MAX_CPUS);
    int started = 1;
    p.n_seats = study->side_by_side && n_cpus > 1 ? (n_cpus < MAX_SEATS ? n_cpus : MAX_SEATS) : 1;
    for (int i = 0; i < p.n_seats; i++) seats[i] = (struct seat){.party = &p, .cpu = i};
    nb_watch_interrupts();
    while (started < p.n_seats && pthread_create(&seats[started].thread, NULL, sit, &seats[started]) == 0) started++;
    sit(&seats[0]);
    for (int i = 1; i < started; i++) pthread_join(seats[i].thread, NULL);
    nb_progress_end();
    return p.failed ? -1 : nb_interrupted();
}
