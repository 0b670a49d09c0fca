// SPDX-License-Identifier: Apache-2.0
/* Is what a call wrote right? */
#pragma once

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
    int64_t rows_judged;         /* of y or dx; 0: all */
    int64_t calls;               /* by nb_check_on() */
    bool row_local;
    uint64_t
        *digests; /* what the timed output is compared with (nb_n_digests() of them); owned; null after a failure */
};

/* Sets status and reason. Returns false, so that a function can end with it. */
bool nb_checked_fail(struct nb_checked *out, enum nb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Of a result: one for each row of y or dx, and one for all gradients of parameters. */
static inline int64_t nb_n_digests(int64_t rows) { return rows + 1; }

/* What the results of a case are compared with. Cases of one mathematics on the same inputs may share it. */
struct nb_exact {
    const struct nb_oracle *oracle;
    const struct nb_yardstick *yardstick; /* what the ratios of the accuracy are taken to; null: to nothing */
    const struct nb_gradient *gradient;   /* of a backward case (but a copy's) */
};

/* Compares what a call wrote into b: y, residual_out, mean, rstd and the running statistics; of a backward call dx, dgamma, dbeta and dalpha.
 * out->chain, column_chain and evidence.claimed are given; status, reason, accuracy (of y or dx, with the parameters' errors beside it) and
 * evidence are filled. flushes: NB_FLAG_FLUSHES, of a backward call. Of a device's large y or dx a sample of rows is judged element by element
 * (rows_judged of them), the first and the last among them, and those in which something is no number; all else is judged whole. */
void nb_judge(const struct nb_case *c, const struct nb_inputs *in, const struct nb_exact *exact, bool flushes,
              const struct nb_buffers *b, struct nb_checked *out);
