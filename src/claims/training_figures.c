// SPDX-License-Identifier: Apache-2.0
/* Figures of arms and of pairs of arms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/log.h"
#include "src/claims/training.h"

enum { NO_ARM = -1 };

struct figure { /* one kind of figure */
    const char *name, *unit;
    const char *axis, *tag; /* a tag of its own; axis null: none */
    nb_train_value *value;
    const void *context;
    bool logarithmic, cut; /* cut: 1 - the value */
};

/* ---- values of a round ---- */

double nb_training_median(const cJSON *arm, const char *name) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arm, name), *item;
    double *values = nb_alloc((unsigned)cJSON_GetArraySize(list) + 1, sizeof *values);
    size_t n = 0;
    cJSON_ArrayForEach(item, list) if (cJSON_IsNumber(item)) values[n++] = item->valuedouble;
    const double median = n > 0 ? nb_median(values, n) : (double)NAN;
    free(values);
    return median;
}

double nb_training_time_ratio(const cJSON *arm, const cJSON *against, const void *part) {
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(arm, part), *b = cJSON_GetObjectItemCaseSensitive(against, part);
    double *values = nb_alloc((unsigned)cJSON_GetArraySize(a) + 1, sizeof *values);
    size_t n = 0;
    a = a ? a->child : NULL;
    for (b = b ? b->child : NULL; a && b; a = a->next, b = b->next)
        if (cJSON_IsNumber(a) && cJSON_IsNumber(b) && a->valuedouble > 0 && b->valuedouble > 0)
            values[n++] = log(a->valuedouble / b->valuedouble);
    const double ratio = n > 0 ? exp(nb_median(values, n)) : (double)NAN;
    free(values);
    return ratio;
}

static double norm_share(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, "norm") / nb_training_median(arm, part);
}

static double median_time(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, part);
}

static double number(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return nb_json_get_number(arm, name);
}

static double number_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return nb_json_get_number(arm, name) / nb_json_get_number(against, name);
}

static double failed_share(const cJSON *arm, const cJSON *against, const void *context) {
    (void)against, (void)context;
    return nb_json_get_number(arm, "failed_steps") / nb_json_get_number(arm, "wanted_steps");
}

/* ---- curves ---- */

struct layers { /* what is asked of the values of the layers */
    const char *place;
    bool gradient, last; /* last: at the end of the training */
    enum { OF_LAST, DRIFT, SPREAD, FIRST_OVER_LAST } what;
};

static double layers_value(const cJSON *arm, const cJSON *against, const void *context) {
    const struct layers *l = context;
    int n;
    double *v = nb_training_layers(arm, l->place, l->gradient, l->last, &n), low = INFINITY, high = -INFINITY;
    double result = NAN;
    (void)against;
    for (int i = 0; v && i < n; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    if (v && n > 0 && isfinite(low)) {
        const double first = v[0], last = v[n - 1];
        result = l->what == OF_LAST  ? last
                 : l->what == DRIFT  ? fmax(last / first, first / last)
                 : l->what == SPREAD ? high / low
                                     : first / last;
    }
    free(v);
    return result;
}

double *nb_training_layers(const cJSON *arm, const char *place, bool gradient, bool last, int *n) {
    double *values = NULL;
    const cJSON *curve;
    *n = 0;
    cJSON_ArrayForEach(curve, cJSON_GetObjectItemCaseSensitive(arm, "curves")) {
        const char *name = nb_json_get_text(curve, "place");
        const cJSON *std = cJSON_GetObjectItemCaseSensitive(curve, "std");
        const int size = cJSON_GetArraySize(std);
        int layer, length = 0;
        if (!name || nb_json_get_bool(curve, "gradient") != gradient || size < 1 ||
            sscanf(name, "layer%d.%n", &layer, &length) != 1 || length == 0 || strcmp(name + length, place) != 0 ||
            layer < 0 || layer > 9999)
            continue;
        if (layer >= *n) {
            values = nb_realloc(values, (unsigned)layer + 1, sizeof *values);
            while (*n <= layer) values[(*n)++] = NAN;
        }
        const cJSON *item = cJSON_GetArrayItem(std, last ? size - 1 : 0);
        values[layer] = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
    }
    return values;
}

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
    static const struct figure arms[] = {
        {.name = "norm_share", .unit = "share", .axis = "part", .tag = "step", .value = norm_share, .context = "step"},
        {.name = "norm_share",
         .unit = "share",
         .axis = "part",
         .tag = "passes",
         .value = norm_share,
         .context = "passes"},
        {.name = "seconds",
         .unit = "s",
         .axis = "part",
         .tag = "step",
         .value = median_time,
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
    static const struct figure arms[] = {{"memory", "bytes", "what", "peak", number, "peak_bytes", true, false},
                                         {"memory", "bytes", "what", "activations", number, "kept_bytes", true, false}};
    static const struct figure pairs[] = {
        {"memory_cut", "share", "what", "peak", number_ratio, "peak_bytes", true, true},
        {"memory_ratio", "", "what", "peak", number_ratio, "peak_bytes", true, false},
        {"memory_ratio", "", "what", "activations", number_ratio, "kept_bytes", true, false}};
    add_arms(s, arms, COUNT(arms));
    add_pairs(s, pairs, COUNT(pairs));
}

/* Of every place that layers have, at the beginning and at the end of the training. */
static void find_layers(const struct sink *s, const char *place, bool gradient) {
    static const struct {
        const char *activation, *gradient;
        int what;
    } kinds[] = {{"std_last", "gradient_last", OF_LAST},
                 {"std_drift", "gradient_drift", DRIFT},
                 {"std_spread", "gradient_spread", SPREAD},
                 {"std_first_over_last", "gradient_first_over_last", FIRST_OVER_LAST}};
    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < COUNT(kinds); i++) {
            const struct layers l = {.place = place, .gradient = gradient, .last = last, .what = kinds[i].what};
            const struct figure k = {.name = gradient ? kinds[i].gradient : kinds[i].activation,
                                     .unit = "",
                                     .axis = "at",
                                     .tag = last ? "end" : "start",
                                     .value = layers_value,
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
        {"final_loss", "nats", "mode", "training", number, "final_loss", true, false},
        {"final_loss", "nats", "mode", "inference", number, "unseen_loss", true, false},
        {.name = "failed_steps", .unit = "share", .value = failed_share}};
    static const struct figure pairs[] = {
        {"loss_ratio", "", "mode", "training", number_ratio, "final_loss", true, false},
        {"loss_ratio", "", "mode", "inference", number_ratio, "unseen_loss", true, false}};
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
