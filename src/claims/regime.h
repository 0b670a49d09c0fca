// SPDX-License-Identifier: Apache-2.0
/* At which cost of dispatch is a published cut reached? The publications ran frameworks that launch one operation at a time on a GPU, where each costs
 * some microseconds whatever its size, and products cost little. So a model of such a step, made of what was measured here of two arms:
 *
 *   t(d)   = products + all else + d operations          norms(d) = time in the norms + d operations of the norms
 *   cut(d) = (norms_against(d) - norms_of(d)) / t_against(d)
 *
 * "here": products and all else as they were measured. On a GPU by name: products at its peak rate, all else by the ratio of its memory's
 * rate to that of a copy here. At the source's number of tokens, with which passes grow and, where
 * they are more steps of time and no larger batch, operations. A model: nothing overlaps, no operation costs more than d and its bytes. Arms that really spend d show whether it holds. */
#ifndef NB_REGIME_H
#define NB_REGIME_H

#include <cjson/cJSON.h>

#include "src/claims/finding.h"
#include "src/claims/training.h"
#include "src/core/json.h"
#include "src/train/train_study.h"

/* [{"row", "gpu", "cut", "low", "high"}, ..] as nb_field.read with NB_FIELD_MEMBER. -1 after nb_error. */
int nb_published_read(const struct nb_jsonc *file, const cJSON *node, void *list);
void nb_published_release(struct nb_published_list *list);

/* Figures of each published row: dispatch_needed (us, at most 1000: beyond is never), by `machine` (here, or the GPU) and `row`; cut_limit, to which
 * the cut tends where dispatch is all that costs; dispatch_cut by `dispatch` and `machine`; and for each arm that spends dispatch spent_ratio, its
 * step's time over what the model says. results null: all are missing, why. */
void nb_regime_find(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                    struct nb_findings *out);
/* The same for claims.json: an object for each published row, appended; with a sentence. */
void nb_regime_to_json(const struct nb_training *t, const struct nb_train_results *results, cJSON *list);

#endif
