// SPDX-License-Identifier: Apache-2.0
/* Step experiments: a model's list of operations, norms against LayerNorm, fused or unfused. Figures of each norm and style, by part:
 *     cut         what the norms save of the step
 *     norm_share  LayerNorm's share of it
 *     norm_cut    what the norms save of their own time
 *     seconds     of the step with LayerNorm
 * and of each published cut dispatch_needed (us; MOST_DISPATCH_US: at no cost of dispatch), dispatch_cut by `dispatch` and cut_limit, each by
 * `row` and `machine`: here, or the source's GPU. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/models/operations.h"
#include "src/models/rates.h"
#include "src/models/step.h"

enum { MOST_DISPATCH_US = 1000 };
static const char against[] = "layernorm";

struct published {                 /* a figure of the source */
    char *row, *gpu, *norm, *part; /* "Table 2, TensorFlow"; "titan-x-pascal"; norm null: rmsnorm; part null: step */
    double cut, low, high;
};
struct step_experiment {
    char *model_name;
    struct nb_strings norms, styles;
    struct published *published;
    size_t n_published;
    struct nb_model_step model;
    struct nb_norm_pair *pairs; /* of pair i norms.items[i / styles.n] in styles.items[i % styles.n] */
    size_t n_pairs;
    double tokens;        /* of a config.json; 0: as many as it has by itself */
    bool with_quick;      /* --quick does not leave it out */
    bool quick, left_out; /* norms are timed at few rows; it was left out */
};

/* ---- reading ---- */

static int read_row(const struct nb_jsonc *file, const cJSON *node, struct published *out) {
    static const struct nb_field fields[] = {
        {NB_FIELD(TEXT, struct published, row), .required = true},
        {NB_FIELD(TEXT, struct published, gpu), .required = true},
        {NB_FIELD(TEXT, struct published, norm)},
        {NB_FIELD(TEXT, struct published, part)},
        {NB_FIELD(NUMBER, struct published, cut), .required = true, .high = 1},
        {NB_FIELD(NUMBER, struct published, low), .required = true, .low = -1, .high = 1},
        {NB_FIELD(NUMBER, struct published, high), .required = true, .high = 1}};
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a published cut", out) != 0) return -1;
    if (out->part && nb_name_find(nb_model_part_names, out->part) < 0)
        return nb_jsonc_error(file, node, "\"part\" is '%s', and not forward, backward, update, passes or step",
                              out->part);
    if (nb_machine_of(out->gpu)) return 0;
    struct nb_strbuf known released_by(nb_strbuf_release) = {0};
    nb_machine_names(&known);
    return nb_jsonc_error(file, node, "the rates of the GPU '%s' are not known; %s are", out->gpu, known.text);
}

static int read_published(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct step_experiment *s = into;
    if (!cJSON_IsArray(node) || !node->child)
        return nb_jsonc_error(file, node, "\"published\" is a list of cuts with row, gpu, cut, low and high");
    s->published = nb_alloc((unsigned)cJSON_GetArraySize(node), sizeof *s->published);
    for (const cJSON *item = node->child; item; item = item->next)
        if (read_row(file, item, &s->published[s->n_published++]) != 0) return -1;
    return 0;
}

static int check_names(const struct nb_jsonc *file, const cJSON *node, const char *key, const struct nb_strings *given,
                       const char *const *known) {
    if (given->n == 0) return nb_jsonc_error(file, node, "\"%s\" is empty", key);
    for (size_t i = 0; i < given->n; i++) {
        if (nb_name_find(known, given->items[i]) >= 0) continue;
        size_t n = 0;
        while (known[n]) n++;
        return nb_jsonc_error(file, nb_json_get(node, key), "\"%s\": '%s' is not known%s", key, given->items[i],
                              nb_did_you_mean(given->items[i], known, n).text);
    }
    return 0;
}

