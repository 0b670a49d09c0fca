// SPDX-License-Identifier: Apache-2.0
/* `normbench claims --model`: what would RMSNorm save in a step of a reader's own model, here? */
#pragma once

#include "cmd/shared/run_plan.h"

/* model: a preset or a file; tokens 0: its own; format: table (null too), markdown, json; m: without a plan, its kernels are loaded. Returns the exit
 * code. */
int nb_model_question_run(const struct nb_measuring *m, const char *model, int tokens, const char *format);
