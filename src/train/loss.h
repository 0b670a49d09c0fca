// SPDX-License-Identifier: Apache-2.0
/* Softmax and cross-entropy, in natural logarithms; the mean over the rows that have a target. */
#ifndef NB_TRAIN_LOSS_H
#define NB_TRAIN_LOSS_H

#include <stdint.h>

/* probabilities: rows x classes, may be the logits' place. A row whose target is below 0 does not count (padding); no row that counts:
 * 0. */
double nb_cross_entropy_forward(float *probabilities, const float *logits, const int32_t *targets, int64_t rows,
                                int64_t classes);
/* scale times the gradient of that mean by the logits: (p - onehot) * scale / rows that count. dlogits may be the place of p. */
void nb_cross_entropy_backward(float *dlogits, const float *probabilities, const int32_t *targets, int64_t rows,
                               int64_t classes, double scale);

#endif
