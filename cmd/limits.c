// SPDX-License-Identifier: Apache-2.0
/* normbench limits: where the arithmetic of one configuration ends, each figure tried on the spot. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/lab.h"
#include "reports/text/output.h"
#include "src/core/case.h"
#include "src/core/log.h"
#include "src/lab/limits/limits.h"
#include "src/measure/process.h"

extern const struct nb_command nb_command_limits;

static const char help[] =
    "usage: normbench limits --dtype NAME [OPTIONS]\n\n"
    "Reports where the arithmetic of a norm breaks down for one configuration: from which |x| squares overflow, from which\n"
    "rms their sum does, what is left of eps, where sums stop growing, how many lanes they need, what cancellation costs.\n"
    "Every figure is computed from the formats and then tried on a generated row: at the threshold, and at the number next\n"
    "to it.\n\n"
    "  --dtype NAME         f32, tf32, f16, bf16, e5m2 or e4m3: everything is done in it, unless --design says otherwise\n"
    "  --n N                elements of a row (default 4096)\n"
    "  --eps EPS            default 1e-5\n"
    "  --op NAME            rmsnorm (default) or layernorm\n"
    "  --design TEXT        another arithmetic, such as llama or rmsnorm/store:bf16/acc:f32x16; `normbench emulate --help`\n"
    "  --gamma MAX          the largest |gamma|: does the output stay in range?\n"
    "  --rho R              layernorm: |mean| / standard deviation for which conditioning is reported (default 10)\n"
    "  --filter TEXT        only lines whose name or group has TEXT in it\n"
    "  --seed N             of the rows of the statistical lines (default 1)\n"
    "  --format NAME        table (default), markdown or json\n" NB_COMMON_HELP "\n"
    "Exit codes: 0 all lines hold, 1 a line does not hold, 2 usage.\n";

enum { OPT_DTYPE = 1, OPT_N, OPT_EPS, OPT_OP, OPT_DESIGN, OPT_GAMMA, OPT_RHO, OPT_FILTER, OPT_SEED, OPT_FORMAT };

struct limits_options {
    const char *dtype, *eps, *op, *design, *filter, *format;
    double n, gamma, rho, seed;
};

static int set_option(struct limits_options *o, int id, const char *value) {
    double eps;
    switch (id) {
    case OPT_DTYPE:
        o->dtype = value;
        if (nb_number_parse(value) >= 0) return 0;
        return nb_error("--dtype %s: one of f32, tf32, f16, bf16, e5m2, e4m3", value);
    case OPT_N:
        if (nb_option_number("--n", value, 1, 1 << 24, &o->n) != 0) return -1;
        return o->n == floor(o->n) ? 0 : nb_error("--n %s: a whole number of elements", value);
    case OPT_EPS:
        o->eps = value;
        return nb_option_number("--eps", value, 0, 1e6, &eps);
    case OPT_OP:
        o->op = value;
        return 0;
    case OPT_DESIGN:
        o->design = value;
        return 0;
    case OPT_GAMMA:
        return nb_option_number("--gamma", value, 0, 1e300, &o->gamma);
    case OPT_RHO:
        return nb_option_number("--rho", value, 0, 1e6, &o->rho);
    case OPT_FILTER:
        o->filter = value;
        return 0;
    case OPT_SEED:
        return nb_option_number("--seed", value, 0, 1e15, &o->seed);
    default:
        o->format = value;
        if (strcmp(value, "table") == 0 || strcmp(value, "markdown") == 0 || strcmp(value, "json") == 0) return 0;
        return nb_error("--format %s: one of table, markdown, json", value);
    }
}

static int parse(struct limits_options *o, int argc, char **argv, int *exit_code) {
    static const struct option options[] = {{"dtype", required_argument, NULL, OPT_DTYPE},
                                            {"n", required_argument, NULL, OPT_N},
                                            {"eps", required_argument, NULL, OPT_EPS},
                                            {"op", required_argument, NULL, OPT_OP},
                                            {"design", required_argument, NULL, OPT_DESIGN},
                                            {"gamma", required_argument, NULL, OPT_GAMMA},
                                            {"rho", required_argument, NULL, OPT_RHO},
                                            {"filter", required_argument, NULL, OPT_FILTER},
                                            {"seed", required_argument, NULL, OPT_SEED},
                                            {"format", required_argument, NULL, OPT_FORMAT},
                                            NB_COMMON_OPTIONS};
    bool done = false;
    *exit_code = NB_EXIT_USAGE;
    for (int id; (id = nb_next_option(argc, argv, options, &nb_command_limits, &done, exit_code)) != -1;)
        if (set_option(o, id, optarg) != 0) return -1;
    if (done) return -1;
    if (optind < argc) return nb_error("limits: '%s' is one argument too many", argv[optind]);
    if (!o->dtype && !o->design) return nb_error("limits: --dtype NAME, or --design TEXT, says what is looked at");
    return 0;
}

/* What options name stands above the design's text. */
static int configure(struct nb_limits *l, const struct limits_options *o) {
    const int op = o->op ? nb_name_find(nb_op_names, o->op) : (int)NB_OP_RMSNORM;
    if (op < 0) return nb_error("--op %s: rmsnorm or layernorm", o->op);
    nb_limits_init(l, (enum nb_op)op, o->dtype ? (enum nb_number)nb_number_parse(o->dtype) : NB_NUM_F32, (int64_t)o->n,
                   1e-5);
    if (o->design) {
        struct nb_design d;
        if (nb_design_parse(&d, o->design) != 0) return -1;
        if (o->op) d.op = (enum nb_op)op;
        if (o->dtype) d.store = (enum nb_number)nb_number_parse(o->dtype);
        nb_limits_set_design(l, &d);
    }
    if (o->eps || !o->design) {
        l->design.eps = strtod(o->eps ? o->eps : "1e-5", NULL);
        snprintf(l->design.eps_text, sizeof l->design.eps_text, "%s", o->eps ? o->eps : "1e-5");
    }
    l->gamma_max = o->gamma;
    l->rho = o->rho;
    l->seed = (uint64_t)o->seed;
    return nb_limits_refuse(l);
}

