// SPDX-License-Identifier: Apache-2.0
/* normbench probe: what a black box does inside, from its outputs alone. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/lab.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/lab/probe/probe.h"
#include "src/measure/launcher.h"

extern const struct nb_command nb_command_probe;

static const char help[] =
    "usage: normbench probe WHAT [OPTIONS]\n\n"
    "Finds out what a row norm does inside, from its outputs alone: which accumulators and lanes, in which order, fma or\n"
    "not, where eps is added and in which format, which variance, which root (by its bits), cast order, subnormals, NaN,\n"
    "dependence on other rows. WHAT is a shared object (X.so: all its row norms), a kernel, a variant, or a glob over\n"
    "them. Nothing that a kernel declares about itself is used. An answer is a value with the numbers seen, or\n"
    "`undetermined` with the reason.\n\n"
    "  --plugin FILE.so     adds the kernels of a shared object; repeatable\n" NB_PEER_HELP
    "  --dtype LIST         f32, f16, bf16; several with commas\n"
    "  --width LIST         scalar, 128, 256, 256x, 512, native\n"
    "  --n N                length of the rows that show how a row is summed: a power of two from 8192 to 1048576\n"
    "                       (default 16384)\n"
    "  --max-width WIDTH    hides wider kernels\n"
    "  --case-timeout S     ends a kernel that makes no progress for so long (default 20)\n"
    "  --format NAME        table (the default) or json\n\n"
    "The formula that the kernel is called with; what is not given is the kernel's own:\n"
    "  --eps EPS  --eps-place PLACE  --root ROOT  --affine AFFINE  --cast CAST  --weight-offset 0|1  --param f32|x\n"
    "  --round-sum 0|1      values as of `normbench list axes`\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Exit codes: 0 ok, 1 a kernel crashed, hung or returned an error, 2 usage, 77 nothing selected can run here.\n";

enum { OPT_PLUGIN = 1, OPT_DTYPE, OPT_WIDTH, OPT_N, OPT_MAX_WIDTH, OPT_TIMEOUT, OPT_FORMAT, OPT_AXIS };

/* The formula's options: each is an axis. */
static const char *const axes[] = {"eps", "eps_place", "root", "affine", "cast", "weight_offset", "param", "round_sum"};
enum { N_AXES = sizeof axes / sizeof axes[0] };

struct probe_options {
    struct nb_texts plugins;
    const char *what, *dtypes, *widths, *max_width, *format;
    const char *axis[N_AXES]; /* as given, or null */
    double n, case_timeout_s;
};

static int set_n(struct probe_options *o, const char *value) {
    if (nb_option_number("--n", value, NB_PROBE_LEAST, NB_PROBE_MOST, &o->n) != 0) return -1;
    if (o->n == exp2(floor(log2(o->n)))) return 0;
    return nb_error("--n %s: a power of two, such as %.0f", value, exp2(floor(log2(o->n))));
}

static int set_list(const char *option, const char *value, const char *const *names, const char **list) {
    struct nb_strbuf word = {0};
    int result = 0;
    for (const char *p = value; result == 0; p++) {
        const size_t n = strcspn(p, ",");
        nb_strbuf_clear(&word);
        nb_strbuf_addn(&word, p, n);
        char reason[256];
        if (nb_name_find(names, word.text) < 0) {
            nb_name_refuse(names, word.text, reason, sizeof reason);
            result = nb_error("%s '%s' %s", option, word.text, reason);
        }
        p += n;
        if (*p == '\0') break;
    }
    nb_strbuf_release(&word);
    *list = value;
    return result;
}

static int set_axis(struct probe_options *o, int i, const char *value) {
    struct nb_case scratch;
    char reason[256];
    nb_case_init(&scratch);
    o->axis[i] = value;
    if (nb_axis_set(nb_axis_find(axes[i]), &scratch, value, reason, sizeof reason) == 0) return 0;
    return nb_error("--%s '%s' %s", axes[i], value, reason);
}

static int set_option(struct probe_options *o, int id, const char *value) {
    switch (id) {
    case NB_OPT_PEER:
    case NB_OPT_PEER_LIB:
        return nb_peer_option(&o->plugins, id, value);
    case OPT_PLUGIN:
        nb_texts_add(&o->plugins, value);
        return 0;
    case OPT_DTYPE:
        return set_list("--dtype", value, nb_dtype_names, &o->dtypes);
    case OPT_WIDTH:
        return set_list("--width", value, nb_width_names, &o->widths);
    case OPT_N:
        return set_n(o, value);
    case OPT_MAX_WIDTH:
        o->max_width = value;
        return 0;
    case OPT_TIMEOUT:
        return nb_option_number("--case-timeout", value, 0.1, 86400, &o->case_timeout_s);
    case OPT_FORMAT:
        o->format = value;
        if (strcmp(value, "table") == 0 || strcmp(value, "json") == 0) return 0;
        return nb_error("--format %s: one of table, json", value);
    default:
        return set_axis(o, id - OPT_AXIS, value);
    }
}

