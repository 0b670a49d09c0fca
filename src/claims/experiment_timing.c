// SPDX-License-Identifier: Apache-2.0
/* Timing experiments: cases of the matrix, and which of them are compared. Each pair gives
 *     cut    1 - t / t_against      the paper's convention
 *     ratio  t_against / t
 * and, where the comparison names the share s of a step that the norm has, step_cut = s cut: what the step would gain. */
#include "src/claims/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"

#define NO_CASE ((size_t)-1)

struct timed_cases { /* records of one experiment, each with its tags in a finding of its own */
    const struct nb_record **records;
    struct nb_findings tagged;
};

struct compare {
    struct nb_sides pair,
        and; /* and: times of a second pair that are added, such as those of the backward pass; no axes: there is none */
    double share;
    struct nb_selector tags; /* tags of its own: axis and one value */
};
struct timing {
    struct nb_blocks matrix;
    char *isolate; /* "width", or null */
    struct compare *compares;
    size_t n;
};

/* ---- reading ---- */

static int read_and(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {
        {NB_FIELD(MEMBER, struct nb_sides, of), .required = true, .read = nb_selector_read},
        {NB_FIELD(MEMBER, struct nb_sides, against), .required = true, .read = nb_selector_read}};
    return nb_fields_read(file, node, fields, 2, "\"and\"", &((struct compare *)into)->and);
}

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{"of", NB_FIELD_MEMBER, .offset = offsetof(struct compare, pair.of),
                                              .required = true, .read = nb_selector_read},
                                             {"against", NB_FIELD_MEMBER,
                                              .offset = offsetof(struct compare, pair.against), .required = true,
                                              .read = nb_selector_read},
                                             {"and", NB_FIELD_READ, .read = read_and},
                                             {NB_FIELD(NUMBER, struct compare, share), .high = 1},
                                             {NB_FIELD(MEMBER, struct compare, tags), .read = nb_selector_read}};
    struct timing *t = into;
    const bool list = cJSON_IsArray(node);
    t->compares = nb_alloc(list ? (unsigned)cJSON_GetArraySize(node) + 1 : 1, sizeof *t->compares);
    for (const cJSON *item = list ? node->child : node; item; item = list ? item->next : NULL) {
        struct compare *c = &t->compares[t->n++];
        c->share = NAN;
        if (nb_fields_read(file, item, fields, sizeof fields / sizeof fields[0], "an entry of \"compare\"", c) != 0)
            return -1;
    }
    return 0;
}

static int timing_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_ELSEWHERE, .required = true},
        {"blocks", NB_FIELD_MEMBER, .offset = offsetof(struct timing, matrix.blocks), .required = true,
         .read = nb_config_read_blocks},
        {"quick", NB_FIELD_MEMBER, .offset = offsetof(struct timing, matrix.quick), .read = nb_config_read_blocks},
        {NB_FIELD(TEXT, struct timing, isolate)},
        {"compare", NB_FIELD_READ, .required = true, .read = read_compare}};
    struct timing *t = nb_alloc(1, sizeof *t);
    e->own = t;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a timing experiment", t) != 0) return -1;
    if (!t->isolate || strcmp(t->isolate, "width") == 0) return 0;
    return nb_jsonc_error(file, nb_json_get(node, "isolate"),
                          "\"isolate\" is '%s', and \"width\" is all that can be isolated", t->isolate);
}

static void timing_release(struct nb_experiment *e) {
    struct timing *t = e->own;
    for (size_t i = 0; i < t->n; i++) {
        struct compare *c = &t->compares[i];
        nb_sides_release(&c->pair);
        nb_sides_release(&c->and);
        nb_selector_release(&c->tags);
    }
    free(t->compares);
    free(t->isolate);
    nb_blocks_release(&t->matrix);
}

static void timing_plan(struct nb_experiment *e, bool quick, struct nb_config configs[NB_N_CLAIMS_PLANS]) {
    struct timing *t = e->own;
    if (t->isolate) nb_blocks_isolate_width(&t->matrix);
    nb_blocks_move(&t->matrix, quick, e->label, &configs[NB_PLAN_TIMING]);
}

