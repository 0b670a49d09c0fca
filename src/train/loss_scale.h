// SPDX-License-Identifier: Apache-2.0
/* The dynamic loss scale of f16 (Micikevicius et al. 2018; figures as torch.amp.GradScaler): the loss is multiplied by it, so that small
 * gradients stay above f16's least numbers. A step whose gradients overflow is left out and the scale halved; after many good ones it
 * doubles. */
#ifndef NB_TRAIN_LOSS_SCALE_H
#define NB_TRAIN_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

struct nb_loss_scale {
    bool dynamic; /* f16; else the scale stays 1 */
    double scale;
    int64_t good_steps; /* since it last changed */
    int64_t growth_interval;
    int64_t skipped_steps; /* in all */
};

void nb_loss_scale_init(struct nb_loss_scale *s, enum nb_dtype dtype);
/* After a backward pass: shall the update be made? */
bool nb_loss_scale_update(struct nb_loss_scale *s, bool gradients_are_finite);

#endif
