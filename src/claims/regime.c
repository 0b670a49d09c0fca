// SPDX-License-Identifier: Apache-2.0
#include "src/claims/regime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/training.h"
#include "src/core/json.h"
#include "src/core/json_fields.h"
#include "src/core/log.h"
#include "src/core/stats.h"

/* Peak rate of f32 products and of memory, from the vendor's specifications (boost clock). */
static const struct gpu {
    const char *name, *title;
    double flops, bytes; /* a second */
} gpus[] = {{"titan-x-pascal", "a TITAN X (Pascal)", 10.97e12, 480e9},
            {"v100", "a V100", 15.7e12, 900e9},
            {"rtx-2080-ti", "an RTX 2080 Ti", 13.45e12, 616e9},
            {"rtx-3090", "an RTX 3090", 35.6e12, 936e9}};
enum { N_GPUS = sizeof gpus / sizeof gpus[0] };

static const struct gpu *gpu_of(const char *name) {
    for (int i = 0; i < N_GPUS; i++)
        if (strcmp(gpus[i].name, name) == 0) return &gpus[i];
    return NULL;
}

/* ---- what the source says ---- */

static int read_one(const struct nb_jsonc *file, const cJSON *node, struct nb_published *out) {
    static const struct nb_field fields[] = {
        {"row", NB_FIELD_TEXT, .offset = offsetof(struct nb_published, row), .required = true},
        {"gpu", NB_FIELD_TEXT, .offset = offsetof(struct nb_published, gpu), .required = true},
        {"norm", NB_FIELD_TEXT, .offset = offsetof(struct nb_published, norm)},
        {"part", NB_FIELD_TEXT, .offset = offsetof(struct nb_published, part)},
        {"cut", NB_FIELD_NUMBER, .offset = offsetof(struct nb_published, cut), .required = true, .high = 1},
        {"low", NB_FIELD_NUMBER, .offset = offsetof(struct nb_published, low), .required = true, .low = -1, .high = 1},
        {"high", NB_FIELD_NUMBER, .offset = offsetof(struct nb_published, high), .required = true, .high = 1}};
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a published cut", out) != 0) return -1;
    if (gpu_of(out->gpu)) return 0;
    const char *names[N_GPUS];
    for (int i = 0; i < N_GPUS; i++) names[i] = gpus[i].name;
    return nb_error("%s:%d: the rates of the GPU '%s' are not known%s (src/claims/regime.c has the table)", file->path,
                    nb_jsonc_line(file, node), out->gpu, nb_did_you_mean(out->gpu, names, N_GPUS).text);
}

int nb_published_read(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_published_list *list = into;
    if (!cJSON_IsArray(node) || !node->child)
        return nb_error("%s:%d: \"published\" is a list of cuts with row, gpu, cut, low and high", file->path,
                        nb_jsonc_line(file, node));
    list->items = nb_alloc((unsigned)cJSON_GetArraySize(node), sizeof *list->items);
    for (const cJSON *item = node->child; item; item = item->next)
        if (read_one(file, item, &list->items[list->n++]) != 0) return -1;
    return 0;
}

void nb_published_release(struct nb_published_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].row);
        free(list->items[i].gpu);
        free(list->items[i].norm);
        free(list->items[i].part);
    }
    free(list->items);
    *list = (struct nb_published_list){0};
}

/* ---- the model ---- */

enum { MOST_DISPATCH_US = 1000 };

struct question { /* context of the values below */
    const char *part;
    const struct gpu *gpu; /* null: here */
    double cut, dispatch_us;
    double tokens; /* of the source's step over those here, */
    bool steps;    /* which are more steps of time */
};

struct side { /* of one arm in one launch: seconds without dispatch, and operations */
    double part_s, norm_s, ops, norm_ops;
};

/* Seconds of products in the part. */
static double products_of(const cJSON *arm, const char *part) {
    const double all = nb_training_median_of(arm, "products"), forward = nb_training_median_of(arm, "products_forward");
    return strcmp(part, "forward") == 0 ? forward : strcmp(part, "backward") == 0 ? all - forward : all;
}

/* To the source's number of tokens: the passes grow with it, clipping and update do not. */
static void grow(struct side *s, const cJSON *arm, const struct question *q) {
    const bool whole = strcmp(q->part, "step") == 0;
    const cJSON *ops = nb_json_get(arm, "ops");
    const double update_s = whole ? nb_training_median_of(arm, "update") : 0;
    const double update_ops = whole ? nb_json_get_number(ops, "update") : 0;
    s->part_s = (s->part_s - update_s) * q->tokens + update_s;
    s->norm_s *= q->tokens;
    if (!q->steps) return;
    s->ops = (s->ops - update_ops) * q->tokens + update_ops;
    s->norm_ops *= q->tokens;
}

