// SPDX-License-Identifier: Apache-2.0
/* What arms come to in a round, figures of them and of pairs, and the section of claims.json. */
#include "src/claims/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/train/train_study.h"
#include "src/train/workload.h"

/* ---- what an arm comes to in one round, a launch or a seed, alone or against another arm of the same round; NAN where it has no numbers ---- */

double nb_training_median_of(const cJSON *arm, const char *name) {
    const cJSON *list = nb_json_get(arm, name), *item;
    double *values = nb_alloc((unsigned)cJSON_GetArraySize(list) + 1, sizeof *values);
    size_t n = 0;
    cJSON_ArrayForEach(item, list) if (cJSON_IsNumber(item)) values[n++] = item->valuedouble;
    const double median = n > 0 ? nb_median(values, n) : (double)NAN;
    free(values);
    return median;
}

/* Of a block of both arms, in that order: seconds of the part, and of the norms within it. */
typedef double block_value(const double part[2], const double norm[2]);

struct step_part {           /* context of the values below */
    const char *part, *norm; /* names of lists; norm null: it has none */
    block_value *value;
};

static double block_ln_ratio(const double part[2], const double norm[2]) {
    (void)norm;
    return part[0] > 0 && part[1] > 0 ? log(part[0] / part[1]) : (double)NAN;
}
/* What the norms save, of the time of the arm that is compared with; and what is saved besides. Their sum is 1 - t / t_against. */
static double block_cut(const double part[2], const double norm[2]) { return (norm[1] - norm[0]) / part[1]; }
static double block_elsewhere(const double part[2], const double norm[2]) {
    return ((part[1] - norm[1]) - (part[0] - norm[0])) / part[1];
}
static double block_share(const double part[2], const double norm[2]) { return norm[0] / part[0]; }

