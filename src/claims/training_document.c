// SPDX-License-Identifier: Apache-2.0
/* One entry for each arm that has an answer; values that rounds share are gathered by name. */
#include "src/claims/training_document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/training.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { CURVE_POINTS = 60 };

struct subject { /* one arm of one group */
    struct nb_train_question question;
    const char *arm;
    const cJSON **rounds; /* what was measured of it */
    size_t n;
};

/* ---- gathering ---- */

static const cJSON *arm_of(const cJSON *answer, const struct subject *s) {
    const cJSON *request = cJSON_GetObjectItemCaseSensitive(answer, "request"), *arm;
    const char *measure = nb_json_get_text(request, "measure"), *workload = nb_json_get_text(request, "workload");
    if (!measure || !workload || strcmp(measure, nb_train_measure_names[s->question.measure]) != 0 ||
        strcmp(workload, s->question.workload) != 0 || nb_json_get_number(request, "steps") != s->question.steps)
        return NULL;
    cJSON_ArrayForEach(arm, cJSON_GetObjectItemCaseSensitive(answer, "arms")) {
        const char *text = nb_json_get_text(arm, "arm");
        if (text && strcmp(text, s->arm) == 0) return arm;
    }
    return NULL;
}

static void gather(struct subject *s, const cJSON *answers) {
    const cJSON *answer;
    s->rounds = nb_alloc((unsigned)cJSON_GetArraySize(answers) + 1, sizeof *s->rounds);
    cJSON_ArrayForEach(answer, answers) {
        const cJSON *arm = arm_of(answer, s);
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

static double seconds(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, part);
}
static double share(const cJSON *arm, const cJSON *against, const void *part) {
    (void)against;
    return nb_training_median(arm, "norm") / nb_training_median(arm, part);
}
static double number(const cJSON *arm, const cJSON *against, const void *name) {
    (void)against;
    return nb_json_get_number(arm, name);
}

static void add_interval(cJSON *json, const char *name, const struct subject *s, const struct nb_train_results *r,
                         nb_train_value *value, const void *context) {
    struct nb_train_figure f = nb_train_figure_of(r, &s->question, s->arm, NULL, value, context, false);
    nb_json_interval(json, name, &f.value);
    nb_train_figure_release(&f);
}

static void add_cut(cJSON *json, const char *name, const struct subject *s, const struct nb_train_results *r,
                    const char *against, const char *part) {
    struct nb_train_figure f = nb_train_figure_of(r, &s->question, s->arm, against, nb_training_time_ratio, part, true);
    const struct nb_interval cut = {1 - f.value.value, 1 - f.value.high, 1 - f.value.low};
    nb_json_interval(json, name, &cut);
    nb_train_figure_release(&f);
}

static bool was_measured(const struct nb_train_results *r, const struct subject *s, const char *arm) {
    const struct subject other = {.question = s->question, .arm = arm};
    const cJSON *answer;
    cJSON_ArrayForEach(answer, r->answers) {
        if (arm_of(answer, &other)) return true;
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
            add_cut(json, "cut", s, r, against.text, "step");
            add_cut(json, "passes_cut", s, r, against.text, "passes");
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
    for (size_t r = 0; r < s->n; r++) lists[r] = cJSON_GetObjectItemCaseSensitive(s->rounds[r], "loss");
    for (int p = 0; p < points; p++) {
        const int step = points > 1 ? (int)((int64_t)p * (n - 1) / (points - 1)) : 0;
        cJSON_AddItemToArray(steps, cJSON_CreateNumber(step));
        append(median, median_at(lists, s->n, step));
    }
    free(lists);
}

/* The values of all layers, medians over the rounds. */
static void add_layers(cJSON *json, const char *name, const struct subject *s, const char *site, bool gradient,
                       bool last) {
    cJSON *list = cJSON_AddArrayToObject(json, name);
    double **by_round = nb_alloc(s->n + 1, sizeof *by_round), *values = nb_alloc(s->n + 1, sizeof *values);
    int *counts = nb_alloc(s->n + 1, sizeof *counts), most = 0;
    for (size_t r = 0; r < s->n; r++) {
        by_round[r] = nb_training_layers(s->rounds[r], site, gradient, last, &counts[r]);
        if (counts[r] > most) most = counts[r];
    }
    for (int layer = 0; layer < most; layer++) {
        size_t n = 0;
        for (size_t r = 0; r < s->n; r++)
            if (layer < counts[r] && isfinite(by_round[r][layer])) values[n++] = by_round[r][layer];
        append(list, n > 0 ? nb_median(values, n) : (double)NAN);
    }
    for (size_t r = 0; r < s->n; r++) free(by_round[r]);
    free(by_round);
    free(values);
    free(counts);
}

static void add_last_layer(cJSON *json, const struct subject *s, const cJSON *curve, const char *place) {
    const cJSON **lists = nb_alloc(s->n + 1, sizeof *lists), *item;
    const bool gradient = nb_json_get_bool(curve, "gradient");
    for (size_t r = 0; r < s->n; r++)
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(s->rounds[r], "curves")) {
            const char *name = nb_json_get_text(item, "place");
            if (name && strcmp(name, place) == 0 && nb_json_get_bool(item, "gradient") == gradient)
                lists[r] = cJSON_GetObjectItemCaseSensitive(item, "std");
        }
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(s->rounds[0], "recorded_steps");
    cJSON_AddItemToObject(json, "steps", cJSON_Duplicate(steps, true));
    cJSON *std = cJSON_AddArrayToObject(json, "std");
    for (int i = 0; i < cJSON_GetArraySize(steps); i++) append(std, median_at(lists, s->n, i));
    free(lists);
}

static void add_sites(cJSON *json, const struct subject *s) {
    cJSON *layers = cJSON_AddArrayToObject(json, "layers"), *last_layer = cJSON_AddArrayToObject(json, "last_layer");
    const cJSON *curve;
    cJSON_ArrayForEach(curve, cJSON_GetObjectItemCaseSensitive(s->rounds[0], "curves")) {
        const char *place = nb_json_get_text(curve, "place");
        const bool gradient = nb_json_get_bool(curve, "gradient");
        if (!place || strncmp(place, "layer0.", 7) != 0) continue;
        cJSON *one = cJSON_CreateObject(), *last = cJSON_CreateObject();
        nb_json_text(one, "site", place + 7);
        cJSON_AddBoolToObject(one, "gradient", gradient);
        add_layers(one, "start", s, place + 7, gradient, false);
        add_layers(one, "end", s, place + 7, gradient, true);
        struct nb_strbuf deepest = {0};
        nb_strbuf_addf(&deepest, "layer%d.%s", cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(one, "start")) - 1,
                       place + 7);
        nb_json_text(last, "site", place + 7);
        cJSON_AddBoolToObject(last, "gradient", gradient);
        add_last_layer(last, s, curve, deepest.text);
        nb_strbuf_release(&deepest);
        cJSON_AddItemToArray(layers, one);
        cJSON_AddItemToArray(last_layer, last);
    }
}

