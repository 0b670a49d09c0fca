// SPDX-License-Identifier: Apache-2.0
/* What the gate knows of a case before it times it: is there anything to compare, is it the same machine code, is what both
 * builds compute right, and is the candidate as accurate as the baseline? */
#ifndef NB_GATE_CHECK_H
#define NB_GATE_CHECK_H

#include "src/gate/gate.h"

/* The margins of accuracy: worse by more than this is LESS ACCURATE. */
#define NB_GATE_ULP_FACTOR 1.1 /* of the largest error, and */
#define NB_GATE_ULP_MORE 0.1   /* in ulp besides */
#define NB_GATE_BIAS_MORE_U 0.05
#define NB_GATE_NORM_FACTOR 2 /* more, of the norm of a parameter's error: its few sums over rows are chance too */

/* Decides the cases that need no timing. 0, -1 after nb_error, or a signal's number. */
int nb_gate_check(struct nb_gate *g);
/* Null, or in what the candidate is less accurate; the text is good until the next call. */
const char *nb_gate_less_accurate(const struct nb_accuracy *baseline, const struct nb_accuracy *candidate);

#endif
