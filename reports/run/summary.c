// SPDX-License-Identifier: Apache-2.0
/* Counts, skips, failures and noise of a run; texts out of its meta data, which may be partial; libraries and call overheads. */
#include "reports/run/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/call_overhead.h"

static void add_reason(struct nb_summary *s, const char *text, size_t n) {
    s->n_skipped_cells += n;
    for (size_t i = 0; i < s->n_skips; i++)
        if (strcmp(s->skips[i].text, text) == 0) {
            s->skips[i].n += n;
            return;
        }
    *NB_PUSH(s->skips, s->n_skips) = (struct nb_reason){text, n};
}

static int by_count(const void *left, const void *right) {
    const struct nb_reason *a = left, *b = right;
    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->text, b->text);
}

/* Cells that never became a case stand in the meta data only; the others have a record, and are counted there. */
static void collect_skips(struct nb_summary *s, const struct nb_results *results) {
    const cJSON *skip;
    cJSON_ArrayForEach(skip, nb_meta(results, "skips")) {
        const char *reason = nb_json_get_text(skip, "reason");
        double count = nb_json_get_number(skip, "count");
        if (nb_json_get_text(skip, "key") || !(count >= 1 && count < 1e15)) continue;
        add_reason(s, reason ? reason : "no reason given", (size_t)count);
    }
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (r->status != NB_SKIPPED && r->status != NB_NOT_RUN) continue;
        const char *unsaid = r->status == NB_SKIPPED ? "no reason given" : "the run ended before it";
        add_reason(s, r->reason && *r->reason ? r->reason : unsaid, 1);
    }
    if (s->n_skips) qsort(s->skips, s->n_skips, sizeof *s->skips, by_count);
}

static void count_timing(struct nb_summary *s, const struct nb_timing *t) {
    s->n_suspect += t->suspect;
    s->n_without_interval += !nb_interval_known(&t->time_ns);
    s->n_throttled += t->throttled > 0;
    s->clock_ghz = fmax(s->clock_ghz, t->clock_ghz);
    if (t->median_ghz > 0) s->sum_ghz += t->median_ghz, s->n_clocked++;
    if (!isfinite(t->uncontended)) return;
    s->n_probed += t->n_samples;
    s->n_contended += (1 - t->uncontended) * t->n_samples;
    s->n_uncontended += strcmp(t->state, nb_state_names[NB_UNCONTENDED]) == 0;
}

double nb_summary_contended(const struct nb_summary *s) { return s->n_probed > 0 ? s->n_contended / s->n_probed : 0; }

static void add_contention(const struct nb_summary *s, struct nb_strbuf *out) {
    const double contended = nb_summary_contended(s);
    if (contended < 0.01) return;
    nb_strbuf_addf(out, "The core was shared during %.0f%% of the samples; ", 100 * contended);
    if (s->n_uncontended == s->load.n_timed)
        nb_strbuf_addf(out, "all figures are from the other %.0f%%.", 100 * (1 - contended));
    else if (s->n_uncontended == 0)
        nb_strbuf_add(out, "no case has enough undisturbed ones.");
    else
        nb_strbuf_addf(out, "figures of %zu of %zu cases are from undisturbed ones.", s->n_uncontended,
                       s->load.n_timed);
}

void nb_summary_core(const struct nb_summary *s, struct nb_strbuf *out) {
    add_contention(s, out);
    const double mean_ghz = s->n_clocked ? s->sum_ghz / (double)s->n_clocked : (double)NAN;
    if (mean_ghz < 0.98 * s->clock_ghz)
        nb_strbuf_addf(out, "%sTimes are given at %.2f GHz; the core ran at %.2f.", out->len ? " " : "", s->clock_ghz,
                       mean_ghz);
}

static void add_counts(const struct nb_summary *s, struct nb_strbuf *out) {
    nb_strbuf_addf(out, "%zu case%s", s->n_cases, s->n_cases == 1 ? "" : "s");
    int n = 0;
    for (int k = 0; k < NB_N_STATUSES; k++)
        if (s->counts[k])
            nb_strbuf_addf(out, "%s%zu %s", n++ ? ", " : ": ", s->counts[k], nb_status_name((enum nb_status)k));
}

