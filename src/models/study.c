// SPDX-License-Identifier: Apache-2.0
/* The plan, whose groups grow with each request; the answers with their figures; jobs of all groups, round by round, within the time
 * allowed. */
#include "src/models/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"

const char *const nb_torch_measure_names[] = {"steps", "inference", "memory", "course", NULL};
const char *const nb_torch_step_parts[] = {"step", "forward", "backward", "update", NULL};

double nb_torch_launch_s(const char *device) { return strcmp(device, "cuda") == 0 ? 1 : 4; }

bool nb_torch_is_timed(enum nb_torch_measure measure) { return measure <= NB_TORCH_INFERENCE; }

/* ---- where PyTorch is ---- */

enum { FIND_S = 120 }; /* an import of PyTorch from a cold disk takes most of a minute */

void nb_torch_find(struct nb_torch *t, const char *device) {
    struct nb_outcome o;
    cJSON *options released_by(nb_json_release) = cJSON_CreateObject();
    cJSON_AddTrueToObject(options, "about");
    const struct nb_job job = {.kind = "torch", .launch = -1, .digests_at = -1, .options = options};
    cJSON *answer released_by(nb_json_release) = nb_launcher_ask(&job, nb_load_timeout_s(FIND_S), &o);
    const char *python = nb_json_get_text(answer, "interpreter"), *version = nb_json_get_text(answer, "torch"),
               *gpu = nb_json_get_text(answer, "gpu"), *reason = nb_json_get_text(answer, "reason");
    *t = (struct nb_torch){.python = python ? nb_strdup(python) : NULL,
                           .version = version ? nb_strdup(version) : NULL,
                           .gpu = gpu ? nb_strdup(gpu) : NULL};
    if (!python || !version)
        t->lacks = nb_textf("PyTorch; %s", reason ? reason : "no process can be started to ask for it");
    else if (strcmp(device, "cuda") == 0 && !gpu)
        t->lacks =
            nb_textf("a GPU: PyTorch %s of %s sees none; leave out --device cuda, or name a Python whose PyTorch "
                     "has CUDA in NORMBENCH_PYTHON",
                     version, python);
}

void nb_torch_release(struct nb_torch *t) {
    nb_free_all(t->python, t->version, t->gpu, t->lacks);
    *t = (struct nb_torch){0};
}

/* ---- the plan ---- */

static struct nb_torch_group *group_of(struct nb_torch_plan *p, enum nb_torch_measure measure,
                                       const struct nb_model_workload *workload, int steps) {
    for (int i = 0; i < p->n; i++) {
        struct nb_torch_group *g = &p->groups[i];
        if (g->measure == measure && g->workload == workload && g->steps == steps) return g;
    }
    struct nb_torch_group *added = NB_PUSH(p->groups, p->n);
    *added = (struct nb_torch_group){.measure = measure, .workload = workload, .steps = steps};
    return added;
}

void nb_torch_plan_add(struct nb_torch_plan *p, enum nb_torch_measure measure, const struct nb_model_workload *workload,
                       int steps, int seeds, const char *arm) {
    struct nb_torch_group *g = group_of(p, measure, workload, measure == NB_TORCH_COURSE ? steps : 0);
    int at = 0;
    while (at < g->n_arms && strcmp(g->arms[at], arm) != 0) at++;
    if (at == g->n_arms) {
        g->arms = nb_realloc(g->arms, (unsigned)g->n_arms + 1, sizeof *g->arms);
        g->seeds = nb_realloc(g->seeds, (unsigned)g->n_arms + 1, sizeof *g->seeds);
        g->seeds[g->n_arms] = 0;
        g->arms[g->n_arms++] = nb_strdup(arm);
    }
    if (measure == NB_TORCH_COURSE && seeds > g->seeds[at]) g->seeds[at] = seeds;
}

void nb_torch_plan_usual_seeds(struct nb_torch_plan *p) {
    for (int i = 0; i < p->n; i++)
        for (int a = 0; a < p->groups[i].n_arms; a++) p->groups[i].seeds[a] = 0;
}

void nb_torch_plan_release(struct nb_torch_plan *p) {
    for (int i = 0; i < p->n; i++) {
        for (int a = 0; a < p->groups[i].n_arms; a++) free(p->groups[i].arms[a]);
        free(p->groups[i].arms);
        free(p->groups[i].seeds);
    }
    free(p->groups);
    *p = (struct nb_torch_plan){0};
}

