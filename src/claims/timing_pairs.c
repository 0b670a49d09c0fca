// SPDX-License-Identifier: Apache-2.0
/* Which cases make a pair, and their times. */
#include "src/claims/timing_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/core/log.h"

void nb_timed_cases_init(struct nb_timed_cases *c, const struct nb_results *results, const char *label) {
    *c = (struct nb_timed_cases){.records = nb_alloc(results->n + 1, sizeof *c->records)};
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (!nb_record_has_label(r, label) || r->status == NB_SKIPPED) continue;
        c->records[c->tagged.n] = r;
        nb_tag_record(nb_findings_add_exact(&c->tagged, "case", "", 0), r, results->meta);
    }
}

void nb_timed_cases_release(struct nb_timed_cases *c) {
    nb_findings_release(&c->tagged);
    free(c->records);
    *c = (struct nb_timed_cases){0};
}

static bool both_name(const struct nb_sides *s, const char *axis) {
    return nb_selector_axis(&s->of, axis) && nb_selector_axis(&s->against, axis);
}

/* What follows from another kernel: its own properties, and the parameters that its op usually has. */
static bool is_own(const char *axis) {
    static const char *const own[] = {"kernel",      "op",     "variance",    "stats",
                                      "stats_dtype", "affine", "param_dtype", "weight_offset",
                                      "k",           "style",  "fits",        NULL};
    for (size_t i = 0; own[i]; i++)
        if (strcmp(own[i], axis) == 0) return true;
    return false;
}

static bool may_differ(const char *axis, const struct nb_sides *s) {
    const bool other_kernel = both_name(s, "kernel") || both_name(s, "op") || both_name(s, "style") ||
                              both_name(s, "stats") || both_name(s, "variance");
    return both_name(s, axis) || (other_kernel && is_own(axis));
}

static bool same_terms(const struct nb_finding *a, const struct nb_finding *b, const struct nb_sides *s) {
    for (size_t i = 0; i < a->n_tags; i++) {
        const char *other = nb_finding_get(b, a->tags[i].axis);
        if (other && strcmp(other, a->tags[i].value) != 0 && !may_differ(a->tags[i].axis, s)) return false;
    }
    return true;
}

size_t nb_timed_against(const struct nb_timed_cases *c, const struct nb_sides *s, size_t of) {
    const struct nb_finding *cases = c->tagged.items;
    for (size_t i = 0; i < c->tagged.n; i++)
        if (i != of && nb_selector_takes(&s->against, &cases[i], NULL) &&
            (c->records[i]->group == c->records[of]->group || both_name(s, "width")) &&
            c->records[i]->machine == c->records[of]->machine && same_terms(&cases[of], &cases[i], s))
            return i;
    return NB_NO_CASE;
}

static struct nb_timed_pair no_pair(const char *reason) {
    return (struct nb_timed_pair){.cut = {NAN, NAN, NAN}, .against_ns = NAN, .reason = reason};
}

struct nb_timed_pair nb_timed_measure(const struct nb_timed_cases *c, const struct nb_sample_table *samples, size_t of,
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
    return (struct nb_timed_pair){.cut = {1 - p.ratio.value, 1 - p.ratio.high, 1 - p.ratio.low},
                                  .cuts = cuts,
                                  .n_cuts = samples->n_launches,
                                  .n_launches = p.n_launches,
                                  .against_ns = a->timing.time_ns.value};
}

void nb_timed_pair_release(struct nb_timed_pair *p) {
    free(p->cuts);
    *p = (struct nb_timed_pair){0};
}

static bool same_tag(const struct nb_finding *a, const struct nb_finding *b, const char *axis) {
    const char *p = nb_finding_get(a, axis), *q = nb_finding_get(b, axis);
    return p && q && strcmp(p, q) == 0;
}

struct nb_timed_pair nb_timed_partner(const struct nb_timed_cases *c, const struct nb_sample_table *samples,
                                      const struct nb_sides *s, size_t at) {
    const struct nb_finding *cases = c->tagged.items;
    for (size_t i = 0; i < c->tagged.n; i++) {
        if (!nb_selector_takes(&s->of, &cases[i], NULL) || !same_tag(&cases[i], &cases[at], "shape") ||
            !same_tag(&cases[i], &cases[at], "width") || !same_tag(&cases[i], &cases[at], "dtype"))
            continue;
        const size_t against = nb_timed_against(c, s, i);
        if (against != NB_NO_CASE) return nb_timed_measure(c, samples, i, against);
    }
    return no_pair("its second part (\"and\") was not measured: no such case could be planned here");
}

struct nb_timed_pair nb_timed_join(const struct nb_timed_pair *p, const struct nb_timed_pair *q) {
    if (p->reason || q->reason) return no_pair(p->reason ? p->reason : q->reason);
    const double w = p->against_ns / (p->against_ns + q->against_ns);
    const size_t n = p->n_cuts < q->n_cuts ? p->n_cuts : q->n_cuts;
    double *cuts = nb_alloc(n + 1, sizeof *cuts);
    for (size_t l = 0; l < n; l++) cuts[l] = w * p->cuts[l] + (1 - w) * q->cuts[l];
    return (struct nb_timed_pair){.cuts = cuts,
                                  .n_cuts = n,
                                  .cut = {w * p->cut.value + (1 - w) * q->cut.value,
                                          w * p->cut.low + (1 - w) * q->cut.low,
                                          w * p->cut.high + (1 - w) * q->cut.high},
                                  .n_launches = p->n_launches < q->n_launches ? p->n_launches : q->n_launches,
                                  .against_ns = p->against_ns + q->against_ns};
}

double nb_cut_to_ratio(double cut) { return 1 / (1 - cut); }