static void add_noise(const struct nb_summary *s, const struct nb_results *results, struct nb_strbuf *out) {
    if (s->load.n_noisy)
        nb_strbuf_addf(out, "%zu of %zu timed cases are too noisy to rank.\n", s->load.n_noisy, s->load.n_timed);
    if (s->n_suspect)
        nb_strbuf_addf(out, "%zu case%s faster than the copy beyond the interval (!): suspect.\n", s->n_suspect,
                       s->n_suspect == 1 ? " is" : "s are");
    if (s->n_without_interval)
        nb_strbuf_addf(out, "%zu of %zu timed cases have no interval: fewer than 6 launches.\n", s->n_without_interval,
                       s->load.n_timed);
    if (s->load.preempted > 0) {
        nb_format_percent(out, s->load.preempted);
        nb_strbuf_add(out, " of the timed samples were interrupted or moved to another CPU.\n");
    }
    if (s->n_throttled)
        nb_strbuf_addf(out,
                       "The GPU was throttled during launches of %zu of %zu timed cases: journal.jsonl says why.\n",
                       s->n_throttled, s->load.n_timed);
    struct nb_strbuf core released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_summary_core(s, &core);
    if (core.len) nb_strbuf_addf(out, "%s\n", core.text);
    if (cJSON_IsFalse(nb_meta(results, "complete")))
        nb_strbuf_add(out, "The run is not complete: --resume goes on with it.\n");
    const int n_missing = cJSON_GetArraySize(nb_meta(results, "missing_shards"));
    if (n_missing > 0) nb_strbuf_addf(out, "%d shards are missing from these merged results.\n", n_missing);
}

bool nb_is_beyond_bound(const struct nb_record *r) {
    const struct nb_accuracy *a = &r->accuracy;
    return r->status == NB_INACCURATE && r->has_accuracy && a->reproducer.row >= 0 && a->reproducer.col >= 0 &&
           (a->n_beyond > 0 || a->worst_ratio > 1 || a->nan_unexpected + a->inf_unexpected + a->zero_unexpected > 0 ||
            a->nan_missing + a->inf_missing > 0);
}

