// SPDX-License-Identifier: Apache-2.0
/* The plan, whose groups grow with each request; the answers with their figures; jobs of
 * all groups, round by round, within the time allowed. */
#include "src/train/train_study.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"
#include "src/train/workload.h"

const char *const nb_train_measure_names[] = {"steps", "memory", "course", NULL};
const char *const nb_step_part_names[NB_N_STEP_PARTS] = {"step",   "passes", "forward",      "backward",
                                                         "update", "norm",   "norm_forward", "norm_backward"};

static struct nb_train_group *group_of(struct nb_train_plan *p, enum nb_train_measure measure,
                                       const struct nb_workload *workload, int steps) {
    for (int i = 0; i < p->n; i++) {
        struct nb_train_group *g = &p->groups[i];
        if (g->measure == measure && g->workload == workload && g->steps == steps) return g;
    }
    p->groups = nb_realloc(p->groups, (unsigned)p->n + 1, sizeof *p->groups);
    p->groups[p->n] = (struct nb_train_group){.measure = measure, .workload = workload, .steps = steps};
    return &p->groups[p->n++];
}

struct nb_train_group *nb_train_plan_add(struct nb_train_plan *p, enum nb_train_measure measure,
                                         const struct nb_workload *workload, int steps, int seeds, const char *arm) {
    assert(p && workload && arm);
    struct nb_train_group *g = group_of(p, measure, workload, measure == NB_TRAIN_COURSE ? steps : 0);
    int at = 0;
    while (at < g->n_arms && strcmp(g->arms[at], arm) != 0) at++;
    if (at == g->n_arms) {
        g->arms = nb_realloc(g->arms, (unsigned)g->n_arms + 1, sizeof *g->arms);
        g->seeds = nb_realloc(g->seeds, (unsigned)g->n_arms + 1, sizeof *g->seeds);
        g->seeds[g->n_arms] = 0;
        g->arms[g->n_arms++] = nb_strdup(arm);
    }
    if (measure == NB_TRAIN_COURSE && seeds > g->seeds[at]) g->seeds[at] = seeds;
    return g;
}

void nb_train_plan_usual_seeds(struct nb_train_plan *p) {
    for (int i = 0; i < p->n; i++)
        for (int a = 0; a < p->groups[i].n_arms; a++) p->groups[i].seeds[a] = 0;
}

void nb_train_plan_release(struct nb_train_plan *p) {
    for (int i = 0; i < p->n; i++) {
        for (int a = 0; a < p->groups[i].n_arms; a++) free(p->groups[i].arms[a]);
        free(p->groups[i].arms);
        free(p->groups[i].seeds);
    }
    free(p->groups);
    *p = (struct nb_train_plan){0};
}

/* Jobs of a round: one for all arms where they take turns, else one for each. */
static int group_jobs(const struct nb_train_group *g) { return g->measure == NB_TRAIN_STEPS ? 1 : g->n_arms; }

/* Rounds that the job takes part in, where others of its measure have so many as usual. */
static int job_rounds(const struct nb_train_group *g, int job, int usual) {
    return g->measure == NB_TRAIN_COURSE && g->seeds[job] > usual ? g->seeds[job] : usual;
}

static bool has_arm(const struct nb_train_group *g, int job, int arm) {
    return g->measure == NB_TRAIN_STEPS || job == arm;
}

/* What a job is asked, as JSON without what does not change its answer; owned. job: of the round. */
static cJSON *train_request(const struct nb_train_group *g, int round, int job) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "measure", nb_train_measure_names[g->measure]);
    nb_json_text(json, "workload", g->workload->name);
    nb_json_number(json, "round", round);
    nb_json_number(json, "steps", g->steps);
    cJSON *arms = cJSON_AddArrayToObject(json, "arms");
    for (int a = 0; a < g->n_arms; a++)
        if (has_arm(g, job, a)) cJSON_AddItemToArray(arms, cJSON_CreateString(g->arms[a]));
    return json;
}

/* Floating-point operations of a step of each of the job's arms, together; NaN where an arm is refused. */
static double job_flops(const struct nb_train_group *g, int job) {
    double flops = 0;
    for (int a = 0; a < g->n_arms; a++) {
        struct nb_train_options o;
        char reason[200];
        if (!has_arm(g, job, a)) continue;
        if (nb_arm_parse(&o, NULL, g->arms[a], reason, sizeof reason) ||
            g->workload->family->complete(g->workload->own, &o))
            return (double)NAN;
        flops += g->workload->family->flops(g->workload->own, &o);
    }
    return flops;
}

