// SPDX-License-Identifier: Apache-2.0
/* normbench tolerance: which differences a test of a norm kernel should let pass, and what it then sees. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/lab.h"
#include "reports/text/output.h"
#include "src/core/case.h"
#include "src/core/log.h"
#include "src/lab/tolerance/tolerance.h"
#include "src/measure/process.h"

extern const struct nb_command nb_command_tolerance;

static const char help[] =
    "usage: normbench tolerance [--op NAME] --dtype NAME [OPTIONS]\n"
    "       normbench tolerance --kernel VARIANT [OPTIONS]\n"
    "       normbench tolerance --design TEXT [OPTIONS]\n\n"
    "Derives rtol and atol for a test of a norm kernel from the rounding-error bound of its formula on your kind of rows, and\n"
    "tries them: how often correct kernels fail (several orders of summation, and the built-in kernels of the same formula),\n"
    "which planted mistakes are detected, and the smallest error of the scale that is; next to the tolerances in common use.\n\n"
    "  --op NAME            rmsnorm (default), prmsnorm, layernorm or l2norm\n"
    "  --dtype NAME         f32, f16 or bf16; statistics are in f32, in any order, unless --design says otherwise\n"
    "  --n N                elements of a row (default 4096)\n"
    "  --eps EPS            default 1e-5\n"
    "  --design TEXT        another arithmetic, such as llama/store:f16; `normbench emulate --help`\n"
    "  --kernel VARIANT     a built-in kernel's formula and order, such as layernorm_welford_v256_bf16\n"
    "  --data NAME          a distribution or data set (default normal); `normbench list data`\n"
    "  --affine NAME        none, gamma or gamma_beta (default: the op's usual one)\n"
    "  --rows N             of one test (default 16)\n"
    "  --reference NAME     what is compared with: exact (default), rounded to the dtype, or peer, another kernel\n"
    "  --alarm P            how often a correct kernel may fail the calibrated tolerance (default 0.01)\n"
    "  --trials N           tests of each correct kernel (default: as many as take some seconds)\n"
    "  --seed N             of the rows (default 1)\n"
    "  --format NAME        table (default), json, or a test to paste: torch, numpy, c\n" NB_TUNING_HELP NB_COMMON_HELP
    "\n"
    "Exit codes: 0 ok, 1 a correct kernel failed the derived tolerance, 2 usage.\n";

enum {
    OPT_OP = 1,
    OPT_DTYPE,
    OPT_N,
    OPT_EPS,
    OPT_DESIGN,
    OPT_KERNEL,
    OPT_DATA,
    OPT_AFFINE,
    OPT_ROWS,
    OPT_REFERENCE,
    OPT_ALARM,
    OPT_TRIALS,
    OPT_SEED,
    OPT_FORMAT
};

struct tolerance_options {
    const char *op, *dtype, *eps, *design, *kernel, *data, *affine, *reference, *format;
    double n, rows, alarm, trials, seed;
};

static int set_count(const char *option, const char *text, double most, double *out) {
    if (nb_option_number(option, text, 1, most, out) != 0) return -1;
    return *out == floor(*out) ? 0 : nb_error("%s %s: a whole number", option, text);
}

static int set_format(struct tolerance_options *o, const char *value) {
    o->format = value;
    if (nb_tolerance_format_known(value)) return 0;
    return nb_error("--format %s: one of table, json, torch, numpy, c", value);
}

static int set_option(struct tolerance_options *o, int id, const char *value) {
    const char **const texts[] = {[OPT_OP] = &o->op,         [OPT_DTYPE] = &o->dtype,         [OPT_DESIGN] = &o->design,
                                  [OPT_KERNEL] = &o->kernel, [OPT_DATA] = &o->data,           [OPT_AFFINE] = &o->affine,
                                  [OPT_EPS] = &o->eps,       [OPT_REFERENCE] = &o->reference, [OPT_FORMAT] = NULL};
    double eps;
    switch (id) {
    case OPT_N:
        return set_count("--n", value, 1 << 20, &o->n);
    case OPT_ROWS:
        return set_count("--rows", value, 1 << 16, &o->rows);
    case OPT_TRIALS:
        return set_count("--trials", value, 1e6, &o->trials);
    case OPT_ALARM:
        return nb_option_number("--alarm", value, 1e-9, 0.5, &o->alarm);
    case OPT_SEED:
        return nb_option_number("--seed", value, 0, 1e15, &o->seed);
    case OPT_FORMAT:
        return set_format(o, value);
    case OPT_EPS:
        if (nb_option_number("--eps", value, 0, 1e6, &eps) != 0) return -1;
        if (strlen(value) > 30) return nb_error("--eps %.40s: too long a number", value);
        break;
    default:
        break;
    }
    *texts[id] = value;
    return 0;
}

static int parse(struct tolerance_options *o, int argc, char **argv, int *exit_code) {
    static const struct option options[] = {{"op", required_argument, NULL, OPT_OP},
                                            {"dtype", required_argument, NULL, OPT_DTYPE},
                                            {"n", required_argument, NULL, OPT_N},
                                            {"eps", required_argument, NULL, OPT_EPS},
                                            {"design", required_argument, NULL, OPT_DESIGN},
                                            {"kernel", required_argument, NULL, OPT_KERNEL},
                                            {"data", required_argument, NULL, OPT_DATA},
                                            {"affine", required_argument, NULL, OPT_AFFINE},
                                            {"rows", required_argument, NULL, OPT_ROWS},
                                            {"reference", required_argument, NULL, OPT_REFERENCE},
                                            {"alarm", required_argument, NULL, OPT_ALARM},
                                            {"trials", required_argument, NULL, OPT_TRIALS},
                                            {"seed", required_argument, NULL, OPT_SEED},
                                            {"format", required_argument, NULL, OPT_FORMAT},
                                            NB_TUNING_OPTION,
                                            NB_COMMON_OPTIONS};
    bool done = false;
    *exit_code = NB_EXIT_USAGE;
    for (int id; (id = nb_next_option(argc, argv, options, &nb_command_tolerance, &done, exit_code)) != -1;)
        if (set_option(o, id, optarg) != 0) return -1;
    if (done) return -1;
    if (optind < argc) return nb_error("tolerance: '%s' is one argument too many", argv[optind]);
    if (!o->dtype && !o->design && !o->kernel)
        return nb_error("tolerance: --dtype NAME, --design TEXT or --kernel VARIANT says what is tested");
    if (o->kernel && (o->design || o->dtype || o->op))
        return nb_error("tolerance: --kernel says op, dtype and arithmetic; leave out --op, --dtype and --design");
    return 0;
}

/* ---- the arithmetic in question -------------------------------------------------------------------------------------------- */

