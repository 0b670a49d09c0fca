// SPDX-License-Identifier: Apache-2.0
/* Who meets whom, and with what result. */
#include "src/peers/peer_comparison.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/stats.h"
#include "src/core/text.h"
#include "src/measure/paired.h"

enum nb_peer_comparison_verdict nb_peer_comparison_judge(const struct nb_interval *ratio,
                                                         const struct nb_interval *confirmed, int n_confirmed,
                                                         const struct nb_compare_settings *settings) {
    const double limit = 1 / (1 + settings->behind);
    if (!isfinite(ratio->low) || !isfinite(ratio->high)) return NB_PEER_COMPARISON_UNKNOWN;
    if (!(ratio->high < limit)) return ratio->low > 1 ? NB_PEER_COMPARISON_AHEAD : NB_PEER_COMPARISON_EVEN;
    if (n_confirmed == 0 || n_confirmed < settings->confirm_launches || !isfinite(confirmed->high))
        return NB_PEER_COMPARISON_LOOKS_BEHIND;
    return confirmed->high < limit ? NB_PEER_COMPARISON_BEHIND : NB_PEER_COMPARISON_NOT_CONFIRMED;
}

/* ---- comparisons -------------------------------------------------------------------------------------------------- */

static bool is_ours(const struct nb_compare_settings *s, const struct nb_record *r) {
    char *name freed = nb_kernel_text(&r->c);
    bool found = false;
    for (size_t i = 0; i < s->ours.n && !found; i++)
        found = fnmatch(s->ours.items[i], name, 0) == 0 || fnmatch(s->ours.items[i], r->c.variant, 0) == 0;
    return found;
}

static bool is_compared(const struct nb_record *r) {
    if (nb_record_has_label(r, NB_LABEL_OVERHEAD)) return false;
    return r->key && r->c.op != NB_OP_COPY && r->status != NB_SKIPPED;
}

static void library_of(const struct nb_record *r, char *out, size_t n) {
    const char *colon = strchr(r->c.variant, ':');
    char *name freed = nb_kernel_text(&r->c);
    snprintf(out, n, "%.*s", (int)(colon ? (size_t)(colon - r->c.variant) : strlen(name)), colon ? r->c.variant : name);
}

/* What the records of one comparison share: op, pass, dtype and all of the key but the variant. Owned. */
static char *comparison_of(const struct nb_record *r) {
    const char *rest = strchr(r->key, '/');
    return nb_textf("%u %u %u %d%s", r->c.op, r->c.pass, r->c.dtype, r->machine, rest ? rest : "");
}

/* The faster of two, of which the first may be null and each not timed. */
static const struct nb_record *faster(const struct nb_record *a, const struct nb_record *b) {
    if (!a) return b;
    if (!a->has_timing || !b->has_timing) return a->has_timing ? a : b;
    return b->timing.time_ns.value < a->timing.time_ns.value ? b : a;
}

/* The records by comparison, in the order of their first. */
struct comparisons {
    struct nb_text_map index;
    struct nb_strings names;
    size_t *of; /* of each record: its comparison, or NB_NOWHERE */
    const struct nb_record **ours;
};

static void gather(struct comparisons *c, const struct nb_results *results, const struct nb_compare_settings *s) {
    c->of = nb_alloc(results->n + 1, sizeof *c->of);
    c->ours = nb_alloc(results->n + 1, sizeof *c->ours);
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        c->of[i] = NB_NOWHERE;
        if (!is_compared(r)) continue;
        char *name freed = comparison_of(r);
        size_t at = nb_text_map_find(&c->index, name);
        if (at == NB_NOWHERE) {
            at = c->names.n;
            nb_strings_add(&c->names, name);
            nb_text_map_add(&c->index, c->names.items[at], at);
        }
        c->of[i] = at;
        if (is_ours(s, r)) c->ours[at] = faster(c->ours[at], r);
    }
}

