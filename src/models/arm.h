// SPDX-License-Identifier: Apache-2.0
/* An arm of a model that PyTorch runs, as words in claim files, requests and reports: "layernorm nn post layers=4 bf16".
 *
 *   none layernorm rmsnorm prmsnorm batchnorm centre scale      the norm; must be there
 *   printed nn compiled ours    learned frozen    pre post    residual no_residual    causal bidirectional
 *   unpadded padded masked    by_feature by_position    f32 f16 bf16
 *   layers= batch= sequence= hidden= rate= clip= eps= partial=  0: the workload's own
 *
 * printed: the source's own class, operation by operation; nn: PyTorch's own norm; compiled: the printed class by torch.compile; ours: this
 * project's fused kernels. The models themselves are the Python package's (cmd/packaging/python/src/normbench/models). */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "src/core/text.h"

/* Each word of a choice by its place; 0 is what an arm has without a word. */
struct nb_model_arm {
    int norm, style, affine, place, residual, causal, padding, by_position, dtype;
    int layers, batch, sequence, hidden;
    double rate, clip, eps, partial;
};

/* The words of `common`, which may be null, hold unless `text` overrides them; the norm must be named. Null, or why not. */
const char *nb_model_arm_parse(struct nb_model_arm *arm, const char *common, const char *text, char *reason, size_t n);
/* What differs from the default, the norm first; arms that are alike have one text. */
void nb_model_arm_print(const struct nb_model_arm *arm, struct nb_strbuf *out);
/* As a request has it: "arm" is the text. Owned. */
cJSON *nb_model_arm_json(const struct nb_model_arm *arm);

struct nb_model_workload {
    const char *name;                    /* as the Python package knows it */
    int layers, batch, sequence, hidden; /* its own */
    double step_s;                       /* guess: of a step on a core, until one was timed */
};
const struct nb_model_workload *nb_model_workload_find(const char *name); /* null */
/* Numbers that are 0 become those of the workload. */
void nb_model_arm_complete(struct nb_model_arm *arm, const struct nb_model_workload *workload);
/* Seconds of a step of a complete arm, by the workload's guess. */
double nb_model_arm_step_s(const struct nb_model_arm *arm, const struct nb_model_workload *workload);

/* Calls tag(context, axis, value) for each choice that means something for the arm, and for layers, hidden and tokens: the axes by which claims
 * select it. */
void nb_model_arm_tag(const struct nb_model_arm *arm, void (*tag)(void *context, const char *axis, const char *value),
                      void *context);
