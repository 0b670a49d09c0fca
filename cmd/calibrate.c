// SPDX-License-Identifier: Apache-2.0
/* normbench calibrate: how noisy is this machine for the gate, and what must a gate measure here? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/gate/gate_report.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/tuning.h"

extern const struct nb_command nb_command_calibrate;

static const char help[] =
    "usage: normbench calibrate [OPTIONS]\n\n"
    "Launches kernels beside byte copies of themselves, as `normbench gate` launches two builds, and says\n"
    "by op, dtype and shape how far the ratio of the same code scatters on this machine, what the gate can\n"
    "detect, and how many launches and pairs it needs for that. The answer holds for this machine\n"
    "under its present load; the gate does not read it.\n\n"
    "  --baseline FILE.so   the kernels (default: the built-in ones); repeatable: builds in other layouts\n"
    "  --config CONFIG      the cases: a preset (`normbench list configs`) or a file, with a slash or .json in its\n"
    "                       name; default gate\n"
    "  --kernel GLOB        only these kernels; repeatable\n"
    "  --filter GLOB        only cases whose key contains this text or matches this glob; repeatable\n"
    "  --axis NAME=V1,V2    replaces an axis in every block; repeatable\n"
    "  --cases N            cases launched of each op, dtype and shape (default 2)\n"
    "  --launches N         launches of each case (default 20)\n"
    "  --blocks N           pairs in a launch (default 100)\n"
    "  --effect P           the slowdown, in %, that a gate should detect 95 % of the time (default 3)\n"
    "  --budget SECONDS     no further launches after that\n"
    "  --format NAME        on stdout: table, json\n"
    "  --out DIR            calibration.json and samples.jsonl (every sample) in a folder\n"
    "  --list               prints the cases to choose from; times nothing\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Exit codes: 0 measured, 1 nothing could be measured, 2 usage, 77 nothing selected can run here,\n"
    "128+n ended by signal n.\n";

struct calibrate_options {
    struct nb_gate_selection selection;
    const char *format, *out;
    int cases, launches, blocks;
    double effect, budget_s;
};

static bool parse(struct calibrate_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {
        NB_SELECTION_OPTIONS(&o->selection),
        {"cases", .count = &o->cases, .least = 1, .most = 100000},
        {"launches", .count = &o->launches, .least = 6, .most = 100000}, /* fewer show no spread */
        {"blocks", .count = &o->blocks, .least = 8, .most = 100000},
        {"effect", .number = &o->effect, .least = 0.1, .most = 100},
        {"budget", .number = &o->budget_s, .least = 1, .most = 1e7},
        {"format", .text = &o->format, .among = nb_table_json},
        {"out", .text = &o->out},
        NB_TUNING_OPTION,
        {.name = NULL}};
    if (!nb_read_options(&nb_command_calibrate, options, 0, argc, argv, exit_code)) return false;
    if (o->effect > 100 * nb_gate_rule_default.fail_margin) return true;
    nb_error("--effect %g: the gate lets pass what is slower by %g %% or less", o->effect,
             100 * nb_gate_rule_default.fail_margin);
    return false;
}

/* ---- the calibration --------------------------------------------------------------------------------------------------- */

static void record(const struct nb_gate_case *c, int launch, const cJSON *line, void *arg) {
    (void)launch;
    nb_gate_record_sample(arg, c, NB_GATE_SCREEN, line);
}

static bool is_measured(const struct nb_calibration_run *run) {
    for (size_t i = 0; i < run->n_groups; i++)
        if (run->groups[i].noise.n_residuals > 0) return true;
    return false;
}

static int report(const struct nb_calibration_run *run, const struct calibrate_options *o) {
    if (nb_calibration_report(run, o->selection.config, o->effect / 100, o->format, stdout, o->out) != 0)
        return NB_EXIT_USAGE;
    return is_measured(run) ? NB_EXIT_OK : NB_EXIT_FAILED;
}

static int calibrate(const struct nb_gate *g, const struct calibrate_options *o) {
    struct nb_calibration_run run = {
        .g = g, .launches = o->launches, .cases_per_group = o->cases, .budget_s = o->budget_s};
    FILE *samples = NULL;
    if (o->out && !(samples = nb_gate_samples_open(o->out))) return NB_EXIT_USAGE;
    run.record = samples ? record : NULL;
    run.record_arg = samples;
    const int result = nb_calibration_run(&run);
    if (samples) fclose(samples);
    const int exit_code = result < 0 ? NB_EXIT_USAGE : report(&run, o);
    nb_calibration_run_release(&run);
    return result > 0 ? 128 + result : exit_code;
}

static int calibrate_main(int argc, char **argv) {
    struct calibrate_options o = {
        .selection.config = "gate", .format = "table", .cases = 2, .launches = 20, .blocks = 100, .effect = 3};
    struct nb_gate g;
    int exit_code;
    nb_gate_init(&g);
    if (!parse(&o, argc, argv, &exit_code)) goto out;
    g.plan.blocks = o.blocks;
    if (nb_selection_make(&o.selection, &g, true) != 0) goto out;
    if (nb_selection_settles(&o.selection, &g, &exit_code)) goto out;
    exit_code = calibrate(&g, &o);
out:
    nb_gate_release(&g);
    nb_selection_release(&o.selection);
    nb_registry_release();
    return exit_code;
}

const struct nb_command nb_command_calibrate = {
    "calibrate", "how noisy this machine is, and how many launches the gate needs to detect an effect", help,
    calibrate_main};
