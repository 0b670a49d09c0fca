// SPDX-License-Identifier: Apache-2.0
/* normbench replay: one case again, from its key alone or from a run's folder, with everything that is known about it. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/run/report.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/tuning.h"
#include "src/device/device.h"
#include "src/plan/inputs.h"
#include "src/record/fingerprint.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench replay KEY [OPTIONS]\n"
    "       normbench replay DIR KEY [OPTIONS]\n\n"
    "Run one case again: check it, time it beside its copy, and print what came of it. KEY is a case's key as tables,\n"
    "results and error messages print it; with DIR, a run's folder, a part of the key that only one case has is enough,\n"
    "and the run's plugins, tuning and time limits are used, and whether it timed the case: a failure is met again.\n\n"
    "  --plugin FILE        add the kernels of a .so, .py or program; repeatable\n" NB_LOAD_TIMEOUT_HELP NB_PEER_HELP
    "  --max-width WIDTH    hide wider kernels\n"
    "  --launches N         worker processes (default 6)\n"
    "  --blocks N           blocks in each launch (default 24)\n"
    "  --check-only         check, time nothing; judge relations between calls, as `stress` does\n"
    "  --no-counters        skip the counter pass\n"
    "  --case-timeout S     default 20\n"
    "  --out DIR            keep journal and results there\n"
    "  --format NAME        text (the default) or json (the whole record, as in results.json)\n" NB_TUNING_HELP
        NB_COMMON_HELP "\n"
    "Example: normbench replay DIR rmsnorm_fast_v256_f32/shape:64x384\n"
    "Exit codes: 0 ok, 1 the case failed, 2 usage, 77 the case cannot run on this machine.\n";

struct replay_options {
    struct nb_strings plugins;
    const char *max_width, *out, *format, *dir, *key;
    int launches, blocks;
    double case_timeout_s;
    bool check_only, no_counters;
};

static bool parse(struct replay_options *o, int argc, char **argv, int *exit_code) {
    static const char *const formats[] = {"text", "json", NULL};
    const struct nb_option options[] = {NB_PLUGIN_OPTIONS(&o->plugins),
                                        {"max-width", .text = &o->max_width},
                                        {"launches", .count = &o->launches, .least = 1, .most = 1000},
                                        {"blocks", .count = &o->blocks, .least = 1, .most = 10000},
                                        {"check-only", .flag = &o->check_only},
                                        {"no-counters", .flag = &o->no_counters},
                                        NB_CASE_TIMEOUT_OPTION(&o->case_timeout_s),
                                        {"out", .text = &o->out},
                                        {"format", .text = &o->format, .among = formats},
                                        NB_TUNING_OPTION,
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 2, argc, argv, exit_code)) return false;
    if (argc - optind == 2) o->dir = argv[optind++];
    o->key = argv[optind];
    if (!o->key) nb_error("replay: KEY, or DIR and KEY; `normbench replay --help`");
    return o->key != NULL;
}

/* What the case's own command says beyond its key: whatever kind of failure it was, it is met again. */
static void take_own(struct replay_options *o, const char *replay) {
    static const char limit[] = " --case-timeout ", load[] = " --load-timeout ";
    const char *seconds = strstr(replay, limit), *load_s = strstr(replay, load);
    o->check_only |= strstr(replay, " --check-only") != NULL;
    if (seconds && o->case_timeout_s == 0) o->case_timeout_s = strtod(seconds + strlen(limit), NULL);
    if (!load_s || nb_load_timeout_s(0) > 0) return;
    char *value freed = nb_textf("%.*s", (int)strspn(load_s + strlen(load), "0123456789."), load_s + strlen(load));
    nb_take_load_timeout(NULL, value);
}

/* The one case of DIR's results that the key names becomes the key, as it stands there; its plugins join the options'. */
static int find_in_run(struct replay_options *o, struct nb_results *results) {
    if (nb_results_read(results, o->dir) != 0) return -1;
    const struct nb_record *found = NULL;
    size_t matches = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        const bool exact = strcmp(r->key, o->key) == 0;
        if (!exact && !strstr(r->key, o->key) && fnmatch(o->key, r->key, 0) != 0) continue;
        matches = exact ? 1 : matches + 1;
        found = r;
        if (exact) break;
    }
    if (matches == 0) return nb_error("%s: no case matches '%s'", o->dir, o->key);
    if (matches > 1) return nb_error("%s: %zu cases match '%s'; give more of the key", o->dir, matches, o->key);
    o->key = found->key;
    take_own(o, found->replay);
    const cJSON *plugin, *fingerprint = nb_json_get(results->meta, "fingerprint");
    const char *tuning = nb_json_get_text(nb_json_get(fingerprint, "tuning"), "replay");
    nb_tuning_choose_once(tuning ? tuning : "default");
    cJSON_ArrayForEach(plugin, nb_json_get(results->meta, "plugins")) {
        const char *file = nb_json_get_text(plugin, "file");
        if (file) nb_strings_add(&o->plugins, file);
    }
    return 0;
}

