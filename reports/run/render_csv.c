// SPDX-License-Identifier: Apache-2.0
/* RFC 4180 with a header line: every axis a column of its own, figures with all their digits and their units in the name, an
 * empty field where there is no figure. The columns are always the same but for the counters at the end, which are those that
 * the run has. */
#include <stddef.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/run/view.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "reports/text/output.h"

#define MAX_COUNTERS 128

enum kind { NUMBER, COUNT, FLAG };
enum needs { ALWAYS, TIMING, ACCURACY, PARAMETERS };

/* Fields of struct nb_record by place: what is behind timing is there with has_timing only, and so on. */
static const struct field {
    const char *name;
    enum needs needs;
    enum kind kind;
    size_t offset, size;
} fields[] = {
#define FIELD(name, needs, kind, member)                                                                               \
    { name, needs, kind, offsetof(struct nb_record, member), sizeof(((struct nb_record *)0)->member) }
    FIELD("group", ALWAYS, COUNT, group),
    FIELD("machine", ALWAYS, COUNT, machine),
    FIELD("bytes", ALWAYS, NUMBER, bytes),
    FIELD("chain", ALWAYS, COUNT, chain),
    FIELD("row_local", ALWAYS, FLAG, row_local),
    FIELD("time_ns", TIMING, NUMBER, timing.time_ns.value),
    FIELD("time_low_ns", TIMING, NUMBER, timing.time_ns.low),
    FIELD("time_high_ns", TIMING, NUMBER, timing.time_ns.high),
    FIELD("min_ns", TIMING, NUMBER, timing.min_ns),
    FIELD("gbytes_per_s", TIMING, NUMBER, timing.gbytes_per_s),
    FIELD("of_datasheet", TIMING, NUMBER, timing.of_datasheet),
    FIELD("roof", TIMING, NUMBER, timing.roof.value),
    FIELD("roof_low", TIMING, NUMBER, timing.roof.low),
    FIELD("roof_high", TIMING, NUMBER, timing.roof.high),
    FIELD("attained", TIMING, NUMBER, timing.attainable.share.value),
    FIELD("attained_low", TIMING, NUMBER, timing.attainable.share.low),
    FIELD("attained_high", TIMING, NUMBER, timing.attainable.share.high),
    FIELD("attainable_ns", TIMING, NUMBER, timing.attainable.time_ns.value),
    FIELD("core_ns", TIMING, NUMBER, timing.attainable.core_ns),
    FIELD("vs_reference", TIMING, NUMBER, timing.vs_reference.value),
    FIELD("vs_reference_low", TIMING, NUMBER, timing.vs_reference.low),
    FIELD("vs_reference_high", TIMING, NUMBER, timing.vs_reference.high),
    FIELD("launches", TIMING, COUNT, timing.n_launches),
    FIELD("samples", TIMING, COUNT, timing.n_samples),
    FIELD("contaminated_samples", TIMING, COUNT, timing.n_contaminated),
    FIELD("chunked", TIMING, FLAG, timing.chunked),
    FIELD("per_sample", TIMING, NUMBER, timing.per_sample),
    FIELD("suspect", TIMING, FLAG, timing.suspect),
    FIELD("noisy", TIMING, FLAG, timing.noisy),
    FIELD("steal_ms", TIMING, NUMBER, timing.steal_ms),
    FIELD("involuntary_switches", TIMING, NUMBER, timing.involuntary),
    FIELD("wall_per_cpu", TIMING, NUMBER, timing.wall_per_cpu),
    FIELD("copy_drift", TIMING, NUMBER, timing.copy_drift),
    FIELD("floor_ns", TIMING, NUMBER, timing.floor_ns),
    FIELD("elements", ACCURACY, COUNT, accuracy.n),
    FIELD("exceptional", ACCURACY, COUNT, accuracy.n_exceptional),
    FIELD("max_ulp", ACCURACY, NUMBER, accuracy.max_ulp),
    FIELD("mean_ulp", ACCURACY, NUMBER, accuracy.mean_ulp),
    FIELD("p99_ulp", ACCURACY, NUMBER, accuracy.p99_ulp),
    FIELD("bias_u", ACCURACY, NUMBER, accuracy.bias_u),
    FIELD("bias_sigma", ACCURACY, NUMBER, accuracy.bias_sigma),
    FIELD("correctly_rounded", ACCURACY, NUMBER, accuracy.correctly_rounded),
    FIELD("gain_u", ACCURACY, NUMBER, accuracy.gain_u),
    FIELD("offset_u", ACCURACY, NUMBER, accuracy.offset_u),
    FIELD("residual_ulp", ACCURACY, NUMBER, accuracy.residual_ulp),
    FIELD("worst_ratio_to_bound", ACCURACY, NUMBER, accuracy.worst_ratio),
    FIELD("beyond_bound", ACCURACY, COUNT, accuracy.n_beyond),
    FIELD("nan_unexpected", ACCURACY, COUNT, accuracy.nan_unexpected),
    FIELD("inf_unexpected", ACCURACY, COUNT, accuracy.inf_unexpected),
    FIELD("zero_unexpected", ACCURACY, COUNT, accuracy.zero_unexpected),
    FIELD("nan_missing", ACCURACY, COUNT, accuracy.nan_missing),
    FIELD("inf_missing", ACCURACY, COUNT, accuracy.inf_missing),
    FIELD("rows_lost", ACCURACY, COUNT, accuracy.n_rows_lost),
    FIELD("witness_row", ACCURACY, COUNT, accuracy.witness.row),
    FIELD("witness_col", ACCURACY, COUNT, accuracy.witness.col),
    FIELD("witness_x", ACCURACY, NUMBER, accuracy.witness.x),
    FIELD("witness_got", ACCURACY, NUMBER, accuracy.witness.got),
    FIELD("witness_exact", ACCURACY, NUMBER, accuracy.witness.want),
    FIELD("witness_error_ulp", ACCURACY, NUMBER, accuracy.witness.err_ulp),
    FIELD("witness_allowed_ulp", ACCURACY, NUMBER, accuracy.witness.tolerance_ulp),
    FIELD("dgamma_ratio_to_bound", PARAMETERS, NUMBER, accuracy.dgamma.ratio),
    FIELD("dgamma_norm_u", PARAMETERS, NUMBER, accuracy.dgamma.norm_u),
    FIELD("dbeta_ratio_to_bound", PARAMETERS, NUMBER, accuracy.dbeta.ratio),
    FIELD("dbeta_norm_u", PARAMETERS, NUMBER, accuracy.dbeta.norm_u),
    FIELD("dalpha_ratio_to_bound", PARAMETERS, NUMBER, accuracy.dalpha.ratio),
    FIELD("dalpha_norm_u", PARAMETERS, NUMBER, accuracy.dalpha.norm_u),
#undef FIELD
};
static const size_t n_fields = sizeof fields / sizeof *fields;

