// SPDX-License-Identifier: Apache-2.0
/* Tries a claim: its experiments, its readings, its verdict. */
#ifndef NB_CLAIM_JUDGE_H
#define NB_CLAIM_JUDGE_H

#include "src/claims/verdict.h"

/* Judges findings that are there already: result->claim and ->findings are given. */
void nb_claim_judge(struct nb_claim_result *result);
/* Runs what is not a matrix experiment, takes what was measured of the others, and judges. */
void nb_claim_try(struct nb_claim_result *result, const struct nb_claim *claim, const struct nb_claims_measured *m);
void nb_claim_result_release(struct nb_claim_result *result);

#endif
