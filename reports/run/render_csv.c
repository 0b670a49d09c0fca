// SPDX-License-Identifier: Apache-2.0
/* Every figure: CSV, and the document. RFC 4180 with a header line: every axis a column of its own, figures with all their digits and their units in the name, an
 * empty field where there is no figure. Columns come in one order; those that no case has a value for are left out, but for the key and
 * the status. */
#include <stddef.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "reports/text/output.h"
#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/text.h"

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
    FIELD("summation_depth", ALWAYS, COUNT, facts.summation_depth),
    FIELD("row_local", ALWAYS, FLAG, facts.row_local),
    FIELD("time_ns", TIMING, NUMBER, timing.time_ns.value),
    FIELD("time_low_ns", TIMING, NUMBER, timing.time_ns.low),
    FIELD("time_high_ns", TIMING, NUMBER, timing.time_ns.high),
    FIELD("min_ns", TIMING, NUMBER, timing.min_ns),
    FIELD("gbytes_per_s", TIMING, NUMBER, timing.gbytes_per_s),
    FIELD("of_datasheet_ratio", TIMING, NUMBER, timing.of_datasheet),
    FIELD("vs_copy_ratio", TIMING, NUMBER, timing.vs_copy.value),
    FIELD("vs_copy_low_ratio", TIMING, NUMBER, timing.vs_copy.low),
    FIELD("vs_copy_high_ratio", TIMING, NUMBER, timing.vs_copy.high),
    FIELD("roofline_ratio", TIMING, NUMBER, timing.roofline.share.value),
    FIELD("roofline_low_ratio", TIMING, NUMBER, timing.roofline.share.low),
    FIELD("roofline_high_ratio", TIMING, NUMBER, timing.roofline.share.high),
    FIELD("roofline_ns", TIMING, NUMBER, timing.roofline.time_ns.value),
    FIELD("core_ns", TIMING, NUMBER, timing.roofline.core_ns),
    FIELD("vs_reference_ratio", TIMING, NUMBER, timing.vs_reference.value),
    FIELD("vs_reference_low_ratio", TIMING, NUMBER, timing.vs_reference.low),
    FIELD("vs_reference_high_ratio", TIMING, NUMBER, timing.vs_reference.high),
    FIELD("launches", TIMING, COUNT, timing.n_launches),
    FIELD("samples", TIMING, COUNT, timing.n_samples),
    FIELD("preempted_samples", TIMING, COUNT, timing.n_preempted),
    FIELD("chunked", TIMING, FLAG, timing.chunked),
    FIELD("per_sample", TIMING, NUMBER, timing.per_sample),
    FIELD("suspect", TIMING, FLAG, timing.suspect),
    FIELD("noisy", TIMING, FLAG, timing.noisy),
    FIELD("steal_ms", TIMING, NUMBER, timing.steal_ms),
    FIELD("involuntary_switches", TIMING, NUMBER, timing.involuntary),
    FIELD("wall_per_cpu_ratio", TIMING, NUMBER, timing.wall_per_cpu),
    FIELD("copy_drift_ratio", TIMING, NUMBER, timing.copy_drift),
    FIELD("floor_ns", TIMING, NUMBER, timing.floor_ns),
    FIELD("throttled_launches", TIMING, NUMBER, timing.throttled),
    FIELD("uncontended_ratio", TIMING, NUMBER, timing.uncontended),
    FIELD("contended_ns", TIMING, NUMBER, timing.contended.time_ns.value),
    FIELD("contended_vs_reference_ratio", TIMING, NUMBER, timing.contended.vs_reference.value),
    FIELD("elements", ACCURACY, COUNT, accuracy.n),
    FIELD("exceptional", ACCURACY, COUNT, accuracy.n_exceptional),
    FIELD("max_ulp", ACCURACY, NUMBER, accuracy.max_ulp),
    FIELD("mean_ulp", ACCURACY, NUMBER, accuracy.mean_ulp),
    FIELD("p99_ulp", ACCURACY, NUMBER, accuracy.p99_ulp),
    FIELD("bias_u", ACCURACY, NUMBER, accuracy.bias_u),
    FIELD("bias_sigma", ACCURACY, NUMBER, accuracy.bias_sigma),
    FIELD("correctly_rounded_ratio", ACCURACY, NUMBER, accuracy.correctly_rounded),
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
    FIELD("reproducer_row", ACCURACY, COUNT, accuracy.reproducer.row),
    FIELD("reproducer_col", ACCURACY, COUNT, accuracy.reproducer.col),
    FIELD("reproducer_x", ACCURACY, NUMBER, accuracy.reproducer.x),
    FIELD("reproducer_got", ACCURACY, NUMBER, accuracy.reproducer.got),
    FIELD("reproducer_exact", ACCURACY, NUMBER, accuracy.reproducer.want),
    FIELD("reproducer_error_ulp", ACCURACY, NUMBER, accuracy.reproducer.err_ulp),
    FIELD("reproducer_allowed_ulp", ACCURACY, NUMBER, accuracy.reproducer.tolerance_ulp),
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