static int step_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_ELSEWHERE, .required = true},
        {"model", NB_FIELD_TEXT, .offset = offsetof(struct step_experiment, model_name), .required = true},
        {NB_FIELD(TEXTS, struct step_experiment, norms), .required = true},
        {NB_FIELD(TEXTS, struct step_experiment, styles), .required = true},
        {NB_FIELD(NUMBER, struct step_experiment, tokens), .low = 1, .high = 1e7},
        {"quick", NB_FIELD_BOOL, .offset = offsetof(struct step_experiment, with_quick)},
        {"published", NB_FIELD_READ, .read = read_published}};
    static const char *const norms[] = {"rmsnorm", "prmsnorm", NULL};
    struct step_experiment *s = nb_alloc(1, sizeof *s);
    e->own = s;
    s->with_quick = true;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a step experiment", s) != 0 ||
        check_names(file, node, "norms", &s->norms, norms) != 0 ||
        check_names(file, node, "styles", &s->styles, nb_norm_style_names) != 0)
        return -1;
    if (nb_model_step_read(&s->model, s->model_name, (int)s->tokens) != 0)
        return nb_jsonc_error(file, nb_json_get(node, "model"), "\"model\" of this experiment cannot be read");
    s->pairs = nb_alloc(s->norms.n * s->styles.n, sizeof *s->pairs);
    for (; s->n_pairs < s->norms.n * s->styles.n; s->n_pairs++)
        s->pairs[s->n_pairs] = nb_norm_pair_of(s->norms.items[s->n_pairs / s->styles.n], against,
                                               s->styles.items[s->n_pairs % s->styles.n]);
    return 0;
}

static void step_release(struct nb_experiment *e) {
    struct step_experiment *s = e->own;
    for (size_t i = 0; i < s->n_published; i++) {
        nb_free_all(s->published[i].row, s->published[i].gpu, s->published[i].norm, s->published[i].part);
    }
    nb_free_all(s->published, s->pairs, s->model_name);
    nb_strings_release(&s->norms);
    nb_strings_release(&s->styles);
    nb_model_step_release(&s->model);
}

static void step_plan(struct nb_experiment *e, bool quick, struct nb_config configs[NB_N_CLAIMS_PLANS]) {
    struct step_experiment *s = e->own;
    s->quick = quick;
    s->left_out = quick && !s->with_quick;
    if (!s->left_out) nb_norms_plan(&s->model, s->pairs, s->n_pairs, quick, &configs[NB_PLAN_TIMING]);
}

static void step_rates(const struct nb_experiment *e, struct nb_rates *rates) {
    const struct step_experiment *s = e->own;
    if (!s->left_out) nb_rates_add(rates, &s->model);
}

/* ---- what one norm in one style comes to ---- */

struct asked {
    const struct step_experiment *s;
    const struct nb_claims_measured *m;
    size_t pair;
    struct nb_norm_times times;
};

static struct asked ask(const struct step_experiment *s, const struct nb_claims_measured *m, size_t pair) {
    struct asked a = {.s = s, .m = m, .pair = pair};
    if (m->results[NB_PLAN_TIMING] && m->samples)
        nb_norm_times_find(&a.times, &s->pairs[pair], &s->model, s->quick, m->results[NB_PLAN_TIMING], m->samples);
    return a;
}

static const char *norm_of(const struct asked *a) { return a->s->norms.items[a->pair / a->s->styles.n]; }
static const char *style_of(const struct asked *a) { return a->s->styles.items[a->pair % a->s->styles.n]; }

static struct nb_step_side side_of(const struct asked *a, const char *part, const struct nb_machine *machine) {
    if (a->s->left_out || !a->m->rates || !a->m->results[NB_PLAN_TIMING])
        return (struct nb_step_side){NB_NO_INTERVAL, NB_NO_INTERVAL, NB_NO_INTERVAL, NB_NO_INTERVAL,
                                     .reason = a->s->left_out ? "a step that --quick leaves out"
                                                              : "the run ended before its operations were timed"};
    return nb_step_sum(&a->s->model, nb_name_find(nb_model_part_names, part), a->m->rates, &a->times, machine);
}

