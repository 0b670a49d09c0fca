// SPDX-License-Identifier: Apache-2.0
/* Counts, skips, failures and noise of a run. */
#include "reports/run/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/text/format.h"
#include "src/core/log.h"

static void add_reason(struct nb_summary *s, size_t *capacity, const char *text, size_t n) {
    s->n_skipped_cells += n;
    for (size_t i = 0; i < s->n_skips; i++)
        if (strcmp(s->skips[i].text, text) == 0) {
            s->skips[i].n += n;
            return;
        }
    if (s->n_skips == *capacity) {
        *capacity = 2 * *capacity + 8;
        s->skips = nb_realloc(s->skips, *capacity, sizeof *s->skips);
    }
    s->skips[s->n_skips++] = (struct nb_reason){text, n};
}

static int by_count(const void *left, const void *right) {
    const struct nb_reason *a = left, *b = right;
    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->text, b->text);
}

/* Cells that never became a case stand in the meta data only; the others have a record, and are counted there. */
static void collect_skips(struct nb_summary *s, const struct nb_results *results) {
    size_t capacity = 0;
    const cJSON *skip;
    cJSON_ArrayForEach(skip, cJSON_GetObjectItemCaseSensitive(results->meta, "skips")) {
        const char *reason = nb_json_get_text(skip, "reason");
        double count = nb_json_get_number(skip, "count");
        if (nb_json_get_text(skip, "key") || !(count >= 1 && count < 1e15)) continue;
        add_reason(s, &capacity, reason ? reason : "no reason given", (size_t)count);
    }
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (r->status != NB_SKIPPED && r->status != NB_NOT_RUN) continue;
        const char *unsaid = r->status == NB_SKIPPED ? "no reason given" : "the run ended before it";
        add_reason(s, &capacity, r->reason && *r->reason ? r->reason : unsaid, 1);
    }
    if (s->n_skips) qsort(s->skips, s->n_skips, sizeof *s->skips, by_count);
}

static void count_timing(struct nb_summary *s, const struct nb_timing *t) {
    s->n_timed++;
    s->n_noisy += t->noisy;
    s->n_suspect += t->suspect;
    s->n_without_interval += !nb_interval_known(&t->time_ns);
    s->n_samples += t->n_samples;
    s->n_contaminated += t->n_contaminated;
}

void nb_summary_init(struct nb_summary *s, const struct nb_results *results) {
    *s = (struct nb_summary){.n_cases = results->n};
    s->failures = nb_alloc(results->n + 1, sizeof *s->failures);
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (r->status < NB_N_STATUSES) s->counts[r->status]++;
        if (r->status < NB_N_STATUSES && nb_status_failed(r->status)) s->failures[s->n_failures++] = i;
        if (r->has_timing) count_timing(s, &r->timing);
    }
    collect_skips(s, results);
}

void nb_summary_release(struct nb_summary *s) {
    free(s->skips);
    free(s->failures);
    *s = (struct nb_summary){0};
}

void nb_summary_counts(const struct nb_summary *s, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "%zu case%s", s->n_cases, s->n_cases == 1 ? "" : "s");
    const char *separator = ": ";
    for (int status = 0; status < NB_N_STATUSES; status++) {
        if (!s->counts[status]) continue;
        nb_strbuf_addf(out, "%s%zu %s", separator, s->counts[status], nb_status_name((enum nb_status)status));
        separator = ", ";
    }
}

void nb_summary_noise(const struct nb_summary *s, const struct nb_results *results, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (s->n_noisy) nb_strbuf_addf(out, "%zu of %zu timed cases are too noisy to rank.\n", s->n_noisy, s->n_timed);
    if (s->n_suspect)
        nb_strbuf_addf(out, "%zu case%s faster than the roof beyond the interval (!): suspect.\n", s->n_suspect,
                       s->n_suspect == 1 ? " is" : "s are");
    if (s->n_without_interval)
        nb_strbuf_addf(out, "%zu of %zu timed cases have no interval: fewer than 6 launches.\n", s->n_without_interval,
                       s->n_timed);
    if (s->n_contaminated > 0 && s->n_samples > 0)
        nb_strbuf_addf(out, "%.2g%% of the timed samples saw an involuntary switch or a migration.\n",
                       100.0 * (double)s->n_contaminated / (double)s->n_samples);
    const cJSON *complete = cJSON_GetObjectItemCaseSensitive(results->meta, "complete");
    if (cJSON_IsFalse(complete)) nb_strbuf_add(out, "The run is not complete: --resume goes on with it.\n");
    const cJSON *missing = cJSON_GetObjectItemCaseSensitive(results->meta, "missing_shards");
    if (cJSON_GetArraySize(missing) > 0)
        nb_strbuf_addf(out, "%d shards are missing from these merged results.\n", cJSON_GetArraySize(missing));
}

void nb_failure_witness(const struct nb_record *r, struct nb_strbuf *out) {
    const struct nb_witness *w = &r->accuracy.witness;
    nb_strbuf_add(out, r->reason ? r->reason : "");
    if (!r->has_accuracy || w->row < 0 || w->col < 0) return;
    nb_strbuf_addf(out, "%srow %lld, column %lld", out->len ? "; " : "", (long long)w->row, (long long)w->col);
    const struct {
        const char *name;
        double value;
    } figures[] = {{"x", w->x}, {"got", w->got}, {"exact", w->want}};
    /* Here NaN and Inf are findings, not absent figures. */
    for (size_t i = 0; i < 3; i++) nb_strbuf_addf(out, ", %s %.9g", figures[i].name, figures[i].value);
    if (isfinite(w->err_ulp)) nb_strbuf_addf(out, ", error %.4g ulp", w->err_ulp);
    if (isfinite(w->tolerance_ulp)) nb_strbuf_addf(out, " (allowed %.4g)", w->tolerance_ulp);
}
