// SPDX-License-Identifier: Apache-2.0
/* Property experiments: a named one with parameters, run under guard, since kernels are called in this very process. */
#include <stdlib.h>

#include "src/claims/experiment.h"
#include "src/claims/fields.h"
#include "src/claims/property.h"
#include "src/core/foreign.h"
#include "src/core/log.h"
#include "src/core/text.h"

/* Seconds; the longest take a tenth of it. */
static const double limit_s = 60;

struct named {
    const struct nb_property *property;
    cJSON *params;
};

static int skip(const struct nb_jsonc *file, const cJSON *node, void *into) {
    (void)file, (void)node, (void)into;
    return 0;
}

static int read_name(const struct nb_jsonc *file, const cJSON *node, void *into) {
    const char *names[64], *text = cJSON_GetStringValue(node);
    size_t n = 0;
    for (; nb_properties[n]; n++) names[n] = nb_properties[n]->name;
    struct named *own = into;
    own->property = text ? nb_property_find(text) : NULL;
    if (own->property) return 0;
    const char *nearest = text ? nb_nearest(text, names, n) : NULL;
    return nb_error("%s:%d: \"property\" must name an experiment (configs/claims/README.md lists them)%s%s%s",
                    file->path, nb_jsonc_line(file, node), nearest ? "; did you mean '" : "", nearest ? nearest : "",
                    nearest ? "'?" : "");
}

static int read_property(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {{"kind", NB_FIELD_READ, 0, true, skip},
                                             {"property", NB_FIELD_READ, 0, true, read_name},
                                             {"params", NB_FIELD_READ, 0, false, skip}};
    struct named *own = e->own = nb_alloc(1, sizeof *own);
    if (nb_fields_read(file, node, fields, 3, "a property experiment", own) != 0) return -1;
    return nb_property_params(own->property, file, cJSON_GetObjectItemCaseSensitive(node, "params"), &own->params);
}

static void release(struct nb_experiment *e) {
    cJSON_Delete(((struct named *)e->own)->params);
    free(e->own);
}

struct work {
    const struct named *own;
    struct nb_property_call call;
    struct nb_findings *out;
};

static void work(void *arg) {
    struct work *w = arg;
    w->own->property->run(&w->call, w->out);
}

/* What was found before a crash is not kept: nobody knows what it is worth. */
static void find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    struct nb_findings found = {0};
    struct work w = {.own = e->own, .out = &found};
    w.call = (struct nb_property_call){.params = w.own->params, .quick = m->quick};
    const char *died = nb_guarded(work, &w, limit_s);
    if (!died) {
        *out = found;
        return;
    }
    nb_findings_add_missing(out, "", "the experiment %s ended by %s", w.own->property->name, died);
}

const struct nb_experiment_kind nb_experiment_property = {.name = "property",
                                                          .summary = "a small experiment with a known answer",
                                                          .read = read_property,
                                                          .release = release,
                                                          .find = find};
