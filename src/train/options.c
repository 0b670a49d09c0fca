// SPDX-License-Identifier: Apache-2.0
/* Names of what a training option can be, and arms as words, by tables. */
#include "src/train/options.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"

static const char *const kinds[NB_N_NORM_KINDS] = {"none",      "layernorm", "rmsnorm", "prmsnorm",
                                                   "batchnorm", "centre",    "scale"};
static const char *const places[NB_N_NORM_PLACES] = {"pre", "post"};
static const char *const paddings[NB_N_PADDINGS] = {"unpadded", "padded", "masked"};

const char *nb_norm_kind_name(enum nb_norm_kind kind) {
    assert(kind < NB_N_NORM_KINDS);
    return kinds[kind];
}

const char *nb_norm_place_name(enum nb_norm_place place) {
    assert(place < NB_N_NORM_PLACES);
    return places[place];
}

const char *nb_padding_name(enum nb_train_padding padding) {
    assert(padding < NB_N_PADDINGS);
    return paddings[padding];
}

const char *nb_padding_refused(const struct nb_train_options *o) {
    return o->padding != NB_NOT_PADDED || o->norm.by_position ? "padding and statistics by position are of transformers"
                                                              : NULL;
}

static int find(const char *const *names, int n, const char *text) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0) return i;
    return -1;
}

int nb_norm_kind_find(const char *text) { return find(kinds, NB_N_NORM_KINDS, text); }
int nb_norm_place_find(const char *text) { return find(places, NB_N_NORM_PLACES, text); }

/* ---- words of an arm ---- */

struct word { /* a choice: one of a few values of a field */
    const char *name;
    enum { STYLE, AFFINE, STATISTICS, PLACE, RESIDUAL, CAUSAL, PADDING, DTYPE } field;
    int value;
};
static const struct word words[] = {{"fused", STYLE, NB_FUSED},
                                    {"composed", STYLE, NB_COMPOSED},
                                    {"learned", AFFINE, NB_NORM_LEARNED},
                                    {"frozen", AFFINE, NB_NORM_FROZEN},
                                    {"by_feature", STATISTICS, 0},
                                    {"by_position", STATISTICS, 1},
                                    {"pre", PLACE, NB_PRE_NORM},
                                    {"post", PLACE, NB_POST_NORM},
                                    {"residual", RESIDUAL, 1},
                                    {"no_residual", RESIDUAL, 0},
                                    {"causal", CAUSAL, 1},
                                    {"bidirectional", CAUSAL, 0},
                                    {"unpadded", PADDING, NB_NOT_PADDED},
                                    {"padded", PADDING, NB_PADDED},
                                    {"masked", PADDING, NB_MASKED},
                                    {"f32", DTYPE, NB_F32},
                                    {"f16", DTYPE, NB_F16},
                                    {"bf16", DTYPE, NB_BF16}};
enum { N_WORDS = sizeof words / sizeof words[0] };

struct number {
    const char *name;
    size_t offset;
    bool whole;
    double most;
};
#define AT(field) offsetof(struct nb_train_options, field)
static const struct number numbers[] = {{"layers", AT(layers), true, 1000},
                                        {"batch", AT(batch), true, 1 << 20},
                                        {"sequence", AT(sequence), true, 1 << 20},
                                        {"hidden", AT(hidden), true, 1 << 16},
                                        {"threads", AT(n_threads), true, 1024},
                                        {"rate", AT(learning_rate), false, 1000},
                                        {"clip", AT(clip), false, 1e9},
                                        {"eps", AT(norm) + offsetof(struct nb_norm_choice, eps), false, 1},
                                        {"partial", AT(norm) + offsetof(struct nb_norm_choice, partial), false, 1}};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

void nb_arm_default(struct nb_train_options *o) {
    *o = (struct nb_train_options){.norm.kind = NB_NORM_NONE, .residual = true, .causal = true, .clip = 1};
}

static int get(const struct nb_train_options *o, int field) {
    switch (field) {
    case STYLE:
        return (int)o->norm.style;
    case AFFINE:
        return (int)o->norm.affine;
    case STATISTICS:
        return o->norm.by_position;
    case PLACE:
        return (int)o->place;
    case RESIDUAL:
        return o->residual;
    case CAUSAL:
        return o->causal;
    case PADDING:
        return (int)o->padding;
    default:
        return (int)o->dtype;
    }
}

