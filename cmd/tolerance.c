// SPDX-License-Identifier: Apache-2.0
/* normbench tolerance: which differences a test of a norm kernel should let pass, and what it then sees. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/lab/lab.h"
#include "reports/text/output.h"
#include "src/core/case.h"
#include "src/core/guard.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/lab/tolerance/tolerance.h"
#include "src/measure/process.h"

static const char help[] =
    "usage: normbench tolerance [--op NAME] --dtype NAME [OPTIONS]\n"
    "       normbench tolerance --kernel NAME [OPTIONS]\n"
    "       normbench tolerance --design TEXT [OPTIONS]\n\n"
    "Derive rtol and atol for a test of a norm kernel from the rounding-error bound of its formula on your kind of rows, and\n"
    "try them: how often correct kernels fail (several orders of summation, and the built-in kernels of the same formula),\n"
    "which planted mistakes are detected; next to the tolerances in common use.\n\n"
    "  --op NAME            rmsnorm (default), prmsnorm, layernorm or l2norm\n"
    "  --dtype NAME         f32, f16 or bf16; statistics are in f32, in any order, unless --design says otherwise\n"
    "  --n N                elements of a row (default 4096)\n"
    "  --eps EPS            default 1e-5\n"
    "  --design TEXT        another arithmetic, such as llama/store:f16; `normbench emulate --help`\n"
    "  --kernel NAME        a kernel's formula and order: a variant, such as layernorm_welford_v256_bf16, or the name of a\n"
    "                       kernel that has one\n"
    "  --plugin FILE        add the kernels of a .so, .py or program, for --kernel; of one that has a single kernel it is that one\n" NB_LOAD_TIMEOUT_HELP
    "  --data NAME          a distribution or data set (default normal); `normbench list data`\n"
    "  --affine NAME        none, gamma or gamma_beta (default: the op's usual one)\n"
    "  --rows N             of one test (default 16)\n"
    "  --reference NAME     what is compared with: exact (default), rounded to the dtype, or peer, another kernel\n"
    "  --alarm P            how often a correct kernel may fail the calibrated tolerance (default 0.01)\n"
    "  --trials N           tests of each correct kernel (default: as many as take some seconds)\n"
    "  --seed N             of the rows (default 1)\n"
    "  --case-timeout S     with --plugin: the longest that all of it may take (default 120)\n"
    "  --format NAME        table (default), json, or a test that runs as it stands: torch, numpy, c\n" NB_TUNING_HELP
        NB_COMMON_HELP "\n"
    "Example: normbench tolerance --op rmsnorm --dtype bf16 --n 768\n"
    "Exit codes: 0 ok, 1 a kernel exceeds the derived tolerance, or the one named has a bias that correct ones have not, or\n"
    "crashed or hung, 2 usage.\n";

struct tolerance_options {
    const char *op, *dtype, *eps, *design, *kernel, *data, *reference, *format;
    enum nb_affine affine;
    struct nb_strings plugins;
    int64_t n, rows, trials;
    double eps_value, alarm, case_timeout_s;
    uint64_t seed;
};

static int check_options(const struct tolerance_options *o) {
    if (!o->dtype && !o->design && !o->kernel && o->plugins.n == 0)
        return nb_error("tolerance: --dtype NAME, --design TEXT or --kernel VARIANT says what is tested");
    if ((o->kernel || o->plugins.n > 0) && (o->design || o->dtype || o->op))
        return nb_error("tolerance: a kernel says op, dtype and arithmetic; leave out --op, --dtype and --design");
    if (o->eps && strlen(o->eps) > 30) return nb_error("--eps %.40s: too long a number", o->eps);
    return 0;
}

static bool parse(struct tolerance_options *o, int argc, char **argv, int *exit_code) {
    static const char *const formats[] = {"table", "json", "torch", "numpy", "c", NULL};
    const struct nb_option options[] = {{"op", .text = &o->op},
                                        {"dtype", .text = &o->dtype},
                                        {"n", .large = &o->n, .least = 1, .most = 1 << 20},
                                        {"eps", .text = &o->eps, .number = &o->eps_value, .least = 0, .most = 1e6},
                                        {"design", .text = &o->design},
                                        {"kernel", .text = &o->kernel},
                                        {"plugin", .texts = &o->plugins},
                                        NB_LOAD_TIMEOUT_OPTION,
                                        NB_CASE_TIMEOUT_OPTION(&o->case_timeout_s),
                                        {"data", .text = &o->data},
                                        {"affine", .take = nb_take_affine, .among = nb_affine_names, .to = &o->affine},
                                        {"rows", .large = &o->rows, .least = 1, .most = 1 << 16},
                                        {"reference", .text = &o->reference},
                                        {"alarm", .number = &o->alarm, .least = 1e-9, .most = 0.5},
                                        {"trials", .large = &o->trials, .least = 1, .most = 1e6},
                                        {"seed", .seed = &o->seed},
                                        {"format", .text = &o->format, .among = formats},
                                        NB_TUNING_OPTION,
                                        {.name = NULL}};
    return nb_read_options(help, options, 0, argc, argv, exit_code) && check_options(o) == 0;
}

/* ---- the arithmetic in question -------------------------------------------------------------------------------------------- */

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
    q->kernel = nb_registry_meant("--kernel ", id);
    if (!q->kernel) return -1;
    if (q->kernel->kernel->backend == NB_BACKEND_CUDA)
        return nb_error("--kernel %s: a kernel for a GPU cannot be called on the host's memory; its emulation can", id);
    const uint32_t op = q->kernel->kernel->op;
    if ((op != NB_OP_RMSNORM && op != NB_OP_PRMSNORM && op != NB_OP_LAYERNORM && op != NB_OP_L2NORM) ||
        q->kernel->kernel->pass != NB_FORWARD)
        return nb_error("--kernel %s: forward rmsnorm, prmsnorm, layernorm and l2norm have tolerances", id);
    design_of(&q->design, q->kernel->kernel);
    return 0;
}

