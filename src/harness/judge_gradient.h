// SPDX-License-Identifier: Apache-2.0
/* Is what a backward call wrote right? */
#ifndef NB_JUDGE_GRADIENT_H
#define NB_JUDGE_GRADIENT_H

#include "src/accuracy/gradient.h"
#include "src/harness/judge.h"

/* Compares dx, dgamma, dbeta and dalpha in b with the gradient's oracle. out->chain, column_chain and evidence.claimed are given; status,
 * reason, accuracy (of dx, with the parameters' errors beside it) and evidence are filled. flushes: NB_FLAG_FLUSHES. */
void nb_judge_gradient(const struct nb_gradient *gradient, const struct nb_oracle *oracle, bool flushes,
                       const struct nb_buffers *b, struct nb_checked *out);

#endif
