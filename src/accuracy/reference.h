// SPDX-License-Identifier: Apache-2.0
/* What a plain, careful implementation in the same dtypes returns: statistics in f32, two passes, 16 running sums that meet in a
 * tree, x * (1 / sqrt(var + eps)), gamma and beta in f32, one rounding to the dtype. Kernels are measured by its error. */
#ifndef NB_REFERENCE_H
#define NB_REFERENCE_H

#include <stdint.h>

#include "src/accuracy/oracle.h"

struct nb_reference;
/* Borrows the oracle, for its case and inputs alone. */
struct nb_reference *nb_reference_new(const struct nb_oracle *o);
/* One row of y in the dtype: cols elements. */
void nb_reference_row(struct nb_reference *reference, int64_t row, void *y);
void nb_reference_free(struct nb_reference *reference);

#endif