static void release_comparisons(struct comparisons *c) {
    nb_text_map_release(&c->index);
    nb_strings_release(&c->names);
    nb_free_all(c->of, c->ours);
}

/* ---- comparisons -------------------------------------------------------------------------------------------------------- */

static struct nb_peer_comparison *find(struct nb_peer_comparisons *d, size_t first, const char *library) {
    for (size_t i = first; i < d->n; i++)
        if (strcmp(d->items[i].library, library) == 0) return &d->items[i];
    return NULL;
}

/* The fastest case of each library in one comparison. */
static void pair_up(struct nb_peer_comparisons *d, const struct nb_results *results, const struct comparisons *c,
                    size_t comparison) {
    const size_t first = d->n;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        char library[NB_VARIANT_MAX];
        if (c->of[i] != comparison || is_ours(&d->settings, r)) continue;
        library_of(r, library, sizeof library);
        struct nb_peer_comparison *known = find(d, first, library);
        if (known) {
            known->theirs = faster(known->theirs, r);
            continue;
        }
        known = NB_PUSH(d->items, d->n);
        *known = (struct nb_peer_comparison){.ours = c->ours[comparison], .theirs = r};
        snprintf(known->library, sizeof known->library, "%s", library);
    }
    d->n_comparisons += d->n > first;
}

static const char *why_unknown(const struct nb_peer_comparison *comparison) {
    const struct nb_record *ours = comparison->ours, *theirs = comparison->theirs;
    if (!ours) return "none of our kernels computes this";
    if (!ours->has_timing) return nb_status_failed(ours->status) ? "our kernel failed" : "ours was not timed";
    if (!theirs->has_timing)
        return nb_status_failed(theirs->status) ? "theirs failed its check" : "theirs was not timed";
    return "too few launches for an interval";
}

static void measure(struct nb_peer_comparison *comparison, const struct nb_compare_settings *settings,
                    const struct nb_sample_table *samples, const struct nb_sample_table *fresh) {
    comparison->ratio = comparison->confirmed = (struct nb_interval){NAN, NAN, NAN};
    if (comparison->ours && comparison->ours->has_timing && comparison->theirs->has_timing) {
        const struct nb_paired pair = nb_paired_ratio(samples, comparison->theirs->key, comparison->ours->key, NULL);
        const struct nb_paired again = nb_paired_ratio(fresh, comparison->theirs->key, comparison->ours->key, NULL);
        comparison->ratio = pair.ratio;
        comparison->n_launches = pair.n_launches;
        comparison->confirmed = again.ratio;
        comparison->n_confirmed = again.n_launches;
    }
    comparison->verdict =
        nb_peer_comparison_judge(&comparison->ratio, &comparison->confirmed, comparison->n_confirmed, settings);
    comparison->reason = comparison->verdict == NB_PEER_COMPARISON_UNKNOWN ? why_unknown(comparison) : NULL;
}

static int by_library(const void *a, const void *b) {
    const struct nb_peer_comparison *p = a, *q = b;
    const int order = strcmp(p->library, q->library);
    return order ? order : (p->theirs > q->theirs) - (p->theirs < q->theirs);
}

/* Journals of the run and, where there is one, of its confirmation. */
static int measure_all(struct nb_peer_comparisons *d, const struct nb_results *results) {
    struct nb_sample_table samples released_by(nb_sample_table_release) = {0};
    struct nb_sample_table fresh released_by(nb_sample_table_release) = {0};
    char *confirm freed = nb_path_join(results->dir, NB_CONFIRM_FOLDER);
    char *journal freed = nb_path_join(confirm, NB_JOURNAL_FILE);
    int result = nb_sample_table_read(&samples, results->dir);
    if (result == 0 && nb_path_exists(journal)) result = nb_sample_table_read(&fresh, confirm);
    for (size_t i = 0; result == 0 && i < d->n; i++) measure(&d->items[i], &d->settings, &samples, &fresh);
    return result;
}