static void set(struct nb_train_options *o, const struct word *w) {
    switch (w->field) {
    case STYLE:
        o->norm.style = (enum nb_style)w->value;
        break;
    case AFFINE:
        o->norm.affine = (enum nb_norm_affine)w->value;
        break;
    case STATISTICS:
        o->norm.by_position = w->value;
        break;
    case PLACE:
        o->place = (enum nb_norm_place)w->value;
        break;
    case RESIDUAL:
        o->residual = w->value;
        break;
    case CAUSAL:
        o->causal = w->value;
        break;
    case PADDING:
        o->padding = (enum nb_train_padding)w->value;
        break;
    case DTYPE:
        o->dtype = (enum nb_dtype)w->value;
        break;
    }
}

static double get_number(const struct nb_train_options *o, const struct number *n) {
    const void *at = (const char *)o + n->offset;
    return n->whole ? *(const int *)at : *(const double *)at;
}

static bool set_number(struct nb_train_options *o, const struct number *n, const char *text) {
    char *end;
    void *at = (char *)o + n->offset;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= n->most) || (n->whole && value != floor(value))) return false;
    if (n->whole)
        *(int *)at = (int)value;
    else
        *(double *)at = value;
    return true;
}

/* 0: understood. */
static int take(struct nb_train_options *o, char *word, bool *has_norm) {
    const int kind = nb_norm_kind_find(word);
    char *equals = strchr(word, '=');
    if (kind >= 0) {
        o->norm.kind = (enum nb_norm_kind)kind;
        *has_norm = true;
        return 0;
    }
    for (int i = 0; i < N_WORDS; i++)
        if (strcmp(words[i].name, word) == 0) return set(o, &words[i]), 0;
    if (!equals) return -1;
    *equals = '\0';
    int result = -1;
    for (int i = 0; i < N_NUMBERS && result != 0; i++)
        if (strcmp(numbers[i].name, word) == 0) result = set_number(o, &numbers[i], equals + 1) ? 0 : -1;
    *equals = '=';
    return result;
}

static const char *refuse(const char *word, char *reason, size_t n) {
    const char *names[N_WORDS + N_NUMBERS + NB_N_NORM_KINDS];
    size_t count = 0;
    for (int i = 0; i < N_WORDS; i++) names[count++] = words[i].name;
    for (int i = 0; i < N_NUMBERS; i++) names[count++] = numbers[i].name;
    for (int i = 0; i < NB_N_NORM_KINDS; i++) names[count++] = nb_norm_kind_name((enum nb_norm_kind)i);
    const char *nearest = nb_nearest(word, names, count);
    snprintf(reason, n, "'%s' is not a word for an arm%s%s%s (configs/claims/README.md lists the words)", word,
             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return reason;
}

static const char *parse(struct nb_train_options *o, const char *text, bool *has_norm, char *reason, size_t n) {
    char copy[256], *state = NULL;
    if (strlen(text) >= sizeof copy) {
        snprintf(reason, n, "an arm has less than %zu characters", sizeof copy);
        return reason;
    }
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
        if (take(o, word, has_norm) != 0) return refuse(word, reason, n);
    return NULL;
}

const char *nb_arm_parse_common(struct nb_train_options *o, const char *text, char *reason, size_t n) {
    bool has_norm;
    return text ? parse(o, text, &has_norm, reason, n) : NULL;
}

const char *nb_arm_parse(struct nb_train_options *o, const char *text, char *reason, size_t n) {
    bool has_norm = o->norm.kind != NB_NORM_NONE;
    if (parse(o, text, &has_norm, reason, n)) return reason;
    if (has_norm) return NULL;
    snprintf(reason, n, "'%s' names no norm", text);
    return reason;
}

bool nb_arm_has_kernel(const struct nb_train_options *o) {
    return o->norm.kind != NB_NORM_NONE && o->norm.kind != NB_NORM_CENTRE && o->norm.kind != NB_NORM_SCALE;
}

void nb_arm_print(const struct nb_train_options *o, struct nb_strbuf *out) {
    struct nb_train_options usual;
    nb_arm_default(&usual);
    nb_strbuf_add(out, nb_norm_kind_name(o->norm.kind));
    if (nb_arm_has_kernel(o)) nb_strbuf_addf(out, " %s", nb_style_names[o->norm.style]);
    for (int i = 0; i < N_WORDS; i++) {
        const struct word *w = &words[i];
        const bool matters = w->field != STYLE && (w->field != AFFINE || o->norm.kind != NB_NORM_NONE);
        if (matters && get(o, w->field) == w->value && get(&usual, w->field) != w->value)
            nb_strbuf_addf(out, " %s", w->name);
    }
    for (int i = 0; i < N_NUMBERS; i++) {
        char text[32];
        if (get_number(o, &numbers[i]) == get_number(&usual, &numbers[i])) continue;
        nb_shortest_text(get_number(o, &numbers[i]), text);
        nb_strbuf_addf(out, " %s=%s", numbers[i].name, text);
    }
}
