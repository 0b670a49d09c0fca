// SPDX-License-Identifier: Apache-2.0
/* What arms come to in a round, figures of them and of pairs, and the section of claims.json. */
#include "src/claims/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/measure/paired.h"

/* ---- what an arm comes to in one round, a launch or a seed, alone or against another arm of the same round; NAN where it has no numbers ---- */

/* The seconds of each block of a part of the step, as samples, which the caller frees. */
static struct nb_samples samples_of(const cJSON *arm, const char *part) {
    const cJSON *list = nb_json_get(arm, part), *item;
    double *ns = nb_alloc((unsigned)cJSON_GetArraySize(list) + 1, sizeof *ns);
    struct nb_samples s = {.ns = ns, .floor = NAN};
    cJSON_ArrayForEach(item, list) ns[s.n++] = cJSON_IsNumber(item) ? 1e9 * item->valuedouble : (double)NAN;
    return s;
}

/* Pairs of one block: drift and neighbours weigh on both. */
static double time_ratio(const cJSON *arm, const cJSON *against, const void *part) {
    struct nb_samples a released_by(nb_samples_release) = samples_of(arm, part);
    struct nb_samples b released_by(nb_samples_release) = samples_of(against, part);
    return exp(nb_paired_ln(&a, &b, NB_PAIRS_ALL));
}

static double median_time(const cJSON *arm, const cJSON *against, const void *part) {
    struct nb_samples s released_by(nb_samples_release) = samples_of(arm, part);
    return 1e-9 * nb_samples_median(&s);
}

static double number(const cJSON *arm, const cJSON *against, const void *name) { return nb_json_get_number(arm, name); }

static double number_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return nb_json_get_number(arm, name) / nb_json_get_number(against, name);
}

