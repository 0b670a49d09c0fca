// SPDX-License-Identifier: Apache-2.0
/* normbench merge: the folders of `run --shard i/n`, or of stress, put together to the results of one run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/lab/stress_report.h"
#include "reports/run/report.h"
#include "src/claims/claims_document.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/text.h"
#include "src/lab/stress/stress.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench merge DIR... --out DIR [OPTIONS]\n"
    "\n"
    "Put the shards of one plan together: each DIR is what `normbench run ... --shard i/n` left (or `stress`), on this machine\n"
    "or on another, in any order. The result holds the same cases in the same order as one run without --shard. Shards of\n"
    "different plans, a shard that is given twice and a shard that is missing are errors. When shards come from different\n"
    "machines or builds, what differs is listed under \"machines\" in results.json, and every record names its machine;\n"
    "cases are compared within a group only, and a group is always in one shard; tables name its machine, a curve is of one\n"
    "machine, the summary of that which timed most. What `stress` left is graded as a whole.\n"
    "\n"
    "This writes into the --out folder what the command itself would have, but for reproducers/ of `stress`, and prints the records or\n"
    "grades to stdout.\n"
    "\n"
    "  --out DIR            where the merged results go; must not hold a run\n"
    "  --partial            merge although shards are missing; they are named in results.json\n"
    "  --format NAME        what stdout gets: table (the default), or one of `normbench list formats`\n" NB_COMMON_HELP
    "\n"
    "Example: normbench merge OUT/shard-* --out OUT/merged\n"
    "Exit codes: 0 ok, also when cases failed; 2 the folders cannot be merged, or the result cannot be written.\n";

struct options {
    const char *out, *format;
    const char *const *dirs;
    size_t n_dirs;
    bool partial;
};

static int holds_run(const char *dir) {
    static const char *const files[] = {NB_RESULTS_FILE, NB_JOURNAL_FILE, NB_CLAIMS_FILE};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (nb_dir_holds(dir, files[i])) return nb_error("merge: %s already holds a run; use another --out", dir);
    return 0;
}

static int check(const struct options *o) {
    if (o->n_dirs == 0) return nb_error("merge: no folder to merge; see `normbench merge --help`");
    if (!o->out) return nb_error("merge: --out DIR is needed");
    if (!nb_renderer_find(o->format))
        return nb_error("merge: --format %s is not known; `normbench list formats` has them", o->format);
    return holds_run(o->out);
}

static bool parse(int argc, char **argv, struct options *o, int *exit_code) {
    const struct nb_option options[] = {
        {"out", .text = &o->out}, {"partial", .flag = &o->partial}, {"format", .text = &o->format}, {.name = NULL}};
    if (!nb_read_options(help, options, NB_ANY_ARGUMENTS, argc, argv, exit_code)) return false;
    o->dirs = (const char *const *)argv + optind;
    o->n_dirs = (size_t)(argc - optind);
    return check(o) == 0;
}

/* ---- what a folder holds ---- */

/* How many of the folders have what `stress` leaves behind at its end; -1 after nb_error where some have it and others not. */
static int count_judged(const struct options *o) {
    const char *missing = NULL;
    size_t n = 0;
    for (size_t k = 0; k < o->n_dirs; k++) {
        const bool ended = nb_dir_holds(o->dirs[k], NB_STRESS_FILE);
        n += ended;
        if (!ended && !missing) missing = o->dirs[k];
    }
    if (n == 0 || !missing) return (int)n;
    return nb_error(
        "%s: `normbench stress` was cut off before its end; continue it with `normbench stress --resume %s`, or leave the "
        "folder out (--partial)",
        missing, missing);
}

static void note_machines(const struct nb_results *results) {
    const cJSON *machines = nb_json_get(results->meta, "machines"), *machine, *difference;
    int i = 0;
    cJSON_ArrayForEach(machine, machines) {
        cJSON_ArrayForEach(difference, nb_json_get(machine, "differs"))
            nb_note("machine %d: %s", i, cJSON_GetStringValue(difference));
        i++;
    }
}

static void note_names(const cJSON *meta) {
    struct nb_strbuf lines released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_meta_machines(meta, &lines);
    for (char *rest = lines.text, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line) nb_note("%s", line);
}

/* The searches of all shards of a `stress`; a kernel's are in one. */
static int gather_searches(const struct options *o, struct nb_searched *all) {
    struct nb_searched one;
    *all = (struct nb_searched){.list = cJSON_CreateArray(), .complete = true, .elapsed_s = 0};
    for (size_t k = 0; k < o->n_dirs; k++) {
        cJSON *study;
        if (nb_searched_read(&one, o->dirs[k]) != 0) return -1;
        while ((study = cJSON_DetachItemFromArray(one.list, 0))) cJSON_AddItemToArray(all->list, study);
        all->complete &= one.complete;
        all->elapsed_s += isfinite(one.elapsed_s) ? one.elapsed_s : 0;
        cJSON_Delete(one.list);
    }
    return 0;
}

static int merge_stress(const struct options *o, const struct nb_results *results, const struct nb_searched *all) {
    struct nb_grades grades released_by(nb_grades_release);
    nb_grades_make(&grades, results, NULL);
    cJSON *stress released_by(nb_json_release) = nb_stress_judge(results, &grades, all);
    int result = nb_stress_write(stress, o->out);
    if (result == 0 && nb_name_find(nb_table_markdown_json, o->format) >= 0)
        result = nb_stress_print(stress, results, o->format, stdout);
    if (result == 0) result = nb_stress_report(o->out, stress);
    return result;
}

static int merge_main(int argc, char **argv) {
    struct options o = {.format = "table"};
    struct nb_results results released_by(nb_results_release) = {0};
    int exit_code;
    if (!parse(argc, argv, &o, &exit_code)) return exit_code;
    if (nb_results_merge(&results, o.dirs, o.n_dirs, o.partial) != 0) return NB_EXIT_USAGE;
    const int n_stress = count_judged(&o);
    const bool stress = n_stress > 0;
    struct nb_searched searched = {0};
    int result = n_stress < 0 ? -1 : 0;
    if (stress) result = gather_searches(&o, &searched);
    if (result == 0) {
        note_names(results.meta);
        note_machines(&results);
        result = nb_results_write(&results, o.out);
    }
    if (result == 0 && stress) result = merge_stress(&o, &results, &searched);
    if (result == 0 && !(stress && nb_name_find(nb_table_markdown_json, o.format) >= 0))
        result = nb_renderer_find(o.format)->render(&results, stdout);
    if (result == 0) result = nb_html_write(&results, o.out);
    cJSON_Delete(searched.list);
    return result == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

const struct nb_command nb_command_merge = {"merge", "put the shards of one plan together", help, merge_main};