static bool is_wanted(const struct nb_limit_rule *rule, const char *filter) {
    return !filter || strstr(rule->id, filter) || strstr(rule->group, filter);
}

static int report(const struct nb_limits *l, const struct limits_options *o) {
    struct nb_limit lines[64];
    size_t n = 0;
    bool all_hold = true;
    for (size_t i = 0; nb_limit_rule_at(i) && n < sizeof lines / sizeof lines[0]; i++) {
        const struct nb_limit_rule *rule = nb_limit_rule_at(i);
        if (!is_wanted(rule, o->filter)) continue;
        nb_progress((double)i, 25, 0, rule->what);
        nb_limit_predict(rule, l, &lines[n]);
        nb_limit_verify(rule, l, &lines[n]);
        if (lines[n++].state == NB_LIMIT_BROKEN) all_hold = false;
        const int interrupt = nb_interrupted();
        if (interrupt) return 128 + interrupt;
    }
    nb_progress_end();
    if (n == 0) {
        nb_error("limits: no line has '%s' in its name or group; without --filter all are shown", o->filter);
        return NB_EXIT_USAGE;
    }
    struct nb_strbuf text = {0};
    nb_limits_view(l, lines, n, o->format, &text);
    if (nb_output(&text, stdout) != 0) return NB_EXIT_FAILED;
    return all_hold ? NB_EXIT_OK : NB_EXIT_FAILED;
}

static int run(int argc, char **argv) {
    struct limits_options o = {.format = "table", .n = 4096, .gamma = NAN, .rho = 10, .seed = 1};
    struct nb_limits limits;
    int exit_code;
    if (parse(&o, argc, argv, &exit_code) != 0) return exit_code;
    if (configure(&limits, &o) != 0) return NB_EXIT_USAGE;
    nb_watch_interrupts();
    return report(&limits, &o);
}

const struct nb_command nb_command_limits = {
    "limits", "where the arithmetic of a configuration breaks down, each threshold tried on a row", help, run};
