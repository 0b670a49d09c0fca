// SPDX-License-Identifier: Apache-2.0
/* What a claim holds, and what machines may lack. */
#include "src/claims/claim.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/registry.h"
#include "src/measure/counters.h"

static void release_reading(struct nb_reading *r) {
    free(r->id);
    free(r->text);
    nb_strings_release(&r->needs);
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_release(&r->rules[i]);
    free(r->rules);
}

void nb_claim_release(struct nb_claim *c) {
    for (size_t i = 0; i < c->n_sources; i++) {
        free(c->sources[i].cite);
        free(c->sources[i].says);
        free(c->sources[i].note);
    }
    for (size_t i = 0; i < c->n_experiments; i++) nb_experiment_release(&c->experiments[i]);
    for (size_t i = 0; i < c->n_readings; i++) release_reading(&c->readings[i]);
    for (size_t i = 0; i < c->n_sensitivities; i++) {
        free(c->sensitivities[i].axis);
        free(c->sensitivities[i].reading);
        free(c->sensitivities[i].text);
    }
    free(c->sources);
    free(c->experiments);
    free(c->readings);
    free(c->sensitivities);
    free(c->id);
    free(c->path);
    free(c->title);
    free(c->statement);
    free(c->scope);
    free(c->correction);
    free(c->remark);
    *c = (struct nb_claim){0};
}

const struct nb_reading *nb_claim_reading(const struct nb_claim *c, const char *id) {
    for (size_t i = 0; i < c->n_readings; i++)
        if (strcmp(c->readings[i].id, id) == 0) return &c->readings[i];
    return NULL;
}

/* A kernel on a device comes from a table of its own, as a plugin's does. */
static const char *lacks_gpu(void) {
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const char *plugin = nb_registry_at(i)->plugin;
        if (plugin && strncmp(plugin, "cuda", 4) == 0) return NULL;
    }
    return "a GPU: no kernel that is loaded here runs on one";
}

static const char *lacks_counters(void) {
    return nb_counters_have_hardware() ? NULL : "hardware counters (a PMU), which this machine does not offer";
}

static const struct need {
    const char *name;
    const char *(*lacks)(void);
} needs[] = {{"gpu", lacks_gpu}, {"hardware_counters", lacks_counters}};
enum { N_NEEDS = sizeof needs / sizeof needs[0] };

bool nb_claim_knows_need(const char *need) {
    for (int i = 0; i < N_NEEDS; i++)
        if (strcmp(needs[i].name, need) == 0) return true;
    return false;
}

const char *nb_claim_lacks(const char *need) {
    for (int i = 0; i < N_NEEDS; i++)
        if (strcmp(needs[i].name, need) == 0) return needs[i].lacks();
    return "something that this version does not know";
}
