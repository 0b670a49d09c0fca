// SPDX-License-Identifier: Apache-2.0
/* The transformers that are workloads. */
#ifndef NB_TRAIN_TRANSFORMER_MODELS_H
#define NB_TRAIN_TRANSFORMER_MODELS_H

#include "src/train/workload.h"

extern const struct nb_workload nb_workload_minimind2_small, nb_workload_minimind_3, nb_workload_transformer_base,
    nb_workload_tiny_transformer;

#endif
