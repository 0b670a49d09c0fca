// SPDX-License-Identifier: Apache-2.0
/* At which cost of dispatch is a published cut reached? The publications ran frameworks that launch one operation at a time on a GPU: each
 * costs some microseconds whatever its size, and matrix products cost little. This is a model of such a step, made from what was measured
 * here of two arms that differ in their norm alone, LayerNorm (L) and another (R). With d the cost of dispatching one operation:
 *
 *   step(d)  = products + all else + d * operations of the step
 *   norms(d) = time in the norms + d * operations of the norms
 *   cut(d)   = (norms_L(d) - norms_R(d)) / step_L(d)
 *
 * A quotient of two linear functions of d goes one way, from cut(0) to its limit (operations of norms_L - operations of norms_R) /
 * operations of step_L, and so reaches a cut c once at most:
 *
 *   d(c) = (c step_L(0) - norms_L(0) + norms_R(0)) / (operations of norms_L - operations of norms_R - c operations of step_L)
 *
 * 0 where cut(0) is c or more already; never where the divisor is not above 0: then dispatch alone, however slow, saves less than c.
 *
 * Machines: "here", products and all else as they were measured; and the publication's GPU, where products take their number of
 * floating-point operations over its peak rate, and all else the time here times the rate of a copy here over the peak rate of its memory.
 * Sizes: a step is brought to the source's number of tokens. The passes take so much longer, clipping and update do not; operations grow
 * with it where these are more steps of time, and not where they are a larger batch.
 *
 * It leaves out that launches overlap with work, that an operation may take longer than its bytes, and that no machine attains its
 * peak rates. Arms that really wait d at each operation show how far it holds (spent_ratio). */
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

/* Figures of each published row: dispatch_needed (us, at most 1000: beyond is never), by `machine` (here, or the GPU) and `row`; cut_limit,
 * to which the cut tends where dispatch is all that costs; dispatch_cut by `dispatch` and `machine`; and for each arm that spends dispatch
 * spent_ratio, its step's time over what the model says. results null: all are missing, why. */
void nb_regime_find(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                    struct nb_findings *out);
/* The same for claims.json: an object for each published row, appended; with a sentence. */
void nb_regime_to_json(const struct nb_training *t, const struct nb_train_results *results, cJSON *list);

#endif
