// SPDX-License-Identifier: Apache-2.0
/* Rows on which a kernel of the declared formula makes no rounding but the last: small integers times a power of two whose mean is 0 and
 * whose mean square is a power of four, with eps 0. Sums are exact in every order, and so are mean, root, 1 / root and x times it; y is
 * one product, x * rstd * w, rounded once, and weights are such that many of these products are ties. So every bit of y is known,
 * without a bound: a rounding that is not to nearest even, or a root that is an ulp off in every row, shows. Backward: dy is such that
 * both sums of a row are 0, and dx is rstd * dy * w. */
#pragma once

#include "src/measure/fixture.h"

/* Fills the fixture's inputs; want: each element of y or dx, before its rounding. Of some formulas a few products are
 * beyond the numbers of the dtype. BatchNorm in training: likewise for each channel. Returns null, or why no such rows can
 * be made, or why the formula may round in other places. */
const char *nb_exact_rows(struct nb_fixture *fixture, double *want);
