// SPDX-License-Identifier: Apache-2.0
/* How a run with a journal begins, and --resume, of every command that has it: the command line that a journal holds, and whether what it
 * names is still the same. */
#include <string.h>

#include "cmd/shared/run_plan.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/core/tuning.h"
#include "src/measure/journal.h"
#include "src/record/fingerprint.h"

static int keep_first(const cJSON *line, void *arg) {
    *(cJSON **)arg = cJSON_Duplicate(line, true);
    return 1;
}

/* The run line of the journal in dir, owned; null after nb_error. */
static cJSON *read_run_line(const char *dir) {
    cJSON *run = NULL;
    return nb_journal_read(dir, keep_first, &run) == 0 ? run : NULL;
}

/* ---- what has changed since ----------------------------------------------------------------------------------------- */

/* Measurements of two builds, machines or plans must not stand in one journal as if they were of one. */

/* {FILE: HASH, ..}: what differs between two of these is named by its file. */
static cJSON *by_file(const cJSON *kernels) {
    cJSON *json = cJSON_CreateObject();
    const cJSON *item;
    cJSON_ArrayForEach(item, kernels) {
        const char *file = nb_json_get_text(item, "file");
        if (file) nb_json_text(json, file, nb_json_get_text(item, "hash"));
    }
    return json;
}

/* {KEY: place, ..} */
static cJSON *by_key(const cJSON *groups) {
    cJSON *json = cJSON_CreateObject();
    const cJSON *group, *key;
    int place = 0;
    cJSON_ArrayForEach(group, groups) {
        cJSON_ArrayForEach(key, nb_json_get(group, "keys")) {
            if (cJSON_IsString(key)) nb_json_number(json, key->valuestring, place++);
        }
    }
    return json;
}

/* "PATH: BEFORE, now NOW" of the first difference; "" while there is none. */
static void describe_first(const char *path, const cJSON *before, const cJSON *now, void *arg) {
    struct nb_strbuf *text = arg;
    if (text->len > 0) return;
    nb_strbuf_addf(text, "%s: ", path);
    if (before) nb_json_print(before, text);
    nb_strbuf_addf(text, "%s, now ", before ? "" : "not there");
    if (now) nb_json_print(now, text);
    if (!now) nb_strbuf_add(text, "not there");
}

/* Takes both over. */
static int refuse_differences(const char *dir, cJSON *before, cJSON *now, const char *what, const char *mend) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_json_differences(before, now, describe_first, &text);
    const int result = text.len ? nb_error("--resume %s: %s than when the run began (%s); %s, or start a new run", dir,
                                           what, text.text, mend)
                                : 0;
    cJSON_Delete(before);
    cJSON_Delete(now);
    return result;
}

static int compare_parts(const char *dir, const cJSON *before, const cJSON *now, const char *what, const char *mend) {
    return refuse_differences(dir, cJSON_Duplicate(before, true), cJSON_Duplicate(now, true), what, mend);
}

/* Some members of an object, owned. */
static cJSON *select_members(const cJSON *object, const char *const *names) {
    cJSON *json = cJSON_CreateObject();
    for (; *names; names++)
        if (nb_json_get(object, *names))
            cJSON_AddItemToObject(json, *names, cJSON_Duplicate(nb_json_get(object, *names), true));
    return json;
}

static int compare_plans(const char *dir, const cJSON *before, const cJSON *now) {
    static const char *const effort[] = {"launches", "most_launches", "aim", "blocks", "sample_ms", "order_seed", NULL},
                             *const hash[] = {"hash", NULL};
    static const char what[] = "its config plans something else", mend[] = "put the config back as it was";
    const cJSON *a = nb_json_get(before, "plan"), *b = nb_json_get(now, "plan");
    int result = refuse_differences(dir, select_members(a, effort), select_members(b, effort), what, mend);
    if (result != 0 || cJSON_Compare(nb_json_get(a, "hash"), nb_json_get(b, "hash"), true)) return result;
    result =
        refuse_differences(dir, by_key(nb_json_get(before, "groups")), by_key(nb_json_get(now, "groups")), what, mend);
    return result == 0 ? refuse_differences(dir, select_members(a, hash), select_members(b, hash), what, mend) : result;
}

/* Of two fingerprints. Before all else: what follows from the CPU, such as the tuning, is another one then, too. */
static int compare_cpus(const char *dir, const cJSON *before, const cJSON *now) {
    return refuse_differences(dir, select_members(nb_json_get(before, "cpu"), nb_cpu_identity),
                              select_members(nb_json_get(now, "cpu"), nb_cpu_identity), "this is another CPU",
                              "go on where it began");
}

