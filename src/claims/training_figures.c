// SPDX-License-Identifier: Apache-2.0
/* Figures of arms and of pairs of arms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/training.h"
#include "src/claims/training_values.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { NO_ARM = -1 };

struct figure { /* one kind of figure */
    const char *name, *unit;
    const char *axis, *tag; /* a tag of its own; axis null: none */
    nb_train_value *value;
    const void *context;
    bool logarithmic, cut; /* cut: 1 - the value */
};

/* ---- findings ---- */

struct sink {
    const struct nb_training *t;
    const struct nb_train_results *results;
    const char *why;
    struct nb_findings *out;
};

static void take_tags(struct nb_finding *f, const struct nb_finding *tags) {
    for (size_t i = 0; i < tags->n_tags; i++)
        if (!nb_finding_get(f, tags->tags[i].axis)) nb_finding_tag(f, tags->tags[i].axis, tags->tags[i].value);
}

static struct nb_interval cut_of(const struct nb_interval *v) {
    return (struct nb_interval){1 - v->value, 1 - v->high, 1 - v->low};
}

static void add(const struct sink *s, const struct figure *k, int of, int against) {
    const struct nb_training *t = s->t;
    const struct nb_train_question q = {t->measure, t->workload_name, (int)t->steps};
    const char *of_text = t->arms[of], *against_text = against == NO_ARM ? NULL : t->arms[against];
    struct nb_train_figure figure = {.value = {NAN, NAN, NAN}, .reason = s->why};
    struct nb_strbuf evidence = {0};
    if (s->results)
        figure = nb_train_figure_of(s->results, &q, of_text, against_text, k->value, k->context, k->logarithmic);
    struct nb_finding *f =
        isnan(figure.value.value)
            ? nb_findings_add_missing(s->out, k->name, "%s", figure.reason ? figure.reason : "not measured")
            : nb_findings_add(s->out, k->name, k->unit, k->cut ? cut_of(&figure.value) : figure.value);
    f->n_launches = figure.n_measured;
    f->units = figure.rounds;
    f->n_units = (size_t)figure.n_rounds;
    for (size_t i = 0; i < f->n_units && k->cut; i++) f->units[i] = 1 - f->units[i];
    nb_strbuf_addf(&evidence, "%s: %s%s%s", t->workload_name, of_text, against_text ? " against " : "",
                   against_text ? against_text : "");
    f->evidence = evidence.text;
    if (k->axis) nb_finding_tag(f, k->axis, k->tag);
    take_tags(f, &t->tags.items[of]);
    if (against == NO_ARM) return;
    nb_finding_tag(f, "against", nb_finding_get(&t->tags.items[against], "norm"));
    if (nb_finding_get(&t->tags.items[against], "place"))
        nb_finding_tag(f, "against_place", nb_finding_get(&t->tags.items[against], "place"));
    if (!nb_finding_get(f, "style")) take_tags(f, &t->tags.items[against]);
}

static bool both_name(const struct nb_training_pair *p, const char *axis) {
    return nb_selector_axis(&p->of, axis) && nb_selector_axis(&p->against, axis);
}

static bool is_pair(const struct nb_training *t, const struct nb_training_pair *p, size_t of, size_t against) {
    const struct nb_finding *a = &t->tags.items[of], *b = &t->tags.items[against];
    if (of == against || !nb_selector_takes(&p->of, a, NULL) || !nb_selector_takes(&p->against, b, NULL)) return false;
    for (size_t i = 0; i < a->n_tags; i++) {
        const char *other = nb_finding_get(b, a->tags[i].axis);
        if (other && strcmp(other, a->tags[i].value) != 0 && !both_name(p, a->tags[i].axis)) return false;
    }
    return true;
}

static void add_pairs(const struct sink *s, const struct figure *kinds, size_t n) {
    const struct nb_training *t = s->t;
    for (size_t p = 0; p < t->n_pairs; p++)
        for (size_t of = 0; of < t->words.n; of++)
            for (size_t against = 0; against < t->words.n; against++)
                for (size_t k = 0; k < n && is_pair(t, &t->pairs[p], of, against); k++)
                    add(s, &kinds[k], (int)of, (int)against);
}