/* Of the norms' own time: both have LayerNorm's time in them, so that bounds are taken low with low. */
static struct nb_interval norm_cut(const struct nb_step_side *side) {
    const double low = side->saved_s.low / side->norms_s.low, high = side->saved_s.high / side->norms_s.high;
    return (struct nb_interval){side->saved_s.value / side->norms_s.value, fmin(low, high), fmax(low, high)};
}

/* us, at most MOST_DISPATCH_US. */
static struct nb_interval needed_us(const struct nb_step_side *side, double cut) {
    const struct nb_interval d = nb_step_dispatch_for(side, cut);
    const double scale = 1e6, most = MOST_DISPATCH_US;
    return (struct nb_interval){isnan(d.value) ? d.value : fmin(scale * d.value, most),
                                isnan(d.low) ? d.low : fmin(scale * d.low, most),
                                isnan(d.high) ? d.high : fmin(scale * d.high, most)};
}

/* Parts that the model has. */
static const char *const *parts_of(const struct nb_model_step *model) {
    static const char *const training[] = {"forward", "backward", "passes", "step", NULL};
    static const char *const inference[] = {"forward", "step", NULL};
    return model->training ? training : inference;
}

/* Is the published row one of this norm's, unfused as all sources ran it? */
static bool is_of(const struct published *p, const struct asked *a) {
    return strcmp(style_of(a), "composed") == 0 && strcmp(p->norm ? p->norm : "rmsnorm", norm_of(a)) == 0;
}
static const char *part_of(const struct published *p) { return p->part ? p->part : "step"; }

/* ---- findings ---- */

static struct nb_finding *add(const struct asked *a, const char *name, const char *unit, const char *part,
                              struct nb_interval value, const char *reason, struct nb_findings *out) {
    struct nb_finding *f = isnan(value.value)
                               ? nb_findings_add_missing(out, name, "%s", reason ? reason : "not measured")
                               : nb_findings_add(out, name, unit, value);
    f->n_launches = a->m->samples ? (int)a->m->samples->n_launches : 0;
    f->evidence = nb_textf("%s: %s %s against %s", a->s->model.name, norm_of(a), style_of(a), against);
    nb_finding_tag(f, "model", a->s->model.name);
    nb_finding_tag(f, "norm", norm_of(a));
    nb_finding_tag(f, "style", style_of(a));
    nb_finding_tag(f, "part", part);
    nb_finding_tag_number(f, "tokens", a->s->model.tokens);
    return f;
}

static void find_parts(const struct asked *a, struct nb_findings *out) {
    for (const char *const *part = parts_of(&a->s->model); *part; part++) {
        const struct nb_step_side side = side_of(a, *part, NULL);
        add(a, "cut", "share", *part, nb_step_cut(&side, 0), side.reason, out);
        add(a, "norm_share", "share", *part, nb_step_share(&side), side.reason, out);
        add(a, "norm_cut", "share", *part, norm_cut(&side), side.reason, out);
        add(a, "seconds", "s", *part, nb_step_seconds(&side, 0), side.reason, out);
    }
}

static const double DISPATCHES_US[] = {0, 0.5, 1, 2, 3, 5, 7, 10, 15, 20};

static void tag_row(struct nb_finding *f, const struct published *p, const struct nb_machine *machine) {
    nb_finding_tag(f, "row", p->row);
    nb_finding_tag(f, "machine", machine ? machine->name : "here");
}

