// SPDX-License-Identifier: Apache-2.0
/* normbench quantize: what 8 bits keep of rows, and of what a norm makes of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/text/format.h"
#include "reports/text/grid.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/emulate/depth.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/emulate/quantize.h"

extern const struct nb_command nb_command_quantize;

static const char help[] =
    "usage: normbench quantize [OPTIONS]\n\n"
    "Stores rows in 8 bits, once as they are and once normalized first, and shows what is left: the ratio of signal to\n"
    "quantization noise, the largest error, the share that becomes 0. Values are divided by a scale that takes the largest\n"
    "magnitude to the format's largest number: of the whole tensor, of each row, or none.\n\n"
    "  --to FORMAT          e4m3, e5m2 or int8; repeatable (default all)\n"
    "  --data NAME          rows: a distribution, a data set or a file (default massive: rows with massive activations)\n"
    "  --op OP              rmsnorm (default), prmsnorm, layernorm or l2norm\n"
    "  --design DESIGN      the norm with its formats, as for `normbench emulate`, instead of --op (in f32)\n"
    "  --affine WHICH       none, gamma, gamma_beta (default: the op's usual one)\n"
    "  --n N                columns (default 4096, or as the file has)\n"
    "  --rows R             rows (default 64, or as the file has, up to 256)\n"
    "  --seed S             default 1\n"
    "  --format NAME        table (default), markdown, csv or json\n" NB_COMMON_HELP "\n"
    "sqnr_db: 10 log10 of squares over squared errors. Errors are in the rms of their row. lost: share of numbers that become\n"
    "0. beyond: share out of range: in int8 they are cut off; in e4m3 and e5m2 they become NaN or Inf, an infinite error (inf,\n"
    "null in JSON).\n"
    "Exit codes: 0 ok, 2 usage.\n";

struct quantize_options {
    bool to[NB_N_QUANTA], any_to;
    struct nb_design_data data;
    const char *op, *design, *format;
};

static int set_to(void *to, const char *value) {
    struct quantize_options *o = to;
    const int number = nb_number_parse(value); /* other names of the formats: float8_e4m3fn */
    const int found = number == NB_NUM_E4M3   ? (int)NB_QUANTUM_E4M3
                      : number == NB_NUM_E5M2 ? (int)NB_QUANTUM_E5M2
                                              : nb_option_name("to", value, nb_quantum_names);
    if (found < 0) return -1;
    o->to[found] = o->any_to = true;
    return 0;
}

static bool parse(struct quantize_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {
        {"to", .take = set_to, .to = o},
        {"data", .text = &o->data.data},
        {"op", .text = &o->op},
        {"design", .text = &o->design},
        {"affine", .take = nb_take_affine, .among = nb_affine_names, .to = &o->data.affine},
        {"n", .large = &o->data.cols, .least = 1, .most = 1 << 24},
        {"rows", .large = &o->data.rows, .least = 1, .most = 1 << 20},
        {"seed", .seed = &o->data.seed},
        {"format", .text = &o->format, .among = nb_table_markdown_csv_json},
        {.name = NULL}};
    if (!nb_read_options(&nb_command_quantize, options, 0, argc, argv, exit_code)) return false;
    for (int q = 0; q < NB_N_QUANTA && !o->any_to; q++) o->to[q] = true;
    if (!o->op || !o->design) return true;
    nb_error("quantize: --op and --design exclude each other; --design names the op, too");
    return false;
}

/* ---- rows before and after the norm ------------------------------------------------------------------------------------ */

struct outcome {
    const char *values; /* "x", or the norm's name */
    enum nb_quantum quantum;
    enum nb_scaling scaling;
    struct nb_quantized q;
};
enum { MOST_OUTCOMES = 2 * NB_N_QUANTA * NB_N_SCALINGS };

static size_t quantize_values(struct outcome *out, const struct quantize_options *o, const char *name,
                              const double *values) {
    size_t n = 0;
    for (int quantum = 0; quantum < NB_N_QUANTA; quantum++) {
        for (int scaling = 0; o->to[quantum] && scaling < NB_N_SCALINGS; scaling++) {
            if (quantum == NB_QUANTUM_INT8 && scaling == NB_SCALING_NONE) continue; /* integers need a unit */
            struct outcome *one = &out[n++];
            *one = (struct outcome){name, (enum nb_quantum)quantum, (enum nb_scaling)scaling, {0}};
            nb_quantize(&one->q, values, o->data.rows, o->data.cols, one->quantum, one->scaling);
        }
    }
    return n;
}

