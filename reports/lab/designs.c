// SPDX-License-Identifier: Apache-2.0
/* A row for each design; what has no figure is an empty cell. */
#include "reports/lab/lab.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "reports/text/output.h"
#include "src/accuracy/accuracy.h"
#include "src/core/format.h"
#include "src/core/json.h"

/* digits 0: a share, in percent. */
static void add_figure(struct nb_grid *grid, double value, int digits) {
    if (isinf(value))
        nb_strbuf_add(&grid->cell, value > 0 ? "inf" : "-inf");
    else if (digits > 0)
        nb_format_digits(&grid->cell, value, digits);
    else
        nb_format_percent(&grid->cell, value);
    nb_grid_end_cell(grid);
}

/* NaN, Inf and 0 in the place of numbers, and numbers in the place of NaN and Inf. */
static void add_exceptional(struct nb_grid *grid, const struct nb_accuracy *a) {
    const struct {
        const char *name;
        int64_t n;
    } counts[] = {{"nan", a->nan_unexpected},
                  {"inf", a->inf_unexpected},
                  {"zero", a->zero_unexpected},
                  {"no_nan", a->nan_missing},
                  {"no_inf", a->inf_missing}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].n > 0)
            nb_strbuf_addf(&grid->cell, "%s%s:%lld", grid->cell.len ? " " : "", counts[i].name, (long long)counts[i].n);
    nb_grid_end_cell(grid);
}

/* Figures of a report, those of its struct nb_accuracy among them. */
static const struct {
    const char *title;
    size_t offset; /* in struct nb_design_report: a double */
    int digits;    /* 0: a share, in percent */
} figures[] = {
    {"max_ulp", offsetof(struct nb_design_report, accuracy.max_ulp), 4},
    {"mean_ulp", offsetof(struct nb_design_report, accuracy.mean_ulp), 3},
    {"p99_ulp", offsetof(struct nb_design_report, accuracy.p99_ulp), 3},
    {"correct", offsetof(struct nb_design_report, accuracy.correctly_rounded), 0},
    {"bias_u", offsetof(struct nb_design_report, accuracy.bias_u), 3},
    {"gain_u", offsetof(struct nb_design_report, accuracy.gain_u), 3},
    {"offset_u", offsetof(struct nb_design_report, accuracy.offset_u), 3},
    {"residual_ulp", offsetof(struct nb_design_report, accuracy.residual_ulp), 3},
    {"nmse", offsetof(struct nb_design_report, nmse), 3},
};
enum { N_FIGURES = sizeof figures / sizeof figures[0] };

static int print_accuracy(const struct nb_judged_design *list, size_t n, const char *format) {
    enum { N_TITLES = N_FIGURES + 3 };
    const char *titles[N_TITLES];
    struct nb_grid grid released_by(nb_grid_release);
    titles[0] = "design";
    for (size_t k = 0; k < N_FIGURES; k++) titles[k + 1] = figures[k].title;
    titles[N_TITLES - 2] = "exceptional";
    titles[N_TITLES - 1] = "bound";
    nb_grid_init(&grid, titles, N_TITLES);
    for (size_t i = 0; i < n; i++) {
        nb_grid_add(&grid, list[i].text);
        for (size_t k = 0; k < N_FIGURES; k++) {
            double value;
            memcpy(&value, (const char *)&list[i].report + figures[k].offset, sizeof value);
            add_figure(&grid, value, figures[k].digits);
        }
        add_exceptional(&grid, &list[i].report.accuracy);
        add_figure(&grid, list[i].report.accuracy.worst_ratio, 3);
    }
    return nb_grid_print(&grid, format, stdout);
}

static cJSON *report_to_json(const struct nb_design_report *report, const struct nb_design *d) {
    static const struct nb_member members[] = {
        NB_MEMBER(NUMBER, struct nb_design_report, nmse),       NB_MEMBER(NUMBER, struct nb_design_report, rstd_bias_u),
        NB_MEMBER(NUMBER, struct nb_design_report, rstd_sd_u),  NB_MEMBER(COUNT, struct nb_design_report, chain),
        NB_MEMBER(BORROWED, struct nb_design_report, no_bound), NB_MEMBERS_END,
    };
    cJSON *json = nb_json_of_members(members, report);
    cJSON *accuracy = nb_accuracy_to_json(&report->accuracy, d->store);
    if (report->no_bound) /* nothing was compared with a bound */
        for (size_t i = 0; i < 2; i++)
            cJSON_ReplaceItemInObject(accuracy, i ? "n_beyond" : "n_rows_lost", cJSON_CreateNull());
    cJSON_AddItemToObject(json, "accuracy", accuracy);
    return json;
}

