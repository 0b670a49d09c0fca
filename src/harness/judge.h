// SPDX-License-Identifier: Apache-2.0
/* Is what a call wrote right? */
#ifndef NB_JUDGE_H
#define NB_JUDGE_H

#include "src/accuracy/oracle.h"
#include "src/accuracy/yardstick.h"
#include "src/harness/buffers.h"
#include "src/input/inputs.h"
#include "src/record/record.h"

struct nb_checked {
    enum nb_status status;
    char reason[256];
    bool has_accuracy;
    struct nb_accuracy accuracy;
    struct nb_evidence evidence; /* with the accuracy; its claim is given */
    int64_t chain;
    bool row_local;
    uint64_t
        *row_digests; /* of y, one for each row: what the timed output is compared with; owned; null after a failure */
};

/* yardstick: what the ratios of the accuracy are taken to, or null for none. Compares y, residual_out, mean, rstd and the running statistics in b with the oracle. out->chain and out->evidence.claimed are
 * given; status, reason, accuracy and evidence are filled. */
void nb_judge(const struct nb_case *c, const struct nb_inputs *in, const struct nb_oracle *oracle,
              const struct nb_yardstick *yardstick, const struct nb_buffers *b, struct nb_checked *out);

#endif