static int name_in(const char *option, const char *const *names, const char *text, int *out) {
    char reason[256];
    *out = nb_name_find(names, text);
    if (*out >= 0) return 0;
    nb_name_refuse(names, text, reason, sizeof reason);
    return nb_error("%s %s %s", option, text, reason);
}

/* As a kernel declares it: statistics in f32 or, with stats_dtype x, everything in the dtype but the sums of composed kernels. */
static void design_of(struct nb_design *d, const struct nb_kernel *k) {
    const enum nb_number store = nb_number_of((enum nb_dtype)k->dtype);
    nb_design_init(d);
    d->op = (enum nb_op)k->op;
    d->store = store;
    if (k->op == NB_OP_LAYERNORM) d->variance = (enum nb_variance)k->variance;
    d->folded = (k->flags & NB_FLAG_FOLDED) != 0;
    if (k->stats_dtype != NB_STATS_X) return;
    d->square = d->acc = d->stat = d->root = d->rstd = d->scale = d->offset = store;
    if (k->style == NB_COMPOSED) d->acc = NB_NUM_F32;
}

static int from_kernel(struct nb_tolerance_request *q, const char *id) {
    q->kernel = nb_registry_find(id);
    if (!q->kernel) return nb_error("--kernel %s: no kernel has this variant; `normbench list kernels` shows them", id);
    const uint32_t op = q->kernel->kernel->op;
    if ((op != NB_OP_RMSNORM && op != NB_OP_PRMSNORM && op != NB_OP_LAYERNORM && op != NB_OP_L2NORM) ||
        q->kernel->kernel->pass != NB_FORWARD)
        return nb_error("--kernel %s: forward rmsnorm, prmsnorm, layernorm and l2norm have tolerances", id);
    design_of(&q->design, q->kernel->kernel);
    return 0;
}

