// SPDX-License-Identifier: Apache-2.0
/* Processes that load the machine, and trials, one after another; each goes through the stages of a gate for every arm at once. */
#include "src/gate/gate_trials.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/process.h"

/* ---- load: children that die with their parent ------------------------------------------------------------------- */

enum { MAX_BUSY = 4, STREAM_BYTES = 64 << 20 };

struct busy_processes {
    pid_t pids[MAX_BUSY];
    int n;
};

static _Noreturn void compute(uint64_t seed) {
    volatile uint64_t state = seed;
    for (;;) state = nb_random_mix(state);
}

static double uniform(uint64_t *state) { return (double)(nb_random_next(state) >> 11) * 0x1p-53; }

/* Streams through memory for 0.05 to 1 s and rests as long, at random. */
static _Noreturn void stream(uint64_t seed) {
    unsigned char *memory = malloc(STREAM_BYTES);
    if (!memory) _exit(1);
    for (;;) {
        const double until = nb_now_s() + 0.05 + 0.95 * uniform(&seed);
        while (nb_now_s() < until) memset(memory, (int)(seed & 0xff), STREAM_BYTES);
        nb_wait_s(0.05 + 0.95 * uniform(&seed));
    }
}

static void start_one(struct busy_processes *h, void (*work)(uint64_t)) {
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_IGN); /* the parent ends it */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0);
        work((uint64_t)getpid());
    }
    if (pid < 0)
        nb_warn("a process that loads the machine cannot be started");
    else
        h->pids[h->n++] = pid;
}

static void start_busy(struct busy_processes *h, int load) {
    if (load == NB_LOAD_CPU) start_one(h, compute);
    for (int i = 0; i < 2 && load == NB_LOAD_MEMORY; i++) start_one(h, stream);
}

static void stop_busy(struct busy_processes *h) {
    for (int i = 0; i < h->n; i++) kill(h->pids[i], SIGKILL);
    for (int i = 0; i < h->n; i++) waitpid(h->pids[i], NULL, 0);
    h->n = 0;
}

/* ---- trials ---------------------------------------------------------------------------------------------------------- */

const char *const nb_load_names[NB_N_LOAD_KINDS + 1] = {"idle", "cpu", "memory"};

/* One arm of a trial on its way to a verdict. */
struct contender {
    int effect;
    struct nb_gate_evidence launches;
    struct nb_gate_judgement judgement;
};

struct self_test {
    struct nb_gate *g;
    const struct nb_trial_plan *plan;
    struct nb_trials *out;
    int next_launch;    /* all launches of a self-test differ in seed, CPU and padding */
    double done, total; /* launches: total while no trial ends early */
};

static bool is_over(const struct self_test *s) { return nb_interrupted() || nb_gate_is_over(s->g); }

/* A budget may end it before. */
static void show_progress(const struct self_test *s) {
    const double elapsed_s = nb_now_s() - s->g->started_s, budget_s = s->g->plan.budget_s;
    const double share = fmax(s->done / s->total, budget_s > 0 ? elapsed_s / budget_s : 0);
    nb_progress(share, 1, elapsed_s, nb_load_names[s->out->load]);
}

static int launches_of(const struct self_test *s) {
    return s->g->plan.screen_launches + 2 * s->g->plan.confirm_launches;
}

/* One launch; contenders that are decided stay in it, so that the arms beside an open one are always the same. */
static int launch_trial(struct self_test *s, size_t case_index, struct contender *contenders, int n,
                        enum nb_gate_stage stage) {
    const struct nb_gate_case *c = &s->g->cases[case_index];
    struct nb_gate_answer answer;
    struct nb_gate_request q = nb_gate_request_of(s->g, c, s->next_launch++);
    q.n_arms = 2 + n;
    q.seed = s->g->plan.seed;
    for (int i = 0; i < n; i++) {
        q.keys[2 + i] = c->arm_keys[NB_BUILD_CANDIDATE];
        q.extra_percent[2 + i] = contenders[i].effect;
    }
    show_progress(s);
    const int result = nb_gate_launch(s->g, c, stage, &q, &answer);
    if (result != 0) return result;
    s->done++;
    if (answer.status != NB_OK)
        return nb_error("self-test: %s: %s %s", c->key, nb_status_name(answer.status), answer.reason);
    for (int i = 0; i < n; i++) nb_gate_evidence_add(&contenders[i].launches, stage, &answer.launch[2 + i]);
    return 0;
}

static int count_open(const struct contender *contenders, int n) {
    int open = 0;
    for (int i = 0; i < n; i++) open += contenders[i].judgement.verdict == NB_VERDICT_NONE;
    return open;
}

