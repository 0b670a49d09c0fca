// SPDX-License-Identifier: Apache-2.0
/* normbench emulate: how accurate a norm would be in any format, order and rounding, before it is written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/lab.h"
#include "reports/text/grid.h"
#include "src/core/case.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/lab/emulate/depth.h"
#include "src/lab/emulate/design_report.h"

extern const struct nb_command nb_command_emulate;

static const char help[] =
    "usage: normbench emulate DESIGN [DESIGN...] [OPTIONS]\n"
    "       normbench emulate --list\n\n"
    "Executes norms step by step, every operation rounded once to the format that the design gives it, and compares them\n"
    "with the exact result. DESIGN is an op (rmsnorm, prmsnorm, layernorm, l2norm) or a preset (llama, gemma, all_bf16 ...),\n"
    "followed by any number of changes to it:\n"
    "  rmsnorm/store:bf16/acc:f32x16/cast:before    llama/store:f16    layernorm/variance:onepass/acc:f64\n\n"
    "  --list               the presets and the parts of a design\n"
    "  --compare DESIGN     one more design, as a further DESIGN; repeatable\n"
    "  --data NAME          rows: a distribution, a data set or a file (default scales: normal, rows of many sizes)\n"
    "  --n N                columns (default 4096, or as the file has)\n"
    "  --rows R             rows (default 64, or as the file has, up to 256)\n"
    "  --eps EPS            of all designs\n"
    "  --affine WHICH       none, gamma, gamma_beta (default: as usual for the op)\n"
    "  --seed S             of data and stochastic rounding (default 1)\n"
    "  --depth K            follows the errors over K residual blocks x <- x + f(norm(x))\n"
    "  --step S             size of f relative to norm(x) (default 0.05)\n"
    "  --stream FORMAT      what x is kept in between blocks; exact (default), or a format: rounded as store_round says\n"
    "  --format NAME        table (default), markdown, csv or json\n" NB_COMMON_HELP "\n"
    "Exit codes: 0 ok, 2 usage.\n";

enum {
    OPT_LIST = 1,
    OPT_COMPARE,
    OPT_DATA,
    OPT_N,
    OPT_ROWS,
    OPT_EPS,
    OPT_AFFINE,
    OPT_SEED,
    OPT_DEPTH,
    OPT_STEP,
    OPT_STREAM,
    OPT_FORMAT
};

struct emulate_options {
    struct nb_texts designs;
    struct nb_design_data data;
    const char *eps, *format;
    struct nb_depth_options depth; /* blocks 0: none */
    bool list;
};

/* ---- options ----------------------------------------------------------------------------------------------------------- */

static int set_affine(struct emulate_options *o, const char *value) {
    const int found = nb_name_find(nb_affine_names, value);
    char reason[256];
    if (found >= 0) {
        o->data.affine = (enum nb_affine)found;
        return 0;
    }
    nb_name_refuse(nb_affine_names, value, reason, sizeof reason);
    return nb_error("--affine %s %s", value, reason);
}

static int set_stream(struct emulate_options *o, const char *value) {
    const int found = strcmp(value, "exact") == 0 ? (int)NB_NUM_F64 : nb_number_parse(value);
    if (found < 0) return nb_error("--stream %s: exact, or one of f32, tf32, f16, bf16, e5m2, e4m3", value);
    o->depth.stream = (enum nb_number)found;
    return 0;
}

static int set_count(const char *option, const char *value, double most, int64_t *count) {
    double number;
    if (nb_option_number(option, value, 1, most, &number) != 0) return -1;
    if (number != floor(number)) return nb_error("%s %s: a whole number", option, value);
    *count = (int64_t)number;
    return 0;
}

static int set_depth(struct emulate_options *o, const char *value) {
    int64_t blocks;
    if (set_count("--depth", value, 10000, &blocks) != 0) return -1;
    o->depth.blocks = (int)blocks;
    return 0;
}

static int set_option(struct emulate_options *o, int id, const char *value) {
    int64_t seed;
    switch (id) {
    case OPT_LIST:
        o->list = true;
        return 0;
    case OPT_COMPARE:
        nb_texts_add(&o->designs, value);
        return 0;
    case OPT_DATA:
        o->data.data = value;
        return 0;
    case OPT_N:
        return set_count("--n", value, 1 << 24, &o->data.cols);
    case OPT_ROWS:
        return set_count("--rows", value, 1 << 20, &o->data.rows);
    case OPT_EPS:
        o->eps = value;
        return 0;
    case OPT_AFFINE:
        return set_affine(o, value);
    case OPT_SEED:
        if (set_count("--seed", value, 0x1p53, &seed) != 0) return -1;
        o->data.seed = o->depth.seed = (uint64_t)seed;
        return 0;
    case OPT_DEPTH:
        return set_depth(o, value);
    case OPT_STEP:
        return nb_option_number("--step", value, 1e-6, 1e6, &o->depth.step);
    case OPT_STREAM:
        return set_stream(o, value);
    default:
        o->format = value;
        if (nb_grid_format_known(value)) return 0;
        return nb_error("--format %s: table, markdown, csv or json", value);
    }
}

