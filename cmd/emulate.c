// SPDX-License-Identifier: Apache-2.0
/* normbench emulate: how accurate a norm would be in any format, order and rounding, before it is written. */
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/lab.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/timer.h"
#include "src/lab/emulate/emulate.h"

static const char help[] =
    "usage: normbench emulate DESIGN [DESIGN...] [OPTIONS]\n"
    "       normbench emulate --list\n\n"
    "Execute norms step by step, every operation rounded once to the format that the design gives it, and compare them\n"
    "with the exact result. DESIGN is an op (rmsnorm, prmsnorm, layernorm, l2norm) or a preset (llama, gemma, all_bf16 ...),\n"
    "followed by any number of changes to it:\n"
    "  rmsnorm/store:bf16/acc:f32x16/cast:before\n"
    "  llama/store:f16\n"
    "  layernorm/variance:onepass/acc:f64\n\n"
    "  --list               print the presets and the parts of a design\n"
    "  --data NAME          rows: a distribution, a data set or a file (default scales: normal, rows of many sizes)\n"
    "  --n N                columns (default 4096, or as the file has)\n"
    "  --rows R             rows (default 64, or as the file has, up to 256)\n"
    "  --eps EPS            of all designs\n"
    "  --affine WHICH       none, gamma, gamma_beta (default: the op's usual one)\n"
    "  --seed S             of data and stochastic rounding (default 1)\n"
    "  --quantize FORMATS   store rows in 8 bits, as they are and behind each DESIGN: e4m3, e5m2, int8, with commas\n"
    "                       between, or all; as they are, behind a scale for the whole tensor, and one for each row\n"
    "  --format NAME        table (default), markdown, csv or json\n" NB_COMMON_HELP "\n"
    "Of quantized rows: sqnr_db: 10 log10 of squares over squared errors. Errors are in the rms of their row. lost: share of\n"
    "numbers that become 0. beyond: share out of range: in int8 they are cut off; in e4m3 and e5m2 they become NaN or Inf, an\n"
    "infinite error (inf, null in JSON).\n"
    "Exit codes: 0 ok, 2 usage.\n";

struct emulate_options {
    struct nb_strings designs;
    struct nb_design_data data;
    const char *eps, *format;
    bool list, to[NB_N_QUANTA], quantize;
};

/* ---- options ----------------------------------------------------------------------------------------------------------- */

static int add_quantum(struct emulate_options *o, const char *name) {
    const int number = nb_number_parse(name); /* other names of the formats: float8_e4m3fn */
    const int found = number == NB_NUM_E4M3   ? (int)NB_QUANTUM_E4M3
                      : number == NB_NUM_E5M2 ? (int)NB_QUANTUM_E5M2
                                              : nb_option_name("quantize", name, nb_quantum_names);
    if (found >= 0) o->to[found] = true;
    return found >= 0 ? 0 : -1;
}

static int set_quantize(void *to, const char *list) {
    struct emulate_options *o = to;
    struct nb_strings names released_by(nb_strings_release) = {0};
    int result = 0;
    o->quantize = true;
    nb_strings_split(&names, strcmp(list, "all") == 0 ? "e4m3,e5m2,int8" : list, ',');
    for (size_t i = 0; i < names.n && result == 0; i++) result = add_quantum(o, names.items[i]);
    return result;
}

static bool parse(struct emulate_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {
        {"list", .flag = &o->list},
        {"data", .text = &o->data.data},
        {"n", .large = &o->data.cols, .least = 1, .most = 1 << 24},
        {"rows", .large = &o->data.rows, .least = 1, .most = 1 << 20},
        {"eps", .text = &o->eps},
        {"affine", .take = nb_take_affine, .among = nb_affine_names, .to = &o->data.affine},
        {"seed", .seed = &o->data.seed},
        {"quantize", .take = set_quantize, .to = o},
        {"format", .text = &o->format, .among = nb_table_markdown_csv_json},
        {.name = NULL}};
    const bool read = nb_read_options(help, options, NB_ANY_ARGUMENTS, argc, argv, exit_code);
    while (read && optind < argc) nb_strings_add(&o->designs, argv[optind++]);
    if (!read || (o->designs.n > 0) != o->list) return read;
    nb_error(o->list ? "emulate: --list takes no DESIGN"
                     : "emulate: DESIGN is missing; `normbench emulate --list` shows some");
    return false;
}

/* ---- measuring --------------------------------------------------------------------------------------------------------- */

