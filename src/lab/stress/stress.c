// SPDX-License-Identifier: Apache-2.0
/* Grades, studies and bugs as one document. */
#include "src/lab/stress/stress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/tuning_file.h"
#include "src/measure/journal.h"
#include "src/record/record.h"

static const size_t largest_file = (size_t)1 << 30;

static void add_grade(cJSON *json, const char *name, enum nb_grade grade) {
    nb_json_text(json, name, grade == NB_GRADE_NONE ? NULL : nb_grade_name(grade));
}

static cJSON *why_to_json(const struct nb_record *r, const struct nb_graded *graded) {
    if (!r) return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "key", r->key);
    nb_json_text(json, "replay", r->replay);
    nb_json_text(json, "text", graded->text);
    return json;
}

static cJSON *line_to_json(const struct nb_grade_line *line) {
    const struct nb_case *c = &line->first->c;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "kernel", line->kernel);
    nb_json_text(json, "variant", c->variant);
    nb_json_text(json, "op", nb_op_name(c->op));
    nb_json_text(json, "pass", nb_pass_name(c->pass));
    nb_json_text(json, "dtype", nb_formats[c->dtype].name);
    nb_json_text(json, "width", nb_width_name(c->width));
    nb_json_text(json, "formula", line->formula);
    add_grade(json, "declared", line->declared.grade);
    add_grade(json, "all", line->all.grade);
    cJSON_AddItemToObject(json, "why_declared", why_to_json(line->why_declared, &line->declared));
    cJSON_AddItemToObject(json, "why_all", why_to_json(line->why_all, &line->all));
    nb_json_number(json, "n_cases", (double)line->n_cases);
    nb_json_number(json, "n_declared", (double)line->n_declared);
    nb_json_number(json, "max_ulp", line->max_ulp);
    nb_json_number(json, "componentwise_ulp", line->componentwise_ulp);
    nb_json_number(json, "correct", line->correct);
    nb_json_number(json, "bias_u", line->bias_u);
    nb_json_number(json, "gain_u", line->gain_u);
    nb_json_number(json, "nan", (double)line->n_nan);
    nb_json_number(json, "inf", (double)line->n_inf);
    nb_json_number(json, "zero", (double)line->n_zero);
    nb_json_number(json, "bound_ratio", line->bound_ratio);
    nb_json_number(json, "noise_ratio", line->noise_ratio);
    nb_json_number(json, "reference_ratio", line->reference_ratio);
    nb_json_number(json, "ns_per_element", line->ns_per_element);
    return json;
}

/* ---- bugs --------------------------------------------------------------------------------------------------------- */

static cJSON *who_to_json(const struct nb_grade_line *line) {
    cJSON *json = cJSON_CreateObject();
    const struct nb_record *r = line->lost ? line->lost : line->why_all ? line->why_all : line->first;
    struct nb_graded graded;
    nb_grade_case(r, &graded);
    nb_json_text(json, "kernel", line->kernel);
    nb_json_text(json, "variant", line->first->c.variant);
    nb_json_text(json, "formula", line->formula);
    add_grade(json, "grade", graded.grade);
    nb_json_text(json, "key", r->key);
    nb_json_text(json, "text", graded.grade != NB_GRADE_NONE ? graded.text : r->reason ? r->reason : "as it should");
    return json;
}

static cJSON *bug_to_json(const struct nb_results *results, const cJSON *label) {
    const char *name = nb_json_get_text(label, "name");
    struct nb_grades grades;
    const struct nb_grade_line *worst = NULL;
    nb_grades_make(&grades, results, name);
    if (grades.n == 0) {
        nb_grades_release(&grades);
        return NULL;
    }
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "label", name);
    nb_json_text(json, "text", nb_json_get_text(label, "text"));
    nb_json_text(json, "source", nb_json_get_text(label, "source"));
    cJSON *failed = cJSON_AddArrayToObject(json, "failed"), *survived = cJSON_AddArrayToObject(json, "survived");
    for (size_t i = 0; i < grades.n; i++) {
        const struct nb_grade_line *line = &grades.lines[i];
        cJSON_AddItemToArray(line->lost ? failed : survived, who_to_json(line));
        const bool lower = !worst || line->all.grade < worst->all.grade ||
                           (line->all.grade == worst->all.grade && line->all.severity > worst->all.severity);
        if (line->why_all && lower) worst = line;
    }
    cJSON_AddItemToObject(json, "worst", worst ? why_to_json(worst->why_all, &worst->all) : cJSON_CreateNull());
    nb_grades_release(&grades);
    return json;
}

/* Labels that say where they come from are bug reports; others name parts of the suite. */
static cJSON *bugs_to_json(const struct nb_results *results) {
    cJSON *bugs = cJSON_CreateArray();
    const cJSON *label;
    cJSON_ArrayForEach(label, cJSON_GetObjectItemCaseSensitive(results->meta, "labels")) {
        cJSON *bug = nb_json_get_text(label, "source") ? bug_to_json(results, label) : NULL;
        if (bug) cJSON_AddItemToArray(bugs, bug);
    }
    return bugs;
}

/* ---- relations ---------------------------------------------------------------------------------------------------- */

size_t nb_stress_broken(const struct nb_record *r) {
    size_t n = 0;
    for (int i = 0; i < NB_N_RELATIONS && r->has_metamorphic; i++)
        n += r->metamorphic.relations[i].verdict == NB_BROKEN;
    return n;
}