/* ---- entries ---- */

static cJSON *entry_of(const struct subject *s, const struct nb_train_results *r) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "workload", s->question.workload);
    nb_json_text(json, "arm", s->arm);
    nb_json_number(json, s->question.measure == NB_TRAIN_COURSE ? "seeds" : "launches", (double)s->n);
    if (s->question.measure == NB_TRAIN_STEPS) {
        add_interval(json, "seconds", s, r, seconds, "step");
        add_interval(json, "passes", s, r, seconds, "passes");
        add_interval(json, "norm_share", s, r, share, "passes");
        add_interval(json, "step_share", s, r, share, "step");
        add_cuts(json, s, r);
    } else if (s->question.measure == NB_TRAIN_MEMORY) {
        add_interval(json, "peak_bytes", s, r, number, "peak_bytes");
        nb_json_number(json, "kept_bytes", nb_json_get_number(s->rounds[0], "kept_bytes"));
        nb_json_number(json, "parameter_bytes", nb_json_get_number(s->rounds[0], "parameter_bytes"));
    } else {
        nb_json_number(json, "steps", s->question.steps);
        add_interval(json, "final_loss", s, r, number, "final_loss");
        add_losses(json, s);
        add_sites(json, s);
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
        const cJSON *request = cJSON_GetObjectItemCaseSensitive(answer, "request");
        const char *name = nb_json_get_text(request, "measure"), *workload = nb_json_get_text(request, "workload");
        if (!name || !workload || strcmp(name, nb_train_measure_names[measure]) != 0) continue;
        cJSON_ArrayForEach(arm, cJSON_GetObjectItemCaseSensitive(answer, "arms")) {
            struct subject s = {.question = {measure, workload, (int)nb_json_get_number(request, "steps")},
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
