// SPDX-License-Identifier: Apache-2.0
/* Training experiments: arms with their tags, what they come to in a round, figures, and the kind of experiment. */
#include "src/claims/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/train/options.h"
#include "src/train/train_study.h"

static void tag_arm(struct nb_finding *f, const struct nb_train_options *o, const char *workload) {
    nb_finding_tag(f, "workload", workload);
    nb_finding_tag(f, "norm", nb_norm_kind_names[o->norm.kind]);
    if (nb_arm_has_kernel(o)) nb_finding_tag(f, "style", nb_style_names[o->norm.style]);
    if (o->norm.kind != NB_NORM_NONE) {
        nb_finding_tag(f, "affine", o->norm.affine == NB_NORM_FROZEN ? "frozen" : "learned");
        nb_finding_tag(f, "place", nb_norm_place_names[o->place]);
    }
    if (o->norm.kind == NB_NORM_BATCHNORM)
        nb_finding_tag(f, "statistics", o->norm.by_position ? "position" : "feature");
    nb_finding_tag(f, "padding", nb_padding_names[o->padding]);
    nb_finding_tag(f, "residual", o->residual ? "yes" : "no");
    nb_finding_tag(f, "mask", o->causal ? "causal" : "bidirectional");
    nb_finding_tag(f, "dtype", nb_dtype_names[o->dtype]);
    nb_finding_tag_number(f, "layers", o->layers);
    nb_finding_tag_number(f, "hidden", o->hidden);
    if (o->n_threads > 0) nb_finding_tag_number(f, "threads", o->n_threads);
    nb_finding_tag_number(f, "tokens", (double)o->batch * o->sequence);
}

static const char *add_arm(struct nb_training *t, size_t i, char *reason, size_t n) {
    struct nb_train_options o;
    struct nb_strbuf text = {0};
    const char *wrong = nb_arm_parse(&o, t->common, t->words.items[i], reason, n);
    if (wrong) return wrong;
    nb_arm_print(&o, &text);
    t->arms[i] = text.text;
    for (size_t j = 0; j < i; j++)
        if (strcmp(t->arms[j], text.text) == 0) {
            snprintf(reason, n, "arms '%s' and '%s' are one", t->words.items[j], t->words.items[i]);
            return reason;
        }
    if (t->workload && (wrong = t->workload->family->complete(t->workload->own, &o))) {
        snprintf(reason, n, "arm '%s': %s", t->words.items[i], wrong);
        return reason;
    }
    tag_arm(nb_findings_add_exact(&t->tags, "arm", "", 0), &o, t->workload_name);
    return NULL;
}

static bool find_measure(struct nb_training *t) {
    for (int m = 0; nb_train_measure_names[m]; m++)
        if (strcmp(nb_train_measure_names[m], t->measure_name) == 0) {
            t->measure = (enum nb_train_measure)m;
            return true;
        }
    return false;
}

const char *nb_training_complete(struct nb_training *t, char *reason, size_t n) {
    t->workload = nb_workload_find(t->workload_name);
    t->arms = nb_alloc(t->words.n + 1, sizeof *t->arms);
    if (!find_measure(t)) {
        snprintf(reason, n, "\"measure\" is '%s', and not steps, memory or course", t->measure_name);
        return reason;
    }
    if (t->measure != NB_TRAIN_COURSE && t->seeds > 0) return "\"seeds\" are of a \"course\"";
    if (t->measure != NB_TRAIN_COURSE) t->steps = 0;
    for (size_t i = 0; i < t->words.n; i++)
        if (add_arm(t, i, reason, n)) return reason;
    return t->words.n > 0 ? NULL : "\"arms\" is empty";
}

void nb_training_release(struct nb_training *t) {
    for (size_t i = 0; t->arms && i < t->words.n; i++) free(t->arms[i]);
    for (size_t i = 0; i < t->n_pairs; i++) {
        nb_selector_release(&t->pairs[i].of);
        nb_selector_release(&t->pairs[i].against);
    }
    free(t->arms);
    free(t->pairs);
    free(t->workload_name);
    free(t->measure_name);
    free(t->common);
    nb_strings_release(&t->words);
    nb_findings_release(&t->tags);
    *t = (struct nb_training){0};
}

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

double nb_training_norm_share(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, "norm") / nb_training_median(arm, part);
}

double nb_training_median_time(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, part);
}

double nb_training_number(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return nb_json_get_number(arm, name);
}

double nb_training_number_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return nb_json_get_number(arm, name) / nb_json_get_number(against, name);
}

/* NAN where a step has none: it failed. */
static double mean_of(const cJSON *arm, const char *name) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arm, name), *item;
    double sum = 0;
    int n = 0;
    cJSON_ArrayForEach(item, list) {
        sum += cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

double nb_training_mean_of(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return mean_of(arm, name);
}

double nb_training_mean_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return mean_of(arm, name) / mean_of(against, name);
}

