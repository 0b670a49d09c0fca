// SPDX-License-Identifier: Apache-2.0
/* Cells and their layout. A record that has no such figure leaves its cell empty; the status column says why. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/case.h"
#include "src/core/format.h"
#include "src/core/log.h"
#include "src/core/names.h"

/* ---- cells ---- */

bool nb_is_reference(const struct nb_record *r) {
    return r->has_timing && r->key && r->timing.reference && strcmp(r->key, r->timing.reference) == 0;
}

/* Two decimals line up in a column; where they say nothing any more there are none, and beyond that an exponent. */
static void print_plain(double value, bool sign, struct nb_strbuf *out) {
    double size = fabs(value);
    if (!isfinite(value)) return;
    if (sign && value >= 0) nb_strbuf_add(out, "+");
    nb_strbuf_addf(out, size < 10 && sign ? "%.3f" : size < 1000 ? "%.2f" : size < 1e6 ? "%.0f" : "%.2e", value);
}

static void print_timing(enum nb_measured what, const struct nb_record *r, bool narrow, struct nb_strbuf *out) {
    const struct nb_timing *t = &r->timing;
    if (what == NB_MEASURED_TIME) {
        narrow ? nb_format_time(out, t->time_ns.value) : nb_format_time_interval(out, t->time_ns);
    } else if (what == NB_MEASURED_RATE) {
        print_plain(t->gbytes_per_s, false, out);
    } else if (what == NB_MEASURED_VS_COPY) {
        nb_format_percent(out, t->vs_copy.value);
        if (t->suspect) nb_strbuf_add(out, "!");
    } else if (what == NB_MEASURED_ROOFLINE && t->roofline.bottleneck[0]) {
        nb_format_percent(out, t->roofline.share.value);
        nb_strbuf_addf(out, " %s", t->roofline.bottleneck);
    } else if (what == NB_MEASURED_RATIO && nb_is_reference(r)) {
        nb_strbuf_add(out, "reference");
    } else if (what == NB_MEASURED_RATIO) {
        nb_format_ratio(out, t->vs_reference);
    }
}

/* Of the rows that the formula does not give up; "2 lost" beside it says how many it does. */
static void print_max_ulp(const struct nb_accuracy *a, struct nb_strbuf *out) {
    print_plain(a->max_ulp, false, out);
    if (a->n_rows_lost > 0)
        nb_strbuf_addf(out, "%s%lld lost", isfinite(a->max_ulp) ? ", " : "", (long long)a->n_rows_lost);
}

static void print_accuracy(enum nb_measured what, const struct nb_accuracy *a, struct nb_strbuf *out) {
    if (what == NB_MEASURED_MAX_ULP) print_max_ulp(a, out);
    if (what == NB_MEASURED_BOUND) print_plain(a->worst_ratio, false, out);
    if (what == NB_MEASURED_PARAMETERS) print_plain(nb_accuracy_parameters_ratio(a), false, out);
    if (what == NB_MEASURED_BIAS) print_plain(a->bias_u, true, out);
}

static void print_note(const struct nb_record *r, struct nb_strbuf *out) {
    const char *notes[4] = {0};
    int n = 0;
    if (r->status != NB_OK && r->reason && *r->reason) notes[n++] = r->reason;
    if (r->has_accuracy && r->accuracy.loss != NB_LOSS_NONE && r->accuracy.loss < NB_N_LOSSES && n == 0)
        notes[n++] = nb_loss_names[r->accuracy.loss];
    if (r->has_timing && r->timing.noisy) notes[n++] = r->timing.noise[0] ? r->timing.noise : "noisy";
    if (r->has_timing && r->timing.suspect) notes[n++] = "faster than the copy";
    for (int i = 0; i < n; i++) nb_strbuf_addf(out, "%s%s", i ? "; " : "", notes[i]);
}