static void find_dispatch(const struct asked *a, const struct published *p, const struct nb_machine *machine,
                          struct nb_findings *out) {
    const char *part = part_of(p);
    const struct nb_step_side side = side_of(a, part, machine);
    const double limit = nb_step_cut_limit(&side);
    tag_row(add(a, "dispatch_needed", "us", part, needed_us(&side, p->cut), side.reason, out), p, machine);
    tag_row(add(a, "cut_limit", "share", part, nb_exactly(limit), side.reason, out), p, machine);
    for (size_t i = 0; i < sizeof DISPATCHES_US / sizeof DISPATCHES_US[0]; i++) {
        struct nb_finding *f =
            add(a, "dispatch_cut", "share", part, nb_step_cut(&side, 1e-6 * DISPATCHES_US[i]), side.reason, out);
        tag_row(f, p, machine);
        nb_finding_tag_number(f, "dispatch", DISPATCHES_US[i]);
    }
}

static void step_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    const struct step_experiment *s = e->own;
    for (size_t i = 0; i < s->n_pairs; i++) {
        struct asked a = ask(s, m, i);
        find_parts(&a, out);
        for (size_t row = 0; row < s->n_published; row++) {
            const struct published *p = &s->published[row];
            if (!is_of(p, &a)) continue;
            find_dispatch(&a, p, NULL, out);
            find_dispatch(&a, p, nb_machine_of(p->gpu), out);
        }
        nb_norm_times_release(&a.times);
    }
}

static void step_describe(const struct nb_experiment *e, struct nb_strbuf *out) {
    const struct step_experiment *s = e->own;
    nb_strbuf_addf(out, "%s, %.0f tokens a step (configs/models): %s", s->model.title, s->model.tokens,
                   s->model.source);
}

/* ---- claims.json ---- */

static bool is_never(const struct nb_interval *d) { return d->value >= MOST_DISPATCH_US; }

static void say_needed(struct nb_strbuf *out, const struct nb_interval *d) {
    if (is_never(d))
        nb_strbuf_add(out, "more than any dispatch");
    else if (d->value <= 0)
        nb_strbuf_add(out, "no dispatch");
    else
        nb_strbuf_addf(out, "a dispatch of %.3g us", d->value);
    if (d->value > 0 && !is_never(d) && d->low < d->high) nb_strbuf_addf(out, " [%.3g, %.3g]", d->low, d->high);
}

/* "rnnsearch, Table 2: 24.7 % would need a dispatch of .. with the products and memory of this CPU, .. with those of .. (a model); .." */
static void add_sentence(cJSON *json, const struct asked *a, const struct published *p, const struct nb_interval *here,
                         const struct nb_interval *there) {
    const struct nb_machine *gpu = nb_machine_of(p->gpu);
    const struct nb_step_side side = side_of(a, part_of(p), NULL), far = side_of(a, part_of(p), gpu);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "%s, %s: ", a->s->model.name, p->row);
    if (is_never(here) && is_never(there)) {
        nb_strbuf_addf(&text, "no dispatch is enough for %.1f%%, neither with the products and memory of this CPU nor",
                       100 * p->cut);
    } else {
        nb_strbuf_addf(&text, "%.1f%% would need ", 100 * p->cut);
        say_needed(&text, here);
        nb_strbuf_add(&text, " with the products and memory of this CPU, ");
        say_needed(&text, there);
    }
    nb_strbuf_addf(&text, " with those of %s (a model)", gpu->title);
    const struct nb_interval low = needed_us(&far, p->low); /* the lower end of the published interval */
    if (is_never(there) && !is_never(&low)) {
        nb_strbuf_addf(&text, ", though %.1f%%, the lower end of its interval, would need ", 100 * p->low);
        say_needed(&text, &low);
        nb_strbuf_add(&text, " there");
    }
    nb_strbuf_addf(&text, "; if dispatch were all that costs, the cut would be %.1f%%. Here the sum gives %.2g%%.",
                   100 * nb_step_cut_limit(&side), 100 * nb_step_cut(&side, 0).value);
    nb_json_text(json, "sentence", text.text);
}

