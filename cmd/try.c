// SPDX-License-Identifier: Apache-2.0
/* normbench try: what a plugin's kernels are worth, without anything to configure. It composes what other commands do: a run beside our
 * kernels and the peers, the checks of `stress`, a probe; and prints the answers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/run/report.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/lab/probe/probe.h"
#include "src/record/grade.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench try FILE [OPTIONS]\n\n"
    "Check and time the kernels of a file: a shared object, Python (mine.py) or a program of any language\n"
    "(cmd/guide/protocol.md). Each is checked, checked again on hard rows, and timed beside our reference, our fast kernel\n"
    "and the peers that are built; shapes, dtypes and passes are its own. It ends with ten lines for each kernel: is it right\n"
    "(else where not, and the command that repeats it), how accurate (grade, worst row), how fast, as a share of the copy\n"
    "and against the others, and what it does inside. `normbench new-plugin` writes a file to begin with.\n\n"
    "  --kernel GLOBS       only these of its kernels, with commas between\n"
    "  --budget SECONDS     about how long it takes (default 20); many kernels take longer; what is silent then is ended\n"
    "                       within 5 s\n"
    "  --no-peers           leave out the peers that are built\n"
    "  --max-width WIDTH    hide wider kernels of ours\n"
    "  --case-timeout S     end a case that makes no progress for so long (default 10, or half of a smaller budget)\n" NB_LOAD_TIMEOUT_HELP
    "  --out DIR            the folder (default results/TIME-try): what `normbench run` leaves; `normbench report DIR`\n"
    "                       draws it\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Exit codes: 0 all of its kernels are right, 1 one is wrong, crashed or hung, 2 usage, or a file that cannot be loaded,\n"
    "4 one is faster than a copy of the same bytes: it leaves work out while it is timed, or the copy was slowed,\n"
    "77 none of them can run on this machine, 128+n ended by signal n.\n";

enum { LATE_TIMEOUT_S = 5 }; /* as the help says */

struct try_options {
    struct nb_plan_request request; /* of which the plugins matter */
    const char *file, *kernels, *out;
    double budget_s, case_timeout_s;
    bool no_peers;
};

static int check_file(const char *file) {
    if (!file)
        return nb_error(
            "try: FILE, a shared object, Python or a program with kernels; `normbench new-plugin NAME` writes one to begin with");
    if (nb_text_ends(file, ".c"))
        return nb_error("%s: is a source; cc -O2 -shared -fPIC %s -o %.*s.so -lm, then try that", file, file,
                        (int)strlen(file) - 2, file);
    if (nb_text_ends(file, ".cpp"))
        return nb_error("%s: is a source; c++ -O2 -shared -fPIC %s -o %.*s.so, then try that", file, file,
                        (int)strlen(file) - 4, file);
    return 0;
}

static bool parse(struct try_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {{"kernel", .text = &o->kernels},
                                        {"budget", .number = &o->budget_s, .least = 5, .most = 1e6},
                                        {"no-peers", .flag = &o->no_peers},
                                        NB_MAX_WIDTH_OPTION(&o->request),
                                        NB_CASE_TIMEOUT_OPTION(&o->case_timeout_s),
                                        NB_LOAD_TIMEOUT_OPTION,
                                        {"out", .text = &o->out},
                                        NB_TUNING_OPTION,
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 1, argc, argv, exit_code)) return false;
    o->file = argv[optind];
    if (check_file(o->file) != 0) return false;
    const bool taken = nb_dir_holds(o->out, NB_JOURNAL_FILE); /* no --resume: it is too short for that */
    if (taken) nb_error("--out %s: already holds a run; use another folder", o->out);
    return !taken;
}

/* ---- which kernels -------------------------------------------------------------------------------------------------- */

struct subject {
    const struct nb_entry *entry;
    struct nb_case probed;
    cJSON *answer;    /* null: not probed, */
    char *not_probed; /* and why */
};

struct subjects {
    struct subject *items;
    size_t n;
};

static void subjects_release(struct subjects *s) {
    for (size_t i = 0; i < s->n; i++) {
        cJSON_Delete(s->items[i].answer);
        free(s->items[i].not_probed);
    }
    free(s->items);
}