const struct nb_column nb_measured_columns[NB_N_MEASURED] = {
    {"kernel", NULL, NB_MEASURED_KERNEL, false, NB_KEEP},
    {"status", NULL, NB_MEASURED_STATUS, false, NB_KEEP},
    {"time", NULL, NB_MEASURED_TIME, true, NB_KEEP},
    {"GB/s", NULL, NB_MEASURED_RATE, true, NB_DROP_THIRD},
    {"% of copy", NULL, NB_MEASURED_VS_COPY, true, NB_DROP_LAST},
    {"% of roofline", NULL, NB_MEASURED_ROOFLINE, true, NB_DROP_SECOND},
    {"vs reference", NULL, NB_MEASURED_RATIO, true, NB_KEEP},
    {"max ulp", NULL, NB_MEASURED_MAX_ULP, true, NB_KEEP},
    {"of bound", NULL, NB_MEASURED_BOUND, true, NB_DROP_LAST},
    {"dgamma of bound", NULL, NB_MEASURED_PARAMETERS, true, NB_DROP_THIRD},
    {"bias/u", NULL, NB_MEASURED_BIAS, true, NB_DROP_SECOND},
    {"note", NULL, NB_MEASURED_NOTE, false, NB_DROP_FIRST},
};

void nb_column_print(const struct nb_column *column, const struct nb_record *r, bool narrow, struct nb_strbuf *out) {
    const enum nb_measured what = column->measured;
    if (column->axis)
        nb_case_axis(&r->c, column->axis->name, out);
    else if (what == NB_MEASURED_KERNEL)
        nb_kernel_name(&r->c, out);
    else if (what == NB_MEASURED_STATUS)
        nb_strbuf_add(out, r->status < NB_N_STATUSES ? nb_status_name(r->status) : "?");
    else if (what == NB_MEASURED_NOTE)
        print_note(r, out);
    else if (what <= NB_MEASURED_RATIO && r->has_timing)
        print_timing(what, r, narrow, out);
    else if (what > NB_MEASURED_RATIO && r->has_accuracy)
        print_accuracy(what, &r->accuracy, out);
}

/* ---- layout ---- */

enum role { HIDDEN, CONSTANT, HEADING, COLUMN };

/* Did the case run (or fail to), so that it belongs in a table? */
static bool has_run(const struct nb_record *r) { return r->status != NB_SKIPPED && r->status != NB_NOT_RUN; }

/* What a group shares (src/plan/plan.h): its cases stand under one heading. */
static bool is_group_axis(const struct nb_axis *axis) {
    static const char *const names[] = {"pass", "dtype",  "shape",   "data",  "dy",
                                        "seed", "stride", "threads", "cache", NULL};
    return nb_name_find(names, axis->name) >= 0;
}

/* Number of different values, up to 2; an axis that means nothing for a case has no value there. */
static int count_values(const struct nb_results *results, const struct nb_axis *axis, struct nb_strbuf *first) {
    int n = 0;
    for (size_t i = 0; i < results->n && n < 2; i++) {
        if (!has_run(&results->records[i])) continue;
        char *text freed = nb_case_axis_text(&results->records[i].c, axis->name);
        if (!*text || (n == 1 && strcmp(text, first->text) == 0)) continue;
        if (n++ == 0) nb_strbuf_add(first, text);
    }
    return n;
}

/* Does a kernel appear with two values of the axis? If not, the kernel's name stands for the value. */
static bool varies_within_kernel(const struct nb_results *results, const struct nb_axis *axis) {
    struct nb_text_map first released_by(nb_text_map_release) = {0}; /* record of each kernel */
    struct nb_strings kernels released_by(nb_strings_release) = {0};
    bool varies = false;
    for (size_t i = 0; i < results->n && !varies; i++) {
        const struct nb_case *c = &results->records[i].c;
        if (!has_run(&results->records[i])) continue;
        char *kernel freed = nb_kernel_text(c), *value freed = nb_case_axis_text(c, axis->name);
        nb_strings_add(&kernels, kernel);
        const size_t known = nb_text_map_add(&first, kernels.items[kernels.n - 1], i);
        char *other freed = known == NB_NOWHERE ? NULL : nb_case_axis_text(&results->records[known].c, axis->name);
        varies = other && strcmp(value, other) != 0;
    }
    return varies;
}