static int parse(struct emulate_options *o, int argc, char **argv, int *exit_code) {
    static const struct option options[] = {{"list", no_argument, NULL, OPT_LIST},
                                            {"compare", required_argument, NULL, OPT_COMPARE},
                                            {"data", required_argument, NULL, OPT_DATA},
                                            {"n", required_argument, NULL, OPT_N},
                                            {"rows", required_argument, NULL, OPT_ROWS},
                                            {"eps", required_argument, NULL, OPT_EPS},
                                            {"affine", required_argument, NULL, OPT_AFFINE},
                                            {"seed", required_argument, NULL, OPT_SEED},
                                            {"depth", required_argument, NULL, OPT_DEPTH},
                                            {"step", required_argument, NULL, OPT_STEP},
                                            {"stream", required_argument, NULL, OPT_STREAM},
                                            {"format", required_argument, NULL, OPT_FORMAT},
                                            NB_COMMON_OPTIONS};
    struct nb_texts compared = {0};
    bool done = false;
    optind = 0;
    *exit_code = NB_EXIT_USAGE;
    for (int id; (id = nb_next_option(argc, argv, options, &nb_command_emulate, &done, exit_code)) != -1;)
        if (set_option(o, id, optarg) != 0) return -1;
    if (done) return -1;
    compared = o->designs; /* they come behind those without an option */
    o->designs = (struct nb_texts){0};
    while (optind < argc) nb_texts_add(&o->designs, argv[optind++]);
    for (size_t i = 0; i < compared.n; i++) nb_texts_add(&o->designs, compared.items[i]);
    nb_texts_release(&compared);
    if (o->designs.n == 0 && !o->list)
        return nb_error("emulate: DESIGN is missing; `normbench emulate --list` shows some");
    if (o->designs.n > 0 && o->list) return nb_error("emulate: --list takes no DESIGN");
    return 0;
}

/* ---- measuring --------------------------------------------------------------------------------------------------------- */

static int parse_design(struct nb_judged_design *e, const char *text, const char *eps) {
    struct nb_strbuf with_eps = {0};
    nb_strbuf_add(&with_eps, text);
    if (eps) nb_strbuf_addf(&with_eps, "/eps:%s", eps);
    const int result = nb_design_parse(&e->design, with_eps.text);
    nb_strbuf_release(&with_eps);
    if (result != 0) return -1;
    struct nb_strbuf canonical = {0};
    nb_design_print(&e->design, &canonical);
    e->text = canonical.text;
    return 0;
}

static int measure(struct nb_judged_design *e, const struct emulate_options *o) {
    struct nb_design_rows rows;
    if (nb_design_rows_init(&rows, &e->design, &o->data) != 0) return -1;
    nb_design_measure(&e->report, &e->design, &rows, o->data.seed);
    const int result = o->depth.blocks > 0 ? nb_depth_run(&e->depth, &e->design, &rows, &o->depth) : 0;
    nb_design_rows_release(&rows);
    return result;
}

static int emulate_all(struct nb_judged_design *list, struct emulate_options *o) {
    if (nb_design_data_resolve(&o->data) != 0) return NB_EXIT_USAGE;
    for (size_t i = 0; i < o->designs.n; i++)
        if (parse_design(&list[i], o->designs.items[i], o->eps) != 0) return NB_EXIT_USAGE;
    const double start_s = nb_now_s();
    for (size_t i = 0; i < o->designs.n; i++) {
        nb_progress((double)i, (double)o->designs.n, nb_now_s() - start_s, list[i].text);
        if (measure(&list[i], o) != 0) return NB_EXIT_USAGE;
    }
    nb_progress_end();
    const int printed = nb_print_designs(list, o->designs.n, &o->data, &o->depth, o->format);
    return printed == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

static int run(int argc, char **argv) {
    struct emulate_options o = {.format = "table",
                                .data = {.data = "scales", .seed = 1, .affine = NB_N_AFFINES},
                                .depth = {.step = 0.05, .stream = NB_NUM_F64, .seed = 1}};
    struct nb_judged_design *list_of = NULL;
    int exit_code = NB_EXIT_USAGE;
    if (parse(&o, argc, argv, &exit_code) != 0) goto out;
    if (o.list) {
        exit_code = nb_list_designs(o.format) == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
        goto out;
    }
    list_of = nb_alloc(o.designs.n, sizeof *list_of);
    exit_code = emulate_all(list_of, &o);
out:
    for (size_t i = 0; list_of && i < o.designs.n; i++) {
        free(list_of[i].text);
        nb_depth_release(&list_of[i].depth);
    }
    free(list_of);
    nb_texts_release(&o.designs);
    return exit_code;
}

const struct nb_command nb_command_emulate = {.name = "emulate",
                                              .summary =
                                                  "how accurate a norm would be in other formats, orders, roundings",
                                              .help = help,
                                              .run = run};
