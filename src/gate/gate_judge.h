// SPDX-License-Identifier: Apache-2.0
/* From launches to a verdict: is the candidate slower than the baseline by more than a margin, surely not by more than another,
 * or can neither be said? Pure functions of what was measured, so that simulations can hold them to their error rates.
 * README.md has the rule. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/stats.h"
#include "src/measure/paired.h"

enum nb_verdict {
    NB_VERDICT_NONE,      /* not decided yet */
    NB_VERDICT_IDENTICAL, /* the same machine code: not timed */
    NB_VERDICT_PASS,      /* surely not slower by the margin of acceptance */
    NB_VERDICT_IMPROVED,  /* PASS, and surely faster by more than the margin of failure */
    NB_VERDICT_SUSPECT,   /* faster than it can be, by its instructions or by the bytes that it moves */
    NB_VERDICT_INCONCLUSIVE,
    NB_VERDICT_NOT_COMPARABLE, /* no such kernel in the baseline, or another ABI */
    NB_VERDICT_REGRESSION,
    NB_VERDICT_LESS_ACCURATE, /* worse than the baseline beyond the margins of accuracy */
    NB_VERDICT_WRONG,         /* the candidate fails its check, and is not timed */
    NB_N_VERDICTS
};
const char *nb_verdict_name(enum nb_verdict v); /* "PASS", "REGRESSION" ... */

struct nb_gate_rule {
    double fail_margin;    /* relative: slower by more than this fails (0.01) */
    double pass_margin;    /* slower by less than this passes (0.03) */
    double run_level;      /* probability of any false REGRESSION in the whole run (0.01) */
    double pass_level;     /* probability of a PASS for a case that is slower by pass_margin (0.05) */
    double screen_level;   /* of the lower bound in screening (0.05) */
    double most_preempted; /* share of the pairs (0.30) */
};
extern const struct nb_gate_rule nb_gate_rule_default;
#define NB_GATE_FAR                                                                                                    \
    2 /* times the baseline's time, by medians and by fastest samples: beyond any margin, and any disturbance of pairs */
#define NB_GATE_CLEARING_SHARE 0.3 /* of pass_level, at screening */

/* What one launch says of one case. Logarithms of ratios. */
struct nb_gate_launch {
    double ratio;   /* median over pairs of ln(candidate / baseline) */
    double control; /* the same for a byte copy of the baseline */
    bool is_probed; /* then also of the pairs in each state of the core: */
    struct nb_by_state ratio_in, control_in;
    double ratio_min; /* ln(fastest candidate sample / fastest baseline sample) */
    double
        order_effect; /* median ratio where the candidate came first, less that where it came second; NaN: one kind only */
    double halves;    /* the ratio in one half of the blocks less that in the other */
    double preempted; /* share of the pairs in which a sample saw an involuntary switch or a migration */
    int layout;       /* which build of either arm; 0 when there is one */
};

enum nb_gate_stage { NB_GATE_SCREEN, NB_GATE_CONFIRM_1, NB_GATE_CONFIRM_2, NB_N_GATE_STAGES };

struct nb_gate_evidence {
    struct nb_gate_launch *launches; /* of screening, then the fresh ones of confirmation */
    size_t n_screen, n_confirm;
    enum nb_gate_stage stage; /* the last that is complete */
    size_t n_planned;         /* fresh launches that confirmation would have in all */
    size_t n_confirming;      /* cases of the run that went on to confirmation, this one included */
    int ended_by;             /* the signal that ended the run; 0: no time was left */
};

/* One launch more of the stage that is under way, to a list that the caller frees. */
void nb_gate_evidence_add(struct nb_gate_evidence *e, enum nb_gate_stage stage, const struct nb_gate_launch *launch);

struct nb_gate_judgement {
    enum nb_verdict verdict;  /* NB_VERDICT_NONE: goes on to the next stage */
    bool flagged;             /* screening's lower bound was above fail_margin */
    struct nb_interval ratio; /* of all launches, as candidate / baseline (1.02: 2 % slower), with a 95 % interval */
    struct nb_interval confirmed; /* of the confirming launches, lower bound at the level REGRESSION is judged at */
    struct nb_interval control;   /* copy / baseline */
    double ratio_min;             /* by the launches' fastest samples */
    double order_effect, preempted;
    enum nb_state state; /* of the core, that ratios and control are of */
    double launch_sd;    /* of ln ratio between launches */
    double
        smallest_effect; /* ratio - 1 that these launches would have called a REGRESSION in 95 % of runs; NaN: far slower, or too few */
    double layout_spread; /* largest less smallest ratio between layouts; NaN with fewer than two */
    char reason[240];     /* "" with PASS */
};

/* An effect is missed where screening clears it and where confirmation does not find it. Where ln ratio has the deviation sd between
 * launches: the smallest ln ratio of which each misses at most 2.5 %, in so many launches, ... */
double nb_gate_kept_from(const struct nb_gate_rule *rule, double sd, size_t n_screen);
double nb_gate_found_from(const struct nb_gate_rule *rule, double sd, size_t n_confirm, size_t n_confirming);
/* ... and ratio - 1 that the whole gate calls a REGRESSION in 95 % of runs. */
double nb_gate_smallest(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, double sd);
/* The state of the core that serves for the launches' ratios, enough launches being those of bounds; and one of them in that state: NaN where
 * it has no ratio in it. */
enum nb_state nb_gate_state_of(const struct nb_gate_launch *launches, size_t n);
struct nb_gate_launch nb_gate_launch_in(const struct nb_gate_launch *launch, enum nb_state state);
/* Judges what is there. At the last stage the verdict is never NONE. */
void nb_gate_judge(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule, struct nb_gate_judgement *out);
/* The verdict when no more time is left: what stands, or INCONCLUSIVE. */
void nb_gate_judge_exhausted(const struct nb_gate_evidence *e, const struct nb_gate_rule *rule,
                             struct nb_gate_judgement *out);
