// SPDX-License-Identifier: Apache-2.0
/* The kernel of the registry that a normalization of a model is. */
#ifndef NB_TRAIN_NORM_KERNEL_H
#define NB_TRAIN_NORM_KERNEL_H

#include "src/core/registry.h"
#include "src/train/options.h"

/* Is the kind a kernel's? Not none, centre, scale. */
bool nb_norm_is_kernel(enum nb_norm_kind kind);
/* In f32, at the widest width of this machine that takes the call; null after nb_error. */
const struct nb_entry *nb_norm_kernel_find(const struct nb_norm_choice *choice, enum nb_pass pass,
                                           const struct nb_call *call);

#endif
