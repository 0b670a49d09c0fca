// SPDX-License-Identifier: Apache-2.0
/* normbench claims: what papers and tutorials say of norms, measured here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/claims_try.h"
#include "cmd/shared/options.h"
#include "reports/claims/claims_report.h"
#include "reports/text/grid.h"
#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/core/files.h"
#include "src/core/log.h"

extern const struct nb_command nb_command_claims;

static const char help[] =
    "usage: normbench claims [ID|GLOB|FILE.json ...] [OPTIONS]\n\n"
    "Tries published statements about norms on this machine: claims of configs/claims/, and the inputs of public bug\n"
    "reports (bug-*). Each gets REPRODUCED, PARTLY, NOT REPRODUCED or NOT TESTABLE HERE, with what was measured, the\n"
    "interval, the published figure, the reason, and which choice makes or breaks it. Without names: all of them.\n\n"
    "  --list               the claims, what kind of experiment they are, and what they say; runs nothing\n"
    "  --explain ID         one claim: sources, readings, and what would be expected of which figures; with the\n"
    "                       ID \"properties\", the property experiments that claims may use: parameters and defaults\n"
    "  --quick              fewer launches and smaller shapes\n"
    "  --launches N         worker processes for each group (default 10, with --quick 6; of training 8, and 6 seeds,\n"
    "                       or what a claim needs)\n"
    "  --train-budget S     seconds for training claims (default 1680; with --quick 0: they are left out); what does\n"
    "                       not fit is named\n"
    "  --train-text FILE    bytes to train on (default: $NORMBENCH_TEXT, else the licences that every Debian has)\n"
    "  --plugin FILE.so     adds the kernels of a shared object; bug reports are then tried on them alone; repeatable\n"
    "  --max-width WIDTH    hides wider kernels: scalar, 128, 256, 256x, 512\n"
    "  --case-timeout S     ends a case that makes no step forward for so long (default 20)\n"
    "  --out DIR            the folder (default results/TIME-claims): claims.json, claims.md, claims.html, and the\n"
    "                       runs behind them in timing/, accuracy/ and training/\n"
    "  --resume DIR         goes on where a run was cut off; takes no option that would change the plan\n"
    "  --format NAME        on stdout: table (the default), markdown, json\n"
    "  --no-plots           leaves pictures out\n"
    "  --strict             exit code 1 when a claim is NOT REPRODUCED\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Exit codes: 0 whatever the verdicts, 1 with --strict, 2 usage or configuration, 128+n ended by signal n.\n";

enum {
    OPT_EXPLAIN = 1,
    OPT_QUICK,
    OPT_STRICT,
    OPT_TRAIN_BUDGET,
    OPT_TRAIN_TEXT,
    OPT_PLAN /* from here on: options of the plan */
};

static int set_option(struct nb_claims_options *o, int id, const char *value) {
    if (nb_is_output_option(id))
        return nb_output_option_set(&o->output, id, value, nb_claims_format_known, "table, markdown or json");
    switch (id) {
    case OPT_EXPLAIN:
        o->explain = value;
        return 0;
    case OPT_QUICK:
        o->quick = o->request.touched = true;
        return 0;
    case OPT_STRICT:
        o->strict = true;
        return 0;
    case OPT_TRAIN_BUDGET:
        o->request.touched = true;
        return nb_option_number("--train-budget", value, 0, 1e7, &o->train_budget_s);
    case OPT_TRAIN_TEXT:
        o->request.touched = true;
        o->train_text = value;
        return 0;
    default:
        o->request.touched = true;
        return nb_plan_request_set(&o->request, id - OPT_PLAN, value);
    }
}

/* Returns -1 when there is nothing more to do; *exit_code says how. */
static int parse(struct nb_claims_options *o, int argc, char **argv, int *exit_code) {
    static const struct option options[] = {NB_OUTPUT_OPTIONS,
                                            {"explain", required_argument, NULL, OPT_EXPLAIN},
                                            {"quick", no_argument, NULL, OPT_QUICK},
                                            {"strict", no_argument, NULL, OPT_STRICT},
                                            {"train-budget", required_argument, NULL, OPT_TRAIN_BUDGET},
                                            {"train-text", required_argument, NULL, OPT_TRAIN_TEXT},
                                            {"plugin", required_argument, NULL, OPT_PLAN + NB_REQUEST_PLUGIN},
                                            {"max-width", required_argument, NULL, OPT_PLAN + NB_REQUEST_MAX_WIDTH},
                                            {"launches", required_argument, NULL, OPT_PLAN + NB_REQUEST_LAUNCHES},
                                            NB_TUNING_OPTION,
                                            NB_COMMON_OPTIONS};
    bool done = false;
    optind = 0;
    o->argc = argc;
    o->argv = argv;
    for (int id; (id = nb_next_option(argc, argv, options, &nb_command_claims, &done, exit_code)) != -1;) {
        if (set_option(o, id, optarg) == 0) continue;
        *exit_code = NB_EXIT_USAGE;
        return -1;
    }
    if (done) return -1;
    *exit_code = NB_EXIT_USAGE;
    for (; optind < argc; optind++) nb_texts_add(&o->patterns, argv[optind]);
    if (o->request.check_only) return nb_error("--launches 0: a claim about time needs launches");
    if (o->output.resume && (o->request.touched || o->output.out || o->output.list || o->explain || o->patterns.n))
        return nb_error(
            "--resume %s goes on with the claims of that run: leave names, --out and options of the plan away",
            o->output.resume);
    return 0;
}