/* Rounds that the arm takes part in, where others of its measure have so many as usual. */
static int arm_rounds(const struct nb_torch_group *g, int arm, int usual) {
    return g->measure == NB_TORCH_COURSE && g->seeds[arm] > usual ? g->seeds[arm] : usual;
}

/* Seconds of one round of an arm, a guess: PyTorch is imported (2 s), each launch has a warm-up. Of steps on a GPU nothing is guessed. */
static double arm_s(const struct nb_torch_group *g, int arm, double launch_s, bool on_cuda) {
    enum { IMPORT_S = 2, MEMORY_STEPS = 2, LEAST_STEPS = 3 };
    struct nb_model_arm words;
    char reason[200];
    if (nb_model_arm_parse(&words, NULL, g->arms[arm], reason, sizeof reason)) return 0;
    nb_model_arm_complete(&words, g->workload);
    const double step_s = on_cuda ? 0 : nb_model_arm_step_s(&words, g->workload);
    if (g->measure == NB_TORCH_MEMORY) return IMPORT_S + MEMORY_STEPS * step_s;
    if (g->measure == NB_TORCH_COURSE) return (double)IMPORT_S / g->n_arms + g->steps * step_s;
    return (double)IMPORT_S / g->n_arms + fmax(launch_s / g->n_arms, LEAST_STEPS * step_s);
}

double nb_torch_plan_s(const struct nb_torch_plan *p) {
    double sum = 0;
    for (int i = 0; i < p->n; i++) {
        const struct nb_torch_group *g = &p->groups[i];
        const int usual = nb_torch_is_timed(g->measure) ? NB_TORCH_LAUNCHES : NB_TORCH_SEEDS;
        for (int a = 0; a < g->n_arms; a++)
            sum += arm_rounds(g, a, usual) * arm_s(g, a, nb_torch_launch_s("cpu"), false);
    }
    return sum;
}

/* ---- answers ---- */

void nb_torch_results_add(struct nb_torch_results *r, cJSON *answer) {
    if (!r->answers) r->answers = cJSON_CreateArray();
    cJSON_AddItemToArray(r->answers, answer);
}

void nb_torch_results_release(struct nb_torch_results *r) {
    cJSON_Delete(r->answers);
    *r = (struct nb_torch_results){0};
}

static int take_answer(const cJSON *line, void *arg) {
    const cJSON *answer = nb_json_get(line, "answer");
    if (answer) nb_torch_results_add(arg, cJSON_Duplicate(answer, true));
    return 0;
}

static bool is_of(const cJSON *request, const struct nb_torch_question *q) {
    return nb_json_is(request, "measure", nb_torch_measure_names[q->measure]) &&
           nb_json_is(request, "workload", q->workload) && nb_json_get_number(request, "steps") == q->steps;
}

static bool asks(const cJSON *request, const struct nb_torch_question *q, const char *arm) {
    const cJSON *item;
    if (!is_of(request, q)) return false;
    cJSON_ArrayForEach(item, nb_json_get(request, "arms")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, arm) == 0) return true;
    }
    return false;
}

/* Of an arm of the answer: its figures, or why it has none. */
static const cJSON *said_of(const cJSON *answer, const struct nb_torch_question *q, const char *name) {
    return is_of(nb_json_get(answer, "request"), q) ? nb_json_find(nb_json_get(answer, "arms"), "arm", name) : NULL;
}

const cJSON *nb_torch_answer_arm(const cJSON *answer, const struct nb_torch_question *q, const char *name) {
    const cJSON *arm = said_of(answer, q, name);
    return nb_json_get_text(arm, "reason") ? NULL : arm;
}

/* The answer, good or not, to what was asked of the arm in the round. */
static const cJSON *answer_in(const struct nb_torch_results *r, const struct nb_torch_question *q, const char *name,
                              double round) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        const cJSON *request = nb_json_get(answer, "request");
        if (asks(request, q, name) && nb_json_get_number(request, "round") == round) return answer;
    }
    return NULL;
}