static bool is_wanted(const struct try_options *o, const struct nb_entry *e) {
    struct nb_strings globs released_by(nb_strings_release) = {0};
    bool wanted = !o->kernels;
    if (o->kernels) nb_strings_split(&globs, o->kernels, ',');
    for (size_t i = 0; i < globs.n; i++) wanted |= nb_entry_is_named(e, globs.items[i]);
    return wanted && e->kernel->op != NB_OP_COPY;
}

static int find_subjects(const struct try_options *o, struct subjects *s) {
    struct nb_strbuf names released_by(nb_strbuf_release) = {0};
    s->items = nb_alloc(nb_registry_size() + 1, sizeof *s->items);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (!e->plugin || strcmp(e->file, o->file) != 0 || !is_wanted(o, e)) continue;
        if (e->kernel->backend == NB_BACKEND_CPU)
            s->items[s->n++].entry = e;
        else
            nb_note("%s: runs on %s; `normbench run --plugin %s --axis backend=%s` takes it", e->id,
                    nb_backend_names[e->kernel->backend], o->file, nb_backend_names[e->kernel->backend]);
    }
    if (s->n > 0) return 0;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (e->plugin && strcmp(e->file, o->file) == 0) nb_strbuf_addf(&names, "%s %s", names.len ? "," : "", e->id);
    }
    if (o->kernels)
        nb_error("%s: none of its kernels is called '%s'; it has%s", o->file, o->kernels, names.text ? names.text : "");
    else
        nb_error("%s: none of its kernels is a norm for the CPU", o->file);
    return -1;
}

/* ---- beside what, on which shapes ------------------------------------------------------------------------------------ */

static void add_ours(const struct nb_kernel *k, const char *ending, struct nb_strings *names) {
    char *name freed = nb_textf("%s%s", nb_op_names[k->op], ending);
    const struct nb_entry *ours = nb_registry_widest(name, (enum nb_dtype)k->dtype);
    if (ours) nb_strings_add(names, ours->id);
}

/* The kernel, ours of its op, pass and dtype at the widest width, the peers'. */
static void add_block(cJSON *blocks, const struct nb_entry *e, bool cold) {
    static const char *const endings[NB_N_PASSES][3] = {{"_twopass", "_fused", "_fast"},
                                                        {"_backward_plain", "_backward_fast", NULL}};
    const struct nb_kernel *k = e->kernel;
    struct nb_strings names released_by(nb_strings_release) = {0};
    nb_strings_add(&names, e->id);
    for (int i = 0; i < 3 && endings[k->pass][i]; i++) add_ours(k, endings[k->pass][i], &names);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *peer = nb_registry_at(i);
        if (peer->is_peer && peer->kernel->op == k->op && peer->kernel->pass == k->pass &&
            peer->kernel->dtype == k->dtype)
            nb_strings_add(&names, peer->id);
    }
    cJSON_AddItemToArray(blocks, nb_plugin_block(e, (const char *const *)names.items, names.n, cold));
}

/* Of many kernels each gets what one has in the least budget: a row that is left out finds nothing. */
static double checks_s(const struct try_options *o, size_t n_kernels) {
    return fmax(o->budget_s / 4, 1.25 * (double)n_kernels);
}

/* Half of the time goes to the run, a quarter to the hard rows; the rest to loading and probing. Every kernel gets the launches that an
 * interval needs, however long they take. */
static void set_time(const struct try_options *o, size_t n_kernels, struct nb_plan *plan) {
    plan->kept_s = checks_s(o, n_kernels);
    plan->budget_s = plan->kept_s + o->budget_s / 2;
    plan->leaves_none_out = true; /* late is better than no answer about a kernel */
    if (plan->estimate_s > o->budget_s)
        nb_note("about %.0f s, more than the %.0f given: these are %zu cases; --kernel chooses", plan->estimate_s,
                o->budget_s, plan->n_cases);
}

static int make_config(const struct subjects *s, struct nb_config *config) {
    cJSON *json released_by(nb_json_release) = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "launches", cJSON_CreateIntArray((const int[]){7, 40}, 2));
    cJSON *blocks = cJSON_AddArrayToObject(json, "blocks");
    for (int cold = 0; cold < 2; cold++)
        for (size_t i = 0; i < s->n; i++) add_block(blocks, s->items[i].entry, cold == 1);
    char *text = cJSON_PrintUnformatted(json);
    const int result = nb_config_parse(config, "try", text, strlen(text));
    cJSON_free(text);
    return result;
}

