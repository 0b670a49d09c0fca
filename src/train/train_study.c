// SPDX-License-Identifier: Apache-2.0
/* Jobs of all groups, round by round, within the time allowed. */
#include "src/train/train_study.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/launcher.h"

/* ---- the budget ---- */

double nb_train_share_cost(const struct nb_train_share *s) { return s->n_left * s->job_s / s->n_seats; }

double nb_train_budget_cost(const struct nb_train_budget *b) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (!b->shares[g].dropped) sum += nb_train_share_cost(&b->shares[g]);
    return sum;
}

void nb_train_share_settle(struct nb_train_share *s, double job_s) {
    s->spent_s += job_s;
    s->job_s = s->spent_s / ++s->n_done;
    s->n_left--;
}

void nb_train_budget_fit(struct nb_train_budget *b, double left_s, int round) {
    while (nb_train_budget_cost(b) > left_s) {
        struct nb_train_share *worst = NULL;
        for (int g = 0; g < b->n; g++) {
            struct nb_train_share *s = &b->shares[g];
            if (s->dropped || s->n_left == 0) continue;
            if (!worst || nb_train_share_cost(s) > nb_train_share_cost(worst)) worst = s;
        }
        if (!worst) return;
        worst->dropped = true;
        worst->dropped_at = round;
    }
}

bool nb_train_budget_readmit(struct nb_train_budget *b, double left_s) {
    struct nb_train_share *best = NULL;
    for (int g = 0; g < b->n; g++) {
        struct nb_train_share *s = &b->shares[g];
        if (!s->dropped || s->readmitted) continue;
        if (!best || nb_train_share_cost(s) < nb_train_share_cost(best)) best = s;
    }
    if (!best || nb_train_share_cost(best) > left_s) return false;
    best->dropped = false;
    best->readmitted = true;
    return true;
}

double nb_train_budget_wanted(const struct nb_train_budget *b, double left_s) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (b->shares[g].dropped) sum += nb_train_share_cost(&b->shares[g]);
    return fmax(1, ceil(sum - fmax(0, left_s)));
}

/* ---- the study ---- */

/* Before anything was measured: of a core in matrix products, and what a process needs besides. */
static const double GUESSED_FLOPS_PER_S = 2e10, BESIDES_S = 1, SILENCE_S = 300;

struct job {
    int group, round;
    cJSON *request;
};
struct party {
    const struct nb_train_study *study;
    struct nb_train_results *results;
    struct nb_train_budget budget; /* a share for each group */
    struct job *jobs;              /* of the part of a round under way */
    int n_jobs, next, n_cpus, n_seats, cpus[NB_MAX_CPUS];
    double start_s, done_s; /* done: in job seconds, for progress */
    bool failed, alone;
    struct train_seat { /* of the job under way */
        cJSON *answer;
        bool failed;
    } seats[NB_MAX_SEATS];
};

const char *nb_train_lacks(void) {
    /* With one thread the library starts none. */
    const char *before = getenv("OPENBLAS_NUM_THREADS");
    char *kept = before ? nb_strdup(before) : NULL;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *handle = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
    if (kept)
        setenv("OPENBLAS_NUM_THREADS", kept, 1);
    else
        unsetenv("OPENBLAS_NUM_THREADS");
    free(kept);
    if (!handle) return "libopenblas.so.0 for the matrix products of a model: apt-get install libopenblas0-pthread";
    dlclose(handle);
    return NULL;
}

/* ---- one job ---- */

static cJSON *options_of(const struct party *p, const struct job *j) {
    cJSON *options = cJSON_Duplicate(j->request, true);
    nb_json_number(options, "launch_s", p->study->launch_s);
    nb_json_number(options, "threads", p->alone ? p->n_cpus : 1);
    nb_json_text(options, "text", p->study->text);
    return options;
}