static int parse(struct probe_options *o, int argc, char **argv, int *exit_code) {
    static const struct option options[] = {{"plugin", required_argument, NULL, OPT_PLUGIN},
                                            {"dtype", required_argument, NULL, OPT_DTYPE},
                                            {"width", required_argument, NULL, OPT_WIDTH},
                                            {"n", required_argument, NULL, OPT_N},
                                            {"max-width", required_argument, NULL, OPT_MAX_WIDTH},
                                            {"case-timeout", required_argument, NULL, OPT_TIMEOUT},
                                            {"format", required_argument, NULL, OPT_FORMAT},
                                            {"eps", required_argument, NULL, OPT_AXIS},
                                            {"eps-place", required_argument, NULL, OPT_AXIS + 1},
                                            {"root", required_argument, NULL, OPT_AXIS + 2},
                                            {"affine", required_argument, NULL, OPT_AXIS + 3},
                                            {"cast", required_argument, NULL, OPT_AXIS + 4},
                                            {"weight-offset", required_argument, NULL, OPT_AXIS + 5},
                                            {"param", required_argument, NULL, OPT_AXIS + 6},
                                            {"round-sum", required_argument, NULL, OPT_AXIS + 7},
                                            NB_PEER_OPTIONS,
                                            NB_TUNING_OPTION,
                                            NB_COMMON_OPTIONS};
    bool done = false;
    optind = 0;
    *exit_code = NB_EXIT_USAGE;
    for (int id; (id = nb_next_option(argc, argv, options, &nb_command_probe, &done, exit_code)) != -1;)
        if (set_option(o, id, optarg) != 0) return -1;
    if (done) return -1;
    if (argc - optind != 1)
        return nb_error("probe: WHAT, a shared object, a kernel, a variant or a glob; `normbench probe --help`");
    o->what = argv[optind];
    return 0;
}

/* ---- what is asked ---- */

static bool is_file(const char *what) {
    const size_t n = strlen(what);
    return n > 3 && strcmp(what + n - 3, ".so") == 0;
}

static bool lists(const char *list, const char *const *names, uint32_t value) {
    for (const char *p = list; p; p = *p == ',' ? p + 1 : NULL) {
        char word[64];
        const size_t n = strcspn(p, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (nb_name_find(names, word) == (int)value) return true;
        p += n;
    }
    return !list;
}

static bool is_selected(const struct probe_options *o, const struct nb_entry *entry) {
    if (!lists(o->dtypes, nb_dtype_names, entry->kernel->dtype) ||
        !lists(o->widths, nb_width_names, entry->kernel->width))
        return false;
    if (is_file(o->what)) return entry->plugin && strcmp(entry->file, o->what) == 0;
    return fnmatch(o->what, entry->id, 0) == 0 || fnmatch(o->what, entry->kernel_id, 0) == 0;
}

/* The kernel's own value for each field that the user left open. */
static void set_formula(struct nb_case *c, const struct probe_options *o, const struct nb_formulas *can) {
    char reason[256];
    const uint32_t masks[N_AXES] = {0,          can->eps_places,     can->roots,  0,
                                    can->casts, can->weight_offsets, can->params, can->round_sums};
    uint32_t *fields[N_AXES] = {NULL,
                                &c->formula.eps_place,
                                &c->formula.root,
                                NULL,
                                &c->formula.cast,
                                &c->formula.weight_offset,
                                &c->formula.param,
                                &c->formula.round_sum};
    for (int i = 0; i < N_AXES; i++) {
        if (o->axis[i]) nb_axis_set(nb_axis_find(axes[i]), c, o->axis[i], reason, sizeof reason);
        if (o->axis[i] || !fields[i]) continue;
        if (masks[i] == 0)
            *fields[i] = 0;
        else if (!(masks[i] & 1u << *fields[i]))
            *fields[i] = (uint32_t)__builtin_ctz(masks[i]);
    }
    /* As much of the affine part as there is: more can be asked of it. */
    if (!o->axis[3]) c->formula.affine = can->affines ? 31u - (uint32_t)__builtin_clz(can->affines) : NB_AFFINE_NONE;
}

/* Null, or why this one cannot be asked. */
static const char *set_case(struct nb_case *c, const struct nb_entry *entry, const struct probe_options *o) {
    struct nb_call call;
    nb_case_init(c);
    snprintf(c->data, sizeof c->data, "normal");
    c->shape = (struct nb_shape){.layout = NB_ROWS, .rows = 1, .cols = (int64_t)o->n};
    snprintf(c->shape.text, sizeof c->shape.text, "1x%.0f", o->n);
    c->op = entry->kernel->op;
    set_formula(c, o, &entry->kernel->formulas);
    nb_case_set_entry(c, entry);
    nb_case_normalize(c);
    nb_case_call(c, &call);
    const char *refusal = nb_probe_refuses(c);
    if (!refusal) refusal = nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width);
    if (!refusal) refusal = nb_case_conflict(c);
    if (!refusal) refusal = nb_kernel_refuses(entry->kernel, &c->formula);
    if (!refusal) refusal = nb_ask_applicable(entry, &call);
    return refusal;
}