/* ---- results: lines in, figures out ---- */

void nb_train_results_add(struct nb_train_results *r, cJSON *answer) {
    if (!r->answers) r->answers = cJSON_CreateArray();
    cJSON_AddItemToArray(r->answers, answer);
}

void nb_train_results_release(struct nb_train_results *r) {
    cJSON_Delete(r->answers);
    *r = (struct nb_train_results){0};
}

static int take_answer(const cJSON *line, void *arg) {
    const cJSON *answer = cJSON_GetObjectItemCaseSensitive(line, "answer");
    if (answer) nb_train_results_add(arg, cJSON_Duplicate(answer, true));
    return 0;
}

static int append(struct nb_journal *journal, const cJSON *answer) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "answer");
    cJSON_AddItemToObject(line, "answer", cJSON_Duplicate(answer, true));
    const int result = nb_journal_write(journal, line);
    cJSON_Delete(line);
    return result;
}

/* Was it answered, well or not? */
static const cJSON *results_find(const struct nb_train_results *r, const cJSON *request) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        if (cJSON_Compare(cJSON_GetObjectItemCaseSensitive(answer, "request"), request, true)) return answer;
    }
    return NULL;
}

/* ---- figures ---- */

static bool is_of(const cJSON *request, const struct nb_train_question *q) {
    const char *measure = nb_json_get_text(request, "measure"), *workload = nb_json_get_text(request, "workload");
    return measure && strcmp(measure, nb_train_measure_names[q->measure]) == 0 && workload &&
           strcmp(workload, q->workload) == 0 && nb_json_get_number(request, "steps") == q->steps;
}

static bool asks(const cJSON *request, const struct nb_train_question *q, const char *arm) {
    const cJSON *item;
    if (!is_of(request, q)) return false;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(request, "arms")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, arm) == 0) return true;
    }
    return false;
}

const cJSON *nb_train_answer_arm(const cJSON *answer, const struct nb_train_question *q, const char *name) {
    const cJSON *arm;
    if (!is_of(cJSON_GetObjectItemCaseSensitive(answer, "request"), q)) return NULL;
    cJSON_ArrayForEach(arm, cJSON_GetObjectItemCaseSensitive(answer, "arms")) {
        const char *text = nb_json_get_text(arm, "arm");
        if (text && strcmp(text, name) == 0) return arm;
    }
    return NULL;
}

/* What was measured of the arm in the round; null: nothing, *reason says why where it is known. */
static const cJSON *arm_in(const struct nb_train_results *r, const struct nb_train_question *q, const char *name,
                           double round, const char **reason) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        const cJSON *request = cJSON_GetObjectItemCaseSensitive(answer, "request");
        const char *why = nb_json_get_text(answer, "reason");
        if (!asks(request, q, name) || nb_json_get_number(request, "round") != round) continue;
        if (why) *reason = why;
        const cJSON *arm = nb_train_answer_arm(answer, q, name);
        if (arm) return arm;
    }
    return NULL;
}

static int last_round(const struct nb_train_results *r) {
    const cJSON *answer;
    int last = -1;
    cJSON_ArrayForEach(answer, r->answers) {
        const double round = nb_json_get_number(cJSON_GetObjectItemCaseSensitive(answer, "request"), "round");
        if (round > last) last = (int)round;
    }
    return last;
}

struct nb_train_figure nb_train_figure_of(const struct nb_train_results *r, const struct nb_train_question *q,
                                          const char *arm, const char *against, nb_train_value *value,
                                          const void *context, bool logarithmic) {
    struct nb_train_figure out = {.value = {NAN, NAN, NAN}, .n_rounds = last_round(r) + 1};
    double *values = nb_alloc((unsigned)out.n_rounds + 1, sizeof *values);
    size_t n = 0;
    out.rounds = nb_alloc((unsigned)out.n_rounds + 1, sizeof *out.rounds);
    for (int i = 0; i < out.n_rounds; i++) {
        const cJSON *a = arm_in(r, q, arm, i, &out.reason);
        const cJSON *b = against ? arm_in(r, q, against, i, &out.reason) : NULL;
        const double v = a && (b || !against) ? value(a, b, context) : (double)NAN;
        out.rounds[i] = v;
        if (!isnan(v)) values[n++] = v;
        if (v <= 0) logarithmic = false; /* what vanished altogether has no logarithm */
    }
    if (n > 0) {
        for (size_t i = 0; i < n && logarithmic; i++) values[i] = log(values[i]);
        out.value = logarithmic ? nb_ratio_over_launches(values, n, 0.95) : nb_over_launches(values, n, 0.95);
        out.reason = NULL;
    }
    out.n_measured = (int)n;
    free(values);
    return out;
}