/* NAN where a step has none: it failed. */
static double mean_of(const cJSON *arm, const char *name) {
    const cJSON *list = nb_json_get(arm, name), *item;
    double sum = 0;
    int n = 0;
    cJSON_ArrayForEach(item, list) {
        sum += cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

double nb_training_mean_of(const cJSON *arm, const cJSON *against, const void *name) { return mean_of(arm, name); }

double nb_training_mean_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return mean_of(arm, name) / mean_of(against, name);
}

/* Steps without a finite loss or gradient among those wanted. */
static double failed_share(const cJSON *arm, const cJSON *against, const void *context) {
    return nb_json_get_number(arm, "failed_steps") / nb_json_get_number(arm, "wanted_steps");
}

/* ---- curves ---- */

double *nb_training_layers(const cJSON *arm, const char *place, bool gradient, bool last, int *n) {
    double *values = NULL;
    const cJSON *curve;
    *n = 0;
    cJSON_ArrayForEach(curve, nb_json_get(arm, "curves")) {
        const char *name = nb_json_get_text(curve, "place");
        const cJSON *std = nb_json_get(curve, "std");
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

/* What the values of n layers come to. */
typedef double layers_value(const double *v, int n);

static double last_layer(const double *v, int n) { return v[n - 1]; }
static double first_over_last(const double *v, int n) { return v[0] / v[n - 1]; }
static double drift(const double *v, int n) { return fmax(v[n - 1] / v[0], v[0] / v[n - 1]); }
static double spread(const double *v, int n) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < n; i++) {
        low = fmin(low, v[i]);
        high = fmax(high, v[i]);
    }
    return high / low;
}

struct layers_question {
    const char *place;
    bool gradient, last; /* last: at the end of the training */
    layers_value *value;
};

/* The context is a struct layers_question. */
static double value_of_layers(const cJSON *arm, const cJSON *against, const void *context) {
    const struct layers_question *l = context;
    int n;
    double *v freed = nb_training_layers(arm, l->place, l->gradient, l->last, &n);
    return n > 0 ? l->value(v, n) : (double)NAN;
}

/* ---- figures of arms and of pairs of arms ---- */

enum { NO_ARM = -1 };

struct figure { /* one kind of figure */
    const char *name, *unit;
    const char *axis, *tag; /* a tag of its own; axis null: none */
    nb_torch_value *value;
    const void *context;
    bool logarithmic, cut; /* cut: 1 - the value */
};

/* ---- findings ---- */

struct sink {
    const struct nb_training *t;
    const struct nb_torch_results *results;
    const char *why;
    struct nb_findings *out;
};

static void take_tags(struct nb_finding *f, const struct nb_finding *tags) {
    for (size_t i = 0; i < tags->n_tags; i++)
        if (!nb_finding_get(f, tags->tags[i].axis)) nb_finding_tag(f, tags->tags[i].axis, tags->tags[i].value);
}

static void add(const struct sink *s, const struct figure *k, int of, int against) {
    const struct nb_training *t = s->t;
    const struct nb_torch_question q = {t->measure, t->workload_name, t->steps};
    const char *of_text = t->arms.items[of], *against_text = against == NO_ARM ? NULL : t->arms.items[against];
    struct nb_torch_figure figure = {.value = NB_NO_INTERVAL, .reason = s->why};
    if (s->results)
        figure = nb_torch_figure_of(s->results, &q, of_text, against_text, k->value, k->context, k->logarithmic);
    struct nb_finding *f =
        isnan(figure.value.value)
            ? nb_findings_add_missing(s->out, k->name, "%s", figure.reason ? figure.reason : "not measured")
            : nb_findings_add(s->out, k->name, k->unit, k->cut ? nb_interval_saved(figure.value) : figure.value);
    if (figure.reason && !f->reason) f->reason = nb_strdup(figure.reason);
    f->n_launches = figure.n_measured;
    f->units = figure.rounds;
    f->n_units = (size_t)figure.n_rounds;
    for (size_t i = 0; i < f->n_units && k->cut; i++) f->units[i] = 1 - f->units[i];
    f->evidence = nb_textf("%s: %s%s%s", t->workload_name, of_text, against_text ? " against " : "",
                           against_text ? against_text : "");
    if (k->axis) nb_finding_tag(f, k->axis, k->tag);
    take_tags(f, &t->tags.items[of]);
    if (against == NO_ARM) return;
    const struct nb_finding *other = &t->tags.items[against];
    const char *place = nb_finding_get(other, "place");
    nb_finding_tag(f, "against", nb_finding_get(other, "norm"));
    if (place) nb_finding_tag(f, "against_place", place);
    if (!nb_finding_get(f, "style")) take_tags(f, other);
}

static bool is_pair(const struct nb_training *t, const struct nb_sides *p, size_t of, size_t against) {
    const struct nb_finding *a = &t->tags.items[of], *b = &t->tags.items[against];
    return of != against && nb_selector_takes(&p->of, a, NULL) && nb_selector_takes(&p->against, b, NULL) &&
           nb_sides_alike(p, a, b, NULL);
}

static void add_pairs(const struct sink *s, const struct figure *kinds, size_t n) {
    const struct nb_training *t = s->t;
    for (size_t p = 0; p < t->n_pairs; p++)
        for (size_t of = 0; of < t->arms.n; of++)
            for (size_t against = 0; against < t->arms.n; against++)
                for (size_t k = 0; k < n && is_pair(t, &t->pairs[p], of, against); k++)
                    add(s, &kinds[k], (int)of, (int)against);
}

static void add_arms(const struct sink *s, const struct figure *kinds, size_t n) {
    for (size_t of = 0; of < s->t->arms.n; of++)
        for (size_t k = 0; k < n; k++) add(s, &kinds[k], (int)of, NO_ARM);
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void find_steps(const struct sink *s) {
    for (const char *const *p = nb_torch_step_parts; *p; p++) {
        const struct figure seconds = {"seconds", "s", "part", *p, median_time, *p, true, false};
        const struct figure pairs[] = {{"time_ratio", "", "part", *p, time_ratio, *p, true, false},
                                       {"cut", "share", "part", *p, time_ratio, *p, true, true}};
        add_arms(s, &seconds, 1);
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
        layers_value *value;
    } kinds[] = {{"std_last", "gradient_last", last_layer},
                 {"std_drift", "gradient_drift", drift},
                 {"std_spread", "gradient_spread", spread},
                 {"std_first_over_last", "gradient_first_over_last", first_over_last}};
    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < COUNT(kinds); i++) {
            const struct layers_question l = {place, gradient, last, kinds[i].value};
            const char *name = gradient ? kinds[i].gradient : kinds[i].activation;
            const struct figure k = {name, "", "at", last ? "end" : "start", value_of_layers, &l, true, false};
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
        const cJSON *request = nb_json_get(answer, "request"),
                    *arm = cJSON_GetArrayItem(nb_json_get(answer, "arms"), 0);
        if (!arm || !nb_json_is(request, "workload", s->t->workload_name) ||
            !nb_json_is(request, "measure", nb_torch_measure_names[NB_TORCH_COURSE]))
            continue;
        cJSON_ArrayForEach(curve, nb_json_get(arm, "curves")) {
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
        {"mean_loss", "nats", NULL, NULL, nb_training_mean_of, "loss", true, false},
        {.name = "failed_steps", .unit = "share", .value = failed_share}};
    static const struct figure pairs[] = {
        {"loss_ratio", "", "mode", "training", number_ratio, "final_loss", true, false},
        {"loss_ratio", "", "mode", "inference", number_ratio, "unseen_loss", true, false},
        {"mean_loss_ratio", "", NULL, NULL, nb_training_mean_ratio, "loss", true, false}};
    add_arms(s, arms, COUNT(arms));
    add_pairs(s, pairs, COUNT(pairs));
    find_curves(s);
}

void nb_training_find(const struct nb_training *t, const struct nb_torch_results *results, const char *why,
                      struct nb_findings *out) {
    static void (*const finds[NB_N_TORCH_MEASURES])(const struct sink *) = {find_steps, find_steps, find_memory,
                                                                            find_course};
    finds[t->measure](&(struct sink){t, results, why, out});
}

/* ---- the section of claims.json: one entry for each arm that has an answer; values that rounds share are gathered by name ---- */

enum { CURVE_POINTS = 60 };

struct subject { /* one arm of one group */
    struct nb_torch_question question;
    const char *arm;
    const cJSON **rounds; /* what was measured of it */
    size_t n;
    double threads; /* PyTorch's; NaN: not known */
};

/* ---- gathering ---- */

static void gather(struct subject *s, const cJSON *answers) {
    const cJSON *answer;
    s->rounds = nb_alloc((unsigned)cJSON_GetArraySize(answers) + 1, sizeof *s->rounds);
    cJSON_ArrayForEach(answer, answers) {
        const cJSON *arm = nb_torch_answer_arm(answer, &s->question, s->arm);
        if (!arm) continue;
        s->rounds[s->n++] = arm;
        s->threads = nb_json_get_number(answer, "threads");
    }
}

/* The median over the rounds of entry i of a list; NaN where none has a number. */
static double median_at(const cJSON *const *lists, size_t n, int i) {
    double *values freed = nb_alloc(n + 1, sizeof *values);
    size_t count = 0;
    for (size_t r = 0; r < n; r++) {
        const cJSON *item = cJSON_GetArrayItem(lists[r], i);
        if (cJSON_IsNumber(item)) values[count++] = item->valuedouble;
    }
    return count > 0 ? nb_median(values, count) : (double)NAN;
}

static void append(cJSON *list, double value) {
    cJSON_AddItemToArray(list, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

/* ---- intervals ---- */

static void add_interval(cJSON *json, const char *name, const struct subject *s, const struct nb_torch_results *r,
                         nb_torch_value *value, const void *context) {
    struct nb_torch_figure f = nb_torch_figure_of(r, &s->question, s->arm, NULL, value, context, false);
    nb_json_interval(json, name, &f.value);
    free(f.rounds);
}

static bool was_measured(const struct nb_torch_results *r, const struct subject *s, const char *arm) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        if (nb_torch_answer_arm(answer, &s->question, arm)) return true;
    }
    return false;
}

/* What an arm of RMSNorm saves of the step that is the same but for LayerNorm in its place. */
static void add_cut(cJSON *json, const struct subject *s, const struct nb_torch_results *r) {
    static const char *const norms[] = {"rmsnorm", "prmsnorm"};
    for (size_t i = 0; i < COUNT(norms); i++) {
        const size_t n = strlen(norms[i]);
        if (strncmp(s->arm, norms[i], n) != 0 || (s->arm[n] && s->arm[n] != ' ')) continue;
        char *against freed = nb_textf("layernorm%s", s->arm + n);
        if (was_measured(r, s, against)) {
            struct nb_torch_figure f = nb_torch_figure_of(r, &s->question, s->arm, against, time_ratio, "step", true);
            const struct nb_interval cut = nb_interval_saved(f.value);
            nb_json_text(json, "against", against);
            nb_json_interval(json, "cut", &cut);
            free(f.rounds);
        }
    }
}

/* ---- courses ---- */

static void add_losses(cJSON *json, const struct subject *s) {
    cJSON *loss = cJSON_AddObjectToObject(json, "loss");
    cJSON *steps = cJSON_AddArrayToObject(loss, "steps"), *median = cJSON_AddArrayToObject(loss, "median");
    const int n = s->question.steps, points = n < CURVE_POINTS ? n : CURVE_POINTS;
    const cJSON **lists freed = nb_alloc(s->n + 1, sizeof *lists);
    for (size_t r = 0; r < s->n; r++) lists[r] = nb_json_get(s->rounds[r], "loss");
    for (int p = 0; p < points; p++) {
        const int step = points > 1 ? (int)((int64_t)p * (n - 1) / (points - 1)) : 0;
        cJSON_AddItemToArray(steps, cJSON_CreateNumber(step));
        append(median, median_at(lists, s->n, step));
    }
}

/* ---- entries ---- */

static void add_norm(void *json, const char *axis, const char *value) {
    if (strcmp(axis, "norm") == 0 || strcmp(axis, "style") == 0) nb_json_text(json, axis, value);
}

static cJSON *entry_of(const struct subject *s, const struct nb_torch_results *r) {
    cJSON *json = cJSON_CreateObject();
    struct nb_model_arm words;
    char reason[200];
    nb_json_text(json, "workload", s->question.workload);
    nb_json_text(json, "arm", s->arm);
    if (!nb_model_arm_parse(&words, NULL, s->arm, reason, sizeof reason)) nb_model_arm_tag(&words, add_norm, json);
    nb_json_number(json, s->question.measure == NB_TORCH_COURSE ? "seeds" : "launches", (double)s->n);
    if (nb_torch_is_timed(s->question.measure)) {
        for (const char *const *p = nb_torch_step_parts; *p; p++)
            add_interval(json, p == nb_torch_step_parts ? "seconds" : *p, s, r, median_time, *p);
        add_cut(json, s, r);
        nb_json_number(json, "threads", s->threads);
    } else if (s->question.measure == NB_TORCH_MEMORY) {
        add_interval(json, "peak_bytes", s, r, number, "peak_bytes");
        nb_json_number(json, "kept_bytes", nb_json_get_number(s->rounds[0], "kept_bytes"));
        nb_json_number(json, "parameter_bytes", nb_json_get_number(s->rounds[0], "parameter_bytes"));
    } else {
        nb_json_number(json, "steps", s->question.steps);
        add_interval(json, "final_loss", s, r, number, "final_loss");
        add_losses(json, s);
    }
    return json;
}

static bool is_new(const cJSON *list, const struct subject *s) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, list) {
        const double steps = nb_json_get_number(entry, "steps");
        if (nb_json_is(entry, "workload", s->question.workload) && nb_json_is(entry, "arm", s->arm) &&
            (isnan(steps) || steps == s->question.steps))
            return false;
    }
    return true;
}