static void add_arms(const struct sink *s, const struct figure *kinds, size_t n) {
    for (size_t of = 0; of < s->t->words.n; of++)
        for (size_t k = 0; k < n; k++) add(s, &kinds[k], (int)of, NO_ARM);
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void find_steps(const struct sink *s) {
    static const struct figure arms[] = {{.name = "norm_share",
                                          .unit = "share",
                                          .axis = "part",
                                          .tag = "step",
                                          .value = nb_training_norm_share,
                                          .context = "step"},
                                         {.name = "norm_share",
                                          .unit = "share",
                                          .axis = "part",
                                          .tag = "passes",
                                          .value = nb_training_norm_share,
                                          .context = "passes"},
                                         {.name = "seconds",
                                          .unit = "s",
                                          .axis = "part",
                                          .tag = "step",
                                          .value = nb_training_median_time,
                                          .context = "step",
                                          .logarithmic = true}};
    add_arms(s, arms, COUNT(arms));
    for (int p = 0; p < NB_N_STEP_PARTS; p++) {
        const char *part = nb_step_part_names[p];
        const struct figure pairs[] = {{"cut", "share", "part", part, nb_training_time_ratio, part, true, true},
                                       {"time_ratio", "", "part", part, nb_training_time_ratio, part, true, false}};
        add_pairs(s, pairs, COUNT(pairs));
    }
}

static void find_memory(const struct sink *s) {
    static const struct figure arms[] = {
        {"memory", "bytes", "what", "peak", nb_training_number, "peak_bytes", true, false},
        {"memory", "bytes", "what", "activations", nb_training_number, "kept_bytes", true, false}};
    static const struct figure pairs[] = {
        {"memory_cut", "share", "what", "peak", nb_training_number_ratio, "peak_bytes", true, true},
        {"memory_ratio", "", "what", "peak", nb_training_number_ratio, "peak_bytes", true, false},
        {"memory_ratio", "", "what", "activations", nb_training_number_ratio, "kept_bytes", true, false}};
    add_arms(s, arms, COUNT(arms));
    add_pairs(s, pairs, COUNT(pairs));
}

/* Of every place that layers have, at the beginning and at the end of the training. */
static void find_layers(const struct sink *s, const char *place, bool gradient) {
    static const struct {
        const char *activation, *gradient;
        enum nb_training_layers_what what;
    } kinds[] = {{"std_last", "gradient_last", NB_LAYERS_LAST},
                 {"std_drift", "gradient_drift", NB_LAYERS_DRIFT},
                 {"std_spread", "gradient_spread", NB_LAYERS_SPREAD},
                 {"std_first_over_last", "gradient_first_over_last", NB_LAYERS_FIRST_OVER_LAST}};
    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < COUNT(kinds); i++) {
            const struct nb_training_layers_question l = {
                .place = place, .gradient = gradient, .last = last, .what = kinds[i].what};
            const struct figure k = {.name = gradient ? kinds[i].gradient : kinds[i].activation,
                                     .unit = "",
                                     .axis = "at",
                                     .tag = last ? "end" : "start",
                                     .value = nb_training_layers_value,
                                     .context = &l,
                                     .logarithmic = true};
            const size_t before = s->out->n;
            add_arms(s, &k, 1);
            for (size_t f = before; f < s->out->n; f++) nb_finding_tag(&s->out->items[f], "site", place);
        }
}

/* "attention.input" of "layer0.attention.input"; null: of no first layer. */
static const char *first_layer_place(const cJSON *curve) {
    const char *name = nb_json_get_text(curve, "place");
    return name && strncmp(name, "layer0.", 7) == 0 ? name + 7 : NULL;
}

static void find_curves(const struct sink *s) {
    const cJSON *answer = s->results && s->results->answers ? s->results->answers->child : NULL, *curve;
    for (; answer; answer = answer->next) {
        const cJSON *request = cJSON_GetObjectItemCaseSensitive(answer, "request");
        const char *workload = nb_json_get_text(request, "workload"), *measure = nb_json_get_text(request, "measure");
        const cJSON *arms = cJSON_GetObjectItemCaseSensitive(answer, "arms");
        if (!workload || strcmp(workload, s->t->workload_name) != 0 || !measure ||
            strcmp(measure, nb_train_measure_names[NB_TRAIN_COURSE]) != 0 || !cJSON_GetArrayItem(arms, 0))
            continue;
        cJSON_ArrayForEach(curve, cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(arms, 0), "curves")) {
            const char *place = first_layer_place(curve);
            if (place) find_layers(s, place, nb_json_get_bool(curve, "gradient"));
        }
        return; /* the models of a workload name the same places */
    }
}

static void find_course(const struct sink *s) {
    static const struct figure arms[] = {
        {"final_loss", "nats", "mode", "training", nb_training_number, "final_loss", true, false},
        {"final_loss", "nats", "mode", "inference", nb_training_number, "unseen_loss", true, false},
        {"mean_loss", "nats", NULL, NULL, nb_training_mean_of, "loss", true, false},
        {.name = "failed_steps", .unit = "share", .value = nb_training_failed_share}};
    static const struct figure pairs[] = {
        {"loss_ratio", "", "mode", "training", nb_training_number_ratio, "final_loss", true, false},
        {"loss_ratio", "", "mode", "inference", nb_training_number_ratio, "unseen_loss", true, false},
        {"mean_loss_ratio", "", NULL, NULL, nb_training_mean_ratio, "loss", true, false}};
    add_arms(s, arms, COUNT(arms));
    add_pairs(s, pairs, COUNT(pairs));
    find_curves(s);
}

void nb_training_find(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                      struct nb_findings *out) {
    const struct sink s = {t, results, why, out};
    switch (t->measure) {
    case NB_TRAIN_STEPS:
        find_steps(&s);
        break;
    case NB_TRAIN_MEMORY:
        find_memory(&s);
        break;
    default:
        find_course(&s);
        break;
    }
}