static int set_arithmetic(struct nb_tolerance_request *q, const struct tolerance_options *o) {
    if (o->kernel || o->plugins.n > 0) return from_kernel(q, o->kernel ? o->kernel : "*:*");
    nb_design_init(&q->design);
    if (o->design && nb_design_parse(&q->design, o->design) != 0) return -1;
    if (o->op) {
        const int op = nb_option_name("op", o->op, nb_op_names);
        if (op < 0) return -1;
        if (op != NB_OP_RMSNORM && op != NB_OP_PRMSNORM && op != NB_OP_LAYERNORM && op != NB_OP_L2NORM)
            return nb_error("--op %s: one of rmsnorm, prmsnorm, layernorm, l2norm", o->op);
        q->design.op = (enum nb_op)op;
    }
    if (o->dtype) {
        const int dtype = nb_option_name("dtype", o->dtype, nb_dtype_names);
        if (dtype < 0) return -1;
        q->design.store = nb_number_of((enum nb_dtype)dtype);
    }
    return 0;
}

static int configure(struct nb_tolerance_request *q, const struct tolerance_options *o) {
    const int reference =
        o->reference ? nb_option_name("reference", o->reference, nb_reference_kind_names) : (int)NB_REFERENCE_EXACT;
    *q = (struct nb_tolerance_request){.data = o->data,
                                       .rows = o->rows,
                                       .cols = o->n,
                                       .seed = o->seed,
                                       .trials = o->trials,
                                       .alarm = o->alarm,
                                       .affine = o->affine,
                                       .reference = (enum nb_reference_kind)reference};
    if (reference < 0 || set_arithmetic(q, o) != 0) return -1;
    if (o->eps) {
        q->design.eps = o->eps_value;
        snprintf(q->design.eps_text, sizeof q->design.eps_text, "%s", o->eps);
    }
    if (q->rows * q->cols > 1 << 24) return nb_error("tolerance: a test of more than 2^24 elements; take fewer --rows");
    return 0;
}

/* A plugin's kernel is called in the guard alone, where it is loaded. What is counted there stands in memory that this process sees, too:
 * when a signal ends it, no answer is waited for. */