/* -1 after nb_error. */
static int compare_runs(const char *dir, const cJSON *now) {
    cJSON *before released_by(nb_json_release) = read_run_line(dir);
    const cJSON *a = nb_json_get(before, "fingerprint"), *b = nb_json_get(now, "fingerprint");
    int result = before ? compare_cpus(dir, a, b) : -1;
    if (result == 0)
        result = compare_parts(dir, nb_json_get(a, "build"), nb_json_get(b, "build"), "normbench is another build",
                               "go on with the one that it began with");
    if (result == 0)
        result = refuse_differences(dir, by_file(nb_json_get(a, "kernels")), by_file(nb_json_get(b, "kernels")),
                                    "a file of kernels is another build", "put that one back");
    if (result == 0)
        result = compare_parts(dir, nb_json_get(nb_json_get(a, "tuning"), "fields"),
                               nb_json_get(nb_json_get(b, "tuning"), "fields"), "the tuning is another one",
                               "choose the same by --tuning");
    if (result == 0) result = compare_plans(dir, before, now);
    return result;
}

/* ---- the command line ----------------------------------------------------------------------------------------------- */

bool nb_journaled_argv_read(struct nb_strings *saved, const char *dir, const char *command,
                            const struct nb_output_options *o, const struct nb_plan_request *q, int *exit_code) {
    const cJSON *item;
    *exit_code = NB_EXIT_USAGE;
    if (q->changed || q->config || o->out || o->list)
        return nb_error("--resume %s continues that run: leave out names, --out, --list and options of the plan",
                        o->resume),
               false;
    cJSON *run released_by(nb_json_release) = read_run_line(dir);
    const cJSON *argv = nb_json_get(run, "argv"), *fingerprint = nb_json_get(run, "fingerprint");
    if (!run) return false;
    cJSON_ArrayForEach(item, argv) if (cJSON_IsString(item)) nb_strings_add(saved, item->valuestring);
    saved->items = nb_realloc(saved->items, saved->n + 1, sizeof *saved->items);
    saved->items[saved->n] = NULL;
    const char *began = saved->n > 0 ? saved->items[0] : "run";
    cJSON *now released_by(nb_json_release) = nb_fingerprint();
    const bool same_command = strcmp(began, command) == 0,
               same_cpu = same_command && compare_cpus(dir, fingerprint, now) == 0;
    if (!same_command) nb_error("--resume %s: `normbench %s` began it and must continue it", o->resume, began);
    if (same_command && !same_cpu) *exit_code = NB_EXIT_NOT_COMPARABLE;
    /* The run's own tuning, whatever the file of this CPU says by now; one that the user chose was chosen before, and is compared below. */
    if (same_cpu) nb_tuning_choose_again(nb_json_get(fingerprint, "tuning"));
    return same_cpu;
}

int nb_ended_by(int signal, const char *command, const char *dir) {
    if (dir)
        nb_note("ended by signal %d; `normbench %s --resume %s` goes on", signal, command, dir);
    else
        nb_note("ended by signal %d; the same command starts anew", signal);
    return 128 + signal;
}

/* ---- the first line, or that of a run which is resumed ---------------------------------------------------------------- */

static void move_members(cJSON *to, cJSON *from) {
    while (from->child) {
        cJSON *item = cJSON_DetachItemViaPointer(from, from->child);
        cJSON_AddItemToObject(to, item->string, item);
    }
    cJSON_Delete(from);
}

int nb_run_begin(struct nb_journal *journal, const char *dir, bool resume, cJSON *plan, int argc, char **argv) {
    char started[32];
    cJSON *line released_by(nb_json_release) = cJSON_CreateObject();
    cJSON *again released_by(nb_json_release) = cJSON_CreateObject();
    nb_utc_now("%Y-%m-%dT%H:%M:%SZ", started, sizeof started);
    nb_json_text(line, "type", "run");
    nb_json_text(line, "schema", NB_SCHEMA_VERSION);
    nb_json_text(line, "program", "normbench");
    nb_json_text(line, "version", NB_VERSION);
    move_members(line, plan);
    cJSON_AddItemToObject(line, "fingerprint", nb_fingerprint());
    int result = resume ? compare_runs(dir, line) : 0;
    if (result == 0) result = resume ? nb_journal_append_to(journal, dir) : nb_journal_create(journal, dir);
    nb_json_text(again, "type", "resume");
    if (resume)
        cJSON_AddItemToObject(again, "fingerprint", cJSON_DetachItemFromObjectCaseSensitive(line, "fingerprint"));
    cJSON *first = resume ? again : line;
    nb_json_text(first, "started", started);
    cJSON_AddItemToObject(first, "argv", cJSON_CreateStringArray((const char *const *)argv, argc));
    if (result == 0) result = nb_journal_write(journal, first);
    return result;
}
