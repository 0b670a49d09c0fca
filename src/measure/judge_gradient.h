// SPDX-License-Identifier: Apache-2.0
/* Is what a backward call wrote right? */
#ifndef NB_JUDGE_GRADIENT_H
#define NB_JUDGE_GRADIENT_H

#include "src/accuracy/gradient.h"
#include "src/measure/judge.h"

/* Compares dx, dgamma, dbeta and dalpha in b with the exact gradient, which may have been made for another case of the same mathematics:
 * how c is computed is taken from c. out->chain, column_chain and evidence.claimed are given; status,
 * reason, accuracy (of dx, with the parameters' errors beside it) and evidence are filled. flushes: NB_FLAG_FLUSHES. */
void nb_judge_gradient(const struct nb_case *c, const struct nb_gradient *gradient, const struct nb_oracle *oracle,
                       bool flushes, const struct nb_buffers *b, struct nb_checked *out);

#endif