static int nothing_matches(const struct probe_options *o) {
    const size_t n = nb_registry_size();
    const char **names = nb_alloc(2 * n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        names[2 * i] = nb_registry_at(i)->id;
        names[2 * i + 1] = nb_registry_at(i)->kernel_id;
    }
    const char *nearest = nb_nearest(o->what, names, 2 * n);
    if (nearest)
        nb_error("no kernel matches '%s'; did you mean %s?", o->what, nearest);
    else
        nb_error("no kernel matches '%s'%s; `normbench list kernels` has the names", o->what,
                 o->dtypes || o->widths ? " with that --dtype and --width" : "");
    free(names);
    return NB_EXIT_USAGE;
}

/* ---- answers ---- */

struct answers {
    cJSON **answers; /* of each case; null: not asked */
    int n_failed;
};
static void take(int i, cJSON *answer, void *arg) {
    struct answers *all = arg;
    const char *status = nb_json_get_text(answer, "status");
    all->answers[i] = answer;
    all->n_failed += !status || strcmp(status, "ok") != 0;
}

/* ---- the command ---- */

static int ask(const struct probe_options *o, const struct nb_case *cases, int n) {
    struct answers answers = {.answers = nb_alloc((unsigned long long)n, sizeof *answers.answers)};
    const struct nb_study study = {.kind = "probe",
                                   .cases = cases,
                                   .n_cases = n,
                                   .plugins = o->plugins.items,
                                   .n_plugins = (int)o->plugins.n,
                                   .max_width = o->max_width,
                                   .silence_s = o->case_timeout_s,
                                   .label = "probing"};
    const int ended = nb_study_run(&study, take, &answers);
    if (ended >= 0) nb_probes_print(cases, answers.answers, n, o->format, stdout);
    for (int i = 0; i < n; i++) cJSON_Delete(answers.answers[i]);
    free(answers.answers);
    if (ended < 0) return NB_EXIT_USAGE;
    if (ended > 0) return 128 + ended;
    return answers.n_failed ? NB_EXIT_FAILED : NB_EXIT_OK;
}

static int run(int argc, char **argv) {
    struct probe_options o = {.format = "table", .n = NB_PROBE_USUAL, .case_timeout_s = 20};
    struct nb_case *cases = NULL;
    int exit_code = NB_EXIT_USAGE, n = 0, n_selected = 0;
    if (parse(&o, argc, argv, &exit_code) != 0) goto out;
    exit_code = NB_EXIT_USAGE;
    if (is_file(o.what)) nb_texts_add(&o.plugins, o.what);
    if (nb_load_kernels(&o.plugins, o.max_width) != 0) goto out;
    cases = nb_alloc(nb_registry_size(), sizeof *cases);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (!is_selected(&o, entry)) continue;
        n_selected++;
        const char *refusal = set_case(&cases[n], entry, &o);
        if (refusal)
            nb_note("%s: %s", entry->id, refusal);
        else
            n++;
    }
    exit_code = NB_EXIT_NOTHING_RUNS;
    if (n_selected == 0) exit_code = nothing_matches(&o);
    if (n > 0) exit_code = ask(&o, cases, n);
out:
    free(cases);
    nb_texts_release(&o.plugins);
    return exit_code;
}

const struct nb_command nb_command_probe = {.name = "probe",
                                            .summary = "finds out what a kernel does inside, from its outputs alone",
                                            .help = help,
                                            .run = run};
