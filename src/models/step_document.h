// SPDX-License-Identifier: Apache-2.0
/* What `claims --model` found, as JSON (reports/schema/step.schema.json): DIR/step.json, from which all output is made. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/models/step.h"

#define NB_STEP_FILE "step.json"

struct nb_step_about {
    const struct nb_model_step *step;
    const struct nb_rates *rates;
    const struct nb_norm_times *norms; /* by pair */
    size_t n_norms;
    int argc;
    char **argv;
    double elapsed_s;
    bool complete;
};
cJSON *nb_step_document(const struct nb_step_about *about);