/* ---- --list, --explain --------------------------------------------------------------------------------------------- */

static void print_list(const struct nb_claims *claims, const char *format) {
    static const char *const titles[] = {"claim", "kind", "statement"};
    struct nb_grid grid;
    nb_grid_init(&grid, titles, 3);
    for (size_t i = 0; i < claims->n; i++) {
        const struct nb_claim *c = &claims->items[i];
        struct nb_strbuf kinds = {0};
        nb_strbuf_add(&kinds, c->n_experiments ? "" : "fact");
        for (size_t j = 0; j < c->n_experiments; j++)
            if (!kinds.len || !strstr(kinds.text, c->experiments[j].kind->name))
                nb_strbuf_addf(&kinds, "%s%s", kinds.len ? ", " : "", c->experiments[j].kind->name);
        nb_grid_add(&grid, c->id);
        nb_grid_add(&grid, kinds.text);
        nb_grid_add(&grid, c->title);
        nb_strbuf_release(&kinds);
    }
    nb_grid_print(&grid, format, stdout);
    nb_grid_release(&grid);
}

static int explain(const char *id) {
    struct nb_claims claims;
    struct nb_strbuf text = {0};
    if (strcmp(id, "properties") == 0) {
        nb_properties_explain(&text);
        fputs(text.text, stdout);
        nb_strbuf_release(&text);
        return NB_EXIT_OK;
    }
    if (nb_claims_read(&claims, &id, 1) != 0) return NB_EXIT_USAGE;
    for (size_t i = 0; i < claims.n; i++) {
        if (i) nb_strbuf_add(&text, "\n");
        nb_claim_explain(&claims.items[i], &text);
    }
    fputs(text.text, stdout);
    nb_strbuf_release(&text);
    nb_claims_release(&claims);
    return NB_EXIT_OK;
}

/* A folder that holds a run already would be written over. */
static int folder_of(const struct nb_claims_options *o, char **dir) {
    const struct nb_measuring where = {
        .request = &o->request, .config = "claims", .out = o->output.out, .resume = o->output.resume};
    *dir = nb_measuring_folder(&where);
    const bool taken = !o->output.resume && nb_claims_document_exists(*dir);
    return taken ? nb_error("--out %s holds claims already; name another folder, or --resume it", *dir) : 0;
}

/* The claims and options of the run that is resumed, from the journal of either plan. */
static int take_resumed(struct nb_claims_options *o, struct nb_journaled_argv *saved) {
    const char *dir = o->output.resume, *format = o->output.format;
    const bool strict = o->strict, no_plots = o->output.no_plots;
    int code, result = -1;
    for (int i = 0; i < NB_N_CLAIMS_PLANS && result != 0; i++) {
        char *folder = nb_path_join(dir, nb_claims_plan_names[i]);
        if (nb_claims_has_journal(folder)) result = nb_journaled_argv_read(saved, folder);
        free(folder);
    }
    if (result != 0) result = nb_claims_training_argv(dir, saved);
    if (result != 0) return nb_error("--resume %s: no run of claims began there", dir);
    nb_plan_request_release(&o->request);
    nb_texts_release(&o->patterns);
    *o = (struct nb_claims_options){.output.case_timeout_s = o->output.case_timeout_s, .train_budget_s = NAN};
    if (parse(o, saved->argc, saved->argv, &code) != 0) return -1;
    o->output.resume = dir;
    o->output.out = NULL;
    o->output.format = format ? format : o->output.format;
    o->strict |= strict;
    o->output.no_plots |= no_plots;
    return 0;
}

static int claims_main(int argc, char **argv) {
    struct nb_claims_options o = {.output.case_timeout_s = 20, .train_budget_s = NAN};
    struct nb_journaled_argv saved = {0};
    struct nb_claims claims = {0};
    char *dir = NULL;
    int exit_code = NB_EXIT_USAGE;
    if (parse(&o, argc, argv, &exit_code) != 0) goto out;
    exit_code = NB_EXIT_USAGE;
    if (o.output.resume && take_resumed(&o, &saved) != 0) goto out;
    if (nb_load_kernels(&o.request.plugins, o.request.max_width) != 0) goto out;
    if (o.explain) {
        exit_code = explain(o.explain);
        goto out;
    }
    if (nb_claims_read(&claims, o.patterns.items, o.patterns.n) != 0) goto out;
    if (o.output.list) {
        print_list(&claims, o.output.format ? o.output.format : "table");
        exit_code = NB_EXIT_OK;
    } else if (folder_of(&o, &dir) == 0) {
        exit_code = nb_claims_run(&o, &claims, dir);
    }
out:
    free(dir);
    nb_claims_release(&claims);
    nb_texts_release(&o.patterns);
    nb_plan_request_release(&o.request);
    nb_journaled_argv_release(&saved);
    return exit_code;
}

const struct nb_command nb_command_claims = {
    .name = "claims", .summary = "tries what papers and tutorials say", .help = help, .run = claims_main};