static struct side side_of(const cJSON *arm, const struct question *q) {
    const bool one_pass = strcmp(q->part, "forward") == 0 || strcmp(q->part, "backward") == 0;
    char norm[32];
    snprintf(norm, sizeof norm, one_pass ? "norm_%s" : "norm", q->part);
    const cJSON *ops = nb_json_get(arm, "ops"), *flops = nb_json_get(arm, "flops");
    struct side s = {.part_s = nb_training_median_of(arm, q->part),
                     .norm_s = nb_training_median_of(arm, norm),
                     .ops = nb_json_get_number(ops, q->part),
                     .norm_ops = nb_json_get_number(ops, norm)};
    double products_s = products_of(arm, q->part), n_flops = nb_json_get_number(flops, q->part);
    if (q->tokens > 0) {
        grow(&s, arm, q);
        products_s *= q->tokens;
        n_flops *= q->tokens;
    }
    if (!q->gpu) return s;
    const double slower = nb_json_get_number(arm, "memory_rate") / q->gpu->bytes;
    s.part_s = n_flops / q->gpu->flops + (s.part_s - products_s) * slower;
    s.norm_s *= slower;
    return s;
}

static double cut_at(const struct side *of, const struct side *against, double d) {
    return (against->norm_s - of->norm_s + d * (against->norm_ops - of->norm_ops)) /
           (against->part_s + d * against->ops);
}

static double dispatch_cut(const cJSON *arm, const cJSON *against, const void *context) {
    const struct question *q = context;
    const struct side a = side_of(arm, q), b = side_of(against, q);
    return cut_at(&a, &b, 1e-6 * q->dispatch_us);
}

static double cut_limit(const cJSON *arm, const cJSON *against, const void *context) {
    const struct side a = side_of(arm, context), b = side_of(against, context);
    return (b.norm_ops - a.norm_ops) / b.ops;
}

/* us. The cut is a quotient of two linear functions of d, so that it reaches a value once; 0: it is there without dispatch. */
static double dispatch_needed(const cJSON *arm, const cJSON *against, const void *context) {
    const struct question *q = context;
    const struct side a = side_of(arm, q), b = side_of(against, q);
    const double missing = q->cut * b.part_s - (b.norm_s - a.norm_s);
    const double gained = b.norm_ops - a.norm_ops - q->cut * b.ops; /* with each second of dispatch */
    if (isnan(missing) || isnan(gained)) return (double)NAN;
    if (missing <= 0) return 0;
    return gained <= 0 ? MOST_DISPATCH_US : fmin(1e6 * missing / gained, MOST_DISPATCH_US);
}

/* A step that waits against the same arm without: measured over modelled. */
static double spent_ratio(const cJSON *arm, const cJSON *without, const void *context) {
    const struct question *q = context;
    const struct side a = side_of(arm, q), b = side_of(without, q);
    return a.part_s / (b.part_s + 1e-6 * q->dispatch_us * b.ops);
}

/* ---- arms ---- */

static double number_tag(const struct nb_finding *f, const char *axis) {
    const char *value = nb_finding_get(f, axis);
    return value ? strtod(value, NULL) : 0;
}

/* The first arm with the norm, op by op and without dispatch, and the one that differs from it in having LayerNorm. False: there is none. */
static bool arms_of(const struct nb_training *t, const char *norm, size_t *of, size_t *against) {
    for (*of = 0; *of < t->words.n; (*of)++) {
        const struct nb_finding *tags = &t->tags.items[*of];
        const char *style = nb_finding_get(tags, "style"), *rest = t->arms[*of] + strlen(norm);
        if (strcmp(nb_finding_get(tags, "norm"), norm) != 0 || !style || strcmp(style, "composed") != 0 ||
            number_tag(tags, "dispatch") > 0)
            continue;
        for (*against = 0; *against < t->words.n; (*against)++)
            if (strncmp(t->arms[*against], "layernorm", 9) == 0 && strcmp(t->arms[*against] + 9, rest) == 0)
                return true;
    }
    return false;
}