/* What was measured of the arm in the round; null: nothing, *reason says why where it is known. */
static const cJSON *arm_in(const struct nb_torch_results *r, const struct nb_torch_question *q, const char *name,
                           double round, const char **reason) {
    const cJSON *answer = answer_in(r, q, name, round), *said = said_of(answer, q, name);
    const char *why = nb_json_get_text(said ? said : answer, "reason");
    if (why) *reason = why;
    return why ? NULL : said;
}

static int last_round(const struct nb_torch_results *r) {
    const cJSON *answer;
    int last = -1;
    cJSON_ArrayForEach(answer, r->answers) {
        const int round = nb_json_get_index(nb_json_get(answer, "request"), "round");
        if (round > last) last = round;
    }
    return last;
}

struct nb_torch_figure nb_torch_figure_of(const struct nb_torch_results *r, const struct nb_torch_question *q,
                                          const char *arm, const char *against, nb_torch_value *value,
                                          const void *context, bool logarithmic) {
    struct nb_torch_figure out = {.value = {NAN, NAN, NAN}, .n_rounds = last_round(r) + 1};
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
        if (n >= NB_MIN_LAUNCHES) out.reason = NULL;
    }
    out.n_measured = (int)n;
    free(values);
    return out;
}

/* ---- the budget. Half a measurement decides nothing, so a group is in or out as a whole; what it takes, its first job says ---- */

struct share {      /* of one group */
    double job_s;   /* of one arm in one round, of steps of all arms: guessed, then the mean of those that were made */
    double spent_s; /* in them */
    int n_done, n_left;
    int n_seats; /* jobs that run side by side */
    bool out, warned;
};
struct budget {
    struct share *shares;
    int n;
};

/* Seconds of what is left to do, in or out; of all groups that are in. */
static double share_cost(const struct share *s) { return s->n_left * s->job_s / s->n_seats; }

static double budget_cost(const struct budget *b) {
    double sum = 0;
    for (int g = 0; g < b->n; g++)
        if (!b->shares[g].out) sum += share_cost(&b->shares[g]);
    return sum;
}

/* n of the group's jobs took so long. */
static void share_settle(struct share *s, double seconds, int n) {
    s->spent_s += seconds;
    s->n_done += n;
    s->job_s = s->spent_s / s->n_done;
    s->n_left -= n;
}

/* The most expensive are out until the rest fits. */
static void budget_fit(struct budget *b, double left_s) {
    for (int g = 0; g < b->n; g++) b->shares[g].out = false;
    while (budget_cost(b) > left_s) {
        struct share *worst = NULL;
        for (int g = 0; g < b->n; g++) {
            struct share *s = &b->shares[g];
            if (!s->out && s->n_left > 0 && (!worst || share_cost(s) > share_cost(worst))) worst = s;
        }
        if (!worst) return;
        worst->out = true;
    }
}

/* May a job of the group begin? The first may where it fits beside all that is in, since its cost is a guess until then. */
static bool budget_takes(struct budget *b, int group, double left_s) {
    const struct share *s = &b->shares[group];
    budget_fit(b, left_s);
    return !s->out || (s->n_done == 0 && budget_cost(b) + s->job_s <= left_s);
}

/* ---- one job ---- */

struct job {
    int group, round;
    int *arms, n_arms;
    bool begun;
};
struct party {
    const struct nb_torch_study *study;
    struct nb_torch_results *results;
    struct budget budget; /* a share for each group */
    struct job *jobs;     /* of the part of a sweep under way */
    int n_jobs, n_cpus, n_seats, cpus[NB_MAX_CPUS];
    double start_s, done_s; /* done: in job seconds, for progress */
    bool failed, alone;
    char *kernels, *text; /* files: our kernels, what is trained on; null: PyTorch's side chooses */
    struct seat_work {    /* of the job under way */
        cJSON *answers;
        bool failed;
    } seats[NB_MAX_SEATS];
};

static const struct nb_torch_group *group_at(const struct party *p, int group) {
    return &p->study->plan->groups[group];
}

static struct nb_torch_question question_of(const struct nb_torch_group *g) {
    return (struct nb_torch_question){g->measure, g->workload->name, g->steps};
}

