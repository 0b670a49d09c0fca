// SPDX-License-Identifier: Apache-2.0
/* Timing experiments: cases of the matrix, and which of them are compared. Each pair gives
 *     cut    1 - t / t_against      the paper's convention
 *     ratio  t_against / t
 * and, where the comparison names the share s of a step that the norm has, step_cut = s cut: what the step would gain. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/claims/fields.h"
#include "src/claims/timing_pairs.h"
#include "src/core/json.h"
#include "src/core/log.h"

struct compare {
    struct nb_sides pair, and; /* and: times of a second pair that are added, such as those of the backward pass */
    bool has_and;
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

static int read_blocks(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_blocks_read(&((struct timing *)into)->matrix, file, node, false);
}
static int read_quick(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_blocks_read(&((struct timing *)into)->matrix, file, node, true);
}
static int skip(const struct nb_jsonc *file, const cJSON *node, void *into) {
    (void)file, (void)node, (void)into;
    return 0;
}
static int read_of(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct nb_sides *)into)->of, file, node);
}
static int read_against(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct nb_sides *)into)->against, file, node);
}
static int read_tags(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct compare *)into)->tags, file, node);
}

static int read_and(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{"of", NB_FIELD_READ, 0, true, read_of},
                                             {"against", NB_FIELD_READ, 0, true, read_against}};
    struct compare *c = into;
    c->has_and = true;
    return nb_fields_read(file, node, fields, 2, "\"and\"", &c->and);
}

static int read_share(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_jsonc_number(file, node, 0, 1, false, &((struct compare *)into)->share);
}

/* `pair` is the first member, so that of and against are read into it. */
_Static_assert(offsetof(struct compare, pair) == 0, "read_of() and read_against() take a struct nb_sides");

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{"of", NB_FIELD_READ, 0, true, read_of},
                                             {"against", NB_FIELD_READ, 0, true, read_against},
                                             {"and", NB_FIELD_READ, 0, false, read_and},
                                             {"share", NB_FIELD_READ, 0, false, read_share},
                                             {"tags", NB_FIELD_READ, 0, false, read_tags}};
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
    static const struct nb_field fields[] = {{"kind", NB_FIELD_READ, 0, true, skip},
                                             {"blocks", NB_FIELD_READ, 0, true, read_blocks},
                                             {"quick", NB_FIELD_READ, 0, false, read_quick},
                                             {"isolate", NB_FIELD_TEXT, offsetof(struct timing, isolate), false, NULL},
                                             {"compare", NB_FIELD_READ, 0, true, read_compare}};
    struct timing *t = nb_alloc(1, sizeof *t);
    e->own = t;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a timing experiment", t) != 0) return -1;
    if (!t->isolate || strcmp(t->isolate, "width") == 0) return 0;
    return nb_error("%s:%d: \"isolate\" is '%s', and \"width\" is all that can be isolated", file->path,
                    nb_jsonc_line(file, cJSON_GetObjectItemCaseSensitive(node, "isolate")), t->isolate);
}

static void timing_release(struct nb_experiment *e) {
    struct timing *t = e->own;
    for (size_t i = 0; i < t->n; i++) {
        struct compare *c = &t->compares[i];
        nb_selector_release(&c->pair.of);
        nb_selector_release(&c->pair.against);
        nb_selector_release(&c->and.of);
        nb_selector_release(&c->and.against);
        nb_selector_release(&c->tags);
    }
    free(t->compares);
    free(t->isolate);
    nb_blocks_release(&t->matrix);
    free(t);
}

static void timing_plan(struct nb_experiment *e, bool quick, struct nb_config configs[NB_N_CLAIMS_PLANS]) {
    struct timing *t = e->own;
    if (t->isolate) nb_blocks_isolate_width(&t->matrix);
    nb_blocks_move(&t->matrix, quick, e->label, &configs[NB_PLAN_TIMING]);
}

/* ---- findings ---- */

static void tag_own(struct nb_finding *f, const struct compare *by) {
    for (size_t i = 0; i < by->tags.n; i++) nb_finding_tag(f, by->tags.axes[i].axis, by->tags.axes[i].values[0]);
}

struct place { /* of a pair */
    const struct nb_timed_cases *cases;
    size_t of, against;
    const struct compare *by;
};

/* What a figure makes of a cut: itself, the ratio (share NaN), or the part of it that a step gains. */
static double figure_of_cut(double cut, double share) { return isnan(share) ? nb_cut_to_ratio(cut) : share * cut; }

static void add_units(struct nb_finding *f, const struct nb_timed_pair *p, double share) {
    f->units = nb_alloc(p->n_cuts + 1, sizeof *f->units);
    f->n_units = p->n_cuts;
    for (size_t l = 0; l < p->n_cuts; l++) f->units[l] = figure_of_cut(p->cuts[l], share);
}

/* share: 1 for the cut itself, NaN for the ratio. */
static void add_figure(struct nb_findings *out, const char *name, double share, const struct nb_timed_pair *p,
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
    struct nb_timed_pair p = nb_timed_measure(at->cases, samples, at->of, at->against);
    const double s = at->by->share;
    if (at->by->has_and) {
        struct nb_timed_pair q = nb_timed_partner(at->cases, samples, &at->by->and, at->of), first = p;
        p = nb_timed_join(&first, &q);
        nb_timed_pair_release(&first);
        nb_timed_pair_release(&q);
    }
    add_figure(out, "cut", 1, &p, at);
    add_figure(out, "ratio", NAN, &p, at);
    if (!isnan(s)) add_figure(out, "step_cut", s, &p, at);
    nb_timed_pair_release(&p);
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
    struct nb_timed_cases cases = {0};
    if (results) nb_timed_cases_init(&cases, results, e->label);
    for (size_t i = 0; i < t->n; i++) {
        const size_t before = out->n;
        for (size_t of = 0; of < cases.tagged.n; of++) {
            const size_t against = nb_selector_takes(&t->compares[i].pair.of, &cases.tagged.items[of], NULL)
                                       ? nb_timed_against(&cases, &t->compares[i].pair, of)
                                       : NB_NO_CASE;
            const struct place at = {&cases, of, against, &t->compares[i]};
            if (against != NB_NO_CASE) add_pair(out, &at, m->samples);
        }
        if (out->n == before) add_none(out, &t->compares[i], nb_blocks_why_none(results));
    }
    nb_timed_cases_release(&cases);
}

const struct nb_experiment_kind nb_experiment_timing = {
    .name = "timing",
    .summary = "cases timed against each other",
    .read = timing_read,
    .release = timing_release,
    .plan = timing_plan,
    .find = timing_find,
};