/* The arm that differs in having no dispatch; false: there is none. */
static bool without_dispatch(const struct nb_training *t, size_t arm, size_t *found) {
    for (size_t i = 0; i < t->words.n; i++) {
        const char *word = strstr(t->arms[arm], " dispatch=");
        if (word && strlen(t->arms[i]) == (size_t)(word - t->arms[arm]) &&
            strncmp(t->arms[i], t->arms[arm], strlen(t->arms[i])) == 0) {
            *found = i;
            return true;
        }
    }
    return false;
}

/* ---- findings ---- */

static const double DISPATCHES_US[] = {0, 0.5, 1, 2, 3, 5, 7, 10, 15, 20};
enum { N_DISPATCHES = sizeof DISPATCHES_US / sizeof DISPATCHES_US[0] };

struct asked {
    const struct nb_training *t;
    const struct nb_train_results *results;
    const char *why;
    const struct nb_published *row;
    size_t of, against;
    struct question q;
};

static struct nb_train_figure figure_of(const struct asked *a, nb_train_value *value) {
    const struct nb_train_question q = {NB_TRAIN_STEPS, a->t->workload_name, 0};
    if (!a->results) return (struct nb_train_figure){.value = {NAN, NAN, NAN}, .reason = a->why};
    return nb_train_figure_of(a->results, &q, a->t->arms[a->of], a->t->arms[a->against], value, &a->q, false);
}

static struct nb_finding *add(const struct asked *a, const char *name, const char *unit, nb_train_value *value,
                              struct nb_findings *out) {
    struct nb_train_figure figure = figure_of(a, value);
    struct nb_finding *f =
        isnan(figure.value.value)
            ? nb_findings_add_missing(out, name, "%s", figure.reason ? figure.reason : "not measured")
            : nb_findings_add(out, name, unit, figure.value);
    f->n_launches = figure.n_measured;
    f->units = figure.rounds;
    f->n_units = (size_t)figure.n_rounds;
    nb_finding_tag(f, "workload", a->t->workload_name);
    nb_finding_tag(f, "norm", nb_finding_get(&a->t->tags.items[a->of], "norm"));
    nb_finding_tag(f, "part", a->q.part);
    if (a->row) nb_finding_tag(f, "row", a->row->row);
    nb_finding_tag(f, "machine", a->q.gpu ? a->q.gpu->name : "here");
    return f;
}

static bool asked_of(const struct nb_training *t, const struct nb_train_results *results, const char *why, size_t row,
                     struct asked *a) {
    const struct nb_published *p = &t->published.items[row];
    *a = (struct asked){
        .t = t, .results = results, .why = why, .row = p, .q = {.part = p->part ? p->part : "step", .cut = p->cut}};
    if (!arms_of(t, p->norm ? p->norm : "rmsnorm", &a->of, &a->against)) return false;
    if (t->full_tokens > 0) a->q.tokens = t->full_tokens / number_tag(&t->tags.items[a->of], "tokens");
    a->q.steps = t->full_steps;
    return true;
}

static void find_spent(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                       struct nb_findings *out) {
    for (size_t i = 0; i < t->words.n; i++) {
        struct asked a = {.t = t, .results = results, .why = why, .of = i, .q = {.part = "step"}};
        a.q.dispatch_us = number_tag(&t->tags.items[i], "dispatch");
        if (a.q.dispatch_us > 0 && without_dispatch(t, i, &a.against))
            nb_finding_tag_number(add(&a, "spent_ratio", "", spent_ratio, out), "dispatch", a.q.dispatch_us);
    }
}

void nb_regime_find(const struct nb_training *t, const struct nb_train_results *results, const char *why,
                    struct nb_findings *out) {
    struct asked a;
    for (size_t row = 0; row < t->published.n; row++) {
        if (!asked_of(t, results, why, row, &a)) continue;
        for (int machine = 0; machine < 2; machine++) {
            a.q.gpu = machine ? gpu_of(a.row->gpu) : NULL;
            add(&a, "dispatch_needed", "us", dispatch_needed, out);
            add(&a, "cut_limit", "share", cut_limit, out);
            for (int d = 0; d < N_DISPATCHES; d++) {
                a.q.dispatch_us = DISPATCHES_US[d];
                nb_finding_tag_number(add(&a, "dispatch_cut", "share", dispatch_cut, out), "dispatch",
                                      DISPATCHES_US[d]);
            }
        }
    }
    find_spent(t, results, why, out);
}

/* ---- claims.json ---- */

