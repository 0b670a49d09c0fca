// SPDX-License-Identifier: Apache-2.0
/* The kinds, and which of them an entry of a claim is. */
#include "src/claims/experiment.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/plan/cells.h"

const char *const nb_claims_plan_names[NB_N_CLAIMS_PLANS] = {"timing", "accuracy"};

static const struct nb_experiment_kind *const kinds[] = {&nb_experiment_timing, &nb_experiment_accuracy,
                                                         &nb_experiment_property, &nb_experiment_training};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

size_t nb_experiment_kinds(const struct nb_experiment_kind *const **out) {
    *out = kinds;
    return N_KINDS;
}

static const struct nb_experiment_kind *kind_of(const struct nb_jsonc *file, const cJSON *node) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, "kind");
    const char *names[N_KINDS], *text = cJSON_GetStringValue(item);
    for (size_t i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i]->name;
        if (text && strcmp(text, names[i]) == 0) return kinds[i];
    }
    const char *nearest = text ? nb_nearest(text, names, N_KINDS) : NULL;
    nb_error("%s:%d: \"kind\" must be one of timing, accuracy, property, training%s%s%s", file->path,
             nb_jsonc_line(file, item ? item : node), nearest ? "; did you mean '" : "", nearest ? nearest : "",
             nearest ? "'?" : "");
    return NULL;
}

int nb_experiment_read(struct nb_experiment *e, const char *claim, const struct nb_jsonc *file, const cJSON *node) {
    struct nb_strbuf label = {0};
    *e = (struct nb_experiment){.name = nb_strdup(node->string)};
    nb_strbuf_addf(&label, "%s/%s", claim, node->string);
    e->label = label.text;
    if (label.len > NB_LABEL_MAX)
        return nb_error("%s:%d: \"%s\": claim and experiment together have more than %d characters", file->path,
                        nb_jsonc_line(file, node), node->string, NB_LABEL_MAX);
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object with a \"kind\"");
    e->kind = kind_of(file, node);
    return e->kind ? e->kind->read(e, file, node) : -1;
}

void nb_experiment_release(struct nb_experiment *e) {
    if (e->kind && e->own) e->kind->release(e);
    free(e->name);
    free(e->label);
    *e = (struct nb_experiment){0};
}