static enum role role_of(const struct nb_results *results, const struct nb_axis *axis, int n_values) {
    if (strcmp(axis->name, "width") == 0) return n_values ? COLUMN : HIDDEN;
    if (n_values < 2) return n_values ? CONSTANT : HIDDEN;
    if (is_group_axis(axis)) return HEADING;
    return varies_within_kernel(results, axis) ? COLUMN : CONSTANT;
}

static void assign_roles(struct nb_view *view, enum role *roles) {
    struct nb_strbuf *constants = &view->constants, value released_by(nb_strbuf_release) = {0};
    for (size_t a = 0; a < nb_n_axes; a++) {
        nb_strbuf_clear(&value);
        const struct nb_axis *axis = &nb_axes[a];
        /* A kernel's name stands for its own properties, all but its width. */
        const bool by_name = axis->kind == NB_AXIS_SELECT && !is_group_axis(axis) && strcmp(axis->name, "width") != 0;
        const int n = by_name ? 0 : count_values(view->results, axis, &value);
        roles[a] = role_of(view->results, axis, n);
        if (roles[a] != CONSTANT) continue;
        nb_strbuf_addf(constants, "%s%s ", constants->len ? ", " : "", nb_axes[a].name);
        nb_strbuf_add(constants, n == 1 ? value.text : "by kernel");
    }
}

/* What a reader expects where nothing else is said. */
static bool is_usual(const struct nb_axis *axis, const char *value) {
    static const char *const telling[] = {"dtype", "shape", "data", "eps", NULL};
    return axis->fallback && strcmp(axis->fallback, value) == 0 && nb_name_find(telling, axis->name) < 0;
}

/* "f32  64x384": values that speak for themselves stand alone, the others behind their axis's name. */
void nb_view_add_to_heading(const struct nb_axis *axis, const char *value, struct nb_strbuf *out) {
    static const char *const plain[] = {"pass", "dtype", "shape", NULL};
    if (!*value || is_usual(axis, value)) return;
    nb_strbuf_add(out, out->len ? "  " : "");
    if (nb_name_find(plain, axis->name) < 0) nb_strbuf_addf(out, "%s ", axis->name);
    nb_strbuf_add(out, value);
}

/* Of merged results the machine comes first, whatever else the cases share. */
static void print_heading(const struct nb_results *results, const struct nb_record *r, const enum role *roles,
                          struct nb_strbuf *out) {
    nb_meta_whose(results, r, "", "", out);
    for (size_t a = 0; a < nb_n_axes; a++) {
        char *value freed = roles[a] == HEADING ? nb_case_axis_text(&r->c, nb_axes[a].name) : NULL;
        if (value) nb_view_add_to_heading(&nb_axes[a], value, out);
    }
}

/* By heading, in the order of their first records. */
static void make_sections(struct nb_view *view, const enum role *roles) {
    struct nb_text_map index released_by(nb_text_map_release) = {0};
    for (size_t i = 0; i < view->results->n; i++) {
        const struct nb_record *r = &view->results->records[i];
        if (!has_run(r)) continue;
        struct nb_strbuf heading = nb_strbuf_empty();
        print_heading(view->results, r, roles, &heading);
        size_t at = nb_text_map_add(&index, heading.text, view->n_sections);
        if (at == NB_NOWHERE) {
            at = view->n_sections;
            *NB_PUSH(view->sections, view->n_sections) = (struct nb_section){.heading = heading};
        } else {
            nb_strbuf_release(&heading);
        }
        *NB_PUSH(view->sections[at].records, view->sections[at].n) = i;
    }
}