static struct nb_interval interval_of(const struct asked *a, nb_train_value *value) {
    struct nb_train_figure f = figure_of(a, value);
    free(f.rounds);
    return f.value;
}

static double seconds_a_call(const cJSON *arm, const cJSON *against, const void *context) {
    (void)against, (void)context;
    return nb_json_get_number(arm, "call_s");
}

static void say_needed(struct nb_strbuf *out, const struct nb_interval *d) {
    if (d->value >= MOST_DISPATCH_US)
        nb_strbuf_add(out, "more than any dispatch");
    else if (d->value <= 0)
        nb_strbuf_add(out, "no dispatch");
    else
        nb_strbuf_addf(out, "a dispatch of %.3g us", d->value);
    if (d->value > 0 && d->value < MOST_DISPATCH_US && isfinite(d->low))
        nb_strbuf_addf(out, " [%.3g, %.3g]", d->low, d->high);
}

static bool is_never(const struct nb_interval *d) { return d->value >= MOST_DISPATCH_US; }

/* Where the published figure is beyond the model of its GPU, its interval may not be. */
static void say_lower_end(struct nb_strbuf *out, struct asked *a, const struct nb_interval *there) {
    if (!is_never(there)) return;
    a->q.gpu = gpu_of(a->row->gpu);
    a->q.cut = a->row->low;
    const struct nb_interval low = interval_of(a, dispatch_needed);
    a->q.cut = a->row->cut;
    if (is_never(&low)) return;
    nb_strbuf_addf(out, ", though %.1f %%, the lower end of its interval, would need ", 100 * a->row->low);
    say_needed(out, &low);
    nb_strbuf_add(out, " there");
}

/* "rnnsearch, Table 2: 24.7 % would need a dispatch of .. with the products and memory of this CPU, .. with those of .. (a model); .." */
static void add_sentence(cJSON *json, struct asked *a, const struct nb_interval *here,
                         const struct nb_interval *there) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s, %s: ", a->t->workload_name, a->row->row);
    if (is_never(here) && is_never(there)) {
        nb_strbuf_addf(&text, "no dispatch is enough for %.1f %%, neither with the products and memory of this CPU nor",
                       100 * a->row->cut);
    } else {
        nb_strbuf_addf(&text, "%.1f %% would need ", 100 * a->row->cut);
        say_needed(&text, here);
        nb_strbuf_add(&text, " with the products and memory of this CPU, ");
        say_needed(&text, there);
    }
    nb_strbuf_addf(&text, " with those of %s (a model)", gpu_of(a->row->gpu)->title);
    say_lower_end(&text, a, there);
    a->q.gpu = NULL;
    a->q.dispatch_us = 0;
    const struct nb_interval limit = interval_of(a, cut_limit), now = interval_of(a, dispatch_cut),
                             call = interval_of(a, seconds_a_call);
    nb_strbuf_addf(&text,
                   "; if dispatch were all that costs, the cut would be %.1f %%. Here, op by op, a dispatch takes %.2g "
                   "us and the cut is %.2g %%.",
                   100 * limit.value, 1e6 * call.value, 100 * now.value);
    nb_json_text(json, "sentence", text.text);
    nb_strbuf_release(&text);
}

static void add_row(cJSON *list, struct asked *a) {
    const struct nb_interval published = {a->row->cut, a->row->low, a->row->high};
    struct nb_interval needed[2];
    for (int m = 0; m < 2; m++) {
        a->q.gpu = m ? gpu_of(a->row->gpu) : NULL;
        needed[m] = interval_of(a, dispatch_needed);
    }
    if (isnan(needed[0].value)) return;
    cJSON *json = nb_json_add_object(list);
    nb_json_text(json, "workload", a->t->workload_name);
    nb_json_text(json, "row", a->row->row);
    nb_json_text(json, "part", a->q.part);
    nb_json_text(json, "arm", a->t->arms[a->of]);
    nb_json_text(json, "against", a->t->arms[a->against]);
    nb_json_text(json, "gpu", a->row->gpu);
    nb_json_interval(json, "published", &published);
    nb_json_interval(json, "needed_here_us", &needed[0]);
    nb_json_interval(json, "needed_there_us", &needed[1]);
    add_sentence(json, a, &needed[0], &needed[1]);
}

void nb_regime_to_json(const struct nb_training *t, const struct nb_train_results *results, cJSON *list) {
    struct asked a;
    for (size_t row = 0; row < t->published.n; row++)
        if (asked_of(t, results, NULL, row, &a)) add_row(list, &a);
}