static void add_entries(cJSON *list, enum nb_torch_measure measure, const struct nb_torch_results *r) {
    const cJSON *answer, *arm;
    cJSON_ArrayForEach(answer, r->answers) {
        const cJSON *request = nb_json_get(answer, "request");
        const char *workload = nb_json_get_text(request, "workload");
        if (!workload || !nb_json_is(request, "measure", nb_torch_measure_names[measure])) continue;
        cJSON_ArrayForEach(arm, nb_json_get(answer, "arms")) {
            struct subject s = {.question = {measure, workload, nb_json_get_index(request, "steps")},
                                .arm = nb_json_get_text(arm, "arm")};
            if (!s.arm || !is_new(list, &s)) continue;
            gather(&s, r->answers);
            cJSON_AddItemToArray(list, entry_of(&s, r));
            free(s.rounds);
        }
    }
}

/* The first answer's: all of a run come from one PyTorch. */
static void add_torch(cJSON *json, const struct nb_torch_results *r) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        if (!nb_json_get_text(answer, "torch")) continue;
        nb_json_text(json, "torch", nb_json_get_text(answer, "torch"));
        nb_json_text(json, "device", nb_json_get_text(answer, "device"));
        return;
    }
}

cJSON *nb_training_to_json(const struct nb_torch_results *results) {
    static const char *const names[NB_N_TORCH_MEASURES] = {"steps", "inference", "memory", "courses"};
    cJSON *json = cJSON_CreateObject();
    add_torch(json, results);
    for (int m = 0; m < NB_N_TORCH_MEASURES; m++)
        add_entries(cJSON_AddArrayToObject(json, names[m]), (enum nb_torch_measure)m, results);
    return json;
}

