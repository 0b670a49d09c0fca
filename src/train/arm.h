// SPDX-License-Identifier: Apache-2.0
/* An arm of a training experiment as words, in claim files, jobs and reports: "layernorm composed post layers=4 bf16".
 *
 *   none layernorm rmsnorm prmsnorm batchnorm centre scale      the norm; must be there
 *   fused composed    learned frozen    by_feature by_position    pre post    residual no_residual    causal bidirectional
 *   unpadded padded masked    f32 f16 bf16
 *   layers= batch= sequence= hidden= threads= rate= clip= eps= partial=  0: the workload's own */
#ifndef NB_TRAIN_ARM_H
#define NB_TRAIN_ARM_H

#include "src/core/strbuf.h"
#include "src/train/options.h"

/* No norm, pre, residual paths, causal, no padding, f32, gradients clipped at 1; what is the workload's own is 0. */
void nb_arm_default(struct nb_train_options *o);
/* Words override what *o holds. Null, or why not. */
const char *nb_arm_parse(struct nb_train_options *o, const char *text, char *reason, size_t n);
/* The same of words that all arms share, among which need be no norm; null text: none. */
const char *nb_arm_parse_common(struct nb_train_options *o, const char *text, char *reason, size_t n);
/* What differs from the default, the norm first; arms that are alike have one text. The seed is not part of it. */
void nb_arm_print(const struct nb_train_options *o, struct nb_strbuf *out);
/* Does the style of its kernels matter? Not where no kernel runs. */
bool nb_arm_has_kernel(const struct nb_train_options *o);

#endif
