// SPDX-License-Identifier: Apache-2.0
#include "src/lab/probe/probe_state.h"

#include <stdarg.h>
#include <stdio.h>

#include "src/core/json.h"

void nb_probe_init(struct nb_probe *p, const struct nb_case *c, const struct nb_entry *entry) {
    *p = (struct nb_probe){.c = *c,
                           .entry = entry,
                           .format = &nb_formats[c->dtype],
                           .centres = nb_op_centres(c->op),
                           .of_sum = c->op == NB_OP_L2NORM,
                           .has_gamma = c->formula.affine != NB_AFFINE_NONE,
                           .has_beta = c->formula.affine == NB_AFFINE_GAMMA_BETA,
                           .eps_place = -1,
                           .variance = -1,
                           .answers = cJSON_CreateArray()};
}

void nb_probe_say(struct nb_probe *p, const char *question, const char *value, const char *confidence,
                  const char *evidence, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, evidence);
    vsnprintf(text, sizeof text, evidence, arguments);
    va_end(arguments);
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "question", question);
    nb_json_text(answer, "value", value);
    nb_json_text(answer, "confidence", value ? confidence : NULL);
    nb_json_text(answer, "evidence", text);
    cJSON_AddItemToArray(p->answers, answer);
}