struct guarded {
    struct nb_tolerance_request q;
    char kernel[NB_VARIANT_MAX];
    struct nb_tolerance *t;
    int result;
};

static void run_there(void *arg) {
    struct guarded *g = arg;
    g->q.kernel = nb_registry_find(g->kernel);
    g->result = g->q.kernel ? nb_tolerance_run(g->t, &g->q) : nb_error("%s: is gone", g->kernel);
}

/* What a kernel's process hands back may have been written over by the kernel. */
static bool is_whole(const struct nb_tolerance *t) {
    bool whole = t->n_criteria >= 0 && t->n_criteria <= NB_MAX_CRITERIA && t->n_subjects >= 0 &&
                 t->n_subjects <= NB_MAX_SUBJECTS && t->n_bugs >= 0 && t->n_bugs <= NB_MAX_BUGS;
    for (int i = 0; whole && i < t->n_subjects; i++)
        whole = memchr(t->subjects[i].name, '\0', sizeof t->subjects[i].name) &&
                memchr(t->subjects[i].reason, '\0', sizeof t->subjects[i].reason);
    return whole;
}

static int run_in_guard(struct nb_tolerance *t, struct nb_tolerance *shared, const struct nb_tolerance_request *q,
                        double limit_s) {
    struct guarded g = {.q = *q, .t = shared, .result = -1};
    snprintf(g.kernel, sizeof g.kernel, "%s", q->kernel->id);
    const char *why = nb_guarded(run_there, &g, sizeof g, limit_s);
    *t = *shared;
    if (why && nb_interrupted()) g.result = 128 + nb_interrupted(), why = NULL;
    if (!why && g.result >= 0 && !is_whole(t)) why = "wrote over the answer of its process";
    if (!why) return nb_tolerance_finish(t), g.result;
    nb_error("%s: its code %s", q->kernel->id, why);
    t->trials = 0;
    return NB_EXIT_FAILED;
}

static int report(const struct nb_tolerance_request *q, struct nb_tolerance *shared, double limit_s,
                  const char *format) {
    struct nb_tolerance *t freed = nb_alloc(1, sizeof *t);
    struct nb_strbuf text = {0};
    int exit_code = NB_EXIT_USAGE;
    const int result = q->kernel && q->kernel->plugin ? run_in_guard(t, shared, q, limit_s) : nb_tolerance_run(t, q);
    if (result == 0 || (result > 0 && t->trials > 0)) {
        nb_tolerance_view(t, q, format, &text);
        exit_code = nb_tolerance_is_kept(t) ? NB_EXIT_OK : NB_EXIT_FAILED;
        if ((strcmp(format, "table") == 0 ? nb_output_folded : nb_output)(&text, stdout) != 0)
            exit_code = NB_EXIT_FAILED;
    }
    if (result > 0) exit_code = nb_interrupted() ? nb_ended_by(nb_interrupted(), "tolerance", NULL) : result;
    return exit_code;
}

static int tolerance_main(int argc, char **argv) {
    struct tolerance_options o = {.n = 4096,
                                  .rows = 16,
                                  .alarm = 0.01,
                                  .case_timeout_s = 120,
                                  .seed = 1,
                                  .format = "table",
                                  .data = "normal",
                                  .affine = NB_N_AFFINES};
    struct nb_tolerance_request request;
    struct nb_tolerance *shared = /* older than the guard */
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int exit_code;
    if (parse(&o, argc, argv, &exit_code)) {
        exit_code = NB_EXIT_USAGE;
        if (shared == MAP_FAILED) {
            nb_error("tolerance: no memory to share with a kernel's process");
        } else if (nb_load_kernels(&o.plugins, NULL) == 0 && configure(&request, &o) == 0) {
            nb_watch_interrupts();
            exit_code = report(&request, shared, o.case_timeout_s, o.format);
        }
    }
    nb_strings_release(&o.plugins);
    nb_registry_release();
    return exit_code;
}

const struct nb_command nb_command_tolerance = {
    "tolerance", "derive rtol and atol for a test, and try what they detect", help, tolerance_main};