static long long count_at(const char *place, size_t size) {
    int32_t narrow;
    int64_t wide;
    if (size == sizeof narrow) return memcpy(&narrow, place, size), narrow;
    return memcpy(&wide, place, sizeof wide), wide;
}

static void print_field(const struct nb_record *r, const struct field *f, struct nb_strbuf *out) {
    const char *place = (const char *)r + f->offset;
    const bool has[] = {[ALWAYS] = true,
                        [TIMING] = r->has_timing,
                        [ACCURACY] = r->has_accuracy,
                        [PARAMETERS] = r->has_accuracy && r->accuracy.has_parameters};
    double number;
    bool flag;
    if (!has[f->needs]) return;
    if (f->kind == NUMBER)
        nb_format_exact(out, (memcpy(&number, place, sizeof number), number));
    else if (f->kind == FLAG)
        nb_strbuf_add(out, (memcpy(&flag, place, sizeof flag), flag) ? "true" : "false");
    else if (count_at(place, f->size) >= 0)
        nb_strbuf_addf(out, "%lld", count_at(place, f->size)); /* -1: none */
}

static size_t counter_names(const struct nb_results *results, const char **names) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++)
        for (int c = 0; c < results->records[i].n_counters && c < NB_MAX_COUNTERS; c++) {
            const char *name = results->records[i].counters[c].name;
            size_t known = 0;
            while (known < n && strcmp(names[known], name) != 0) known++;
            if (known == n && n < MAX_COUNTERS) names[n++] = name;
        }
    return n;
}