/* What is asked, as the journal keeps it: what does not change the answer is left out. Owned. */
static cJSON *request_of(const struct party *p, const struct job *j) {
    const struct nb_torch_group *g = group_at(p, j->group);
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "measure", nb_torch_measure_names[g->measure]);
    nb_json_text(json, "workload", g->workload->name);
    nb_json_number(json, "round", j->round);
    nb_json_number(json, "steps", g->steps);
    nb_json_text(json, "device", p->study->device);
    cJSON *arms = cJSON_AddArrayToObject(json, "arms");
    for (int a = 0; a < j->n_arms; a++) cJSON_AddItemToArray(arms, cJSON_CreateString(g->arms[j->arms[a]]));
    return json;
}

/* The same as the Python package reads it. */
static cJSON *message_of(const struct party *p, const struct job *j) {
    cJSON *json = request_of(p, j), *arms = cJSON_CreateArray();
    cJSON_ReplaceItemInObjectCaseSensitive(json, "arms", arms);
    for (int a = 0; a < j->n_arms; a++) {
        struct nb_model_arm arm;
        char reason[200];
        nb_model_arm_parse(&arm, NULL, group_at(p, j->group)->arms[j->arms[a]], reason, sizeof reason);
        cJSON_AddItemToArray(arms, nb_model_arm_json(&arm));
    }
    nb_json_uint64(json, "seed", (uint64_t)j->round + 1);
    nb_json_number(json, "threads", p->alone ? p->n_cpus : 1);
    nb_json_number(json, "launch_s", p->study->launch_s);
    nb_json_text(json, "text", p->text);
    nb_json_text(json, "kernels", p->kernels);
    return json;
}

/* Owned; null when the user ended it or no process can be started. */
static cJSON *ask(const struct party *p, const struct job *j, bool *failed) {
    struct nb_outcome o;
    cJSON *options released_by(nb_json_release) = cJSON_CreateObject();
    const double start = nb_now_s();
    nb_json_text(options, "python", p->study->torch->python);
    cJSON_AddItemToObject(options, "request", message_of(p, j));
    const struct nb_job job = {.kind = "torch",
                               .launch = j->round,
                               .digests_at = -1,
                               .seed = nb_random_bits(nb_random_stream(1, (uint64_t)j->round), 0),
                               .options = options};
    cJSON *answer = nb_launcher_ask(&job, p->study->silence_s, &o);
    if (o.ending == NB_NOT_STARTED) *failed = true;
    if (!answer) return NULL;
    cJSON_DeleteItemFromObjectCaseSensitive(answer, "request");
    cJSON_AddItemToObject(answer, "request", request_of(p, j));
    nb_json_number(answer, "elapsed_s", nb_now_s() - start);
    return answer;
}

/* Arms of a training share a process, which saves PyTorch's import; where that fails, each gets one of its own, so that one arm costs
 * no other its answer. */
static void do_job(void *arg, int piece, int seat) {
    struct party *p = arg;
    const struct job *j = &p->jobs[piece];
    struct seat_work *s = &p->seats[seat];
    *s = (struct seat_work){.answers = cJSON_CreateArray()};
    cJSON *answer = ask(p, j, &s->failed);
    const bool again = answer && group_at(p, j->group)->measure == NB_TORCH_COURSE && j->n_arms > 1 &&
                       !nb_json_is(answer, "status", nb_status_name(NB_OK));
    if (answer && !again) cJSON_AddItemToArray(s->answers, answer);
    if (again) cJSON_Delete(answer);
    for (int a = 0; a < j->n_arms && again && !nb_interrupted(); a++) {
        const struct job one = {.group = j->group, .round = j->round, .arms = &j->arms[a], .n_arms = 1};
        if ((answer = ask(p, &one, &s->failed))) cJSON_AddItemToArray(s->answers, answer);
    }
}

/* ---- what fits ---- */

static double left_s(const struct party *p) { return p->study->budget_s - (nb_now_s() - p->start_s); }

static bool on_cuda(const struct party *p) { return strcmp(p->study->device, "cuda") == 0; }

static bool is_alone(const struct party *p, int group) {
    return nb_torch_is_timed(group_at(p, group)->measure) || on_cuda(p);
}