static double number_at(const cJSON *list, int i) {
    const cJSON *item = cJSON_GetArrayItem(list, i);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

/* The median over blocks. The context is a struct step_part. */
static double over_blocks(const cJSON *arm, const cJSON *against, const void *context) {
    const struct step_part *p = context;
    const cJSON *const arms[2] = {arm, against ? against : arm};
    const int n_blocks = cJSON_GetArraySize(nb_json_get(arm, p->part));
    double *values = nb_alloc((unsigned)n_blocks + 1, sizeof *values);
    size_t n = 0;
    for (int b = 0; b < n_blocks; b++) {
        double part[2], norm[2] = {0, 0};
        for (int a = 0; a < 2; a++) {
            part[a] = number_at(nb_json_get(arms[a], p->part), b);
            if (p->norm) norm[a] = number_at(nb_json_get(arms[a], p->norm), b);
        }
        const double v = p->value(part, norm);
        if (isfinite(v)) values[n++] = v;
    }
    const double median = n > 0 ? nb_median(values, n) : (double)NAN;
    free(values);
    return median;
}

static double time_ratio(const cJSON *arm, const cJSON *against, const void *part) {
    return exp(over_blocks(arm, against, &(struct step_part){part, NULL, block_ln_ratio}));
}

static double median_time(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median_of(arm, part);
}

static double number(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return nb_json_get_number(arm, name);
}

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

double nb_training_mean_of(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return mean_of(arm, name);
}

double nb_training_mean_ratio(const cJSON *arm, const cJSON *against, const void *name) {
    return mean_of(arm, name) / mean_of(against, name);
}

/* Steps without a finite loss or gradient among those wanted. */
static double failed_share(const cJSON *arm, const cJSON *against, const void *context) {
    (void)against, (void)context;
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

enum layers_what {
    LAYERS_LAST,           /* the last layer's value */
    LAYERS_DRIFT,          /* the first layer's and the last's: the larger over the smaller */
    LAYERS_SPREAD,         /* the largest over the smallest */
    LAYERS_FIRST_OVER_LAST /* the first layer's over the last's */
};
struct layers_question {
    const char *place;
    bool gradient, last; /* last: at the end of the training */
    enum layers_what what;
};

/* The context is a struct layers_question. */
static double layers_value(const cJSON *arm, const cJSON *against, const void *context) {
    const struct layers_question *l = context;
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
        result = l->what == LAYERS_LAST     ? last
                 : l->what == LAYERS_DRIFT  ? fmax(last / first, first / last)
                 : l->what == LAYERS_SPREAD ? high / low
                                            : first / last;
    }
    free(v);
    return result;
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
    char *evidence = nb_textf("%s: %s%s%s", t->workload_name, of_text, against_text ? " against " : "",
                              against_text ? against_text : "");
    f->evidence = evidence;
    if (k->axis) nb_finding_tag(f, k->axis, k->tag);
    take_tags(f, &t->tags.items[of]);
    if (against == NO_ARM) return;
    nb_finding_tag(f, "against", nb_finding_get(&t->tags.items[against], "norm"));
    if (nb_finding_get(&t->tags.items[against], "place"))
        nb_finding_tag(f, "against_place", nb_finding_get(&t->tags.items[against], "place"));
    if (!nb_finding_get(f, "style")) take_tags(f, &t->tags.items[against]);
}

static bool is_pair(const struct nb_training *t, const struct nb_sides *p, size_t of, size_t against) {
    const struct nb_finding *a = &t->tags.items[of], *b = &t->tags.items[against];
    return of != against && nb_selector_takes(&p->of, a, NULL) && nb_selector_takes(&p->against, b, NULL) &&
           nb_sides_alike(p, a, b, NULL);
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

/* Which norms lie within a part; null: none. */
static const char *const norm_within[NB_N_STEP_PARTS] = {[NB_STEP_WHOLE] = "norm",
                                                         [NB_STEP_PASSES] = "norm",
                                                         [NB_STEP_FORWARD] = "norm_forward",
                                                         [NB_STEP_BACKWARD] = "norm_backward",
                                                         [NB_STEP_NORM] = "norm",
                                                         [NB_STEP_NORM_FORWARD] = "norm_forward",
                                                         [NB_STEP_NORM_BACKWARD] = "norm_backward"};
static const struct step_part step_share = {"step", "norm", block_share},
                              passes_share = {"passes", "norm", block_share};

static void find_steps(const struct sink *s) {
    static const struct figure arms[] = {{.name = "norm_share",
                                          .unit = "share",
                                          .axis = "part",
                                          .tag = "step",
                                          .value = over_blocks,
                                          .context = &step_share},
                                         {.name = "norm_share",
                                          .unit = "share",
                                          .axis = "part",
                                          .tag = "passes",
                                          .value = over_blocks,
                                          .context = &passes_share},
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
        const struct step_part cut = {part, norm_within[p], block_cut}, rest = {part, norm_within[p], block_elsewhere};
        const struct figure pairs[] = {{"time_ratio", "", "part", part, time_ratio, part, true, false},
                                       {"cut", "share", "part", part, over_blocks, &cut, false, false},
                                       {"elsewhere", "share", "part", part, over_blocks, &rest, false, false}};
        add_pairs(s, pairs, norm_within[p] ? COUNT(pairs) : 1);
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
        enum layers_what what;
    } kinds[] = {{"std_last", "gradient_last", LAYERS_LAST},
                 {"std_drift", "gradient_drift", LAYERS_DRIFT},
                 {"std_spread", "gradient_spread", LAYERS_SPREAD},
                 {"std_first_over_last", "gradient_first_over_last", LAYERS_FIRST_OVER_LAST}};
    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < COUNT(kinds); i++) {
            const struct layers_question l = {
                .place = place, .gradient = gradient, .last = last, .what = kinds[i].what};
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
        const cJSON *request = nb_json_get(answer, "request");
        const char *workload = nb_json_get_text(request, "workload"), *measure = nb_json_get_text(request, "measure");
        const cJSON *arms = nb_json_get(answer, "arms");
        if (!workload || strcmp(workload, s->t->workload_name) != 0 || !measure ||
            strcmp(measure, nb_train_measure_names[NB_TRAIN_COURSE]) != 0 || !cJSON_GetArrayItem(arms, 0))
            continue;
        cJSON_ArrayForEach(curve, nb_json_get(cJSON_GetArrayItem(arms, 0), "curves")) {
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

/* ---- the section of claims.json: one entry for each arm that has an answer; values that rounds share are gathered by name ---- */

enum { CURVE_POINTS = 60 };

struct subject { /* one arm of one group */
    struct nb_train_question question;
    const char *arm;
    const cJSON **rounds; /* what was measured of it */
    size_t n;
};

/* ---- gathering ---- */

static void gather(struct subject *s, const cJSON *answers) {
    const cJSON *answer;
    s->rounds = nb_alloc((unsigned)cJSON_GetArraySize(answers) + 1, sizeof *s->rounds);
    cJSON_ArrayForEach(answer, answers) {
        const cJSON *arm = nb_train_answer_arm(answer, &s->question, s->arm);
        if (arm) s->rounds[s->n++] = arm;
    }
}

/* The median over the rounds of entry i of a list; NaN where none has a number. */
static double median_at(const cJSON *const *lists, size_t n, int i) {
    double *values = nb_alloc(n + 1, sizeof *values);
    size_t count = 0;
    for (size_t r = 0; r < n; r++) {
        const cJSON *item = cJSON_GetArrayItem(lists[r], i);
        if (cJSON_IsNumber(item)) values[count++] = item->valuedouble;
    }
    const double median = count > 0 ? nb_median(values, count) : (double)NAN;
    free(values);
    return median;
}

static void append(cJSON *list, double value) {
    cJSON_AddItemToArray(list, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

/* ---- intervals ---- */

static void add_interval(cJSON *json, const char *name, const struct subject *s, const struct nb_train_results *r,
                         nb_train_value *value, const void *context) {
    struct nb_train_figure f = nb_train_figure_of(r, &s->question, s->arm, NULL, value, context, false);
    nb_json_interval(json, name, &f.value);
    free(f.rounds);
}

static void add_cut(cJSON *json, const char *name, const struct subject *s, const struct nb_train_results *r,
                    const char *against, const char *part, block_value *value) {
    const struct step_part context = {part, "norm", value};
    struct nb_train_figure f = nb_train_figure_of(r, &s->question, s->arm, against, over_blocks, &context, false);
    nb_json_interval(json, name, &f.value);
    free(f.rounds);
}

static bool was_measured(const struct nb_train_results *r, const struct subject *s, const char *arm) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        if (nb_train_answer_arm(answer, &s->question, arm)) return true;
    }
    return false;
}

/* What an arm of RMSNorm saves of the step that is the same but for LayerNorm in its place. */
static void add_cuts(cJSON *json, const struct subject *s, const struct nb_train_results *r) {
    static const char *const norms[] = {"rmsnorm", "prmsnorm"};
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
        const size_t n = strlen(norms[i]);
        struct nb_strbuf against = {0};
        if (strncmp(s->arm, norms[i], n) != 0 || s->arm[n] != ' ') continue;
        nb_strbuf_addf(&against, "layernorm%s", s->arm + n);
        if (was_measured(r, s, against.text)) {
            nb_json_text(json, "against", against.text);
            add_cut(json, "cut", s, r, against.text, "step", block_cut);
            add_cut(json, "passes_cut", s, r, against.text, "passes", block_cut);
            add_cut(json, "elsewhere", s, r, against.text, "step", block_elsewhere);
        }
        nb_strbuf_release(&against);
    }
}

/* ---- courses ---- */

static void add_losses(cJSON *json, const struct subject *s) {
    cJSON *loss = cJSON_AddObjectToObject(json, "loss");
    cJSON *steps = cJSON_AddArrayToObject(loss, "steps"), *median = cJSON_AddArrayToObject(loss, "median");
    const int n = s->question.steps, points = n < CURVE_POINTS ? n : CURVE_POINTS;
    const cJSON **lists = nb_alloc(s->n + 1, sizeof *lists);
    for (size_t r = 0; r < s->n; r++) lists[r] = nb_json_get(s->rounds[r], "loss");
    for (int p = 0; p < points; p++) {
        const int step = points > 1 ? (int)((int64_t)p * (n - 1) / (points - 1)) : 0;
        cJSON_AddItemToArray(steps, cJSON_CreateNumber(step));
        append(median, median_at(lists, s->n, step));
    }
    free(lists);
}

/* ---- entries ---- */

static cJSON *entry_of(const struct subject *s, const struct nb_train_results *r) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "workload", s->question.workload);
    nb_json_text(json, "arm", s->arm);
    nb_json_number(json, s->question.measure == NB_TRAIN_COURSE ? "seeds" : "launches", (double)s->n);
    if (s->question.measure == NB_TRAIN_STEPS) {
        add_interval(json, "seconds", s, r, median_time, "step");
        add_interval(json, "passes", s, r, median_time, "passes");
        add_interval(json, "norm_share", s, r, over_blocks, &passes_share);
        add_interval(json, "step_share", s, r, over_blocks, &step_share);
        add_cuts(json, s, r);
    } else if (s->question.measure == NB_TRAIN_MEMORY) {
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
        if (strcmp(nb_json_get_text(entry, "workload"), s->question.workload) == 0 &&
            strcmp(nb_json_get_text(entry, "arm"), s->arm) == 0 && (isnan(steps) || steps == s->question.steps))
            return false;
    }
    return true;
}

static void add_entries(cJSON *list, enum nb_train_measure measure, const struct nb_train_results *r) {
    const cJSON *answer, *arm;
    cJSON_ArrayForEach(answer, r->answers) {
        const cJSON *request = nb_json_get(answer, "request");
        const char *name = nb_json_get_text(request, "measure"), *workload = nb_json_get_text(request, "workload");
        if (!name || !workload || strcmp(name, nb_train_measure_names[measure]) != 0) continue;
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

cJSON *nb_training_to_json(const struct nb_train_results *results) {
    static const char *const names[NB_N_TRAIN_MEASURES] = {"steps", "memory", "courses"};
    cJSON *json = cJSON_CreateObject();
    for (int m = 0; m < NB_N_TRAIN_MEASURES; m++)
        add_entries(cJSON_AddArrayToObject(json, names[m]), (enum nb_train_measure)m, results);
    return json;
}