/* Owned; null when the user ended it or no process can be started. */
static cJSON *ask(const struct party *p, const struct job *j, bool *failed) {
    struct nb_outcome o;
    cJSON *options = options_of(p, j);
    const double start = nb_now_s();
    const struct nb_job job = {.kind = "train",
                               .launch = j->round,
                               .max_width = p->study->max_width,
                               .digests_at = -1,
                               .seed = nb_random_bits(nb_random_stream(1, (uint64_t)j->round), 0),
                               .options = options};
    cJSON *answer = nb_launcher_ask(&job, SILENCE_S, &o);
    cJSON_Delete(options);
    if (o.ending == NB_NOT_STARTED) *failed = true;
    if (!answer) return NULL;
    cJSON_AddItemToObject(answer, "request", cJSON_Duplicate(j->request, true));
    nb_json_number(answer, "elapsed_s", nb_now_s() - start);
    return answer;
}

/* ---- what fits ---- */

static double left_s(const struct party *p) { return p->study->budget_s - (nb_now_s() - p->start_s); }

static bool is_alone(const struct party *p, int group) {
    return p->study->plan->groups[group].measure == NB_TRAIN_STEPS;
}

static int rounds_of(const struct nb_train_study *study, int group, int job) {
    const struct nb_train_group *g = &study->plan->groups[group];
    return nb_train_job_rounds(g, job, study->rounds[g->measure]);
}

static void say_dropped(struct party *p, int group, double wanted_s) {
    const struct nb_train_group *g = &p->study->plan->groups[group];
    for (int j = 0; j < nb_train_group_jobs(g); j++) {
        struct nb_strbuf text = {0};
        cJSON *answer = cJSON_CreateObject();
        nb_strbuf_addf(&text,
                       "the time allowed for training does not hold it: about %.0f s more would (--train-budget)",
                       wanted_s);
        cJSON_AddItemToObject(answer, "request", nb_train_request(g, p->budget.shares[group].dropped_at, j));
        nb_json_text(answer, "status", nb_status_name(NB_NOT_RUN));
        nb_json_text(answer, "reason", text.text);
        nb_train_results_add(p->results, answer);
        nb_strbuf_release(&text);
    }
}

static void say_all_dropped(struct party *p) {
    const double wanted_s = nb_train_budget_wanted(&p->budget, left_s(p));
    for (int g = 0; g < p->budget.n; g++)
        if (p->budget.shares[g].dropped) say_dropped(p, g, wanted_s);
}

/* ---- rounds ---- */

static void show(const struct party *p, const struct job *j) {
    const struct nb_train_group *g = &p->study->plan->groups[j->group];
    struct nb_strbuf label = {0};
    const double rest = nb_train_budget_cost(&p->budget);
    nb_strbuf_addf(&label, "training %s, %s", g->workload->name, nb_train_measure_names[g->measure]);
    nb_progress(p->done_s, p->done_s + rest, nb_now_s() - p->start_s, label.text);
    nb_strbuf_release(&label);
}

static void settle(struct party *p, const struct job *j, cJSON *answer) {
    struct nb_train_share *s = &p->budget.shares[j->group];
    nb_train_share_settle(s, nb_json_get_number(answer, "elapsed_s"));
    p->done_s += s->job_s / s->n_seats;
    if (nb_train_results_append(p->study->dir, answer) != 0) p->failed = true;
    nb_train_results_add(p->results, answer);
}

static int next_job(void *arg, int seat) {
    struct party *p = arg;
    (void)seat;
    while (p->next < p->n_jobs && p->budget.shares[p->jobs[p->next].group].dropped) p->next++;
    if (p->next == p->n_jobs || p->failed || nb_interrupted()) return -1;
    show(p, &p->jobs[p->next]);
    return p->next++;
}

static void do_job(void *arg, int piece, int seat) {
    struct party *p = arg;
    p->seats[seat] = (struct train_seat){0};
    p->seats[seat].answer = ask(p, &p->jobs[piece], &p->seats[seat].failed);
}

static void settle_job(void *arg, int piece, int seat) {
    struct party *p = arg;
    p->failed |= p->seats[seat].failed;
    if (p->seats[seat].answer) settle(p, &p->jobs[piece], p->seats[seat].answer);
}

static void run_jobs(struct party *p) {
    const struct nb_crew crew = {.next = next_job, .work = do_job, .settle = settle_job, .arg = p};
    p->next = 0;
    nb_crew_run(&crew, p->alone ? 1 : p->n_seats);
}