/* Those of the group that have still to answer in the round, as numbers of arms; steps need all of them. */
static int arms_due(const struct party *p, int group, int round, int *due) {
    const struct nb_torch_group *g = group_at(p, group);
    const struct nb_torch_question q = question_of(g);
    int n = 0;
    for (int a = 0; a < g->n_arms; a++)
        if (round < arm_rounds(g, a, p->study->rounds[g->measure]) && !answer_in(p->results, &q, g->arms[a], round))
            due[n++] = a;
    return n;
}

static int last_round_of(const struct party *p, int group) {
    const struct nb_torch_group *g = group_at(p, group);
    int rounds = 0;
    for (int a = 0; a < g->n_arms; a++) {
        const int own = arm_rounds(g, a, p->study->rounds[g->measure]);
        if (own > rounds) rounds = own;
    }
    return rounds;
}

/* Of the first round in which some are due. Owned. */
static struct job next_of(const struct party *p, int group) {
    struct job j = {.group = group, .arms = nb_alloc((unsigned)group_at(p, group)->n_arms + 1, sizeof *j.arms)};
    while (j.round < last_round_of(p, group) && (j.n_arms = arms_due(p, group, j.round, j.arms)) == 0) j.round++;
    return j;
}

/* What is out says so, for each arm, with the time that it would take. */
static void say_out(struct party *p, int group) {
    const struct share *s = &p->budget.shares[group];
    const struct nb_torch_group *g = group_at(p, group);
    struct job j = next_of(p, group);
    cJSON *answer = cJSON_CreateObject();
    const double seconds = fmax(1, ceil(share_cost(s)));
    char *reason freed = nb_textf("PyTorch needs about %.0f %s more%s (--train-budget SECONDS)",
                                  seconds < 100 ? seconds : ceil(seconds / 60), seconds < 100 ? "s" : "min",
                                  s->n_done ? "" : ", by a guess");
    nb_warn("%s, %s: %s", g->workload->name, nb_torch_measure_names[g->measure], reason);
    cJSON_AddItemToObject(answer, "request", request_of(p, &j));
    nb_json_text(answer, "status", nb_status_name(NB_NOT_RUN));
    nb_json_text(answer, "reason", reason);
    nb_torch_results_add(p->results, answer);
    free(j.arms);
}

static void guess(struct party *p, int group) {
    const struct nb_torch_group *g = group_at(p, group);
    struct share *s = &p->budget.shares[group];
    const bool steps = nb_torch_is_timed(g->measure);
    int *due freed = nb_alloc((unsigned)g->n_arms + 1, sizeof *due);
    s->n_seats = is_alone(p, group) ? 1 : p->n_seats;
    const int workers = !steps ? g->n_arms : on_cuda(p) ? 1 : p->n_cpus;
    for (int a = 0; a < g->n_arms; a++) s->job_s += arm_s(g, a, p->study->launch_s, on_cuda(p)) / workers;
    for (int r = 0; r < last_round_of(p, group); r++) {
        const int n = arms_due(p, group, r, due);
        s->n_left += steps ? n > 0 : n;
    }
}

/* ---- sweeps: a round of each group, the cheapest first ---- */

static void show(const struct party *p, const struct job *j) {
    const struct nb_torch_group *g = group_at(p, j->group);
    char *label freed = nb_textf("PyTorch: %s, %s", g->workload->name, nb_torch_measure_names[g->measure]);
    nb_progress(p->done_s, p->done_s + budget_cost(&p->budget), nb_now_s() - p->start_s, label);
}

static int next_job(void *arg, int seat) {
    struct party *p = arg;
    int best = -1;
    double least = INFINITY;
    for (int j = 0; j < p->n_jobs && !p->failed && !nb_interrupted(); j++) {
        const double cost = share_cost(&p->budget.shares[p->jobs[j].group]);
        if (p->jobs[j].begun || cost >= least || !budget_takes(&p->budget, p->jobs[j].group, left_s(p))) continue;
        best = j;
        least = cost;
    }
    if (best < 0) return -1;
    p->jobs[best].begun = true;
    show(p, &p->jobs[best]);
    return best;
}

