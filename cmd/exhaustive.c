// SPDX-License-Identifier: Apache-2.0
/* normbench exhaustive: functions with few inputs, checked on all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/lab.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/root_variants.h"
#include "src/measure/process.h"

extern const struct nb_command nb_command_exhaustive;

static const char help[] =
    "usage: normbench exhaustive MODE [OPTIONS]\n\n"
    "Checks every input there is, so that its answer is a proof and not a sample. MODE is one of\n"
    "  rsqrt    ways to form 1/sqrt(x) in f32: all significands and exponent parities, or all 2^32 inputs\n"
    "  row1     rows of one element: every input of a 16-bit dtype, through designs and through the kernels\n"
    "  row2     rows of two elements: every pair of non-negative numbers of a 16-bit dtype (a sign changes the result's\n"
    "           sign alone, so the others follow)\n"
    "  convert  f32 to f16, bf16, e4m3 and e5m2: all 2^32 inputs, against rounding in integers\n"
    "  stage    the last stage, x * rstd rounded twice: every significand of the dtype with every one of f32; and\n"
    "           1 / sqrt(v + eps) for every variance of the dtype\n\n"
    "  --variant NAME       rsqrt: this one (repeatable), or all (the default): double recip_sqrt recip_sqrt_newton\n"
    "                       quake1 quake2 quake3 rsqrtps rsqrtps_textbook rsqrtps_eigen rsqrtps_newton\n"
    "                       rsqrtps_newton2 rsqrt14 rsqrt14_textbook rsqrt14_newton rsqrtph kernel_div_sqrt\n"
    "                       kernel_mul_recip kernel_rsqrt_nr kernel_rsqrt_raw kernel512_rsqrt_nr kernel512_rsqrt_raw\n"
    "  --all-inputs         rsqrt: subnormals, zeros, negatives, Inf and NaN too\n"
    "  --dtype NAME         row1, row2, stage: f16 (the default) or bf16\n"
    "  --kernel GLOB        row1, row2: these kernels or variants; repeatable. row1: all; row2: the widest rmsnorm_twopass\n"
    "  --plugin FILE        row1, row2: the kernels of a .so, .py or program instead, in a process of their own; repeatable\n" NB_LOAD_TIMEOUT_HELP
    "  --design TEXT        row1, row2: a design as `normbench emulate` takes it, instead of kernels; repeatable\n"
    "  --eps LIST           row1, stage: default 0,1e-12,1e-8,1e-7,1e-6,1e-5,1e-3; row2: 1e-6\n"
    "  --gamma G            row1: weight that distinguishes the cast orders (default 1.3)\n"
    "  --stride N           only every Nth input, for a quick look, which proves nothing\n"
    "  --threads N          default: all CPUs that the process may use\n"
    "  --format NAME        table (the default) or json\n" NB_COMMON_HELP "\n"
    "An error is in ulp of the exact value; `undecided`: inputs so near the midpoint of two numbers that 100 bits\n"
    "do not decide the side.\n\n"
    "Example: normbench exhaustive rsqrt --stride 4096\n"
    "Exit codes: 0 ok, 1 beyond what IEEE 754 or the instruction promises, or a conversion that is wrong, 2 usage,\n"
    "128+n: interrupted by signal n, what was done until then is printed.\n";

enum { MAX_EPS = 64 };
struct exhaustive_options {
    struct nb_exhaust_options o;
    struct nb_texts variants, kernels, designs, plugins;
    double eps[MAX_EPS];
    const char *mode, *format;
};

static const struct nb_exhaust_mode *const modes[] = {&nb_exhaust_rsqrt, &nb_exhaust_row1, &nb_exhaust_row2,
                                                      &nb_exhaust_convert, &nb_exhaust_stage};
enum { N_MODES = sizeof modes / sizeof modes[0] };

static int set_eps(void *to, const char *list) {
    struct exhaustive_options *e = to;
    struct nb_strings words = {0};
    int result = 0;
    nb_strings_split(&words, list, ',');
    e->o.n_eps = 0;
    if (words.n > MAX_EPS) result = nb_error("--eps: at most %d values", MAX_EPS);
    for (size_t i = 0; i < words.n && result == 0; i++)
        result = nb_option_number("eps", words.items[i], 0, 1e30, &e->eps[e->o.n_eps++]);
    nb_strings_release(&words);
    return result;
}

static int set_dtype(void *to, const char *value) {
    struct exhaustive_options *e = to;
    const int dtype = nb_dtype_parse(value);
    if (dtype != NB_F16 && dtype != NB_BF16) return nb_error("--dtype %s: one of f16, bf16", value);
    e->o.dtype = (enum nb_dtype)dtype;
    return 0;
}

static bool parse(struct exhaustive_options *e, int argc, char **argv, int *exit_code) {
    const char *names[N_MODES + 1] = {NULL};
    for (int i = 0; i < N_MODES; i++) names[i] = modes[i]->name;
    const struct nb_option options[] = {{"variant", .texts = &e->variants},
                                        {"all-inputs", .flag = &e->o.all_inputs},
                                        {"dtype", .take = set_dtype, .to = e},
                                        {"kernel", .texts = &e->kernels},
                                        {"design", .texts = &e->designs},
                                        {"plugin", .texts = &e->plugins},
                                        NB_LOAD_TIMEOUT_OPTION,
                                        {"eps", .take = set_eps, .to = e},
                                        {"gamma", .number = &e->o.gamma, .least = 0.001, .most = 1000},
                                        {"stride", .large = &e->o.stride, .least = 1, .most = 1 << 30},
                                        {"threads", .count = &e->o.threads, .least = 1, .most = 1024},
                                        {"format", .text = &e->format, .among = nb_table_json},
                                        {.name = NULL, .among = names}};
    if (!nb_read_options(&nb_command_exhaustive, options, 1, argc, argv, exit_code)) return false;
    e->mode = argv[optind];
    if (!e->mode) nb_error("exhaustive: a MODE is missing: one of rsqrt, row1, row2, convert, stage");
    return e->mode != NULL;
}

static const struct nb_exhaust_mode *find_mode(const char *name) {
    const char *names[N_MODES];
    for (int i = 0; i < N_MODES; i++) {
        names[i] = modes[i]->name;
        if (strcmp(name, names[i]) == 0) return modes[i];
    }
    nb_error("exhaustive: no mode '%s'%s; there are rsqrt, row1, row2, convert, stage", name,
             nb_did_you_mean(name, names, N_MODES).text);
    return NULL;
}

/* Options of another mode would be ignored in silence. */
static int check_options(const struct nb_exhaust_mode *mode, const struct exhaustive_options *e) {
    const bool is_rsqrt = strcmp(mode->name, "rsqrt") == 0;
    if (!is_rsqrt && (e->variants.n || e->o.all_inputs))
        return nb_error("--%s belongs to the mode rsqrt, not to %s", e->variants.n ? "variant" : "all-inputs",
                        mode->name);
    if (!mode->kernels && (e->kernels.n || e->designs.n))
        return nb_error("--%s belongs to the modes row1 and row2, not to %s", e->kernels.n ? "kernel" : "design",
                        mode->name);
    if (!mode->kernels && e->plugins.n)
        return nb_error("--plugin belongs to the modes row1 and row2, not to %s", mode->name);
    if (e->plugins.n && e->designs.n) return nb_error("--design and --plugin: one of them");
    if (!mode->eps && e->o.n_eps)
        return nb_error("--eps belongs to the modes row1, row2 and stage, not to %s", mode->name);
    return 0;
}