/* The element belongs to a sentence about y or dx beyond its bound; of one about a relation or a sum it says nothing. */
void nb_failure_reproducer(const struct nb_record *r, struct nb_strbuf *out) {
    const struct nb_reproducer *w = &r->accuracy.reproducer;
    nb_strbuf_add(out, r->reason ? r->reason : "");
    if (!nb_is_beyond_bound(r)) return;
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

/* ---- meta data ---- */

const cJSON *nb_meta(const struct nb_results *results, const char *path) {
    const cJSON *json = results->meta;
    char name[64];
    while (json && *path) {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        json = nb_json_get(json, name);
        path += len + (path[len] == '.');
    }
    return json;
}

const char *nb_meta_text(const struct nb_results *results, const char *path) {
    const cJSON *item = nb_meta(results, path);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Of merged results: were they measured by several machines, so that what is said of times has to say whose? */
static bool has_several(const struct nb_results *results) {
    const cJSON *machines = nb_meta(results, "machines");
    return machines && machines->child && machines->child->next;
}

void nb_meta_whose(const struct nb_results *results, const struct nb_record *r, const char *before, const char *after,
                   struct nb_strbuf *out) {
    if (has_several(results)) nb_strbuf_addf(out, "%smachine %d%s", before, r->machine, after);
}

const cJSON *nb_meta_of_machine(const struct nb_results *results, int machine, const char *part) {
    const cJSON *one = cJSON_GetArrayItem(nb_meta(results, "machines"), machine);
    const cJSON *fingerprint = nb_json_get(one ? one : results->meta, "fingerprint");
    return nb_json_get(fingerprint, part);
}

/* Merged results of several machines have no CPU of their own. */
void nb_meta_footer(const struct nb_results *results, struct nb_strbuf *out) {
    const char *cpu = has_several(results) ? "several machines" : nb_meta_text(results, "fingerprint.cpu.model");
    const char *started = nb_meta_text(results, "started");
    int day = (int)strcspn(started, "T");
    const char *gpu = has_several(results) ? "" : nb_meta_text(results, "fingerprint.gpu.name");
    const char *driver = nb_meta_text(results, "fingerprint.gpu.driver");
    if (*gpu) nb_strbuf_addf(out, "%s%s%s; on ", gpu, *driver ? ", driver " : "", driver);
    nb_strbuf_addf(out, "%s%s%.*s", cpu, *cpu && day ? ", " : "", day, started);
}

/* "Intel Xeon" of "Intel(R) Xeon(R) Processor". */
static void add_brand(struct nb_strbuf *out, const char *brand) {
    static const char *const noise[] = {"(R)", "(TM)", " Processor"};
    for (const char *at = brand; *at;) {
        size_t n = 0;
        for (size_t i = 0; i < 3 && n == 0; i++)
            if (strncmp(at, noise[i], strlen(noise[i])) == 0) n = strlen(noise[i]);
        if (n == 0) nb_strbuf_addn(out, at, 1);
        at += n ? n : 1;
    }
}
/* "AMD EPYC (Milan)" from "AMD EPYC" and "EPYC (Milan)"; where the brand does not bear
 * libcpuid's name out, "Intel Xeon (family 6 model 207)". */
void nb_cpu_name(const cJSON *cpu, struct nb_strbuf *out) {
    const char *model = nb_json_get_text(cpu, "model"), *codename = nb_json_get_text(cpu, "codename");
    const double family = nb_json_get_number(cpu, "family"), number = nb_json_get_number(cpu, "model_number");
    add_brand(out, model ? model : "an unknown CPU");
    if (!model || !codename || !*codename || strstr(model, codename)) return;
    const char *detail = strstr(codename, " (");
    const size_t n = detail ? (size_t)(detail - codename) : 0, length = strlen(model);
    if (n > 0 && length >= n && strncmp(model + length - n, codename, n) == 0)
        nb_strbuf_add(out, detail);
    else if (isfinite(family) && isfinite(number))
        nb_strbuf_addf(out, " (family %.0f model %.0f)", family, number);
}

/* Paths of "cpu.model: \"A\", first machine \"B\""; the first ones stand for the others. */
static void add_unlike(const cJSON *differs, struct nb_strbuf *out) {
    enum { MOST = 3 };
    const int n = cJSON_GetArraySize(differs);
    for (int i = 0; i < n && i < MOST; i++) {
        const char *path = cJSON_GetStringValue(cJSON_GetArrayItem(differs, i));
        if (path) nb_strbuf_addf(out, "%s%.*s", i ? ", " : "; unlike machine 0 in ", (int)strcspn(path, ":"), path);
    }
    if (n > MOST) nb_strbuf_addf(out, " and %d more", n - MOST);
}

void nb_meta_machines(const cJSON *meta, struct nb_strbuf *out) {
    const cJSON *machine;
    int i = 0;
    cJSON_ArrayForEach(machine, nb_json_get(meta, "machines")) {
        const cJSON *fingerprint = nb_json_get(machine, "fingerprint");
        nb_strbuf_addf(out, "machine %d: ", i++);
        nb_cpu_name(nb_json_get(fingerprint, "cpu"), out);
        add_unlike(nb_json_get(machine, "differs"), out);
        nb_strbuf_add(out, "\n");
    }
}

/* ---- libraries: records grouped by library, then by implementation; each variant named once ---- */

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* "onednn" of "onednn:layernorm_native_f32", 0 of a built-in kernel. */
static size_t plugin_length(const struct nb_record *r) {
    const char *colon = strchr(r->c.variant, ':');
    return colon ? (size_t)(colon - r->c.variant) : 0;
}

static bool same_owner(const struct nb_record *a, const struct nb_record *b) {
    const size_t n = plugin_length(a);
    return a->machine == b->machine && n == plugin_length(b) && strncmp(a->c.variant, b->c.variant, n) == 0 &&
           same_text(a->facts.library, b->facts.library);
}

/* Was there a record before i that is equal to it in what matters? */
static bool is_first(const struct nb_results *r, size_t i,
                     bool (*equal)(const struct nb_record *, const struct nb_record *)) {
    for (size_t j = 0; j < i; j++)
        if (equal(&r->records[j], &r->records[i])) return false;
    return true;
}

static bool same_choice(const struct nb_record *a, const struct nb_record *b) {
    return same_owner(a, b) && same_text(a->facts.implementation, b->facts.implementation);
}

static bool same_variant(const struct nb_record *a, const struct nb_record *b) {
    return same_choice(a, b) && strcmp(a->c.variant, b->c.variant) == 0;
}

static void add_choices(const struct nb_results *r, const struct nb_record *owner, struct nb_strbuf *out) {
    for (size_t i = 0; i < r->n; i++) {
        const struct nb_record *first = &r->records[i];
        if (!first->facts.implementation || !same_owner(first, owner) || !is_first(r, i, same_choice)) continue;
        const size_t skip = plugin_length(first);
        nb_strbuf_addf(out, "; %s:", first->facts.implementation);
        for (size_t j = i; j < r->n; j++)
            if (same_choice(&r->records[j], first) && is_first(r, j, same_variant))
                nb_strbuf_addf(out, "%s%s", j > i ? ", " : " ", r->records[j].c.variant + (skip ? skip + 1 : 0));
    }
}

static void add_libraries(const struct nb_results *results, struct nb_strbuf *out) {
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf choices released_by(nb_strbuf_release) = {0}, line released_by(nb_strbuf_release) = {0};
        if ((!r->facts.library && !r->facts.implementation) || !is_first(results, i, same_owner)) continue;
        add_choices(results, r, &choices);
        const size_t n = plugin_length(r);
        if (n > 0) {
            nb_strbuf_addn(&line, r->c.variant, n);
            nb_meta_whose(results, r, ", ", "", &line);
            nb_strbuf_addf(&line, ": %s%s", r->facts.library ? r->facts.library : "no version",
                           choices.text ? choices.text : "");
        } else if (choices.len > 2) {
            nb_strbuf_add(&line, has_several(results) ? "Chosen on " : "Chosen on this machine");
            nb_meta_whose(results, r, "", "", &line);
            nb_strbuf_addf(&line, ": %s", choices.text + 2);
        }
        if (line.len > 0)
            nb_escape_terminal(out, line.text, true); /* what a library says of itself may hold line ends */
        if (line.len > 0) nb_strbuf_add(out, "\n");
    }
}

/* ---- call overheads ---- */

static void add_overhead(const struct nb_results *results, const struct nb_kernel_overhead *k, struct nb_strbuf *out) {
    const struct nb_overhead *o = &k->overhead;
    nb_strbuf_add(out, "  ");
    nb_meta_whose(results, k->record, "", ", ", out);
    nb_escape_terminal(out, k->record->c.variant, true);
    nb_strbuf_addf(out, ", rows of %lld, threads %d: ", (long long)k->record->c.shape.cols, k->record->c.threads);
    if (isnan(o->ns.value)) {
        nb_strbuf_addf(out, "unknown, %s\n", o->reason);
        return;
    }
    nb_format_time(out, o->ns.value);
    nb_strbuf_addf(out, " [%.4g, %.4g ns]", o->ns.low, o->ns.high);
    if (o->ns_per_byte > 0) nb_strbuf_addf(out, ", then %.4g GB/s", 1 / o->ns_per_byte);
    nb_strbuf_add(out, "\n");
}

static void add_overheads(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_kernel_overhead *found;
    const size_t n = nb_overheads(results->records, results->n, &found);
    nb_strbuf_add(out, n ? "Call overhead, where the line through a ladder of rows meets zero bytes:\n" : "");
    for (size_t i = 0; i < n; i++) add_overhead(results, &found[i], out);
    free(found);
}

/* ---- all of it ---- */

void nb_summary_init(struct nb_summary *s, const struct nb_results *results) {
    *s = (struct nb_summary){.n_cases = results->n,
                             .load = nb_run_noise_of(results),
                             .clock_ghz = NAN,
                             .machines = nb_strbuf_empty(),
                             .noise = nb_strbuf_empty(),
                             .libraries = nb_strbuf_empty()};
    struct nb_strbuf counts = {0};
    s->failures = nb_alloc(results->n + 1, sizeof *s->failures);
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (r->status < NB_N_STATUSES) s->counts[r->status]++;
        if (r->status < NB_N_STATUSES && nb_status_failed(r->status)) s->failures[s->n_failures++] = i;
        if (r->has_timing) count_timing(s, &r->timing);
    }
    collect_skips(s, results);
    nb_meta_footer(results, &s->footer);
    if (has_several(results)) nb_meta_machines(results->meta, &s->machines);
    add_counts(s, &counts);
    s->counts_text = counts.text;
    add_noise(s, results, &s->noise);
    add_libraries(results, &s->libraries);
    add_overheads(results, &s->overheads);
}

void nb_summary_release(struct nb_summary *s) {
    nb_free_all(s->skips, s->failures, s->footer.text, s->machines.text, s->counts_text, s->noise.text,
                s->libraries.text, s->overheads.text);
    *s = (struct nb_summary){0};
}
