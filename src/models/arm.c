// SPDX-License-Identifier: Apache-2.0
/* One table of choices and one of numbers parse, print, tag and ask. */
#include "src/models/arm.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

#define AT(field) offsetof(struct nb_model_arm, field)

enum { MOST_WORDS = 8 };
struct choice {
    const char *key, *axis; /* in a request; of a claim's figures */
    size_t offset;
    const char *words[MOST_WORDS], *tags[2]; /* tags: where they are not the words */
    bool is_flag;                            /* true or false in a request: the first word means `first` */
    bool first;
};
static const struct choice choices[] = {
    {"norm", "norm", AT(norm), .words = {"none", "layernorm", "rmsnorm", "prmsnorm", "batchnorm", "centre", "scale"}},
    {"style", "style", AT(style), .words = {"printed", "nn", "compiled", "ours"}},
    {"affine", "affine", AT(affine), .words = {"learned", "frozen"}},
    {"place", "place", AT(place), .words = {"pre", "post"}},
    {"residual", "residual", AT(residual), {"residual", "no_residual"}, {"yes", "no"}, .is_flag = true, .first = true},
    {"causal", "mask", AT(causal), .words = {"causal", "bidirectional"}, .is_flag = true, .first = true},
    {"padding", "padding", AT(padding), .words = {"unpadded", "padded", "masked"}},
    {"by_position",
     "statistics",
     AT(by_position),
     {"by_feature", "by_position"},
     {"feature", "position"},
     .is_flag = true},
    {"dtype", "dtype", AT(dtype), .words = {"f32", "f16", "bf16"}}};
enum { N_CHOICES = sizeof choices / sizeof choices[0] };
enum { NONE, BATCHNORM = 4, CENTRE = 5 }; /* norms by place */

struct number {
    const char *name;
    size_t offset;
    bool whole;
    double most;
};
static const struct number numbers[] = {{"layers", AT(layers), true, 1000},
                                        {"batch", AT(batch), true, 1 << 20},
                                        {"sequence", AT(sequence), true, 1 << 20},
                                        {"hidden", AT(hidden), true, 1 << 16},
                                        {"rate", AT(rate), false, 1000},
                                        {"clip", AT(clip), false, 1e9},
                                        {"eps", AT(eps), false, 1},
                                        {"partial", AT(partial), false, 1}};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

static const struct nb_model_arm usual = {.clip = 1};

static int *choice_in(struct nb_model_arm *arm, const struct choice *c) { return (int *)((char *)arm + c->offset); }
static int chosen(const struct nb_model_arm *arm, const struct choice *c) {
    return *(const int *)((const char *)arm + c->offset);
}

static double get_number(const struct nb_model_arm *arm, const struct number *n) {
    const void *at = (const char *)arm + n->offset;
    return n->whole ? *(const int *)at : *(const double *)at;
}

/* ---- words ---- */

static bool set_number(struct nb_model_arm *arm, const struct number *n, const char *text) {
    char *end;
    void *at = (char *)arm + n->offset;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= n->most) || (n->whole && value != floor(value))) return false;
    if (n->whole)
        *(int *)at = (int)value;
    else
        *(double *)at = value;
    return true;
}

static bool take(struct nb_model_arm *arm, const char *word, bool *has_norm) {
    const char *equals = strchr(word, '=');
    for (int c = 0; c < N_CHOICES; c++)
        for (int i = 0; i < MOST_WORDS && choices[c].words[i]; i++)
            if (strcmp(choices[c].words[i], word) == 0) {
                *choice_in(arm, &choices[c]) = i;
                *has_norm |= c == 0;
                return true;
            }
    for (int i = 0; i < N_NUMBERS && equals; i++)
        if (strlen(numbers[i].name) == (size_t)(equals - word) &&
            strncmp(numbers[i].name, word, (size_t)(equals - word)) == 0)
            return set_number(arm, &numbers[i], equals + 1);
    return false;
}

static const char *refuse(const char *word, char *reason, size_t n) {
    const char *names[N_CHOICES * MOST_WORDS + N_NUMBERS];
    size_t count = 0;
    for (int c = 0; c < N_CHOICES; c++)
        for (int i = 0; i < MOST_WORDS && choices[c].words[i]; i++) names[count++] = choices[c].words[i];
    for (int i = 0; i < N_NUMBERS; i++) names[count++] = numbers[i].name;
    snprintf(reason, n, "'%s' is not a word for an arm%s (configs/claims/README.md lists the words)", word,
             nb_did_you_mean(word, names, count).text);
    return reason;
}

static const char *parse(struct nb_model_arm *arm, const char *text, bool *has_norm, char *reason, size_t n) {
    struct nb_strings words released_by(nb_strings_release) = {0};
    const char *wrong = NULL;
    nb_strings_split(&words, text, ' ');
    for (size_t i = 0; i < words.n && !wrong; i++)
        if (*words.items[i] && !take(arm, words.items[i], has_norm)) wrong = refuse(words.items[i], reason, n);
    return wrong;
}

