// SPDX-License-Identifier: Apache-2.0
/* Two directions of time side by side: each row of y is a row of left, then one of right. */
#ifndef NB_TRAIN_HALVES_H
#define NB_TRAIN_HALVES_H

#include <stdint.h>

/* width: of a half */
void nb_halves_join(float *y, const float *left, const float *right, int64_t rows, int64_t width);
void nb_halves_split(float *left, float *right, const float *y, int64_t rows, int64_t width);

#endif