/* A plan of one case. 0, -1 after nb_error, 1 when this machine cannot run it. */
static int plan_one(struct nb_plan *plan, const struct replay_options *o) {
    struct nb_case c;
    struct nb_call call;
    if (nb_case_parse(&c, o->key) != 0) return -1;
    const struct nb_entry *entry = nb_registry_meant("", c.variant);
    if (!entry) return -1;
    nb_case_set_entry(&c, entry);
    nb_case_normalize(&c);
    nb_case_call(&c, &call);
    const char *refusal = nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width);
    if (!refusal) refusal = nb_device_refuses(entry->kernel->backend);
    if (refusal) {
        nb_note("%s: %s", c.variant, refusal);
        return 1;
    }
    int cpus[1024], n_cpus = nb_cpu_allowed(cpus, 1024);
    if (c.threads > n_cpus) {
        nb_note("threads %d: this process may run on %d CPU%s", c.threads, n_cpus, n_cpus == 1 ? "" : "s");
        return 1;
    }
    refusal = nb_case_conflict(&c);
    if (!refusal) refusal = nb_kernel_refuses(entry->kernel, &c.formula);
    if (!refusal) refusal = nb_ask_applicable(entry, &call);
    if (refusal) return nb_error("%s: %s", c.variant, refusal);
    char *bad_data freed = nb_inputs_refuse(&c);
    if (bad_data) return nb_error("%s", bad_data);
    *plan = (struct nb_plan){.n_cases = 1,
                             .n_groups = 1,
                             .launches = o->check_only ? 0 : o->launches,
                             .most_launches = o->check_only ? 0 : o->launches,
                             .blocks = o->blocks,
                             .sample_ms = 0.06,
                             .budget_s = (double)INFINITY,
                             .order_seed = 1};
    plan->cases = nb_alloc(1, sizeof *plan->cases);
    plan->cases[0] = c;
    plan->keys = nb_alloc(1, sizeof *plan->keys);
    plan->keys[0] = nb_case_key(&c);
    plan->groups = nb_alloc(1, sizeof *plan->groups);
    plan->groups[0] = (struct nb_group){
        .cases = nb_alloc(1, sizeof(size_t)), .n = 1, .untimed = !nb_case_is_timed(&c), .blocks = plan->blocks};
    nb_text_hash(plan->keys[0], plan->hash);
    return 0;
}

static int print_results(const struct nb_results *results, const char *format) {
    struct nb_strbuf text = {0};
    if (strcmp(format, "text") == 0) return nb_case_view(results, &text), nb_output(&text, stdout);
    return nb_output_json(nb_record_to_json(&results->records[0]), stdout);
}

static int measure(const struct nb_plan *plan, struct replay_options *o, int argc, char **argv) {
    struct nb_results results released_by(nb_results_release) = {0};
    int exit_code = NB_EXIT_USAGE, lock = -1;
    bool began;
    char *temporary = o->out ? NULL : nb_temporary_dir("replay", &lock);
    const struct nb_plan_request request = {.plugins = o->plugins, .max_width = o->max_width};
    const char *dir = o->out ? o->out : temporary;
    if (!dir) return exit_code;
    const struct nb_measuring m = {.request = &request,
                                   .plan = plan,
                                   .config = "replay",
                                   .no_counters = o->no_counters || o->check_only,
                                   .silent = true,
                                   .case_timeout_s = o->case_timeout_s,
                                   .argc = argc,
                                   .argv = argv};
    const int ended = nb_measuring_run(&m, dir, &began);
    if (ended > 0) exit_code = nb_ended_by(ended, "replay", NULL);
    if (ended < 0 || !began || nb_results_fold(&results, dir) != 0 || results.n == 0) goto out;
    if (print_results(&results, o->format) != 0) goto out;
    if (ended == 0) exit_code = nb_results_failed(&results) ? NB_EXIT_FAILED : NB_EXIT_OK;
    if (o->out && nb_results_write(&results, dir) != 0) exit_code = nb_exit_unwritten(exit_code);
out:
    nb_temporary_dir_remove(temporary, lock);
    return exit_code;
}

static void release(struct replay_options *o) { nb_strings_release(&o->plugins); }

static int replay_main(int argc, char **argv) {
    struct replay_options o released_by(release) = {.format = "text", .launches = 6, .blocks = 24};
    struct nb_results earlier released_by(nb_results_release) = {0};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (o.dir && find_in_run(&o, &earlier) != 0) return NB_EXIT_USAGE;
    if (o.case_timeout_s == 0) o.case_timeout_s = 20;
    if (nb_load_kernels(&o.plugins, o.max_width) != 0) return NB_EXIT_USAGE;
    const int planned = plan_one(&plan, &o);
    if (planned != 0) return planned > 0 ? NB_EXIT_NOTHING_RUNS : NB_EXIT_USAGE;
    return measure(&plan, &o, argc, argv);
}

const struct nb_command nb_command_replay = {"replay", "run one case again, from its key", help, replay_main};
