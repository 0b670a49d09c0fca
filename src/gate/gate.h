// SPDX-License-Identifier: Apache-2.0
/* A gate: two builds, the cases in which they are compared, how much is measured, and what came of it. */
#ifndef NB_GATE_H
#define NB_GATE_H

#include "src/gate/gate_builds.h"
#include "src/gate/gate_judge.h"
#include "src/plan/config_gate.h"
#include "src/record/record.h"

struct nb_gate_case {
    char *key;                                   /* without the build: "rmsnorm_twopass_v256_f32/shape:.." */
    char *arm_keys[NB_N_BUILDS];                 /* "baseline:rmsnorm_..." */
    const struct nb_entry *entries[NB_N_BUILDS]; /* null: the build has no such kernel */
    struct nb_case c;                            /* the candidate's; the baseline's where that alone has the kernel */
    enum nb_verdict verdict;
    struct nb_gate_judgement judgement; /* where it was timed */
    char reason[240];
    bool has_accuracy[NB_N_BUILDS];
    struct nb_accuracy accuracy[NB_N_BUILDS];
    double instructions[NB_N_BUILDS]; /* exact, of one small call; NaN: not counted */
    char uncounted[160];              /* why not; "": counted, or nobody asked */
    bool over_budget;                 /* REGRESSION by instructions, not by time */
    struct nb_gate_launch *screen, *confirm;
    size_t n_screen, n_confirm;
    double call_ns[NB_N_BUILDS]; /* median over launches */
    bool chunked;
    double seconds; /* what it took */
};

struct nb_gate_plan {
    int screen_launches, confirm_launches; /* per stage of confirmation: 12, 24 */
    int blocks;                            /* pairs in a launch: 100 */
    double sample_ms;                      /* 0.3 */
    double budget_s;                       /* 0: none */
    double case_timeout_s;
    uint64_t seed;
    bool ignore_identity;    /* identical code is timed too */
    bool inconclusive_fails; /* for CI systems that read reports instead of exit codes */
    struct nb_gate_rule rule;
};

struct nb_gate {
    struct nb_gate_builds builds;
    struct nb_gate_plan plan;
    struct nb_gate_settings settings; /* the config's */
    struct nb_gate_case *cases;
    size_t n_cases;
    double started_s, elapsed_s;
    /* Every launch as the worker told it; may be null. */
    void (*record)(const struct nb_gate_case *c, enum nb_gate_stage stage, const cJSON *line, void *arg);
    void *record_arg;
};

/* The defaults, and nothing to compare yet. */
void nb_gate_init(struct nb_gate *g);
void nb_gate_release(struct nb_gate *g);

#endif