static void settle_job(void *arg, int piece, int seat) {
    struct party *p = arg;
    const struct job *j = &p->jobs[piece];
    const struct nb_torch_group *g = group_at(p, j->group);
    struct share *s = &p->budget.shares[j->group];
    double seconds = 0;
    p->failed |= p->seats[seat].failed;
    for (cJSON *answer; (answer = cJSON_DetachItemFromArray(p->seats[seat].answers, 0));) {
        const char *reason = nb_json_get_text(answer, "reason");
        if (reason && !s->warned) nb_warn("%s, %s: %s", g->workload->name, nb_torch_measure_names[g->measure], reason);
        s->warned |= reason != NULL;
        seconds += nb_json_get_number(answer, "elapsed_s");
        if (nb_journal_write_answer(p->study->journal, answer) != 0) p->failed = true;
        nb_torch_results_add(p->results, answer);
    }
    cJSON_Delete(p->seats[seat].answers);
    share_settle(s, seconds, nb_torch_is_timed(g->measure) ? 1 : j->n_arms);
    p->done_s += seconds / s->n_seats;
}

static void add_job(struct party *p, int group, int round, const int *arms, int n) {
    struct job *j = NB_PUSH(p->jobs, p->n_jobs);
    *j = (struct job){.group = group, .round = round, .arms = nb_alloc((unsigned)n, sizeof *arms), .n_arms = n};
    memcpy(j->arms, arms, (unsigned)n * sizeof *arms);
}

/* Steps: all arms in one job. Memory: one each, since it is the process's. A training: as many jobs as run side by side. */
static void add_jobs(struct party *p, int group) {
    const enum nb_torch_measure measure = group_at(p, group)->measure;
    const struct job all = next_of(p, group);
    const int n = all.n_arms, seats = p->budget.shares[group].n_seats;
    const int size = nb_torch_is_timed(measure) ? n : measure == NB_TORCH_MEMORY ? 1 : (n + seats - 1) / seats;
    for (int a = 0; a < n; a += size) add_job(p, group, all.round, all.arms + a, a + size < n ? size : n - a);
    free(all.arms);
}

/* Did anything begin? */
static bool sweep(struct party *p) {
    const struct nb_crew crew = {.next = next_job, .work = do_job, .settle = settle_job, .arg = p};
    bool begun = false;
    for (int alone = 1; alone >= 0; alone--) {
        p->alone = alone;
        for (int g = 0; g < p->study->plan->n; g++)
            if (is_alone(p, g) == p->alone) add_jobs(p, g);
        nb_crew_run(&crew, p->alone ? 1 : p->n_seats);
        for (int j = 0; j < p->n_jobs; j++) {
            begun |= p->jobs[j].begun;
            free(p->jobs[j].arms);
        }
        p->n_jobs = 0;
    }
    return begun;
}

/* English prose that every Debian has, unless NORMBENCH_TEXT names another file. */
static char *find_text(void) {
    static const char *const usual[] = {"/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/GPL-2",
                                        "/usr/share/common-licenses/Apache-2.0", "/etc/services"};
    const char *named = getenv("NORMBENCH_TEXT");
    if (named && *named) return realpath(named, NULL);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (nb_path_exists(usual[i])) return nb_strdup(usual[i]);
    return NULL;
}

int nb_torch_study_run(const struct nb_torch_study *study, struct nb_torch_results *out) {
    struct party p = {.study = study, .results = out, .start_s = nb_now_s(), .text = find_text()};
    const char *kernels = nb_registry_file(0);
    if (nb_journal_read(study->dir, take_answer, out) != 0) return -1;
    if (kernels) p.kernels = realpath(kernels, NULL);
    p.n_cpus = nb_cpu_allowed(p.cpus, NB_MAX_CPUS);
    if (p.n_cpus < 1) p.n_cpus = 1;
    p.n_seats = p.n_cpus < NB_MAX_SEATS ? p.n_cpus : NB_MAX_SEATS;
    p.budget.n = study->plan->n;
    p.budget.shares = nb_alloc((unsigned)study->plan->n + 1, sizeof *p.budget.shares);
    for (int g = 0; g < study->plan->n; g++) guess(&p, g);
    nb_watch_interrupts();
    while (!p.failed && !nb_interrupted() && sweep(&p)) continue;
    nb_progress_end();
    for (int g = 0; g < p.budget.n; g++)
        if (p.budget.shares[g].n_left > 0 && !p.failed && !nb_interrupted()) say_out(&p, g);
    nb_free_all(p.jobs, p.budget.shares, p.kernels, p.text);
    return p.failed ? -1 : nb_interrupted();
}
