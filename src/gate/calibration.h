// SPDX-License-Identifier: Apache-2.0
/* How noisy is this machine for the gate? Launches in which nothing differs: the baseline beside byte copies of itself, and beside itself
 * once more. Pure functions of what was measured.
 *
 * The model is y = bias of the copy + launch effect + error of the median within the launch. The error within shrinks as
 * 1 / sqrt(blocks), the launch effect (addresses, CPU, frequency, neighbours) only with more launches (Kalibera & Jones 2013: repeat
 * where the variance is). Both come from one set of launches: two halves of the blocks of a launch share its effect, so that half of
 * the spread between their medians is the error of the whole launch's median. */
#ifndef NB_CALIBRATION_H
#define NB_CALIBRATION_H

#include <stddef.h>

#include "src/core/stats.h"
#include "src/gate/gate_judge.h"

/* Arms beside the baseline. SAME is the baseline's own code at the same addresses: what the copies have beyond it is the addresses'. */
enum nb_replica { NB_REPLICA_CONTROL, NB_REPLICA_COPY, NB_REPLICA_SAME, NB_N_REPLICAS };
extern const char *const nb_replica_names[NB_N_REPLICAS];
#define NB_N_COPIES 2 /* the first so many replicas are copies */

struct nb_replica_launch { /* of one replica against the baseline, in logarithms of ratios */
    double ratio, ratio_min, order_effect;
    double halves; /* ratio in one half of the blocks less that in the other */
    double contaminated;
};

struct nb_calibration_launch { /* of one case */
    int case_index;            /* launches of a case are compared with each other only */
    struct nb_replica_launch replicas[NB_N_REPLICAS];
    double overhead_s; /* of the process: start, inputs, checks */
    double sample_s;   /* of one sample of one arm, with what goes before it */
};

struct nb_calibration {
    size_t n_launches, n_cases;
    int blocks;
    double launch_sd;             /* of a launch's value */
    double launch_sd_high;        /* it is surely (95 %) smaller, were launches normal */
    double within_sd, between_sd; /* its parts: within shrinks with blocks */
    double same_sd;               /* of NB_REPLICA_SAME's values: what addresses of code do not explain */
    double min_sd;                /* of the logarithm of the ratio of the fastest samples */
    double contaminated;          /* share of the pairs, mean over launches */
    struct nb_interval order_effect;
    struct nb_interval bias[NB_N_REPLICAS]; /* each 95 % */
    double overhead_s, sample_s;
    struct nb_gate_launch *residuals; /* launches as differences from the mean of their case and copy; owned */
    size_t n_residuals;
};

/* Of launches of one group's cases. A launch with a value that is not finite is left out. */
void nb_calibration_estimate(const struct nb_calibration_launch *launches, size_t n, int blocks,
                             struct nb_calibration *out);
void nb_calibration_release(struct nb_calibration *c);
/* The spread between launches with so many blocks in each. */
double nb_calibration_sd(const struct nb_calibration *c, int blocks);

#endif
