// SPDX-License-Identifier: Apache-2.0
/* How good is the gate on this machine? Trials with a known answer: a copy against its original, where every REGRESSION is false,
 * and the same machine code that does a stated part more of the same work, or takes so much more time, which is to be found.
 *
 * All arms of a trial share their launches: baseline, control, the copy, and one arm for each injected slowdown; each is judged as
 * if it were a gate of its own. Trials run under different loads in turn, which begin and end with their stretch. */
#pragma once

#include "src/gate/gate.h"

enum nb_load_kind { NB_LOAD_IDLE, NB_LOAD_CPU, NB_LOAD_MEMORY, NB_N_LOAD_KINDS };
extern const char
    *const nb_load_names[NB_N_LOAD_KINDS + 1]; /* "idle", "cpu" (one busy process), "memory" (two bursty ones) */

#define NB_MAX_EFFECTS 8

struct nb_trial_result { /* of one arm of one trial */
    int trial, load;     /* load: enum nb_load_kind */
    size_t case_index;
    int effect;   /* percent; 0: the copy */
    bool powered; /* beside injected slowdowns */
    struct nb_gate_judgement judgement;
    double seconds;
};

struct nb_trial_plan {
    int trials;                  /* for each load and case: with the copy alone */
    int powered;                 /* with the injected arms too */
    int effects[NB_MAX_EFFECTS]; /* percent */
    int n_effects;
    bool loads[NB_N_LOAD_KINDS];
    void (*record)(const struct nb_trial_result *result, void *arg); /* may be null; arg is the gate's record_arg */
};

struct nb_trials {
    struct nb_trial_result *results;
    size_t n;
    int trial, load;                 /* under way */
    double injected[NB_MAX_EFFECTS]; /* by instruction counts of the first case: ratio - 1; NaN: not counted */
    char injected_reason[160];
};

/* The gate's cases must be there; both builds are copies of one. Arms of a launch are baseline, control, the copy, then one for each effect. 0, -1 after nb_error, or a signal's number: what is done stands. */
int nb_gate_trials_run(struct nb_gate *g, const struct nb_trial_plan *plan, struct nb_trials *out);
