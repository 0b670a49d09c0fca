// SPDX-License-Identifier: Apache-2.0
/* A few rows of a case in buffers that are called on again and again while the inputs are transformed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/kernel_fields.h"
#include "src/measure/buffers.h"
#include "src/plan/inputs.h"

struct nb_fixture {
    struct nb_case c; /* with the fixture's rows; eps and alpha may be changed between calls */
    const struct nb_entry *entry;
    const struct nb_inputs *source; /* of the case, borrowed */
    struct nb_inputs in;            /* what the next call sees; owned */
    struct nb_buffers buffers;
    struct nb_call call;
    int64_t source_rows; /* row r of the fixture is row r mod source_rows of the case */
    size_t item;
    double eps, alpha; /* the case's own */
};

/* rows: of the fixture; by BatchNorm as many as the case has. -1: the kernel refuses, or there is no memory. */
int nb_fixture_init(struct nb_fixture *fixture, const struct nb_case *c, const struct nb_entry *entry,
                    const struct nb_inputs *in, int64_t rows);
/* Inputs, eps and alpha as the case has them. */
void nb_fixture_reset(struct nb_fixture *fixture);
/* Parameter i: a weight of w, whatever its offset, and a beta of 0. */
void nb_fixture_set_weight(struct nb_fixture *fixture, int64_t i, double w);
/* Calls the kernel on rows [0, rows) in ranges of so many units (0: whole), y or dx poisoned before; a backward call is given the
 * statistics of x as it is now. result: y or dx, packed. -1 when it returned an error. */
int nb_fixture_call(struct nb_fixture *fixture, int64_t rows, int64_t range, void *result);
void nb_fixture_release(struct nb_fixture *fixture);

/* ---- rows times a power of two ---- */

/* A fixture's rows times a power of two, which commutes with every rounding as long as nothing leaves the normal numbers; a gradient is
 * linear in what comes in, so that dy and dresidual_out times 2^k give dx times 2^k. */

/* The case's own x, residual and running statistics times 2^k (variances 4^k), and eps and alpha to match; backward: dy and dresidual_out.
 * False when an element leaves the normal numbers of its dtype. */
bool nb_scale(struct nb_fixture *fixture, int k);
/* Why the result may not scale with the case's own rows, or null. oracle: of the whole case. */
const char *nb_scale_excuse(struct nb_fixture *fixture, const struct nb_oracle *oracle, int k);

/* ---- rows on which the last rounding is the only one ---- */

/* Rows on which a kernel of the declared formula makes no rounding but the last: small integers times a power of two whose mean is 0 and
 * whose mean square is a power of four, with eps 0. Sums are exact in every order, and so are mean, root, 1 / root and x times it; y is
 * one product, x * rstd * w, rounded once, and weights are such that many of these products are ties. So every bit of y is known,
 * without a bound: a rounding that is not to nearest even, or a root that is an ulp off in every row, shows. Backward: dy is such that
 * both sums of a row are 0, and dx is rstd * dy * w. */

/* Fills the fixture's inputs; want: each element of y or dx, before its rounding. Of some formulas a few products are
 * beyond the numbers of the dtype. BatchNorm in training: likewise for each channel. Returns null, or why no such rows can
 * be made, or why the formula may round in other places. */
const char *nb_exact_rows(struct nb_fixture *fixture, double *want);