static void add_relations(cJSON *list, const struct nb_record *r) {
    for (int i = 0; i < NB_N_RELATIONS; i++) {
        if (r->metamorphic.relations[i].verdict != NB_BROKEN) continue;
        cJSON *json = cJSON_CreateObject();
        nb_json_text(json, "relation", nb_relation_name((enum nb_relation)i));
        nb_json_text(json, "key", r->key);
        nb_json_text(json, "replay", r->replay);
        nb_json_number(json, "figure", r->metamorphic.relations[i].figure);
        nb_json_text(json, "text", r->metamorphic.relations[i].reason);
        cJSON_AddItemToArray(list, json);
    }
}

/* ---- studies ------------------------------------------------------------------------------------------------------ */

static void move_answer(cJSON *study, const cJSON *answer, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(answer, name);
    cJSON_AddItemToObject(study, name, item ? cJSON_Duplicate(item, true) : cJSON_CreateNull());
}

cJSON *nb_stress_study(const struct nb_case *c, const char *plugin_file, const cJSON *answer) {
    const char *status = nb_json_get_text(answer, "status");
    struct nb_strbuf key = {0};
    nb_case_key(c, &key);
    char *tuning = nb_tuning_replay(), *replay = nb_replay_command(key.text, plugin_file, tuning);
    cJSON *study = cJSON_CreateObject();
    nb_json_text(study, "key", key.text);
    nb_json_text(study, "variant", c->variant);
    nb_json_text(study, "dtype", nb_formats[c->dtype].name);
    nb_json_text(study, "replay", replay);
    nb_json_text(study, "status", status ? status : nb_status_name(NB_OK));
    nb_json_text(study, "reason", nb_json_get_text(answer, "reason"));
    move_answer(study, answer, "frontiers");
    move_answer(study, answer, "worst");
    move_answer(study, answer, "sweeps");
    move_answer(study, answer, "map");
    nb_strbuf_release(&key);
    free(replay);
    free(tuning);
    return study;
}

/* ---- the document ------------------------------------------------------------------------------------------------- */

static void add_copy(cJSON *json, const cJSON *from, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    cJSON_AddItemToObject(json, name, item ? cJSON_Duplicate(item, true) : cJSON_CreateNull());
}

cJSON *nb_stress_judge(const struct nb_results *results, const struct nb_grades *grades,
                       const struct nb_searched *searched) {
    static const char *const copied[] = {"schema", "program", "version", "config", "started", "fingerprint"};
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) add_copy(json, results->meta, copied[i]);
    cJSON_AddBoolToObject(json, "complete", searched->complete && nb_json_get_bool(results->meta, "complete"));
    nb_json_number(json, "studies_elapsed_s", searched->elapsed_s);
    cJSON *lines = cJSON_AddArrayToObject(json, "grades");
    for (size_t i = 0; i < grades->n; i++) cJSON_AddItemToArray(lines, line_to_json(&grades->lines[i]));
    cJSON_AddItemToObject(json, "studies",
                          searched->list ? cJSON_Duplicate(searched->list, true) : cJSON_CreateArray());
    cJSON_AddItemToObject(json, "bugs", bugs_to_json(results));
    cJSON *relations = cJSON_AddArrayToObject(json, "relations");
    for (size_t i = 0; i < results->n; i++)
        if (nb_stress_broken(&results->records[i]) > 0) add_relations(relations, &results->records[i]);
    return json;
}

int nb_stress_write(const cJSON *stress, const char *dir) {
    char *path = nb_path_join(dir, NB_STRESS_FILE);
    const int result = nb_json_write(stress, path);
    free(path);
    return result;
}

bool nb_stress_exists(const char *dir) {
    char *path = nb_path_join(dir, NB_STRESS_FILE);
    bool exists = nb_path_exists(path);
    free(path);
    return exists;
}

cJSON *nb_stress_read(const char *dir) {
    char *path = nb_path_join(dir, NB_STRESS_FILE);
    size_t len;
    char *text = nb_file_read(path, largest_file, &len);
    cJSON *json = text && strlen(text) == len && nb_json_is_utf8(text) ? cJSON_Parse(text) : NULL;
    const char *schema = nb_json_get_text(json, "schema");
    const bool usable = nb_schema_readable(schema) && cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "grades")) &&
                        cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "studies")) &&
                        cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "bugs"));
    if (usable) nb_rename_old(json, atoi(schema));
    if (text && !usable) {
        nb_error("%s: is not the judgement of a stress run that this version reads", path);
        cJSON_Delete(json);
        json = NULL;
    }
    free(text);
    free(path);
    return json;
}

/* Files may come from anybody: a study must say who it is about. */
static bool is_study(const cJSON *study) {
    static const char *const texts[] = {"key", "variant", "dtype", "replay", "status"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!nb_json_get_text(study, texts[i])) return false;
    return true;
}

static void drop_damaged(cJSON *list, const char *dir) {
    for (int i = cJSON_GetArraySize(list); i-- > 0;) {
        if (is_study(cJSON_GetArrayItem(list, i))) continue;
        nb_warn("%s/%s: study %d is damaged and left out", dir, NB_STRESS_FILE, i + 1);
        cJSON_DeleteItemFromArray(list, i);
    }
}

void nb_searched_read(struct nb_searched *searched, const char *dir) {
    cJSON *stress = nb_stress_exists(dir) ? nb_stress_read(dir) : NULL;
    *searched = (struct nb_searched){.complete = true, .elapsed_s = NAN};
    if (!stress) return;
    searched->list = cJSON_DetachItemFromObjectCaseSensitive(stress, "studies");
    drop_damaged(searched->list, dir);
    searched->complete = nb_json_get_bool(stress, "complete");
    searched->elapsed_s = nb_json_get_number(stress, "studies_elapsed_s");
    cJSON_Delete(stress);
}