static void add_row(cJSON *list, const struct asked *a, const struct published *p) {
    const struct nb_interval published = {p->cut, p->low, p->high};
    const struct nb_step_side here = side_of(a, part_of(p), NULL),
                              there = side_of(a, part_of(p), nb_machine_of(p->gpu));
    const struct nb_interval needed_here = needed_us(&here, p->cut), needed_there = needed_us(&there, p->cut);
    if (isnan(needed_here.value) || nb_json_find(list, "row", p->row)) return;
    cJSON *json = nb_json_add_object(list);
    nb_json_text(json, "row", p->row);
    nb_json_text(json, "part", part_of(p));
    nb_json_text(json, "gpu", p->gpu);
    nb_json_interval(json, "published", &published);
    nb_json_interval(json, "needed_here_us", &needed_here);
    nb_json_interval(json, "needed_there_us", &needed_there);
    nb_json_number(json, "limit", nb_step_cut_limit(&here));
    add_sentence(json, a, p, &needed_here, &needed_there);
}

static void add_parts(cJSON *json, const struct asked *a) {
    cJSON *list = cJSON_AddArrayToObject(json, "parts");
    for (const char *const *part = parts_of(&a->s->model); *part; part++) {
        const struct nb_step_side side = side_of(a, *part, NULL);
        const struct nb_interval seconds = nb_step_seconds(&side, 0), share = nb_step_share(&side),
                                 cut = nb_step_cut(&side, 0), alone = norm_cut(&side);
        cJSON *entry = nb_json_add_object(list);
        nb_json_text(entry, "part", *part);
        nb_json_interval(entry, "seconds", &seconds);
        nb_json_interval(entry, "norms", &side.norms_s);
        nb_json_interval(entry, "products", &side.products_s);
        nb_json_interval(entry, "norm_share", &share);
        nb_json_interval(entry, "cut", &cut);
        nb_json_interval(entry, "norm_cut", &alone);
        nb_json_number(entry, "dispatches", side.dispatches);
    }
}

static cJSON *entry_of(const struct asked *a) {
    const struct nb_model_step *model = &a->s->model;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "model", model->name);
    nb_json_text(json, "title", model->title);
    nb_json_text(json, "source", model->source);
    cJSON_AddBoolToObject(json, "training", model->training);
    nb_json_number(json, "tokens", model->tokens);
    nb_json_text(json, "norm", norm_of(a));
    nb_json_text(json, "style", style_of(a));
    nb_json_text(json, "reason", side_of(a, "step", NULL).reason);
    add_parts(json, a);
    cJSON_AddArrayToObject(json, "dispatch");
    return json;
}

static cJSON *find_entry(cJSON *models, const struct asked *a) {
    cJSON *entry;
    cJSON_ArrayForEach(entry, models) {
        if (nb_json_is(entry, "model", a->s->model.name) && nb_json_is(entry, "norm", norm_of(a)) &&
            nb_json_is(entry, "style", style_of(a)) && nb_json_get_number(entry, "tokens") == a->s->model.tokens)
            return entry;
    }
    entry = entry_of(a);
    cJSON_AddItemToArray(models, entry);
    return entry;
}

void nb_steps_to_json(const struct nb_experiment *e, const struct nb_claims_measured *m, cJSON *models) {
    const struct step_experiment *s = e->own;
    assert(e->kind == &nb_experiment_step);
    for (size_t i = 0; i < s->n_pairs && !s->left_out; i++) {
        struct asked a = ask(s, m, i);
        cJSON *entry = find_entry(models, &a);
        for (size_t row = 0; row < s->n_published; row++)
            if (is_of(&s->published[row], &a)) add_row(nb_json_get(entry, "dispatch"), &a, &s->published[row]);
        nb_norm_times_release(&a.times);
    }
}

const struct nb_experiment_kind nb_experiment_step = {
    .name = "step",
    .summary = "a step of a model as the sum of its operations",
    .read = step_read,
    .release = step_release,
    .plan = step_plan,
    .rates = step_rates,
    .describe = step_describe,
    .find = step_find,
};