/* ---- the budget: which groups of jobs fit into the time that is left. Half a measurement decides nothing, so a group is in or out as a whole ---- */

struct train_share {    /* of one group */
    double job_s;       /* of one job: guessed, then the mean of those that were made */
    double spent_s;     /* in jobs */
    int n_done, n_left; /* jobs */
    int n_seats;        /* jobs that run side by side */
    int dropped_at;     /* the round that it was left out of first */
    bool stays, dropped, readmitted;
};
struct train_budget {
    struct train_share *shares;
    int n;
    bool may_overrun; /* what stays is never left out */
};

/* Seconds of what is left to do, in or out; of all groups that are in. */
static double share_cost(const struct train_share *s) { return s->n_left * s->job_s / s->n_seats; }

static double budget_cost(const struct train_budget *b) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (!b->shares[g].dropped) sum += share_cost(&b->shares[g]);
    return sum;
}

/* A job of the group took so long. */
static void share_settle(struct train_share *s, double job_s) {
    s->spent_s += job_s;
    s->job_s = s->spent_s / ++s->n_done;
    s->n_left--;
}

/* The most expensive that is in, of those that stay or of the others; null: there is none. */
static struct train_share *most_expensive(const struct train_budget *b, bool stays) {
    struct train_share *worst = NULL;
    for (int g = 0; g < b->n; g++) {
        struct train_share *s = &b->shares[g];
        if (s->dropped || s->n_left == 0 || s->stays != stays) continue;
        if (!worst || share_cost(s) > share_cost(worst)) worst = s;
    }
    return worst;
}

/* Leaves the most expensive out until the rest fits, those that stay last or never. */
static void budget_fit(struct train_budget *b, double left_s, int round) {
    while (budget_cost(b) > left_s) {
        struct train_share *worst = most_expensive(b, false);
        if (!worst && !b->may_overrun) worst = most_expensive(b, true);
        if (!worst) return;
        worst->dropped = true;
        worst->dropped_at = round;
    }
}

/* Costs are guesses until a group's first job, and rather too high than too low: when all others are through, the cheapest of those
 * that are out comes in if there is time for it, once each. Did one come in? */
static bool budget_readmit(struct train_budget *b, double left_s) {
    struct train_share *best = NULL;
    for (int g = 0; g < b->n; g++) {
        struct train_share *s = &b->shares[g];
        if (!s->dropped || s->readmitted) continue;
        if (!best || share_cost(s) < share_cost(best)) best = s;
    }
    if (!best || share_cost(best) > left_s) return false;
    best->dropped = false;
    best->readmitted = true;
    return true;
}

/* Seconds that all which are out would need besides what is left; at least 1. */
static double budget_wanted(const struct train_budget *b, double left_s) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (b->shares[g].dropped) sum += share_cost(&b->shares[g]);
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
    struct train_budget budget; /* a share for each group */
    struct job *jobs;           /* of the part of a round under way */
    int n_jobs, next, n_cpus, n_seats, cpus[NB_MAX_CPUS];
    double start_s, done_s; /* done: in job seconds, for progress */
    bool failed, alone;
    struct train_seat { /* of the job under way */
        cJSON *answer;
        bool failed;
    } seats[NB_MAX_SEATS];
};

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
    return job_rounds(g, job, study->rounds[g->measure]);
}

static void say_dropped(struct party *p, int group, double wanted_s) {
    const struct nb_train_group *g = &p->study->plan->groups[group];
    for (int j = 0; j < group_jobs(g); j++) {
        struct nb_strbuf text = {0};
        cJSON *answer = cJSON_CreateObject();
        nb_strbuf_addf(&text,
                       "the time allowed for training does not hold it: about %.0f s more would (--train-budget)",
                       wanted_s);
        cJSON_AddItemToObject(answer, "request", train_request(g, p->budget.shares[group].dropped_at, j));
        nb_json_text(answer, "status", nb_status_name(NB_NOT_RUN));
        nb_json_text(answer, "reason", text.text);
        nb_train_results_add(p->results, answer);
        nb_strbuf_release(&text);
    }
}

