// SPDX-License-Identifier: Apache-2.0
/* A design seen as a case, where oracle, bound and data are at home. */
#ifndef NB_DESIGN_CASE_H
#define NB_DESIGN_CASE_H

#include "src/core/case.h"
#include "src/lab/emulate/design.h"

/* Rows of so many columns. dtype and stats_dtype are only meant where the bound knows the design. */
void nb_design_case(struct nb_case *c, const struct nb_design *d, int64_t rows, int64_t cols, enum nb_affine affine);
/* Why the a-priori bound of bound.h cannot express the design, or null. It knows statistics in f32 and statistics in the stored
 * dtype; a step in a wider format than that is no worse. */
const char *nb_design_unbounded(const struct nb_design *d);

#endif
