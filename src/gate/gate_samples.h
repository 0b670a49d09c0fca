// SPDX-License-Identifier: Apache-2.0
/* The samples of one arm in one launch, as the worker told them, and what two arms of the same blocks say of each other. */
#ifndef NB_GATE_SAMPLES_H
#define NB_GATE_SAMPLES_H

#include <cjson/cJSON.h>
#include <stdbool.h>

struct nb_gate_samples {
    double *ns; /* by block; NaN: not timed */
    int *position;
    bool *contaminated;
    int n;
};

/* From an element of a launch's arms. -1: it is none. */
int nb_gate_samples_read(struct nb_gate_samples *s, const cJSON *arm);
void nb_gate_samples_release(struct nb_gate_samples *s);

/* Which pairs: all; those in which b came first, or second; two halves of the launch that both reach over all of it and have
 * each order of the arms beside its reverse (src/measure/measure.h): two of every four blocks. */
enum nb_pairs { NB_PAIRS_ALL, NB_PAIRS_FIRST, NB_PAIRS_SECOND, NB_PAIRS_HALF_A, NB_PAIRS_HALF_B };

/* Median of ln(b / a) over pairs of one block; NaN: there are none. */
double nb_gate_paired(const struct nb_gate_samples *b, const struct nb_gate_samples *a, enum nb_pairs which);
double nb_gate_fastest(const struct nb_gate_samples *s);
double nb_gate_median_ns(const struct nb_gate_samples *s);
/* Of the pairs: in which either sample saw an involuntary switch or a migration. */
double nb_gate_contaminated(const struct nb_gate_samples *b, const struct nb_gate_samples *a);

#endif