static void add_jobs(struct party *p, int group, int round) {
    const struct nb_train_group *g = &p->study->plan->groups[group];
    for (int j = 0; j < nb_train_group_jobs(g); j++) {
        if (round >= rounds_of(p->study, group, j)) continue;
        cJSON *request = nb_train_request(g, round, j);
        if (nb_train_results_find(p->results, request)) {
            cJSON_Delete(request);
            continue;
        }
        p->jobs = nb_realloc(p->jobs, (unsigned)p->n_jobs + 1, sizeof *p->jobs);
        p->jobs[p->n_jobs++] = (struct job){.group = group, .round = round, .request = request};
    }
}

static void run_round(struct party *p, int round) {
    for (int alone = 1; alone >= 0; alone--) {
        p->alone = alone;
        nb_train_budget_fit(&p->budget, left_s(p), round);
        for (int g = 0; g < p->study->plan->n; g++)
            if (is_alone(p, g) == p->alone && !p->budget.shares[g].dropped) add_jobs(p, g, round);
        run_jobs(p);
        for (int j = 0; j < p->n_jobs; j++) cJSON_Delete(p->jobs[j].request);
        p->n_jobs = 0;
    }
}

/* How many steps of the job's arms a job makes is known but for launches, which take as long as they are told to. */
static void guess(struct party *p, int group) {
    const struct nb_train_study *study = p->study;
    const struct nb_train_group *g = &study->plan->groups[group];
    struct nb_train_share *s = &p->budget.shares[group];
    double step_s = 0;
    for (int j = 0; j < nb_train_group_jobs(g); j++)
        step_s += nb_train_job_flops(g, j) / GUESSED_FLOPS_PER_S / (is_alone(p, group) ? p->n_cpus : 1) /
                  nb_train_group_jobs(g);
    if (isnan(step_s)) step_s = 0; /* refused: the job says so at once */
    s->n_seats = is_alone(p, group) ? 1 : p->n_seats;
    s->job_s = BESIDES_S + (g->measure == NB_TRAIN_COURSE   ? g->steps * step_s
                            : g->measure == NB_TRAIN_MEMORY ? 2 * step_s
                                                            : fmax(study->launch_s, 2 * step_s) + 2 * step_s);
    for (int j = 0; j < nb_train_group_jobs(g); j++)
        for (int r = 0; r < rounds_of(study, group, j); r++) {
            cJSON *request = nb_train_request(g, r, j);
            s->n_left += nb_train_results_find(p->results, request) == NULL;
            cJSON_Delete(request);
        }
}

int nb_train_study_run(const struct nb_train_study *study, struct nb_train_results *out) {
    struct party p = {.study = study, .results = out, .start_s = nb_now_s()};
    int rounds = 0;
    if (nb_train_results_read(out, study->dir) != 0) return -1;
    p.n_cpus = nb_cpu_allowed(p.cpus, NB_MAX_CPUS);
    if (p.n_cpus < 1) p.n_cpus = 1;
    p.n_seats = p.n_cpus < NB_MAX_SEATS ? p.n_cpus : NB_MAX_SEATS;
    p.budget.n = study->plan->n;
    p.budget.shares = nb_alloc((unsigned)study->plan->n + 1, sizeof *p.budget.shares);
    for (int g = 0; g < study->plan->n; g++) guess(&p, g);
    for (int g = 0; g < study->plan->n; g++)
        for (int j = 0; j < nb_train_group_jobs(&study->plan->groups[g]); j++)
            if (rounds_of(study, g, j) > rounds) rounds = rounds_of(study, g, j);
    nb_watch_interrupts();
    do
        for (int r = 0; r < rounds && !p.failed && !nb_interrupted(); r++) run_round(&p, r);
    while (!p.failed && !nb_interrupted() && nb_train_budget_readmit(&p.budget, left_s(&p)));
    say_all_dropped(&p);
    nb_progress_end();
    free(p.jobs);
    free(p.budget.shares);
    return p.failed ? -1 : nb_interrupted();
}