static cJSON *json_of_data(const struct nb_design_data *data) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "data", data->data);
    nb_json_number(json, "rows", (double)data->rows);
    nb_json_number(json, "n", (double)data->cols);
    nb_json_uint64(json, "seed", data->seed);
    return json;
}

static int print_json(const struct nb_judged_design *list, size_t n, const struct nb_design_data *data) {
    cJSON *json = json_of_data(data);
    cJSON *designs = cJSON_AddArrayToObject(json, "designs");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = report_to_json(&list[i].report, &list[i].design);
        nb_json_text(one, "design", list[i].text);
        nb_json_number(one, "eps", list[i].design.eps);
        cJSON_AddItemToArray(designs, one);
    }
    return nb_output_json(json, stdout);
}

int nb_print_designs(const struct nb_judged_design *designs, size_t n, const struct nb_design_data *data,
                     const char *format) {
    return strcmp(format, "json") == 0 ? print_json(designs, n, data) : print_accuracy(designs, n, format);
}

/* ---- what there is to choose from ---------------------------------------------------------------------------------------- */

static int list_presets(const char *format) {
    struct nb_grid grid released_by(nb_grid_release) = nb_grid_of("preset", "letter", "design", "what_it_is");
    for (size_t i = 0; i < nb_n_design_presets; i++) {
        const struct nb_design_preset *p = &nb_design_presets[i];
        nb_grid_row(&grid, p->name, p->letter ? p->letter : "", p->text, p->help);
    }
    return nb_grid_print(&grid, format, stdout);
}

static int list_parts(const char *format) {
    struct nb_design plain;
    struct nb_grid grid released_by(nb_grid_release) = nb_grid_of("part", "default", "what_it_is", "values");
    nb_design_init(&plain);
    for (size_t i = 0; i < nb_n_design_keys; i++) {
        const struct nb_design_key *k = &nb_design_keys[i];
        struct nb_strbuf value released_by(nb_strbuf_release) = nb_strbuf_empty();
        nb_design_key_print(k, &plain, &value);
        nb_grid_row(&grid, k->name, value.text, k->help, k->values);
    }
    return nb_grid_print(&grid, format, stdout);
}

/* JSON has the presets alone: one document. */
int nb_list_designs(const char *format) {
    if (strcmp(format, "json") == 0) return list_presets(format);
    if (list_presets(format) != 0) return -1;
    putchar('\n');
    return list_parts(format);
}

/* ---- 8 bits ---- */

static int print_quantized_table(const struct nb_quantized_rows *out, size_t n, const char *format) {
    struct nb_grid grid released_by(nb_grid_release) =
        nb_grid_of("values", "to", "scale", "sqnr_db", "rms_error", "max_error", "mean_relative", "lost", "beyond");
    for (size_t i = 0; i < n; i++) {
        const struct nb_quantized *q = &out[i].q;
        nb_grid_row(&grid, out[i].values, nb_quantum_names[out[i].quantum], nb_scaling_names[out[i].scaling]);
        add_figure(&grid, q->sqnr_db, 4);
        add_figure(&grid, q->rms_error, 4);
        add_figure(&grid, q->max_error, 4);
        add_figure(&grid, q->mean_relative, 4);
        add_figure(&grid, q->lost, 0);
        add_figure(&grid, q->beyond, 0);
    }
    return nb_grid_print(&grid, format, stdout);
}

static int print_quantized_json(const struct nb_quantized_rows *out, size_t n, const struct nb_design_data *data) {
    cJSON *json = json_of_data(data);
    cJSON *list = cJSON_AddArrayToObject(json, "quantized");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = nb_json_of_members(nb_quantized_members, &out[i].q);
        nb_json_text(one, "values", out[i].values);
        nb_json_text(one, "to", nb_quantum_names[out[i].quantum]);
        nb_json_text(one, "scale", nb_scaling_names[out[i].scaling]);
        cJSON_AddItemToArray(list, one);
    }
    return nb_output_json(json, stdout);
}

int nb_print_quantized(const struct nb_quantized_rows *out, size_t n, const struct nb_design_data *data,
                       const char *format) {
    return strcmp(format, "json") == 0 ? print_quantized_json(out, n, data) : print_quantized_table(out, n, format);
}