const char *nb_model_arm_parse(struct nb_model_arm *arm, const char *common, const char *text, char *reason, size_t n) {
    bool has_norm = false;
    *arm = usual;
    if ((common && parse(arm, common, &has_norm, reason, n)) || parse(arm, text, &has_norm, reason, n)) return reason;
    if (has_norm) return NULL;
    snprintf(reason, n, "'%s' names no norm", text);
    return reason;
}

/* Does what a choice says mean something for this norm? Without a class there is no style; without parameters nothing is learned. */
static bool means_something(const struct nb_model_arm *arm, const struct choice *c) {
    if (c->offset == AT(style)) return arm->norm != NONE && arm->norm < CENTRE;
    if (c->offset == AT(affine) || c->offset == AT(place)) return arm->norm != NONE;
    return c->offset != AT(by_position) || arm->norm == BATCHNORM;
}

static void add_number(struct nb_strbuf *out, double value) {
    char text[32];
    nb_shortest_text(value, text);
    if (value == floor(value))
        nb_strbuf_addf(out, "%.0f", value); /* 20, not 2e+01 */
    else
        nb_strbuf_add(out, text);
}

void nb_model_arm_print(const struct nb_model_arm *arm, struct nb_strbuf *out) {
    for (int c = 0; c < N_CHOICES; c++) {
        const int i = chosen(arm, &choices[c]);
        const bool kept =
            means_something(arm, &choices[c]) || choices[c].offset == AT(place); /* a stack without norms has one */
        if (c == 0 || (i > 0 && kept)) nb_strbuf_addf(out, "%s%s", c ? " " : "", choices[c].words[i]);
    }
    for (int i = 0; i < N_NUMBERS; i++) {
        if (get_number(arm, &numbers[i]) == get_number(&usual, &numbers[i])) continue;
        nb_strbuf_addf(out, " %s=", numbers[i].name);
        add_number(out, get_number(arm, &numbers[i]));
    }
}

cJSON *nb_model_arm_json(const struct nb_model_arm *arm) {
    cJSON *json = cJSON_CreateObject();
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_model_arm_print(arm, &text);
    nb_json_text(json, "arm", text.text);
    for (int c = 0; c < N_CHOICES; c++) {
        const int i = chosen(arm, &choices[c]);
        if (choices[c].is_flag)
            cJSON_AddBoolToObject(json, choices[c].key, (i == 0) == choices[c].first);
        else
            nb_json_text(json, choices[c].key, choices[c].words[i]);
    }
    for (int i = 0; i < N_NUMBERS; i++) nb_json_number(json, numbers[i].name, get_number(arm, &numbers[i]));
    return json;
}

/* ---- workloads ---- */

static const struct nb_model_workload workloads[] = {
    {"minimind2-small", 8, 32, 512, 512, 60}, {"transformer-base", 6, 390, 64, 512, 146},
    {"tiny-transformer", 4, 4, 64, 64, 0.02}, {"rnnsearch", 1, 80, 80, 1024, 33},
    {"order-embedding", 1, 128, 10, 1024, 6}, {"attentive-reader", 1, 64, 780, 240, 24},
    {"convpool", 9, 100, 32, 96, 12},         {"tiny-convpool", 9, 8, 16, 8, 0.01},
    {"llama-layer", 4, 2, 2048, 4096, 600},   {"norm", 16, 1, 4096, 512, 0.4},
};

const struct nb_model_workload *nb_model_workload_find(const char *name) {
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++)
        if (strcmp(workloads[i].name, name) == 0) return &workloads[i];
    return NULL;
}

void nb_model_arm_complete(struct nb_model_arm *arm, const struct nb_model_workload *w) {
    if (arm->layers == 0) arm->layers = w->layers;
    if (arm->batch == 0) arm->batch = w->batch;
    if (arm->sequence == 0) arm->sequence = w->sequence;
    if (arm->hidden == 0) arm->hidden = w->hidden;
}

double nb_model_arm_step_s(const struct nb_model_arm *arm, const struct nb_model_workload *w) {
    const double wider = (double)arm->hidden / w->hidden;
    return w->step_s * arm->layers / w->layers * arm->batch / w->batch * arm->sequence / w->sequence * wider * wider;
}

/* ---- tags ---- */

void nb_model_arm_tag(const struct nb_model_arm *arm, void (*tag)(void *context, const char *axis, const char *value),
                      void *context) {
    const struct {
        const char *axis;
        double value;
    } sizes[] = {{"layers", arm->layers}, {"hidden", arm->hidden}, {"tokens", (double)arm->batch * arm->sequence}};
    for (int c = 0; c < N_CHOICES; c++) {
        const int i = chosen(arm, &choices[c]);
        if (means_something(arm, &choices[c]))
            tag(context, choices[c].axis, choices[c].tags[0] ? choices[c].tags[i] : choices[c].words[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct nb_strbuf text released_by(nb_strbuf_release) = {0};
        add_number(&text, sizes[i].value);
        tag(context, sizes[i].axis, text.text);
    }
}