static int parse_design(struct nb_judged_design *e, const char *text, const char *eps) {
    char *with_eps freed = nb_textf("%s%s%s", text, eps ? "/eps:" : "", eps ? eps : "");
    if (nb_design_parse(&e->design, with_eps) != 0) return -1;
    struct nb_strbuf canonical = {0};
    nb_design_print(&e->design, &canonical);
    e->text = canonical.text;
    return 0;
}

static int measure(struct nb_judged_design *e, const struct emulate_options *o) {
    struct nb_design_rows rows released_by(nb_design_rows_release);
    if (nb_design_rows_init(&rows, &e->design, &o->data) != 0) return -1;
    nb_design_measure(&e->report, &e->design, &rows, o->data.seed);
    return 0;
}

/* ---- 8 bits ------------------------------------------------------------------------------------------------------------ */

static size_t quantize_values(struct nb_quantized_rows *out, const struct emulate_options *o, const char *name,
                              const double *values) {
    size_t n = 0;
    for (int quantum = 0; quantum < NB_N_QUANTA; quantum++) {
        for (int scaling = 0; o->to[quantum] && scaling < NB_N_SCALINGS; scaling++) {
            if (quantum == NB_QUANTUM_INT8 && scaling == NB_SCALING_NONE) continue; /* integers need a unit */
            struct nb_quantized_rows *one = &out[n++];
            *one = (struct nb_quantized_rows){name, (enum nb_quantum)quantum, (enum nb_scaling)scaling, {0}};
            nb_quantize(&one->q, values, o->data.rows, o->data.cols, one->quantum, one->scaling);
        }
    }
    return n;
}

/* The rows, those of the first design, behind each design. */
static int quantize_all(struct nb_judged_design *list, const struct emulate_options *o) {
    enum { EACH = NB_N_QUANTA * NB_N_SCALINGS };
    struct nb_quantized_rows *out freed = nb_alloc((o->designs.n + 1) * EACH, sizeof *out);
    size_t n = 0;
    int result = 0;
    for (size_t i = 0; i < o->designs.n && result == 0; i++) {
        struct nb_design_rows rows released_by(nb_design_rows_release);
        result = nb_design_rows_init(&rows, &list[i].design, &o->data);
        if (result != 0) break;
        if (i == 0) n = quantize_values(out, o, "x", rows.x);
        double *y freed = nb_alloc((unsigned long long)(rows.rows * rows.cols), sizeof *y);
        for (int64_t row = 0; row < rows.rows; row++)
            nb_emulate_row(&list[i].design, rows.cols, rows.x + row * rows.cols, rows.gamma, rows.beta,
                           y + row * rows.cols, o->data.seed + (uint64_t)row);
        n += quantize_values(out + n, o, list[i].text, y);
    }
    if (result == 0) result = nb_print_quantized(out, n, &o->data, o->format);
    return result == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

static int emulate_all(struct nb_judged_design *list, struct emulate_options *o) {
    if (nb_design_data_resolve(&o->data) != 0) return NB_EXIT_USAGE;
    for (size_t i = 0; i < o->designs.n; i++)
        if (parse_design(&list[i], o->designs.items[i], o->eps) != 0) return NB_EXIT_USAGE;
    if (o->quantize) return quantize_all(list, o);
    const double start_s = nb_now_s();
    for (size_t i = 0; i < o->designs.n; i++) {
        nb_progress((double)i, (double)o->designs.n, nb_now_s() - start_s, list[i].text);
        if (measure(&list[i], o) != 0) return NB_EXIT_USAGE;
    }
    nb_progress_end();
    const int printed = nb_print_designs(list, o->designs.n, &o->data, o->format);
    return printed == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

static void release(struct emulate_options *o) { nb_strings_release(&o->designs); }

static int emulate_main(int argc, char **argv) {
    struct emulate_options o released_by(release) = {.format = "table",
                                                     .data = {.data = "scales", .seed = 1, .affine = NB_N_AFFINES}};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (o.list) return nb_list_designs(o.format) == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
    struct nb_judged_design *list_of freed = nb_alloc(o.designs.n, sizeof *list_of);
    exit_code = emulate_all(list_of, &o);
    for (size_t i = 0; i < o.designs.n; i++) free(list_of[i].text);
    return exit_code;
}

const struct nb_command nb_command_emulate = {"emulate", "execute norms in other formats, orders and roundings", help,
                                              emulate_main};