static void print_counter(const struct nb_record *r, const char *name, struct nb_strbuf *out) {
    for (int c = 0; c < r->n_counters && c < NB_MAX_COUNTERS; c++)
        if (strcmp(r->counters[c].name, name) == 0) {
            nb_format_exact(out, r->counters[c].value);
            return;
        }
}

static void add_text(struct nb_strbuf *out, const char *text) {
    nb_escape_csv(out, text ? text : "");
    nb_strbuf_add(out, ",");
}

static void print_header(const char **counters, size_t n_counters, struct nb_strbuf *out) {
    nb_strbuf_add(out, "key,status,reason,variant,");
    for (size_t a = 0; a < nb_n_axes; a++) add_text(out, nb_axes[a].name);
    nb_strbuf_add(out, "reference,copy,bound,noise,loss,library,implementation,digest,replay");
    for (size_t f = 0; f < n_fields; f++) nb_strbuf_addf(out, ",%s", fields[f].name);
    for (size_t c = 0; c < n_counters; c++) {
        nb_strbuf_add(out, ",");
        nb_escape_csv(out, counters[c]);
    }
    nb_strbuf_add(out, "\r\n");
}

static void print_axes(const struct nb_record *r, struct nb_strbuf *out) {
    struct nb_strbuf value = {0};
    for (size_t a = 0; a < nb_n_axes; a++) {
        nb_strbuf_clear(&value);
        nb_case_axis(&r->c, nb_axes[a].name, &value);
        add_text(out, value.text);
    }
    nb_strbuf_release(&value);
}

static void print_record(const struct nb_record *r, const char **counters, size_t n_counters, struct nb_strbuf *out) {
    bool lost = r->has_accuracy && r->accuracy.loss != NB_LOSS_NONE && r->accuracy.loss < NB_N_LOSSES;
    add_text(out, r->key);
    add_text(out, r->status < NB_N_STATUSES ? nb_status_name(r->status) : "");
    add_text(out, r->reason);
    add_text(out, r->c.variant);
    print_axes(r, out);
    add_text(out, r->has_timing ? r->timing.reference : NULL);
    add_text(out, r->has_timing ? r->timing.copy : NULL);
    add_text(out, r->has_timing ? r->timing.attainable.bound : NULL);
    add_text(out, r->has_timing ? r->timing.noise : NULL);
    add_text(out, lost ? nb_loss_names[r->accuracy.loss] : NULL);
    add_text(out, r->library);
    add_text(out, r->implementation);
    add_text(out, r->digest);
    nb_escape_csv(out, r->replay ? r->replay : "");
    for (size_t f = 0; f < n_fields; f++) {
        nb_strbuf_add(out, ",");
        print_field(r, &fields[f], out);
    }
    for (size_t c = 0; c < n_counters; c++) {
        nb_strbuf_add(out, ",");
        print_counter(r, counters[c], out);
    }
    nb_strbuf_add(out, "\r\n");
}

static int render(const struct nb_results *results, FILE *out) {
    const char *counters[MAX_COUNTERS];
    struct nb_strbuf text = {0};
    size_t n_counters = counter_names(results, counters);
    print_header(counters, n_counters, &text);
    for (size_t i = 0; i < results->n; i++) print_record(&results->records[i], counters, n_counters, &text);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_csv[] = {{"csv", "one line a case, every axis and figure its own column", render},
                                              {0}};
