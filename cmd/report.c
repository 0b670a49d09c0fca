// SPDX-License-Identifier: Apache-2.0
/* normbench report: a run's folder, rendered again. */
#include <stdio.h>

#include "cmd/shared/options.h"
#include "reports/claims/claims_report.h"
#include "reports/lab/stress_report.h"
#include "reports/run/report.h"
#include "src/claims/claims_document.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/lab/stress/stress.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench report DIR [OPTIONS]\n"
    "\n"
    "Render the results of a run again, without measuring anything. DIR is what `normbench run`, `stress` or `merge`\n"
    "left; what `stress` left is graded again, with the searches that it made. When DIR/journal.jsonl is newer than\n"
    "DIR/results.json, or alone (the run was killed, or is still going on), results.json is made from it first; cases\n"
    "that the run did not reach are \"not_run\".\n"
    "\n"
    "This writes DIR/results.json (only when the journal is newer), DIR/plots/ (data and gnuplot scripts, and the pictures\n"
    "where gnuplot is installed) and DIR/index.html, and prints the records to stdout. Where `normbench stress` left\n"
    "DIR/stress.json, also DIR/precision.html and DIR/precision-plots/. Where `normbench claims` left DIR/claims.json,\n"
    "its verdicts are printed (table, markdown or json) and its pages made again.\n"
    "\n"
    "  --format NAME        what stdout gets: table (the default), summary, markdown, csv, json, or another tool's\n"
    "                       format (`normbench list formats`)\n"
    "  --no-write           print only; DIR stays as it is\n" NB_COMMON_HELP "\n"
    "Exit codes: 0 ok, also when cases of the run failed; 2 DIR holds no results, or they cannot be read or written.\n";

struct options {
    const char *dir, *format;
    bool no_write;
};

static bool parse(int argc, char **argv, struct options *o, int *exit_code) {
    const struct nb_option options[] = {
        {"format", .text = &o->format}, {"no-write", .flag = &o->no_write}, {.name = NULL}};
    if (!nb_read_options(help, options, 1, argc, argv, exit_code)) return false;
    o->dir = argv[optind];
    if (!o->dir) nb_error("report: DIR is missing; see `normbench report --help`");
    return o->dir != NULL;
}

/* The folder of a stress run: its tables, unless others are asked for by name. */
static int render_stress(const struct options *o, const struct nb_results *results) {
    struct nb_grades grades released_by(nb_grades_release) = {0};
    struct nb_searched searched;
    if (nb_searched_read(&searched, o->dir) != 0) return -1;
    nb_grades_make(&grades, results, NULL);
    cJSON *stress released_by(nb_json_release) = nb_stress_judge(results, &grades, &searched);
    int result = nb_stress_print(stress, results, o->format, stdout);
    if (result == 0 && !o->no_write) result = nb_stress_write(stress, o->dir);
    cJSON_Delete(searched.list);
    return result;
}

/* The folder of a run of claims: verdicts as they were found, pages made again. */
static int render_claims(const struct options *o) {
    cJSON *document released_by(nb_json_release) = nb_claims_document_read(o->dir);
    if (!document) return NB_EXIT_USAGE;
    int result = nb_claims_print(document, o->format, stdout);
    if (result == 0 && !o->no_write) result = nb_claims_pages(o->dir, document, true);
    return result == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

static int report_main(int argc, char **argv) {
    struct options o = {.format = "table"};
    struct nb_results results released_by(nb_results_release) = {0};
    int exit_code;
    if (!parse(argc, argv, &o, &exit_code)) return exit_code;
    if (nb_dir_holds(o.dir, NB_CLAIMS_FILE) && nb_name_find(nb_table_markdown_json, o.format) >= 0)
        return render_claims(&o);
    const struct nb_renderer *renderer = nb_renderer_find(o.format);
    if (nb_dir_holds(o.dir, NB_CLAIMS_FILE))
        return nb_error(
                   "report: --format %s: %s holds claims, which have table, markdown and json; the runs behind them are in "
                   "folders of their own, such as %s/timing",
                   o.format, o.dir, o.dir),
               NB_EXIT_USAGE;
    if (!renderer)
        return nb_error("report: --format %s is not known; `normbench report --help` lists the formats", o.format),
               NB_EXIT_USAGE;
    bool outdated = nb_results_outdated(o.dir);
    if (nb_results_read(&results, o.dir) != 0) return NB_EXIT_USAGE;
    const bool stress = nb_dir_holds(o.dir, NB_STRESS_FILE) && nb_name_find(nb_table_markdown_json, o.format) >= 0;
    int result = stress ? render_stress(&o, &results) : renderer->render(&results, stdout);
    if (result == 0 && !o.no_write && outdated) result = nb_results_write(&results, o.dir);
    if (result == 0 && !o.no_write && nb_stress_report_read(o.dir) < 0) result = -1;
    if (result == 0 && !o.no_write) result = nb_html_write(&results, o.dir);
    return result == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

const struct nb_command nb_command_report = {"report", "render the results of a run again", help, report_main};