/* ---- what they do inside ----------------------------------------------------------------------------------------------- */

/* One that crashed, hung or harmed memory would do so again. What a wrong one does inside says more than its errors. */
static bool can_be_probed(const struct nb_results *results, const struct nb_entry *e) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (strcmp(r->c.variant, e->id) != 0) continue;
        const bool by_value = nb_status_wrong(r->status);
        if (nb_status_failed(r->status) && !by_value) return false;
        n += by_value || nb_status_timed(r->status);
    }
    return n > 0;
}

/* 0, -1 after nb_error, or the signal that ended it. */
static int probe(const struct try_options *o, const struct subjects *s, const struct nb_results *results) {
    struct nb_case *cases freed = nb_alloc(s->n, sizeof *cases);
    struct subject **asked freed = nb_alloc(s->n, sizeof *asked);
    cJSON **answers freed = nb_alloc(s->n, sizeof *answers);
    int n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct subject *one = &s->items[i];
        const char *refusal = can_be_probed(results, one->entry)
                                  ? nb_probe_case(&one->probed, one->entry, NULL, 0)
                                  : "not probed: only what comes back and keeps to its memory is";
        if (refusal) one->not_probed = nb_strdup(refusal);
        if (refusal) continue;
        cases[n] = one->probed;
        asked[n++] = one;
    }
    const double silence_s = fmin(o->case_timeout_s, LATE_TIMEOUT_S);
    const int ended = n > 0 ? nb_probe_cases(cases, n, &o->request.plugins, silence_s, answers) : 0;
    for (int i = 0; i < n; i++) asked[i]->answer = answers[i];
    return ended;
}

/* ---- the answers ------------------------------------------------------------------------------------------------------- */

static int exit_code_of(const struct subjects *s, const struct nb_results *results) {
    size_t n_ran = 0, n_failed = 0, n_skipped = 0, n_suspect = 0;
    for (size_t k = 0; k < s->n; k++) n_failed += s->items[k].answer && !nb_json_is(s->items[k].answer, "status", "ok");
    for (size_t i = 0; i < results->n; i++)
        for (size_t k = 0; k < s->n; k++) {
            const struct nb_record *r = &results->records[i];
            if (strcmp(r->c.variant, s->items[k].entry->id) != 0) continue;
            n_failed += nb_status_failed(r->status);
            n_skipped += r->status == NB_SKIPPED;
            n_suspect += r->has_timing && r->timing.suspect;
            n_ran += r->status != NB_SKIPPED && r->status != NB_NOT_RUN;
        }
    if (n_failed > 0) return NB_EXIT_FAILED;
    if (n_suspect > 0) return NB_EXIT_INCONCLUSIVE;
    if (n_ran > 0) return NB_EXIT_OK;
    if (n_skipped > 0) return NB_EXIT_NOTHING_RUNS;
    nb_error("none of its cases could be planned; `normbench run --plugin` with --list says why");
    return NB_EXIT_USAGE;
}

static bool gave_nan(const struct nb_results *results, const struct nb_entry *e) {
    bool any = false;
    for (size_t i = 0; i < results->n; i++)
        any |= strcmp(results->records[i].c.variant, e->id) == 0 && results->records[i].evidence.n_broken > 0;
    return any;
}