static void release_sections(struct nb_view *view) {
    for (size_t i = 0; i < view->n_sections; i++) {
        nb_strbuf_release(&view->sections[i].heading);
        free(view->sections[i].records);
        for (size_t c = 0; c < NB_VIEW_COLUMNS; c++) free(view->sections[i].usual[c]);
    }
    free(view->sections);
    view->sections = NULL;
    view->n_sections = 0;
}

static bool is_empty(const struct nb_view *view, const struct nb_column *column) {
    struct nb_strbuf cell released_by(nb_strbuf_release) = {0};
    for (size_t s = 0; s < view->n_sections && !cell.len; s++)
        for (size_t i = 0; i < view->sections[s].n && !cell.len; i++)
            nb_column_print(column, &view->results->records[view->sections[s].records[i]], false, &cell);
    return cell.len == 0;
}

/* The kernel comes first, then what cases of one kernel differ in, then what was found. */
static void make_columns(struct nb_view *view, const enum role *roles) {
    view->columns[view->n_columns++] = nb_measured_columns[0];
    for (size_t a = 0; a < nb_n_axes; a++)
        if (roles[a] == COLUMN && view->n_columns < NB_VIEW_COLUMNS)
            view->columns[view->n_columns++] =
                (struct nb_column){.title = nb_axes[a].name, .axis = &nb_axes[a], .priority = NB_KEEP};
    for (size_t i = 1; i < NB_N_MEASURED && view->n_columns < NB_VIEW_COLUMNS; i++)
        if (!is_empty(view, &nb_measured_columns[i])) view->columns[view->n_columns++] = nb_measured_columns[i];
}

/* Has the axis at most one value in the section? Cases that it means nothing for have none. */
static bool has_one_value(const struct nb_view *view, const struct nb_section *section, const struct nb_axis *axis,
                          struct nb_strbuf *value) {
    bool one = true;
    nb_strbuf_clear(value);
    for (size_t i = 0; i < section->n && one; i++) {
        char *own freed = nb_case_axis_text(&view->results->records[section->records[i]].c, axis->name);
        if (*own && !value->len) nb_strbuf_add(value, own);
        one = !*own || strcmp(own, value->text) == 0;
    }
    return one;
}

static void hide_columns(const struct nb_view *view, struct nb_section *section) {
    struct nb_strbuf value released_by(nb_strbuf_release) = {0};
    for (size_t c = 0; c < view->n_columns; c++) {
        const struct nb_axis *axis = view->columns[c].axis;
        if (!axis || strcmp(axis->name, "width") == 0 || !has_one_value(view, section, axis, &value)) continue;
        section->hidden[c] = true;
        nb_view_add_to_heading(axis, value.text, &section->heading);
    }
}

void nb_view_init(struct nb_view *view, const struct nb_results *results, bool flat) {
    *view = (struct nb_view){.results = results, .constants = nb_strbuf_empty()};
    enum role *roles = nb_alloc(nb_n_axes, sizeof *roles);
    assign_roles(view, roles);
    make_sections(view, roles);
    size_t n = 0;
    for (size_t i = 0; i < view->n_sections; i++) n += view->sections[i].n;
    /* Headings over single rows would double the table: then these axes are columns as well. */
    if (view->n_sections > 1 && (flat || 2 * view->n_sections > n)) {
        for (size_t a = 0; a < nb_n_axes; a++)
            if (roles[a] == HEADING) roles[a] = COLUMN;
        release_sections(view);
        make_sections(view, roles);
    }
    make_columns(view, roles);
    for (size_t i = 0; i < view->n_sections && view->n_sections > 1; i++) hide_columns(view, &view->sections[i]);
    free(roles);
}

void nb_view_release(struct nb_view *view) {
    release_sections(view);
    nb_strbuf_release(&view->constants);
    *view = (struct nb_view){0};
}
