// SPDX-License-Identifier: Apache-2.0
/* normbench probe: what a black box does inside, from its outputs alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/lab/lab.h"
#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/lab/probe/probe.h"
#include "src/programs/program_process.h"

static const char help[] =
    "usage: normbench probe WHAT [OPTIONS]\n\n"
    "Find out what a row norm does inside, from its outputs alone: where eps is added and in which format, the format\n"
    "of sums, which variance, which root (by its bits), cast order, fma or not, subnormals, NaN and infinity.\n"
    "WHAT is a file (X.so, X.py: all its row norms), a kernel, a variant, or a glob over them. Nothing that a kernel\n"
    "declares about itself is used. An answer is a value with the numbers seen, or `undetermined` with the reason.\n"
    "Whether outputs depend on other rows, threads, earlier calls or padding is what `normbench run --launches 0` checks.\n\n"
    "  --plugin FILE        add the kernels of a .so, .py or program; repeatable\n" NB_LOAD_TIMEOUT_HELP NB_PEER_HELP
    "  --dtype LIST         f32, f16, bf16; several with commas\n"
    "  --width LIST         scalar, 128, 256, 256x, 512, native\n"
    "  --max-width WIDTH    hide wider kernels\n"
    "  --case-timeout S     end a kernel that makes no progress for so long (default 20)\n"
    "  --format NAME        table (the default) or json\n"
    "  --axis NAME=VALUE    of the formula that the kernel is called with, in place of its own: eps, eps_place, root, affine,\n"
    "                       cast, weight_offset, param_dtype or round_sum (`normbench list axes`); repeatable\n" NB_TUNING_HELP
        NB_COMMON_HELP "\n"
    "Exit codes: 0 ok, 1 a kernel crashed, hung or returned an error, 2 usage, 77 nothing selected can run here.\n";

struct probe_options {
    struct nb_strings plugins, axes;
    const char *what, *dtypes, *widths, *max_width, *format;
    double case_timeout_s;
};

/* Are the words of a list names that there are? */
static bool check_list(const char *option, const char *list, const char *const *names) {
    struct nb_strings words released_by(nb_strings_release) = {0};
    bool known = true;
    if (list) nb_strings_split(&words, list, ',');
    for (size_t i = 0; i < words.n && known; i++) known = nb_option_name(option, words.items[i], names) >= 0;
    return known;
}

static bool check_axis(const char *text) {
    struct nb_case scratch;
    char reason[256];
    nb_case_init(&scratch);
    if (nb_probe_set_axis(&scratch, text, reason, sizeof reason) == 0) return true;
    return nb_error("--axis '%s' %s", text, reason), false;
}

static bool parse(struct probe_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {NB_PLUGIN_OPTIONS(&o->plugins),
                                        {"dtype", .text = &o->dtypes},
                                        {"width", .text = &o->widths},
                                        {"max-width", .text = &o->max_width},
                                        NB_CASE_TIMEOUT_OPTION(&o->case_timeout_s),
                                        {"format", .text = &o->format, .among = nb_table_json},
                                        {"axis", .texts = &o->axes},
                                        NB_TUNING_OPTION,
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 1, argc, argv, exit_code)) return false;
    for (size_t i = 0; i < o->axes.n; i++)
        if (!check_axis(o->axes.items[i])) return false;
    if (!check_list("dtype", o->dtypes, nb_dtype_names) || !check_list("width", o->widths, nb_width_names))
        return false;
    o->what = argv[optind];
    if (!o->what) nb_error("probe: WHAT, a file with kernels, a kernel, a variant or a glob; `normbench probe --help`");
    return o->what != NULL;
}

/* ---- what is asked ---- */

static bool is_file(const char *what) { return nb_text_ends(what, ".so") || nb_kernel_program_is(what); }

static bool is_selected(const struct probe_options *o, const struct nb_entry *entry) {
    if (o->dtypes && !nb_text_lists(o->dtypes, nb_dtype_names[entry->kernel->dtype])) return false;
    if (o->widths && !nb_text_lists(o->widths, nb_width_names[entry->kernel->width])) return false;
    if (is_file(o->what)) return entry->plugin && strcmp(entry->file, o->what) == 0;
    return nb_entry_is_named(entry, o->what);
}

static int nothing_matches(const struct probe_options *o) {
    struct nb_strbuf near released_by(nb_strbuf_release) = {0};
    nb_registry_suggest(o->what, &near);
    nb_error("no kernel matches '%s'%s%s; `normbench list kernels` has the names", o->what,
             o->dtypes || o->widths ? " with that --dtype and --width" : "", near.text ? near.text : "");
    return NB_EXIT_USAGE;
}

/* ---- the command ---- */

static int ask(const struct probe_options *o, const struct nb_case *cases, int n) {
    cJSON **answers freed = nb_alloc((unsigned long long)n, sizeof *answers);
    bool failed = false;
    const int ended = nb_probe_cases(cases, n, &o->plugins, o->case_timeout_s, answers);
    if (ended >= 0) nb_probes_print(cases, answers, n, o->format, stdout);
    for (int i = 0; i < n; i++) {
        failed |= answers[i] && !nb_json_is(answers[i], "status", "ok");
        cJSON_Delete(answers[i]);
    }
    if (ended < 0) return NB_EXIT_USAGE;
    if (ended > 0) return nb_ended_by(ended, "probe", NULL);
    return failed ? NB_EXIT_FAILED : NB_EXIT_OK;
}

static void release(struct probe_options *o) {
    nb_strings_release(&o->plugins);
    nb_strings_release(&o->axes);
}

static int probe_main(int argc, char **argv) {
    struct probe_options o released_by(release) = {.format = "table", .case_timeout_s = 20};
    int exit_code, n = 0, n_selected = 0;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (is_file(o.what)) nb_strings_add(&o.plugins, o.what);
    if (nb_load_kernels(&o.plugins, o.max_width) != 0) return NB_EXIT_USAGE;
    struct nb_case *cases freed = nb_alloc(nb_registry_size(), sizeof *cases);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (!is_selected(&o, entry)) continue;
        n_selected++;
        const char *refusal = nb_probe_case(&cases[n], entry, (const char *const *)o.axes.items, o.axes.n);
        if (refusal)
            nb_note("%s: %s", entry->id, refusal);
        else
            n++;
    }
    if (n_selected == 0) return nothing_matches(&o);
    return n > 0 ? ask(&o, cases, n) : NB_EXIT_NOTHING_RUNS;
}

const struct nb_command nb_command_probe = {"probe", "find out what a kernel does inside, from its outputs alone", help,
                                            probe_main};
