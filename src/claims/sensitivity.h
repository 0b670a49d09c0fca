// SPDX-License-Identifier: Apache-2.0
/* Which choice makes or breaks a claim: its rules applied to the figures of one value of an axis at a time, whatever values the rules
 * select. */
#ifndef NB_SENSITIVITY_H
#define NB_SENSITIVITY_H

#include "src/claims/verdict.h"

/* Fills result->sensed from its reads and findings. */
void nb_sensitivity_find(struct nb_claim_result *result);
/* Do the values of the axis that entry i belongs to come to different verdicts? */
bool nb_sensitivity_decides(const struct nb_claim_result *result, size_t i);

#endif