static int set_arithmetic(struct nb_tolerance_request *q, const struct tolerance_options *o) {
    int op = 0, dtype = 0;
    if (o->kernel) return from_kernel(q, o->kernel);
    if (o->design ? nb_design_parse(&q->design, o->design) != 0 : (nb_design_init(&q->design), false)) return -1;
    if (o->op) {
        if (name_in("--op", nb_op_names, o->op, &op) != 0) return -1;
        if (op != NB_OP_RMSNORM && op != NB_OP_PRMSNORM && op != NB_OP_LAYERNORM && op != NB_OP_L2NORM)
            return nb_error("--op %s: one of rmsnorm, prmsnorm, layernorm, l2norm", o->op);
        q->design.op = (enum nb_op)op;
    }
    if (o->dtype) {
        if (name_in("--dtype", nb_dtype_names, o->dtype, &dtype) != 0) return -1;
        q->design.store = nb_number_of((enum nb_dtype)dtype);
    }
    return 0;
}

static int configure(struct nb_tolerance_request *q, const struct tolerance_options *o) {
    int affine = NB_N_AFFINES, reference = NB_REFERENCE_EXACT;
    *q = (struct nb_tolerance_request){.data = o->data ? o->data : "normal",
                                       .rows = (int64_t)o->rows,
                                       .cols = (int64_t)o->n,
                                       .seed = (uint64_t)o->seed,
                                       .trials = (int64_t)o->trials,
                                       .alarm = o->alarm};
    if (set_arithmetic(q, o) != 0) return -1;
    if (o->eps) {
        q->design.eps = strtod(o->eps, NULL);
        snprintf(q->design.eps_text, sizeof q->design.eps_text, "%s", o->eps);
    }
    if (o->affine && name_in("--affine", nb_affine_names, o->affine, &affine) != 0) return -1;
    if (o->reference && name_in("--reference", nb_reference_kind_names, o->reference, &reference) != 0) return -1;
    q->affine = (enum nb_affine)affine;
    q->reference = (enum nb_reference_kind)reference;
    if (q->rows * q->cols > 1 << 24) return nb_error("tolerance: a test of more than 2^24 elements; take fewer --rows");
    return 0;
}

static bool correct_ones_pass(const struct nb_tolerance *t) {
    for (int s = 0; s < t->n_subjects; s++)
        if (t->subjects[s].alarms[NB_DERIVED].seen > 0) return false;
    return true;
}

static int report(const struct nb_tolerance_request *q, const char *format) {
    struct nb_tolerance *t = nb_alloc(1, sizeof *t);
    struct nb_strbuf text = {0};
    int exit_code = NB_EXIT_USAGE;
    const int result = nb_tolerance_run(t, q);
    if (result > 128) exit_code = result;
    if (result == 0 && nb_tolerance_view(t, q, format, &text) == 0) {
        exit_code = correct_ones_pass(t) ? NB_EXIT_OK : NB_EXIT_FAILED;
        if (nb_output(&text, stdout) != 0) exit_code = NB_EXIT_FAILED;
    }
    free(t);
    return exit_code;
}

static int run(int argc, char **argv) {
    struct tolerance_options o = {.n = 4096, .rows = 16, .alarm = 0.01, .seed = 1, .format = "table"};
    struct nb_tolerance_request request;
    const struct nb_texts no_plugins = {0};
    int exit_code;
    if (parse(&o, argc, argv, &exit_code) != 0) return exit_code;
    if (nb_load_kernels(&no_plugins, NULL) != 0 || configure(&request, &o) != 0) return NB_EXIT_USAGE;
    nb_watch_interrupts();
    exit_code = report(&request, o.format);
    nb_registry_release();
    return exit_code;
}

const struct nb_command nb_command_tolerance = {
    "tolerance", "rtol and atol that a correct kernel meets, how often it fails, which mistakes are detected", help,
    run};