/* ---- which cases make a pair ---- */

static void timed_cases_init(struct timed_cases *c, const struct nb_results *results, const char *label) {
    *c = (struct timed_cases){.records = nb_alloc(results->n + 1, sizeof *c->records)};
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (!nb_record_has_label(r, label) || r->status == NB_SKIPPED) continue;
        c->records[c->tagged.n] = r;
        nb_tag_record(nb_findings_add_exact(&c->tagged, "case", "", 0), r, results->meta);
    }
}

static void timed_cases_release(struct timed_cases *c) {
    nb_findings_release(&c->tagged);
    free(c->records);
    *c = (struct timed_cases){0};
}

/* What follows from another kernel: its own properties, and the parameters that its op usually has. */
static bool is_own(const char *axis) {
    static const char *const own[] = {"kernel",      "op",     "variance",    "stats",
                                      "stats_dtype", "affine", "param_dtype", "weight_offset",
                                      "k",           "style",  "fits",        NULL};
    return nb_name_find(own, axis) >= 0;
}

static bool may_differ(const struct nb_sides *s, const char *axis) {
    const bool other_kernel = nb_sides_both_name(s, "kernel") || nb_sides_both_name(s, "op") ||
                              nb_sides_both_name(s, "style") || nb_sides_both_name(s, "stats") ||
                              nb_sides_both_name(s, "variance");
    return other_kernel && is_own(axis);
}

/* The case that `of` is compared with: selected by `against`, of the same group unless both selectors name the width, and with equal
 * values on every axis but those that both name and, where they choose kernels (kernel, op,
 * style, stats, variance), those that are a kernel's own. */
static size_t timed_against(const struct timed_cases *c, const struct nb_sides *s, size_t of) {
    const struct nb_finding *cases = c->tagged.items;
    for (size_t i = 0; i < c->tagged.n; i++)
        if (i != of && nb_selector_takes(&s->against, &cases[i], NULL) &&
            (c->records[i]->group == c->records[of]->group || nb_sides_both_name(s, "width")) &&
            c->records[i]->machine == c->records[of]->machine && nb_sides_alike(s, &cases[of], &cases[i], may_differ))
            return i;
    return NO_CASE;
}

/* ---- what one case of a pair saves of the other's time ---- */

struct timed_pair {
    struct nb_interval cut; /* 1 - t / t_against */
    double *cuts;           /* in each launch, NaN where it has none; owned; null where there is no cut */
    size_t n_cuts;
    int n_launches; /* that have one */
    double against_ns;
    const char *reason; /* why there is no cut, or null */
};

static struct timed_pair no_pair(const char *reason) {
    return (struct timed_pair){.cut = NB_NO_INTERVAL, .against_ns = NAN, .reason = reason};
}

static struct timed_pair measure(const struct timed_cases *c, const struct nb_sample_table *samples, size_t of,
                                 size_t against) {
    const struct nb_record *a = c->records[against], *b = c->records[of];
    if (!nb_status_timed(a->status) || !nb_status_timed(b->status))
        return no_pair(nb_status_name(nb_status_timed(a->status) ? b->status : a->status));
    if (!samples || !a->has_timing || !b->has_timing) return no_pair("not timed");
    double *cuts = nb_alloc(samples->n_launches + 1, sizeof *cuts);
    const struct nb_paired p = nb_paired_ratio(samples, b->key, a->key, cuts);
    if (isnan(p.ratio.value)) {
        free(cuts);
        return no_pair("no launch in which both were timed");
    }
    for (size_t l = 0; l < samples->n_launches; l++) cuts[l] = 1 - exp(cuts[l]);
    return (struct timed_pair){.cut = nb_interval_saved(p.ratio),
                               .cuts = cuts,
                               .n_cuts = samples->n_launches,
                               .n_launches = p.n_launches,
                               .against_ns = a->timing.time_ns.value};
}

static void timed_pair_release(struct timed_pair *p) {
    free(p->cuts);
    *p = (struct timed_pair){0};
}