static void say_all_dropped(struct party *p) {
    const double wanted_s = budget_wanted(&p->budget, left_s(p));
    for (int g = 0; g < p->budget.n; g++)
        if (p->budget.shares[g].dropped) say_dropped(p, g, wanted_s);
}

/* ---- rounds ---- */

static void show(const struct party *p, const struct job *j) {
    const struct nb_train_group *g = &p->study->plan->groups[j->group];
    struct nb_strbuf label = {0};
    const double rest = budget_cost(&p->budget);
    nb_strbuf_addf(&label, "training %s, %s", g->workload->name, nb_train_measure_names[g->measure]);
    nb_progress(p->done_s, p->done_s + rest, nb_now_s() - p->start_s, label.text);
    nb_strbuf_release(&label);
}

static void settle(struct party *p, const struct job *j, cJSON *answer) {
    struct train_share *s = &p->budget.shares[j->group];
    share_settle(s, nb_json_get_number(answer, "elapsed_s"));
    p->done_s += s->job_s / s->n_seats;
    if (append(p->study->journal, answer) != 0) p->failed = true;
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
    for (int j = 0; j < group_jobs(g); j++) {
        if (round >= rounds_of(p->study, group, j)) continue;
        cJSON *request = train_request(g, round, j);
        if (results_find(p->results, request)) {
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
        budget_fit(&p->budget, left_s(p), round);
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
    struct train_share *s = &p->budget.shares[group];
    double step_s = 0;
    for (int j = 0; j < group_jobs(g); j++)
        step_s += job_flops(g, j) / GUESSED_FLOPS_PER_S / (is_alone(p, group) ? p->n_cpus : 1) / group_jobs(g);
    if (isnan(step_s)) step_s = 0; /* refused: the job says so at once */
    s->stays = g->stays;
    s->n_seats = is_alone(p, group) ? 1 : p->n_seats;
    s->job_s = BESIDES_S + (g->measure == NB_TRAIN_COURSE   ? g->steps * step_s
                            : g->measure == NB_TRAIN_MEMORY ? 2 * step_s
                                                            : fmax(study->launch_s, 2 * step_s) + 2 * step_s);
    for (int j = 0; j < group_jobs(g); j++)
        for (int r = 0; r < rounds_of(study, group, j); r++) {
            cJSON *request = train_request(g, r, j);
            s->n_left += results_find(p->results, request) == NULL;
            cJSON_Delete(request);
        }
}

int nb_train_study_run(const struct nb_train_study *study, struct nb_train_results *out) {
    struct party p = {.study = study, .results = out, .start_s = nb_now_s()};
    int rounds = 0;
    if (nb_journal_read(study->dir, take_answer, out) != 0) return -1;
    p.n_cpus = nb_cpu_allowed(p.cpus, NB_MAX_CPUS);
    if (p.n_cpus < 1) p.n_cpus = 1;
    p.n_seats = p.n_cpus < NB_MAX_SEATS ? p.n_cpus : NB_MAX_SEATS;
    p.budget.n = study->plan->n;
    p.budget.may_overrun = study->may_overrun;
    p.budget.shares = nb_alloc((unsigned)study->plan->n + 1, sizeof *p.budget.shares);
    for (int g = 0; g < study->plan->n; g++) guess(&p, g);
    for (int g = 0; g < study->plan->n; g++)
        for (int j = 0; j < group_jobs(&study->plan->groups[g]); j++)
            if (rounds_of(study, g, j) > rounds) rounds = rounds_of(study, g, j);
    nb_watch_interrupts();
    do
        for (int r = 0; r < rounds && !p.failed && !nb_interrupted(); r++) run_round(&p, r);
    while (!p.failed && !nb_interrupted() && budget_readmit(&p.budget, left_s(&p)));
    say_all_dropped(&p);
    nb_progress_end();
    free(p.jobs);
    free(p.budget.shares);
    return p.failed ? -1 : nb_interrupted();
}