static bool keeps_promises(const cJSON *answer) {
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "rows")) {
        const cJSON *within = cJSON_GetObjectItemCaseSensitive(row, "within_limit");
        if (cJSON_IsFalse(within)) return false;
    }
    return true;
}

static int print(const cJSON *answer, const char *format) {
    if (strcmp(format, "table") == 0) return nb_exhaustive_print(answer, stdout);
    nb_json_put(answer, stdout);
    return 0;
}

/* As a mode's own run. */
static int ask_worker(const struct exhaustive_options *e, cJSON **answer) {
    cJSON *answered = nb_exhaust_plugins(e->mode, &e->o, e->plugins.items, (int)e->plugins.n);
    if (!answered) return -1;
    cJSON_Delete(*answer);
    *answer = answered;
    const double ended = nb_json_get_number(answered, "result");
    cJSON_DeleteItemFromObjectCaseSensitive(answered, "result");
    return (int)ended;
}

static int exhaustive_main(int argc, char **argv) {
    struct exhaustive_options e = {.o = {.stride = 1, .dtype = NB_F16, .gamma = 1.3}, .format = "table"};
    cJSON *answer = cJSON_CreateObject();
    const struct nb_exhaust_mode *mode = NULL;
    int exit_code = NB_EXIT_USAGE, cpus[1024];
    if (!parse(&e, argc, argv, &exit_code)) goto out;
    mode = find_mode(e.mode);
    if (!mode || check_options(mode, &e) != 0) goto out;
    if (mode->eps && e.o.n_eps == 0 && set_eps(&e, mode->eps) != 0) goto out;
    if (e.o.threads == 0) e.o.threads = nb_cpu_allowed(cpus, 1024);
    e.o.eps = e.eps;
    e.o.names = mode->kernels ? e.kernels.items : e.variants.items;
    e.o.n_names = (int)(mode->kernels ? e.kernels.n : e.variants.n);
    e.o.designs = e.designs.items;
    e.o.n_designs = (int)e.designs.n;
    if (mode->kernels && nb_load_kernels(&e.plugins, NULL) != 0) goto out;
    nb_watch_interrupts();
    const int ended = e.plugins.n > 0 ? ask_worker(&e, &answer) : mode->run(&e.o, answer);
    if (ended < 0 || print(answer, e.format) != 0) goto out;
    if (ended > 0) nb_warn("interrupted: what is above is right as far as it got, and no more than that");
    exit_code = ended > 0 ? 128 + ended : keeps_promises(answer) ? NB_EXIT_OK : NB_EXIT_FAILED;
out:
    cJSON_Delete(answer);
    nb_texts_release(&e.variants);
    nb_texts_release(&e.kernels);
    nb_texts_release(&e.designs);
    nb_texts_release(&e.plugins);
    nb_registry_release();
    return exit_code;
}

const struct nb_command nb_command_exhaustive = {.name = "exhaustive",
                                                 .summary = "functions with few inputs, checked on all of them",
                                                 .help = help,
                                                 .run = exhaustive_main};