/* ---- readings: one line for each arm of RMSNorm that LayerNorm and, where it was measured, no norm stand beside ---- */

/* The same arm with another norm: its time in ms. */
static double ms_of(const cJSON *entries, const char *workload, const char *arm, const char *norm) {
    const cJSON *entry;
    struct nb_model_arm a;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    char reason[200];
    double ms = NAN;
    if (nb_model_arm_parse(&a, arm, norm, reason, sizeof reason)) return ms;
    nb_model_arm_print(&a, &text);
    cJSON_ArrayForEach(entry, entries) {
        if (nb_json_is(entry, "workload", workload) && nb_json_is(entry, "arm", text.text))
            ms = 1e3 * nb_json_get_interval(entry, "seconds").value;
    }
    return ms;
}

static void add_reading(cJSON *list, const cJSON *entries, const cJSON *entry, bool training) {
    const char *workload = nb_json_get_string(entry, "workload"), *arm = nb_json_get_string(entry, "arm");
    const struct nb_interval cut = nb_json_get_interval(entry, "cut");
    char *name freed = nb_textf("%s%s", workload, training ? "" : "-inference");
    char *what freed = nb_textf("%s, %s", arm, training ? "training" : "inference");
    cJSON *json = nb_json_add_object(list);
    nb_json_text(json, "workload", name);
    nb_json_text(json, "what", what);
    nb_json_text(json, "style", nb_json_get_text(entry, "style"));
    nb_json_number(json, "none_ms", ms_of(entries, workload, arm, "none"));
    nb_json_number(json, "layernorm_ms", ms_of(entries, workload, arm, "layernorm"));
    nb_json_number(json, "rmsnorm_ms", 1e3 * nb_json_get_interval(entry, "seconds").value);
    nb_json_number(json, "saves", cut.value);
    nb_json_number(json, "low", cut.low);
    nb_json_number(json, "high", cut.high);
    nb_json_number(json, "launches", nb_json_get_number(entry, "launches"));
}

