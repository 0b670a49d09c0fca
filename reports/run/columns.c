// SPDX-License-Identifier: Apache-2.0
/* Cells. A record that has no such figure leaves its cell empty; the status column says why. */
#include "reports/run/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/text/format.h"

bool nb_is_reference(const struct nb_record *r) {
    return r->has_timing && r->key && r->timing.reference && strcmp(r->key, r->timing.reference) == 0;
}

static void print_kernel(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    nb_kernel_name(&r->c, out);
}

static void print_status(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    nb_strbuf_add(out, r->status < NB_N_STATUSES ? nb_status_name(r->status) : "?");
}

static void print_time(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    if (!r->has_timing) return;
    nb_format_time(out, r->timing.time_ns.value);
    nb_format_half_width(out, &r->timing.time_ns, utf8);
}

/* Two decimals line up in a column; where they say nothing any more there are none, and beyond that an exponent. */
static void print_plain(double value, bool sign, struct nb_strbuf *out) {
    double size = fabs(value);
    if (!isfinite(value)) return;
    if (sign && value >= 0) nb_strbuf_add(out, "+");
    nb_strbuf_addf(out, size < 10 && sign ? "%.3f" : size < 1000 ? "%.2f" : size < 1e6 ? "%.0f" : "%.2e", value);
}

static void print_rate(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (r->has_timing) print_plain(r->timing.gbytes_per_s, false, out);
}

static void print_roof(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (!r->has_timing) return;
    nb_format_percent(out, r->timing.roof.value);
    if (r->timing.suspect) nb_strbuf_add(out, "!");
}

/* What of the attainable is attained, and what bounds it there. */
static void print_attained(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (!r->has_timing || !r->timing.attainable.bound[0]) return;
    nb_format_percent(out, r->timing.attainable.share.value);
    nb_strbuf_addf(out, " %s", r->timing.attainable.bound);
}

static void print_ratio(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (nb_is_reference(r))
        nb_strbuf_add(out, "reference");
    else if (r->has_timing)
        nb_format_interval(out, &r->timing.vs_reference);
}

static void print_ratio_narrow(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    if (nb_is_reference(r)) {
        nb_strbuf_add(out, "reference");
    } else if (r->has_timing && isfinite(r->timing.vs_reference.value)) {
        nb_strbuf_addf(out, "%.3f", r->timing.vs_reference.value);
        nb_format_half_width(out, &r->timing.vs_reference, utf8);
    }
}

static void print_max_ulp(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (r->has_accuracy) print_plain(r->accuracy.max_ulp, false, out);
}

static void print_bias(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (r->has_accuracy) print_plain(r->accuracy.bias_u, true, out);
}

static void print_bound(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (r->has_accuracy) print_plain(r->accuracy.worst_ratio, false, out);
}

static void print_parameters(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    if (r->has_accuracy) print_plain(nb_accuracy_parameters_ratio(&r->accuracy), false, out);
}

static void print_note(const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    (void)utf8;
    const char *notes[4] = {0};
    int n = 0;
    if (r->status != NB_OK && r->reason && *r->reason) notes[n++] = r->reason;
    if (r->has_accuracy && r->accuracy.loss != NB_LOSS_NONE && r->accuracy.loss < NB_N_LOSSES && n == 0)
        notes[n++] = nb_loss_names[r->accuracy.loss];
    if (r->has_timing && r->timing.noisy) notes[n++] = r->timing.noise[0] ? r->timing.noise : "noisy";
    if (r->has_timing && r->timing.suspect) notes[n++] = "faster than the roof";
    for (int i = 0; i < n; i++) nb_strbuf_addf(out, "%s%s", i ? "; " : "", notes[i]);
}

const struct nb_column nb_measured_columns[] = {
    {"kernel", NULL, print_kernel, NULL, false, NB_KEEP},
    {"status", NULL, print_status, NULL, false, NB_KEEP},
    {"time", NULL, print_time, NULL, true, NB_KEEP},
    {"GB/s", NULL, print_rate, NULL, true, NB_DROP_THIRD},
    {"roof", NULL, print_roof, NULL, true, NB_DROP_LAST},
    {"attained", NULL, print_attained, NULL, true, NB_DROP_SECOND},
    {"vs reference", NULL, print_ratio, print_ratio_narrow, true, NB_KEEP},
    {"max ulp", NULL, print_max_ulp, NULL, true, NB_KEEP},
    {"of bound", NULL, print_bound, NULL, true, NB_DROP_LAST},
    {"dgamma of bound", NULL, print_parameters, NULL, true, NB_DROP_THIRD},
    {"bias/u", NULL, print_bias, NULL, true, NB_DROP_SECOND},
    {"note", NULL, print_note, NULL, false, NB_DROP_FIRST},
};
const size_t nb_n_measured_columns = sizeof nb_measured_columns / sizeof *nb_measured_columns;

void nb_column_print(const struct nb_column *column, const struct nb_record *r, bool utf8, struct nb_strbuf *out) {
    if (column->axis)
        nb_case_axis(&r->c, column->axis->name, out);
    else
        column->print(r, utf8, out);
}