double nb_training_failed_share(const cJSON *arm, const cJSON *against, const void *context) {
    (void)against, (void)context;
    return nb_json_get_number(arm, "failed_steps") / nb_json_get_number(arm, "wanted_steps");
}

/* ---- curves ---- */

double nb_training_layers_value(const cJSON *arm, const cJSON *against, const void *context) {
    const struct nb_training_layers_question *l = context;
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
        result = l->what == NB_LAYERS_LAST     ? last
                 : l->what == NB_LAYERS_DRIFT  ? fmax(last / first, first / last)
                 : l->what == NB_LAYERS_SPREAD ? high / low
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

/* ---- figures of arms and of pairs of arms ---- */

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

/* ---- the kind of experiment ---- */

/* Whole steps of a model, its memory, or its training from the beginning, with one norm or another. The file names
 * the workload, what is measured, the arms, and which arms are compared:
 *   steps   cut, time_ratio of pairs by part (step, forward, backward, norm); norm_share, seconds of arms
 *   memory  memory_cut, memory_ratio of pairs; memory of arms, by what (peak of the process, activations kept)
 *   course  loss_ratio of pairs; final_loss, failed_steps, std_*, gradient_* of arms */

enum { USUAL_STEPS = 200, MOST_STEPS = 1000000, MOST_SEEDS = 1000 };

static int skip(const struct nb_jsonc *file, const cJSON *node, void *into) {
    (void)file, (void)node, (void)into;
    return 0;
}
static int read_of(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct nb_training_pair *)into)->of, file, node);
}
static int read_against(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct nb_training_pair *)into)->against, file, node);
}

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{"of", NB_FIELD_READ, 0, true, read_of},
                                             {"against", NB_FIELD_READ, 0, true, read_against}};
    struct nb_training *t = into;
    const bool list = cJSON_IsArray(node);
    t->pairs = nb_alloc(list ? (unsigned)cJSON_GetArraySize(node) + 1 : 1, sizeof *t->pairs);
    for (const cJSON *item = list ? node->child : node; item; item = list ? item->next : NULL)
        if (nb_fields_read(file, item, fields, 2, "an entry of \"compare\"", &t->pairs[t->n_pairs++]) != 0) return -1;
    return 0;
}

static int read_steps(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_jsonc_number(file, node, 1, MOST_STEPS, true, &((struct nb_training *)into)->steps);
}

static int read_seeds(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_jsonc_number(file, node, 1, MOST_SEEDS, true, &((struct nb_training *)into)->seeds);
}

static int training_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_READ, 0, true, skip},
        {"workload", NB_FIELD_TEXT, offsetof(struct nb_training, workload_name), true, NULL},
        {"measure", NB_FIELD_TEXT, offsetof(struct nb_training, measure_name), true, NULL},
        {"arms", NB_FIELD_TEXTS, offsetof(struct nb_training, words), true, NULL},
        {"common", NB_FIELD_TEXT, offsetof(struct nb_training, common), false, NULL},
        {"steps", NB_FIELD_READ, 0, false, read_steps},
        {"seeds", NB_FIELD_READ, 0, false, read_seeds},
        {"compare", NB_FIELD_READ, 0, false, read_compare}};
    struct nb_training *t = nb_alloc(1, sizeof *t);
    char reason[400];
    e->own = t;
    t->steps = USUAL_STEPS;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a training experiment", t) != 0)
        return -1;
    const char *wrong = nb_training_complete(t, reason, sizeof reason);
    return wrong ? nb_error("%s:%d: %s", file->path, nb_jsonc_line(file, node), wrong) : 0;
}

static void training_release(struct nb_experiment *e) {
    nb_training_release(e->own);
    free(e->own);
}

static const char *training_refuses(const struct nb_experiment *e) {
    const struct nb_training *t = e->own;
    return t->workload ? nb_train_lacks() : "a training workload that this build does not have";
}

static void training_train(const struct nb_experiment *e, struct nb_train_plan *plan) {
    const struct nb_training *t = e->own;
    for (size_t i = 0; i < t->words.n && t->workload; i++)
        nb_train_plan_add(plan, t->measure, t->workload, (int)t->steps, (int)t->seeds, t->arms[i]);
}

static void training_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    nb_training_find(e->own, m->training, m->no_training, out);
}

const struct nb_experiment_kind nb_experiment_training = {
    .name = "training",
    .summary = "steps of a model, with one norm or another",
    .read = training_read,
    .release = training_release,
    .train = training_train,
    .refuses = training_refuses,
    .find = training_find,
};
