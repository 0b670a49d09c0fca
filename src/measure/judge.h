// SPDX-License-Identifier: Apache-2.0
/* Is what a call wrote right? */
#ifndef NB_JUDGE_H
#define NB_JUDGE_H

#include "src/accuracy/accuracy.h"
#include "src/accuracy/evidence.h"
#include "src/accuracy/gradient.h"
#include "src/accuracy/oracle.h"
#include "src/accuracy/yardstick.h"
#include "src/measure/buffers.h"
#include "src/measure/status.h"
#include "src/plan/inputs.h"

struct nb_checked {
    enum nb_status status;
    char reason[256];
    bool has_accuracy;
    struct nb_accuracy accuracy;
    struct nb_evidence evidence; /* with the accuracy; its claim is given */
    int64_t chain, column_chain; /* column_chain: of a backward case */
    bool row_local;
    uint64_t
        *digests; /* what the timed output is compared with (nb_n_digests() of them); owned; null after a failure */
};

/* Of a result: one for each row of y or dx, and one for all gradients of parameters. */
static inline int64_t nb_n_digests(int64_t rows) { return rows + 1; }

/* yardstick: what the ratios of the accuracy are taken to, or null for none. Compares y, residual_out, mean, rstd and the running statistics in b with the oracle. out->chain and out->evidence.claimed are
 * given; status, reason, accuracy and evidence are filled. */
void nb_judge(const struct nb_case *c, const struct nb_inputs *in, const struct nb_oracle *oracle,
              const struct nb_yardstick *yardstick, const struct nb_buffers *b, struct nb_checked *out);

/* Sets the status that the accuracy of y or dx deserves; its bias has been judged. */
void nb_judge_accuracy(struct nb_checked *out);

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* Is what a backward call wrote right? */

/* Compares dx, dgamma, dbeta and dalpha in b with the exact gradient, which may have been made for another case of the same mathematics:
 * how c is computed is taken from c. out->chain, column_chain and evidence.claimed are given; status,
 * reason, accuracy (of dx, with the parameters' errors beside it) and evidence are filled. flushes: NB_FLAG_FLUSHES. */
void nb_judge_gradient(const struct nb_case *c, const struct nb_gradient *gradient, const struct nb_oracle *oracle,
                       bool flushes, const struct nb_buffers *b, struct nb_checked *out);

#endif