/* The cell of a field, empty where the record has none. */
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

/* ---- cells, row by row; the first row has the names of the columns ---- */

static void add_text(struct nb_strings *cells, const char *text) { nb_strings_add(cells, text ? text : ""); }

static void add_cell(struct nb_strings *cells, struct nb_strbuf *cell) {
    add_text(cells, cell->text);
    nb_strbuf_clear(cell);
}

static void add_header(const char **counters, size_t n_counters, struct nb_strings *cells) {
    static const char *const first[] = {"key", "status", "reason", "variant"}, *const texts[] = {
                                                                                   "reference",      "copy",
                                                                                   "bottleneck",     "noise",
                                                                                   "loss",           "library",
                                                                                   "implementation", "digest",
                                                                                   "replay"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) add_text(cells, first[i]);
    for (size_t a = 0; a < nb_n_axes; a++) add_text(cells, nb_axes[a].name);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) add_text(cells, texts[i]);
    for (size_t f = 0; f < n_fields; f++) add_text(cells, fields[f].name);
    for (size_t c = 0; c < n_counters; c++) add_text(cells, counters[c]);
}

static void add_record(const struct nb_record *r, const char **counters, size_t n_counters, struct nb_strings *cells) {
    bool lost = r->has_accuracy && r->accuracy.loss != NB_LOSS_NONE && r->accuracy.loss < NB_N_LOSSES;
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    add_text(cells, r->key);
    add_text(cells, r->status < NB_N_STATUSES ? nb_status_name(r->status) : "");
    add_text(cells, r->reason);
    add_text(cells, r->c.variant);
    for (size_t a = 0; a < nb_n_axes; a++) {
        nb_case_axis(&r->c, nb_axes[a].name, &cell);
        add_cell(cells, &cell);
    }
    add_text(cells, r->has_timing ? r->timing.reference : NULL);
    add_text(cells, r->has_timing ? r->timing.copy : NULL);
    add_text(cells, r->has_timing ? r->timing.roofline.bottleneck : NULL);
    add_text(cells, r->has_timing ? r->timing.noise : NULL);
    add_text(cells, lost ? nb_loss_names[r->accuracy.loss] : NULL);
    add_text(cells, r->facts.library);
    add_text(cells, r->facts.implementation);
    add_text(cells, r->facts.digest);
    add_text(cells, r->replay);
    for (size_t f = 0; f < n_fields; f++) {
        print_field(r, &fields[f], &cell);
        add_cell(cells, &cell);
    }
    for (size_t c = 0; c < n_counters; c++) {
        print_counter(r, counters[c], &cell);
        add_cell(cells, &cell);
    }
}

static bool has_values(const struct nb_strings *cells, size_t n_columns, size_t column) {
    for (size_t i = n_columns + column; i < cells->n; i += n_columns)
        if (*cells->items[i]) return true;
    return false;
}

static int render(const struct nb_results *results, FILE *out) {
    enum { ALWAYS_THERE = 2 };
    const char *counters[MAX_COUNTERS];
    struct nb_strings cells released_by(nb_strings_release) = {0};
    struct nb_strbuf text = {0};
    size_t n_counters = counter_names(results, counters);
    add_header(counters, n_counters, &cells);
    const size_t n_columns = cells.n;
    bool *shown freed = nb_alloc(n_columns, sizeof *shown);
    for (size_t i = 0; i < results->n; i++) add_record(&results->records[i], counters, n_counters, &cells);
    for (size_t c = 0; c < n_columns; c++) shown[c] = c < ALWAYS_THERE || has_values(&cells, n_columns, c);
    for (size_t i = 0; i < cells.n; i++) {
        const size_t column = i % n_columns;
        if (column > 0 && shown[column]) nb_strbuf_add(&text, ",");
        if (shown[column]) nb_escape_csv(&text, cells.items[i]);
        if (column + 1 == n_columns) nb_strbuf_add(&text, "\r\n");
    }
    return nb_output(&text, out);
}

/* The results document itself (schema/results.schema.json), the same text as in DIR/results.json. */
static int render_json(const struct nb_results *results, FILE *out) {
    struct nb_strbuf text = {0};
    nb_results_print(results, &text);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_csv[] = {{"csv", "one line a case, every axis and figure its own column", render},
                                              {"json", "the results document", render_json},
                                              {0}};
