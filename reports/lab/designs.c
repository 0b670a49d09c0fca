// SPDX-License-Identifier: Apache-2.0
/* A row for each design, a row for each design and depth; what has no figure is an empty cell. */
#include "reports/lab/lab.h"

#include <stdio.h>
#include <string.h>

#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "src/core/json.h"

static void add_figure(struct nb_grid *grid, double value, int digits) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    nb_format_digits(&text, value, digits);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

static void add_percent(struct nb_grid *grid, double share) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    nb_format_percent(&text, share);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
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
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].n > 0)
            nb_strbuf_addf(&text, "%s%s:%lld", text.len ? " " : "", counts[i].name, (long long)counts[i].n);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

static int print_accuracy(const struct nb_judged_design *list, size_t n, const char *format) {
    static const char *const titles[] = {"design", "max_ulp",  "mean_ulp",     "p99_ulp", "correct",     "bias_u",
                                         "gain_u", "offset_u", "residual_ulp", "nmse",    "exceptional", "bound"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < n; i++) {
        const struct nb_accuracy *a = &list[i].report.accuracy;
        nb_grid_add(&grid, list[i].text);
        add_figure(&grid, a->max_ulp, 4);
        add_figure(&grid, a->mean_ulp, 3);
        add_figure(&grid, a->p99_ulp, 3);
        add_percent(&grid, a->correctly_rounded);
        add_figure(&grid, a->bias_u, 3);
        add_figure(&grid, a->gain_u, 3);
        add_figure(&grid, a->offset_u, 3);
        add_figure(&grid, a->residual_ulp, 3);
        add_figure(&grid, list[i].report.nmse, 3);
        add_exceptional(&grid, a);
        add_figure(&grid, a->worst_ratio, 3);
    }
    const int result = nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
    return result;
}

static void add_point(struct nb_grid *grid, const struct nb_judged_design *e, int k) {
    const struct nb_depth_point *p = &e->depth.points[k - 1];
    char blocks[16];
    snprintf(blocks, sizeof blocks, "%d", k);
    nb_grid_add(grid, e->text);
    nb_grid_add(grid, blocks);
    add_figure(grid, p->gain_u, 3);
    add_figure(grid, p->gain_rms_u, 3);
    add_figure(grid, p->residual_u, 3);
    add_figure(grid, p->gain_blocks_u, 3);
    add_figure(grid, p->gain_rms_blocks_u, 3);
    add_figure(grid, p->residual_blocks_u, 3);
}

/* After 1, 2, 4 ... blocks and the last, then the exponents. */
static int print_depth(const struct nb_judged_design *list, size_t n, const char *format) {
    static const char *const titles[] = {
        "design",           "blocks", "gain_u", "gain_rms_u", "residual_u", "gain_blocks_u", "gain_rms_blocks_u",
        "residual_blocks_u"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < n; i++) {
        int k = 1;
        for (; k < list[i].depth.blocks; k *= 2) add_point(&grid, &list[i], k);
        add_point(&grid, &list[i], list[i].depth.blocks);
    }
    const int result = nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
    return result;
}

static int print_exponents(const struct nb_judged_design *list, size_t n, const char *format) {
    static const char *const titles[] = {"design", "gain_exponent", "gain_rms_exponent", "residual_exponent"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < n; i++) {
        nb_grid_add(&grid, list[i].text);
        add_figure(&grid, list[i].depth.gain_exponent, 2);
        add_figure(&grid, list[i].depth.gain_rms_exponent, 2);
        add_figure(&grid, list[i].depth.residual_exponent, 2);
    }
    const int result = nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
    return result;
}

static void print_json(const struct nb_judged_design *list, size_t n, const struct nb_design_data *data,
                       const struct nb_depth_options *depth) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "data", data->data);
    nb_json_number(json, "rows", (double)data->rows);
    nb_json_number(json, "n", (double)data->cols);
    nb_json_uint64(json, "seed", data->seed);
    cJSON *designs = cJSON_AddArrayToObject(json, "designs");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = nb_design_report_to_json(&list[i].report, &list[i].design);
        nb_json_text(one, "design", list[i].text);
        nb_json_number(one, "eps", list[i].design.eps);
        if (depth->blocks > 0) cJSON_AddItemToObject(one, "depth", nb_depth_to_json(&list[i].depth, depth));
        cJSON_AddItemToArray(designs, one);
    }
    nb_json_put(json, stdout);
    cJSON_Delete(json);
}

int nb_print_designs(const struct nb_judged_design *designs, size_t n, const struct nb_design_data *data,
                     const struct nb_depth_options *depth, const char *format) {
    if (strcmp(format, "json") == 0) {
        print_json(designs, n, data, depth);
        return 0;
    }
    if (print_accuracy(designs, n, format) != 0) return -1;
    if (depth->blocks == 0) return 0;
    putchar('\n');
    if (print_depth(designs, n, format) != 0) return -1;
    putchar('\n');
    return print_exponents(designs, n, format);
}

/* ---- what there is to choose from ---------------------------------------------------------------------------------------- */

static int list_presets(const char *format) {
    static const char *const titles[] = {"preset", "letter", "design", "what_it_is"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < nb_n_design_presets; i++) {
        const struct nb_design_preset *p = &nb_design_presets[i];
        nb_grid_add(&grid, p->name);
        nb_grid_add(&grid, p->letter ? p->letter : "");
        nb_grid_add(&grid, p->text);
        nb_grid_add(&grid, p->help);
    }
    const int result = nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
    return result;
}

static int list_parts(const char *format) {
    static const char *const titles[] = {"part", "default", "what_it_is", "values"};
    struct nb_design plain;
    struct nb_grid grid;
    nb_design_init(&plain);
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < nb_n_design_keys; i++) {
        const struct nb_design_key *k = &nb_design_keys[i];
        struct nb_strbuf value = {0};
        nb_strbuf_add(&value, "");
        if (k->print) k->print(&plain, &value);
        nb_grid_add(&grid, k->name);
        nb_grid_add(&grid, value.text);
        nb_grid_add(&grid, k->help);
        nb_grid_add(&grid, k->values);
        nb_strbuf_release(&value);
    }
    const int result = nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
    return result;
}

/* JSON has the presets alone: one document. */
int nb_list_designs(const char *format) {
    if (strcmp(format, "json") == 0) return list_presets(format);
    if (list_presets(format) != 0) return -1;
    putchar('\n');
    return list_parts(format);
}