/* In the place of x. */
static void normalize(const struct nb_design *d, struct nb_design_rows *rows, uint64_t seed) {
    double *y = nb_alloc((unsigned long long)rows->cols, sizeof *y);
    for (int64_t row = 0; row < rows->rows; row++) {
        double *x = rows->x + row * rows->cols;
        nb_emulate_row(d, rows->cols, x, rows->gamma, rows->beta, y, seed + (uint64_t)row);
        memcpy(x, y, (size_t)rows->cols * sizeof *x);
    }
    free(y);
}

/* ---- output ------------------------------------------------------------------------------------------------------------ */

static void add_figure(struct nb_grid *grid, double value, bool percent) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    if (percent)
        nb_format_percent(&text, value);
    else if (isinf(value))
        nb_strbuf_add(&text, value > 0 ? "inf" : "-inf");
    else
        nb_format_digits(&text, value, 4);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

static int print_table(const struct outcome *out, size_t n, const char *format) {
    static const char *const titles[] = {"values",        "to",   "scale", "sqnr_db", "rms_error", "max_error",
                                         "mean_relative", "lost", "beyond"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < n; i++) {
        const struct nb_quantized *q = &out[i].q;
        nb_grid_add(&grid, out[i].values);
        nb_grid_add(&grid, nb_quantum_names[out[i].quantum]);
        nb_grid_add(&grid, nb_scaling_names[out[i].scaling]);
        add_figure(&grid, q->sqnr_db, false);
        add_figure(&grid, q->rms_error, false);
        add_figure(&grid, q->max_error, false);
        add_figure(&grid, q->mean_relative, false);
        add_figure(&grid, q->lost, true);
        add_figure(&grid, q->beyond, true);
    }
    const int result = nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
    return result;
}

static void print_json(const struct outcome *out, size_t n, const struct quantize_options *o) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "data", o->data.data);
    nb_json_number(json, "rows", (double)o->data.rows);
    nb_json_number(json, "n", (double)o->data.cols);
    nb_json_uint64(json, "seed", o->data.seed);
    cJSON *list = cJSON_AddArrayToObject(json, "quantized");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = nb_json_of_members(nb_quantized_members, &out[i].q);
        nb_json_text(one, "values", out[i].values);
        nb_json_text(one, "to", nb_quantum_names[out[i].quantum]);
        nb_json_text(one, "scale", nb_scaling_names[out[i].scaling]);
        cJSON_AddItemToArray(list, one);
    }
    nb_json_put(json, stdout);
    cJSON_Delete(json);
}

static int quantize_all(struct quantize_options *o) {
    struct nb_design d;
    struct nb_design_rows rows;
    struct outcome out[MOST_OUTCOMES];
    const char *norm = o->design ? o->design : o->op ? o->op : "rmsnorm";
    if (nb_design_parse(&d, norm) != 0 || nb_design_data_resolve(&o->data) != 0) return NB_EXIT_USAGE;
    if (nb_design_rows_init(&rows, &d, &o->data) != 0) return NB_EXIT_USAGE;
    size_t n = quantize_values(out, o, "x", rows.x);
    normalize(&d, &rows, o->data.seed);
    n += quantize_values(out + n, o, norm, rows.x);
    nb_design_rows_release(&rows);
    if (strcmp(o->format, "json") == 0)
        print_json(out, n, o);
    else if (print_table(out, n, o->format) != 0)
        return NB_EXIT_USAGE;
    return NB_EXIT_OK;
}

static int quantize_main(int argc, char **argv) {
    struct quantize_options o = {.data = {.data = "massive", .seed = 1, .affine = NB_N_AFFINES}, .format = "table"};
    int exit_code;
    return parse(&o, argc, argv, &exit_code) ? quantize_all(&o) : exit_code;
}

const struct nb_command nb_command_quantize = {.name = "quantize",
                                               .summary =
                                                   "what 8-bit formats keep of rows, with and without a norm first",
                                               .help = help,
                                               .run = quantize_main};