int nb_peer_comparisons_make(struct nb_peer_comparisons *d, const struct nb_results *results) {
    const cJSON *plan = cJSON_GetObjectItemCaseSensitive(results->meta, "plan");
    struct comparisons c = {0};
    *d = (struct nb_peer_comparisons){0};
    nb_compare_settings_from_json(&d->settings, cJSON_GetObjectItemCaseSensitive(plan, "compare"));
    if (d->settings.ours.n == 0 || !results->dir) {
        nb_compare_settings_release(&d->settings);
        return nb_error("this run compares no libraries: its config has no \"compare\", as `normbench run peers` has");
    }
    gather(&c, results, &d->settings);
    for (size_t i = 0; i < c.names.n; i++) pair_up(d, results, &c, i);
    release_comparisons(&c);
    const int result = measure_all(d, results);
    if (d->n > 1) qsort(d->items, d->n, sizeof *d->items, by_library);
    if (result != 0) nb_peer_comparisons_release(d);
    return result;
}

void nb_peer_comparisons_release(struct nb_peer_comparisons *d) {
    nb_compare_settings_release(&d->settings);
    free(d->items);
    *d = (struct nb_peer_comparisons){0};
}

/* ---- means -------------------------------------------------------------------------------------------------------- */

/* Means of logarithms, and what an independent error of each makes of their interval. */

static bool together(const struct nb_peer_comparison *a, const struct nb_peer_comparison *b) {
    const struct nb_case *p = &a->theirs->c, *q = &b->theirs->c;
    return strcmp(a->library, b->library) == 0 && p->op == q->op && p->pass == q->pass &&
           p->shape.layout == q->shape.layout;
}

static double median_roofline_share(const struct nb_peer_comparisons *d, const struct nb_peer_comparison *first) {
    double *shares freed = nb_alloc(d->n + 1, sizeof *shares);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct nb_record *ours = d->items[i].ours;
        if (together(first, &d->items[i]) && ours && ours->has_timing && isfinite(ours->timing.roofline.share.value))
            shares[n++] = ours->timing.roofline.share.value;
    }
    return nb_median(shares, n);
}

static struct nb_peer_mean mean_of(const struct nb_peer_comparisons *d, const struct nb_peer_comparison *first) {
    struct nb_peer_mean m = {
        .first = first, .ratio = {NAN, NAN, NAN}, .median = NAN, .least = INFINITY, .most = -INFINITY};
    double sum = 0, squares = 0, *ratios = nb_alloc(d->n, sizeof *ratios);
    for (size_t i = 0; i < d->n; i++) {
        const struct nb_peer_comparison *comparison = &d->items[i];
        if (!together(first, comparison)) continue;
        m.n_of[comparison->verdict]++;
        if (comparison->verdict == NB_PEER_COMPARISON_UNKNOWN) continue;
        const double half = log(comparison->ratio.high / comparison->ratio.low) / 2;
        sum += log(comparison->ratio.value);
        squares += half * half;
        m.least = fmin(m.least, comparison->ratio.value);
        m.most = fmax(m.most, comparison->ratio.value);
        ratios[m.n++] = comparison->ratio.value;
    }
    if (m.n > 0) {
        const double n = (double)m.n, mean = sum / n, half = sqrt(squares) / n;
        m.ratio = (struct nb_interval){exp(mean), exp(mean - half), exp(mean + half)};
        m.median = nb_median(ratios, m.n);
    }
    free(ratios);
    m.roofline_share = median_roofline_share(d, first);
    return m;
}

size_t nb_peer_means(const struct nb_peer_comparisons *d, struct nb_peer_mean **out) {
    struct nb_peer_mean *means = nb_alloc(d->n + 1, sizeof *means);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i && is_new; j++) is_new = !together(&d->items[j], &d->items[i]);
        if (is_new) means[n++] = mean_of(d, &d->items[i]);
    }
    *out = means;
    return n;
}