cJSON *nb_training_readings(const cJSON *training, const char *machine, const char *date) {
    static const char *const lists[] = {"steps", "inference"};
    const char *device = nb_json_get_text(training, "device");
    const bool cpu = !device || strcmp(device, "cpu") == 0;
    cJSON *json = cJSON_CreateObject(), *readings = cJSON_CreateArray();
    nb_json_text(json, "machine", cpu ? machine : device);
    nb_json_text(json, "device", cpu ? "cpu" : "cuda");
    nb_json_text(json, "date", date);
    nb_json_text(json, "torch", nb_json_get_text(training, "torch"));
    nb_json_text(json, "made_by", "normbench claims " NB_VERSION);
    nb_json_text(json, "interval", "95 % over launches");
    nb_json_text(
        json, "how",
        "arms take turns in random order in one process, each order followed by its reverse; median over blocks "
        "of ratios within blocks; Hodges-Lehmann over launches");
    cJSON_AddItemToObject(json, "readings", readings);
    for (size_t i = 0; i < COUNT(lists); i++) {
        const cJSON *entries = nb_json_get(training, lists[i]), *entry;
        cJSON_ArrayForEach(entry, entries) {
            if (nb_json_get(entry, "cut")) add_reading(readings, entries, entry, i == 0);
        }
    }
    if (readings->child) return json;
    cJSON_Delete(json);
    return NULL;
}