static bool same_tag(const struct nb_finding *a, const struct nb_finding *b, const char *axis) {
    const char *p = nb_finding_get(a, axis), *q = nb_finding_get(b, axis);
    return p && q && strcmp(p, q) == 0;
}

/* The pair that s selects for the same shape, dtype and width as case `at`, such as its backward pass. */
static struct timed_pair partner(const struct timed_cases *c, const struct nb_sample_table *samples,
                                 const struct nb_sides *s, size_t at) {
    const struct nb_finding *cases = c->tagged.items;
    for (size_t i = 0; i < c->tagged.n; i++) {
        if (!nb_selector_takes(&s->of, &cases[i], NULL) || !same_tag(&cases[i], &cases[at], "shape") ||
            !same_tag(&cases[i], &cases[at], "width") || !same_tag(&cases[i], &cases[at], "dtype"))
            continue;
        const size_t against = timed_against(c, s, i);
        if (against != NO_CASE) return measure(c, samples, i, against);
    }
    return no_pair("its second part (\"and\") was not measured: no such case could be planned here");
}

/* The cut of both times together: the mean of both cuts, weighted by what each takes on the other side. Bounds are added, which holds
 * whatever correlation there is. */
static struct timed_pair join(const struct timed_pair *p, const struct timed_pair *q) {
    if (p->reason || q->reason) return no_pair(p->reason ? p->reason : q->reason);
    const double w = p->against_ns / (p->against_ns + q->against_ns);
    const size_t n = p->n_cuts < q->n_cuts ? p->n_cuts : q->n_cuts;
    double *cuts = nb_alloc(n + 1, sizeof *cuts);
    for (size_t l = 0; l < n; l++) cuts[l] = w * p->cuts[l] + (1 - w) * q->cuts[l];
    return (struct timed_pair){.cuts = cuts,
                               .n_cuts = n,
                               .cut = {w * p->cut.value + (1 - w) * q->cut.value, w * p->cut.low + (1 - w) * q->cut.low,
                                       w * p->cut.high + (1 - w) * q->cut.high},
                               .n_launches = p->n_launches < q->n_launches ? p->n_launches : q->n_launches,
                               .against_ns = p->against_ns + q->against_ns};
}

/* ---- findings ---- */

static void tag_own(struct nb_finding *f, const struct compare *by) {
    for (size_t i = 0; i < by->tags.n; i++) nb_finding_tag(f, by->tags.axes[i].axis, by->tags.axes[i].values[0]);
}

struct place { /* of a pair */
    const struct timed_cases *cases;
    size_t of, against;
    const struct compare *by;
};

/* What a figure makes of a cut: itself, the ratio (share NaN), or the part of it that a step gains. */
static double figure_of_cut(double cut, double share) { return isnan(share) ? 1 / (1 - cut) : share * cut; }

static void add_units(struct nb_finding *f, const struct timed_pair *p, double share) {
    f->units = nb_alloc(p->n_cuts + 1, sizeof *f->units);
    f->n_units = p->n_cuts;
    for (size_t l = 0; l < p->n_cuts; l++) f->units[l] = figure_of_cut(p->cuts[l], share);
}

/* share: 1 for the cut itself, NaN for the ratio. */
static void add_figure(struct nb_findings *out, const char *name, double share, const struct timed_pair *p,
                       const struct place *at) {
    const struct nb_interval value = {figure_of_cut(p->cut.value, share), figure_of_cut(p->cut.low, share),
                                      figure_of_cut(p->cut.high, share)};
    struct nb_finding *f = p->reason ? nb_findings_add_missing(out, name, "%s", p->reason)
                                     : nb_findings_add(out, name, strcmp(name, "ratio") ? "share" : "", value);
    const struct nb_finding *tags = &at->cases->tagged.items[at->of];
    struct nb_strbuf keys = {0};
    f->n_launches = p->n_launches;
    if (p->cuts) add_units(f, p, share);
    nb_strbuf_addf(&keys, "%s against %s", at->cases->records[at->of]->key, at->cases->records[at->against]->key);
    f->evidence = keys.text;
    for (size_t i = 0; i < tags->n_tags; i++)
        if (!nb_selector_axis(&at->by->tags, tags->tags[i].axis))
            nb_finding_tag(f, tags->tags[i].axis, tags->tags[i].value);
    tag_own(f, at->by);
    nb_finding_tag(f, "against", nb_finding_get(&at->cases->tagged.items[at->against], "kernel"));
}

