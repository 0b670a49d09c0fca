// SPDX-License-Identifier: Apache-2.0
/* `normbench claims --model`: what would RMSNorm save in a step of a reader's own model, here? */
#pragma once

#include "cmd/shared/run_plan.h"

struct nb_model_question {
    const struct nb_plan_request *request; /* plugins, launches; the kernels are loaded */
    const char *model;                     /* a preset or a file */
    int tokens;                            /* 0: the model's own */
    const char *out, *resume;              /* as struct nb_measuring has them */
    const char *format;                    /* table, markdown, json */
    double case_timeout_s;
    int argc;
    char **argv;
};
/* Returns the exit code. */
int nb_model_question_run(const struct nb_model_question *q);
