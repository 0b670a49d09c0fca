// SPDX-License-Identifier: Apache-2.0
/* What k of n says of a probability: exact bounds (Clopper & Pearson 1934), each one-sided at its confidence. */
#ifndef NB_PROPORTION_H
#define NB_PROPORTION_H

#include <stdint.h>

double nb_proportion_upper(int64_t k, int64_t n, double confidence); /* 1 for n = 0 */
double nb_proportion_lower(int64_t k, int64_t n, double confidence); /* 0 for n = 0 */

#endif
