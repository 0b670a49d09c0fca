// SPDX-License-Identifier: Apache-2.0
/* From the noise to what a gate must measure: power of a plan, by simulated gates that the gate's own judge decides, and the cheapest plan
 * that sees a wanted effect. */
#ifndef NB_CALIBRATION_PLAN_H
#define NB_CALIBRATION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "src/gate/calibration.h"

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
 * draws than asked for: a judgement costs their square. */
struct nb_gate_power nb_gate_power(const struct nb_calibration *c, const struct nb_gate_design *plan,
                                   const struct nb_gate_rule *rule, double effect, int draws, uint64_t seed);
/* Ratio - 1 that a single case under suspicion with this plan shows with the wanted power, were launches normal. */
double nb_gate_smallest_effect(const struct nb_calibration *c, const struct nb_gate_design *plan,
                               const struct nb_gate_rule *rule);
/* Seconds of one case with three arms. */
double nb_gate_seconds(const struct nb_calibration *c, const struct nb_gate_design *plan, bool confirmed);
/* The cheapest plan that clears a copy and finds the effect, both with the wanted power, were the noise as large as launch_sd_high
 * says. */
void nb_gate_recommend(const struct nb_calibration *c, const struct nb_gate_rule *rule, double effect, int draws,
                       struct nb_recommendation *out);
/* Null, or why a case with this noise cannot be gated by this plan at the rule's margins; the text is good until the next call. */
const char *nb_gate_hopeless(const struct nb_calibration *c, const struct nb_gate_design *plan,
                             const struct nb_gate_rule *rule);

#endif