static void add_pair(struct nb_findings *out, const struct place *at, const struct nb_sample_table *samples) {
    struct timed_pair p released_by(timed_pair_release) = measure(at->cases, samples, at->of, at->against);
    const double s = at->by->share;
    if (at->by->and.of.axes) {
        struct timed_pair first released_by(timed_pair_release) = p;
        struct timed_pair q released_by(timed_pair_release) = partner(at->cases, samples, &at->by->and, at->of);
        p = join(&first, &q);
    }
    add_figure(out, "cut", 1, &p, at);
    add_figure(out, "ratio", NAN, &p, at);
    if (!isnan(s)) add_figure(out, "step_cut", s, &p, at);
}

static void add_side(struct nb_strbuf *text, const struct timed_cases *c, const struct nb_selector *s) {
    size_t n = 0;
    for (size_t i = 0; i < c->tagged.n; i++) n += nb_selector_takes(s, &c->tagged.items[i], NULL);
    for (size_t j = 0; j < s->n; j++) {
        nb_strbuf_addf(text, " %s=", s->axes[j].axis);
        for (size_t v = 0; v < s->axes[j].n; v++) nb_strbuf_addf(text, "%s%s", v ? "," : "", s->axes[j].values[v]);
    }
    nb_strbuf_addf(text, " (%zu case%s)", n, n == 1 ? "" : "s");
}

/* Why the sides make no pair; owned. */
static char *why_none(const struct timed_cases *c, const struct nb_sides *s, const struct nb_results *results) {
    struct nb_strbuf text = {0};
    if (c->tagged.n == 0 || !nb_json_get_bool(results->meta, "complete")) return nb_strdup(nb_blocks_why_none(results));
    nb_strbuf_add(&text, "no two of its cases make a pair here: it compares");
    add_side(&text, c, &s->of);
    nb_strbuf_add(&text, " with");
    add_side(&text, c, &s->against);
    return text.text;
}

/* So that a rule about it gets the reason. */
static void add_none(struct nb_findings *out, const struct compare *by, const char *reason) {
    static const char *const names[] = {"cut", "ratio", "step_cut"};
    for (int i = 0; i < 2 + !isnan(by->share); i++) {
        struct nb_finding *f = nb_findings_add_missing(out, names[i], "%s", reason);
        for (size_t j = 0; j < by->pair.of.n; j++)
            if (by->pair.of.axes[j].n == 1) nb_finding_tag(f, by->pair.of.axes[j].axis, by->pair.of.axes[j].values[0]);
        tag_own(f, by);
    }
}

static void timing_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    const struct timing *t = e->own;
    const struct nb_results *results = m->results[NB_PLAN_TIMING];
    struct timed_cases cases released_by(timed_cases_release) = {0};
    if (results) timed_cases_init(&cases, results, e->label);
    for (size_t i = 0; i < t->n; i++) {
        const size_t before = out->n;
        for (size_t of = 0; of < cases.tagged.n; of++) {
            const size_t against = nb_selector_takes(&t->compares[i].pair.of, &cases.tagged.items[of], NULL)
                                       ? timed_against(&cases, &t->compares[i].pair, of)
                                       : NO_CASE;
            const struct place at = {&cases, of, against, &t->compares[i]};
            if (against != NO_CASE) add_pair(out, &at, m->samples);
        }
        if (out->n > before) continue;
        char *why freed = why_none(&cases, &t->compares[i].pair, results);
        add_none(out, &t->compares[i], why);
    }
}

const struct nb_experiment_kind nb_experiment_timing = {
    .name = "timing",
    .summary = "cases timed against each other",
    .read = timing_read,
    .release = timing_release,
    .plan = timing_plan,
    .find = timing_find,
};
