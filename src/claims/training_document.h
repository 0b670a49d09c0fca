// SPDX-License-Identifier: Apache-2.0
/* What was trained, as the "training" section of claims.json, from which tables and curves are drawn:
 *   {"steps":[{"workload","arm","launches","seconds":{value,low,high},"passes":{..},"norm_share":{..}}],
 *    "memory":[{"workload","arm","launches","peak_bytes":{..},"kept_bytes","parameter_bytes"}],
 *    "courses":[{"workload","arm","steps","seeds","final_loss":{..},"loss":{"steps":[..],"median":[..]},
 *                "layers":[{"site","gradient","start":[by layer],"end":[..]}],
 *                "last_layer":[{"site","gradient","steps":[..],"std":[..]}]}]}
 * norm_share is of passes; medians are over seeds. */
#ifndef NB_TRAINING_DOCUMENT_H
#define NB_TRAINING_DOCUMENT_H

#include <cjson/cJSON.h>

#include "src/train/train_results.h"

cJSON *nb_training_to_json(const struct nb_train_results *results);

#endif