static int print(const struct subjects *s, const struct nb_results *results, const char *dir, bool is_cut) {
    struct nb_results checks released_by(nb_results_release) = {0};
    released_by(nb_grades_release) struct nb_grades grades, own_grades;
    struct nb_sample_table samples released_by(nb_sample_table_release) = {0};
    struct nb_strbuf out = {0};
    char *folder freed = nb_path_join(dir, NB_CHECKS_FOLDER);
    const bool checked = nb_path_exists(folder);
    int result = checked ? nb_results_fold(&checks, folder) : 0;
    if (result == 0) result = nb_sample_table_read(&samples, dir);
    nb_grades_make(&grades, &checks, NULL);
    nb_grades_make(&own_grades, results, NULL);
    for (size_t i = 0; i < s->n && result == 0; i++) {
        struct nb_strbuf differs released_by(nb_strbuf_release) = {0};
        const struct subject *one = &s->items[i];
        if (one->answer)
            nb_probe_differences(&one->probed, one->answer,
                                 gave_nan(results, one->entry) || gave_nan(&checks, one->entry), &differs);
        bool hard = false;
        for (size_t k = 0; k < checks.n; k++) hard |= strcmp(checks.records[k].c.variant, one->entry->id) == 0;
        const struct nb_tried tried = {.entry = one->entry,
                                       .results = results,
                                       .checks = hard ? &checks : NULL,
                                       .grades = hard ? &grades : &own_grades,
                                       .samples = &samples,
                                       .differs = differs.text,
                                       .probe = one->answer,
                                       .not_probed = one->not_probed,
                                       .is_cut = is_cut};
        if (i > 0) nb_strbuf_add(&out, "\n");
        nb_try_view(&tried, &out);
    }
    if (result == 0) result = nb_output(&out, stdout);
    return result;
}

/* After the measuring, in dir, which may have been ended by a signal (its number) or an error (-1), else 0: what is known then. */
static int answer(const struct try_options *o, const struct subjects *s, const char *dir, int ended) {
    struct nb_results results released_by(nb_results_release) = {0};
    if (nb_results_fold(&results, dir) != 0) return NB_EXIT_USAGE;
    if (ended == 0) ended = probe(o, s, &results);
    if (print(s, &results, dir, ended != 0) != 0) return NB_EXIT_USAGE;
    fflush(stdout);
    int exit_code = ended > 0 ? nb_ended_by(ended, "try", NULL) : exit_code_of(s, &results);
    if (nb_results_write(&results, dir) != 0 || ended < 0) exit_code = nb_exit_unwritten(exit_code);
    nb_note("all cases: `normbench report %s`", dir);
    return exit_code;
}

static int measure(const struct try_options *o, const struct subjects *s, const struct nb_plan *plan, int argc,
                   char **argv) {
    const struct nb_measuring m = {.request = &o->request,
                                   .plan = plan,
                                   .config = "try",
                                   .out = o->out,
                                   .no_counters = true,
                                   .silent = true,
                                   .case_timeout_s = o->case_timeout_s,
                                   .late_timeout_s = LATE_TIMEOUT_S,
                                   .argc = argc,
                                   .argv = argv};
    char *dir freed = nb_measuring_folder(&m);
    bool began;
    int ended = nb_measuring_run(&m, dir, &began);
    if (began && ended == 0) ended = nb_measuring_check_plugins(&m, checks_s(o, s->n), false, dir);
    if (began) return answer(o, s, dir, ended);
    return ended > 0 ? nb_ended_by(ended, "try", NULL) : NB_EXIT_USAGE;
}

static void release(struct try_options *o) { nb_plan_request_release(&o->request); }

static int try_main(int argc, char **argv) {
    struct try_options o released_by(release) = {.request = NB_PLAN_REQUEST_INIT, .budget_s = 20};
    const struct nb_plan_options all = {0};
    struct subjects subjects released_by(subjects_release) = {0};
    struct nb_config config released_by(nb_config_release) = {0};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (o.case_timeout_s == 0) o.case_timeout_s = fmin(10, o.budget_s / 2);
    nb_strings_add(&o.request.plugins, o.file);
    if ((!o.no_peers && nb_peers_add_built(&o.request.plugins) != 0) ||
        nb_load_kernels(&o.request.plugins, o.request.max_width) != 0 || find_subjects(&o, &subjects) != 0 ||
        make_config(&subjects, &config) != 0 || nb_plan_make(&plan, &config, &all) != 0)
        return NB_EXIT_USAGE;
    set_time(&o, subjects.n, &plan);
    if (!nb_plan_only_shown(&plan, &config, false, NULL, &exit_code))
        exit_code = measure(&o, &subjects, &plan, argc, argv);
    return exit_code;
}

const struct nb_command nb_command_try = {"try", "check a file's kernels: right, how accurate, how fast", help,
                                          try_main};
