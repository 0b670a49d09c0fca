// SPDX-License-Identifier: Apache-2.0
/* The workloads there are. */
#include <string.h>

#include "src/train/attentive_reader.h"
#include "src/train/convpool.h"
#include "src/train/order_embedding.h"
#include "src/train/rnnsearch.h"
#include "src/train/transformer_models.h"
#include "src/train/workload.h"

const struct nb_workload *const nb_workloads[] = {
    &nb_workload_minimind2_small,  &nb_workload_minimind_3,
    &nb_workload_transformer_base, &nb_workload_tiny_transformer,
    &nb_workload_rnnsearch,        &nb_workload_tiny_rnnsearch,
    &nb_workload_order_embedding,  &nb_workload_tiny_order_embedding,
    &nb_workload_attentive_reader, &nb_workload_tiny_attentive_reader,
    &nb_workload_convpool,         &nb_workload_tiny_convpool,
};
const size_t nb_n_workloads = sizeof nb_workloads / sizeof nb_workloads[0];

const struct nb_workload *nb_workload_find(const char *name) {
    for (size_t i = 0; i < nb_n_workloads; i++)
        if (strcmp(nb_workloads[i]->name, name) == 0) return nb_workloads[i];
    return NULL;
}
