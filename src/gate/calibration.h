// SPDX-License-Identifier: Apache-2.0
/* How noisy is this machine for the gate, and what must a gate measure here? Launches in which nothing differs: the baseline beside
 * replicas of itself, two byte copies in files of their own and its own code once more. The noise and the plan that follows from it are
 * pure functions of what was measured.
 * README.md has the model. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/stats.h"
#include "src/gate/gate.h"
#include "src/gate/gate_judge.h"

/* Replicas of the baseline, the arms beside it. SAME is its own code at the same addresses: what the copies scatter beyond it is due to
 * addresses. */
enum nb_replica { NB_REPLICA_CONTROL, NB_REPLICA_COPY, NB_REPLICA_SAME, NB_N_REPLICAS };
extern const char *const nb_replica_names[NB_N_REPLICAS];
#define NB_N_COPIES 2 /* the first so many replicas are copies */

struct nb_calibration_launch {                     /* of one case */
    int case_index;                                /* launches of a case are compared with each other only */
    struct nb_gate_launch replicas[NB_N_REPLICAS]; /* each against the baseline */
    double overhead_s;                             /* of the process: start, inputs, checks */
    double sample_s;                               /* of one sample of one arm, with what goes before it */
};

struct nb_calibration {
    size_t n_launches, n_cases;
    int blocks;
    double launch_sd;             /* of a launch's value */
    double launch_sd_high;        /* it is surely (95 %) smaller, were launches normal */
    double within_sd, between_sd; /* its parts: within shrinks with blocks */
    double same_sd;               /* of NB_REPLICA_SAME's values: what addresses of code do not explain */
    double min_sd;                /* of the logarithm of the ratio of the fastest samples */
    double preempted;             /* share of the pairs, mean over launches */
    struct nb_interval order_effect;
    struct nb_interval bias[NB_N_REPLICAS]; /* each 95 % */
    double overhead_s, sample_s;
    struct nb_gate_launch *residuals; /* launches as differences from the mean of their case and copy; owned */
    size_t n_residuals;
};

/* ---- the plan -------------------------------------------------------------------------------------------------------- */

/* From the noise to what a gate must measure: power of a plan, by simulated gates that the gate's own judge decides, and the cheapest
 * plan that sees a wanted effect. */

struct nb_gate_design {
    int screen_launches, confirm_launches, blocks; /* as struct nb_gate_plan */
};

struct nb_gate_power {                 /* shares of simulated gates */
    double pass_same, regression_same; /* nothing changed: PASS; REGRESSION, the false alarm */
    double regression_effect;          /* the effect is there: REGRESSION, the power */
    double pass_effect;                /* the dangerous miss */
};

struct nb_recommendation {
    bool is_found; /* false: no plan up to NB_MOST_LAUNCHES and NB_MOST_BLOCKS sees the effect */
    struct nb_gate_design plan;
    struct nb_gate_power power;
    double seconds_same, seconds_effect; /* of one case: screened only; with all of confirmation */
};

#define NB_MOST_LAUNCHES 60 /* of a stage: a minute for a case; what needs more is no case for a gate */
#define NB_MOST_BLOCKS 800
#define NB_WANTED_POWER 0.95

/* Launches are drawn from the calibration's own, scaled to the plan's blocks; effect: ratio - 1. Plans of many launches get fewer
 * draws than wanted: a judgement costs their square. */
struct nb_gate_power nb_gate_power(const struct nb_calibration *c, const struct nb_gate_design *plan,
                                   const struct nb_gate_rule *rule, double effect, int draws, uint64_t seed);
/* Ratio - 1 that a single case under suspicion with this plan shows with the wanted power, were launches normal. */
double nb_gate_smallest_effect(const struct nb_calibration *c, const struct nb_gate_design *plan,
                               const struct nb_gate_rule *rule);
/* The cheapest plan that clears a copy and finds the effect, both with the wanted power, were the noise as large as launch_sd_high
 * says. */
void nb_gate_recommend(const struct nb_calibration *c, const struct nb_gate_rule *rule, double effect, int draws,
                       struct nb_recommendation *out);
/* Null, or why a case with this noise cannot be gated by this plan at the rule's margins; the text is good until the next call. */
const char *nb_gate_hopeless(const struct nb_calibration *c, const struct nb_gate_design *plan,
                             const struct nb_gate_rule *rule);

/* Calibration under way: a few cases of every group (op, pass, dtype, shape) are launched round robin, as the gate does. */

struct nb_calibration_group {
    const struct nb_case *c; /* the first of its cases: op, pass, dtype and shape are the group's */
    size_t *cases;           /* of the gate's: those that are launched; owned */
    size_t n_cases, n_all;   /* n_all: cases that the group has */
    struct nb_calibration_launch *launches;
    size_t n_launches;
    char refused[240]; /* a case that could not be launched, and why; "" */
    struct nb_calibration noise;
};

struct nb_calibration_run {
    struct nb_gate *g; /* its cases, builds, blocks and seed; both builds are copies of one */
    int launches, cases_per_group;
    struct nb_calibration_group *groups;
    size_t n_groups;
};

/* Fills groups. 0, -1 after nb_error, or a signal's number: what was measured stands. */
int nb_calibration_run(struct nb_calibration_run *r);
void nb_calibration_run_release(struct nb_calibration_run *r);