static void judge_open(const struct self_test *s, struct contender *contenders, int n, enum nb_gate_stage stage) {
    for (int i = 0; i < n; i++) {
        struct contender *k = &contenders[i];
        if (k->judgement.verdict != NB_VERDICT_NONE) continue;
        k->launches.stage = stage;
        k->launches.n_planned = 2 * (size_t)s->g->plan.confirm_launches;
        k->launches.n_confirming = 1;
        nb_gate_judge(&k->launches, &s->g->plan.rule, &k->judgement);
    }
}

static void keep_result(struct self_test *s, size_t case_index, const struct contender *k, bool powered,
                        double seconds) {
    struct nb_trials *t = s->out;
    *NB_PUSH(t->results, t->n) = (struct nb_trial_result){.trial = t->trial,
                                                          .load = t->load,
                                                          .case_index = case_index,
                                                          .effect = k->effect,
                                                          .powered = powered,
                                                          .judgement = k->judgement,
                                                          .seconds = seconds};
    if (s->plan->record) s->plan->record(&t->results[t->n - 1], s->g->record_arg);
}

/* The copy, and where `powered` the injected slowdowns. A trial that time cut short leaves nothing. */
static int run_trial(struct self_test *s, size_t case_index, bool powered) {
    const int n = powered ? 1 + s->plan->n_effects : 1;
    const double start = nb_now_s(), end = s->done + launches_of(s);
    struct contender contenders[1 + NB_MAX_EFFECTS] = {{0}};
    int result = 0;
    for (int i = 1; i < n; i++) contenders[i].effect = s->plan->effects[i - 1];
    for (int stage = NB_GATE_SCREEN; stage < NB_N_GATE_STAGES && result == 0; stage++) {
        if (count_open(contenders, n) == 0 || is_over(s)) break;
        const int launches = stage == NB_GATE_SCREEN ? s->g->plan.screen_launches : s->g->plan.confirm_launches;
        for (int l = 0; l < launches && result == 0 && !is_over(s); l++)
            result = launch_trial(s, case_index, contenders, n, (enum nb_gate_stage)stage);
        if (result == 0 && !is_over(s)) judge_open(s, contenders, n, (enum nb_gate_stage)stage);
    }
    const bool is_whole = result == 0 && count_open(contenders, n) == 0;
    for (int i = 0; i < n && is_whole; i++) keep_result(s, case_index, &contenders[i], powered, nb_now_s() - start);
    for (int i = 0; i < n; i++) free(contenders[i].launches.launches);
    s->out->trial++;
    s->total -= end - s->done;
    return result;
}

/* A stretch under one load: one round over the cases. */
static int run_stretch(struct self_test *s, int load, int round) {
    struct busy_processes busy = {0};
    int result = 0;
    s->out->load = load;
    start_busy(&busy, load);
    for (size_t i = 0; i < s->g->n_cases && result == 0 && !is_over(s); i++) {
        if (round < s->plan->trials) result = run_trial(s, i, false);
        if (round < s->plan->powered && result == 0 && !is_over(s)) result = run_trial(s, i, true);
    }
    stop_busy(&busy);
    return result;
}

static void verify_injection(const struct self_test *s) {
    struct nb_trials *t = s->out;
    for (int i = 0; i < s->plan->n_effects; i++)
        t->injected[i] = is_over(s) || !s->g->subject->injected
                             ? (double)NAN
                             : s->g->subject->injected(&s->g->cases[0], s->plan->effects[i], t->injected_reason,
                                                       sizeof t->injected_reason);
}

int nb_gate_trials_run(struct nb_gate *g, const struct nb_trial_plan *plan, struct nb_trials *out) {
    assert(g && g->n_cases > 0 && plan && out);
    const int rounds = plan->trials > plan->powered ? plan->trials : plan->powered;
    int n_loads = 0, result = 0;
    *out = (struct nb_trials){0};
    for (int l = 0; l < NB_N_LOAD_KINDS; l++) n_loads += plan->loads[l];
    struct self_test s = {.g = g, .plan = plan, .out = out};
    s.total = (double)n_loads * (double)g->n_cases * launches_of(&s) * (plan->trials + plan->powered);
    nb_gate_begin(s.g);
    verify_injection(&s);
    /* Loads take turns round by round, so that none has a stretch of the day to itself. */
    for (int round = 0; round < rounds && result == 0 && !is_over(&s); round++)
        for (int l = 0; l < NB_N_LOAD_KINDS && result == 0 && !is_over(&s); l++)
            if (plan->loads[l]) result = run_stretch(&s, l, round);
    nb_gate_end(s.g);
    return result == 0 ? nb_interrupted() : result;
}
