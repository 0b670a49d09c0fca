// SPDX-License-Identifier: Apache-2.0
/* Grades, studies and bugs as one document; then the searches that studies come from. */
#include "src/lab/stress/stress.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/core/tuning.h"
#include "src/measure/journal.h"
#include "src/measure/launcher.h"
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

#define L(KIND, field) NB_MEMBER(KIND, struct nb_grade_line, field)
#define L_AS(key, KIND, field) NB_MEMBER_AS(key, KIND, struct nb_grade_line, field)
static const struct nb_member figure_members[] = {L(COUNT, n_cases),
                                                  L(COUNT, n_declared),
                                                  L_AS("max_ulp", NUMBER, figures.max_ulp),
                                                  L_AS("componentwise_ulp", NUMBER, figures.componentwise_ulp),
                                                  L(NUMBER, correct),
                                                  L_AS("bias_u", NUMBER, figures.bias_u),
                                                  L_AS("gain_u", NUMBER, figures.gain_u),
                                                  L_AS("nan", COUNT, n_nan),
                                                  L_AS("inf", COUNT, n_inf),
                                                  L_AS("zero", COUNT, n_zero),
                                                  L_AS("bound_ratio", NUMBER, figures.bound_ratio),
                                                  L_AS("noise_ratio", NUMBER, figures.noise_ratio),
                                                  NB_MEMBERS_END};

static cJSON *line_to_json(const struct nb_grade_line *line) {
    const struct nb_case *c = &line->first->c;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "kernel", line->kernel);
    nb_json_text(json, "variant", c->variant);
    nb_json_text(json, "op", nb_op_names[c->op]);
    nb_json_text(json, "pass", nb_pass_names[c->pass]);
    nb_json_text(json, "dtype", nb_formats[c->dtype].name);
    nb_json_text(json, "width", nb_width_names[c->width]);
    nb_json_text(json, "formula", line->formula);
    add_grade(json, "declared", line->declared.grade);
    add_grade(json, "all", line->all.grade);
    cJSON_AddItemToObject(json, "why_declared", why_to_json(line->why_declared, &line->declared));
    cJSON_AddItemToObject(json, "why_all", why_to_json(line->why_all, &line->all));
    nb_json_add_members(json, figure_members, line);
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
    struct nb_grades grades released_by(nb_grades_release);
    const struct nb_grade_line *worst = NULL;
    nb_grades_make(&grades, results, name);
    if (grades.n == 0) return NULL;
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
    return json;
}

/* Labels that say where they come from are bug reports; others name parts of the suite. */
static cJSON *bugs_to_json(const struct nb_results *results) {
    cJSON *bugs = cJSON_CreateArray();
    const cJSON *label;
    cJSON_ArrayForEach(label, nb_json_get(results->meta, "labels")) {
        cJSON *bug = nb_json_get_text(label, "source") ? bug_to_json(results, label) : NULL;
        if (bug) cJSON_AddItemToArray(bugs, bug);
    }
    return bugs;
}

/* ---- relations ---------------------------------------------------------------------------------------------------- */

size_t nb_stress_broken(const struct nb_record *r) {
    size_t n = 0;
    for (int i = 0; i < NB_N_RELATIONS && r->metamorphic; i++) n += r->metamorphic->relations[i].verdict == NB_BROKEN;
    return n;
}

static void add_relations(cJSON *list, const struct nb_record *r) {
    for (int i = 0; i < NB_N_RELATIONS && r->metamorphic; i++) {
        if (r->metamorphic->relations[i].verdict != NB_BROKEN) continue;
        cJSON *json = nb_json_add_object(list);
        nb_json_text(json, "relation", nb_relation_name((enum nb_relation)i));
        nb_json_text(json, "key", r->key);
        nb_json_text(json, "replay", r->replay);
        nb_json_number(json, "figure", r->metamorphic->relations[i].figure);
        nb_json_text(json, "text", r->metamorphic->relations[i].reason);
    }
}

/* ---- studies ------------------------------------------------------------------------------------------------------ */

static const char *plugin_file(const struct nb_case *c) {
    const struct nb_entry *entry = nb_registry_find(c->variant);
    return entry && entry->plugin ? entry->file : NULL;
}

/* A worker's answer (src/measure/launcher.h) as an element of "studies". */
static cJSON *study_of(const struct nb_case *c, const cJSON *answer) {
    static const char *const answers[] = {"frontiers", "worst", "map"};
    const char *status = nb_json_get_text(answer, "status");
    char *key freed = nb_case_key(c), *tuning freed = nb_tuning_replay();
    char *replay freed = nb_replay_command(&(struct nb_replay){key, "--check-only", plugin_file(c), tuning});
    cJSON *study = cJSON_CreateObject();
    nb_json_text(study, "key", key);
    nb_json_text(study, "variant", c->variant);
    nb_json_text(study, "dtype", nb_formats[c->dtype].name);
    nb_json_text(study, "replay", replay);
    nb_json_text(study, "status", status ? status : nb_status_name(NB_OK));
    nb_json_text(study, "reason", nb_json_get_text(answer, "reason"));
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) nb_json_copy(study, answer, answers[i]);
    return study;
}

/* ---- the document ------------------------------------------------------------------------------------------------- */

cJSON *nb_stress_judge(const struct nb_results *results, const struct nb_grades *grades,
                       const struct nb_searched *searched) {
    static const char *const copied[] = {"schema", "program", "version", "config", "started", "fingerprint"};
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) nb_json_copy(json, results->meta, copied[i]);
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
    nb_json_add_sum(json);
    return json;
}

int nb_stress_write(const cJSON *stress, const char *dir) {
    char *path freed = nb_path_join(dir, NB_STRESS_FILE);
    return nb_json_write(stress, path);
}

cJSON *nb_stress_read(const char *dir) {
    char *path freed = nb_path_join(dir, NB_STRESS_FILE);
    size_t len;
    char *text freed = nb_file_read(path, largest_file, &len);
    cJSON *json = text && strlen(text) == len && nb_json_is_utf8(text) ? cJSON_Parse(text) : NULL;
    if (text && !json) nb_error("%s: is not JSON in UTF-8", path);
    const bool usable = json && nb_json_check_schema(json, path, NB_SCHEMA_VERSION) == 0;
    const bool whole = usable && cJSON_IsArray(nb_json_get(json, "grades")) &&
                       cJSON_IsArray(nb_json_get(json, "studies")) && cJSON_IsArray(nb_json_get(json, "bugs"));
    static const char mend[] = "delete it, and `normbench stress --resume` searches again";
    if (usable && !whole) nb_error("%s: is not the judgement of a stress run", path);
    if (!whole || nb_json_check_sum(json, path, "it", mend) != 0) {
        cJSON_Delete(json);
        json = NULL;
    }
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

int nb_searched_read(struct nb_searched *searched, const char *dir) {
    *searched = (struct nb_searched){.complete = true, .elapsed_s = NAN};
    if (!nb_dir_holds(dir, NB_STRESS_FILE)) return 0;
    cJSON *stress released_by(nb_json_release) = nb_stress_read(dir);
    if (!stress) return -1;
    searched->list = cJSON_DetachItemFromObjectCaseSensitive(stress, "studies");
    drop_damaged(searched->list, dir);
    searched->complete = nb_json_get_bool(stress, "complete");
    searched->elapsed_s = nb_json_get_number(stress, "studies_elapsed_s");
    return 0;
}

static const char shape[] = "8x1024";

struct candidate {
    const struct nb_entry *entry;
    const struct nb_case *planned; /* the first with it */
};

struct search {
    const struct nb_stress_search *q;
    struct nb_searched *searched;
    struct nb_case *cases;
    int n;
    double start_s, before_s, written_s;
    bool failed;
};

/* ---- which variants are searched. The widest come first: should the time end, they are what most people run ------ */

static void candidates_of(const struct nb_plan *plan, struct candidate **out, size_t *n) {
    *out = nb_alloc(plan->n_cases + 1, sizeof **out);
    *n = 0;
    for (size_t i = 0; i < plan->n_cases; i++) {
        const struct nb_entry *entry = nb_registry_find(plan->cases[i].variant);
        bool seen = !entry || entry->kernel->op == NB_OP_COPY || entry->kernel->pass != NB_FORWARD;
        for (size_t j = *n; j-- > 0 && !seen;) seen = (*out)[j].entry == entry;
        if (!seen) (*out)[(*n)++] = (struct candidate){entry, &plan->cases[i]};
    }
}

static bool same_kernel(const struct candidate *a, const struct candidate *b) {
    return a->entry->kernel->dtype == b->entry->kernel->dtype && strcmp(a->entry->kernel_id, b->entry->kernel_id) == 0;
}

static bool is_widest(const struct candidate *list, size_t n, size_t at) {
    for (size_t i = 0; i < n; i++)
        if (same_kernel(&list[i], &list[at]) && list[i].entry->kernel->width > list[at].entry->kernel->width)
            return false;
    return true;
}

/* The case that a variant is searched with. */
static int case_of(const struct candidate *candidate, struct nb_case *c) {
    char reason[200];
    nb_case_init(c);
    c->formula.affine = NB_N_AFFINES; /* the op's usual one */
    nb_case_set_entry(c, candidate->entry);
    if (nb_axis_set(nb_axis_find("shape"), c, shape, reason, sizeof reason) != 0)
        return nb_error("shape %s %s", shape, reason);
    if (nb_kernel_refuses(candidate->entry->kernel, &c->formula)) c->formula = candidate->planned->formula;
    nb_case_normalize(c);
    return 0;
}

/* A study that has its answer. */
static bool is_answered(const cJSON *study) {
    const char *status = nb_json_get_text(study, "status");
    return status && nb_status_parse(status) != NB_NOT_RUN;
}

static bool is_known(const struct nb_searched *searched, const struct nb_case *c) {
    char *key freed = nb_case_key(c);
    return is_answered(nb_json_find(searched->list, "key", key));
}

/* A case of the variant that took its process down or harmed memory, or null. */
static const struct nb_record *harm(const struct nb_results *results, const char *variant) {
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        const bool harmful = nb_status_failed(r->status) && r->status != NB_INACCURATE && r->status != NB_BIASED;
        if (harmful && strcmp(r->c.variant, variant) == 0) return r;
    }
    return NULL;
}

/* ---- what is kept --------------------------------------------------------------------------------------------------- */

/* In the place of an earlier one that was not run. */
static void put(struct nb_searched *searched, cJSON *study) {
    const cJSON *earlier = nb_json_find(searched->list, "key", nb_json_get_text(study, "key"));
    if (earlier)
        cJSON_ReplaceItemViaPointer(searched->list, (cJSON *)earlier, study);
    else
        cJSON_AddItemToArray(searched->list, study);
}

static int write_so_far(struct search *s) {
    s->searched->elapsed_s = s->before_s + nb_now_s() - s->start_s;
    cJSON *stress released_by(nb_json_release) = nb_stress_judge(s->q->results, s->q->grades, s->searched);
    return nb_stress_write(stress, s->q->dir);
}

/* How much of a search a kill may cost: the file is long. */
static const double between_writes_s = 5;

static void keep(int i, cJSON *answer, void *arg) {
    struct search *s = arg;
    put(s->searched, study_of(&s->cases[i], answer));
    cJSON_Delete(answer);
    if (s->failed || nb_now_s() < s->written_s + between_writes_s) return;
    if (write_so_far(s) != 0) s->failed = true;
    s->written_s = nb_now_s();
}

/* A study that has no answer, or none yet. */
static void put_without_answer(struct search *s, const struct nb_case *c, enum nb_status status, const char *reason) {
    cJSON *answer released_by(nb_json_release) = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(status));
    nb_json_text(answer, "reason", reason);
    put(s->searched, study_of(c, answer));
}

static int choose(struct search *s) {
    struct candidate *list;
    size_t n;
    int result = 0;
    candidates_of(s->q->plan, &list, &n);
    s->cases = nb_alloc(2 * n + 1, sizeof *s->cases);
    for (int scalar = 0; scalar < 2; scalar++)
        for (size_t i = 0; i < n && result == 0; i++) {
            const bool widest = is_widest(list, n, i);
            if (scalar ? widest || list[i].entry->kernel->width != NB_SCALAR : !widest) continue;
            struct nb_case *c = &s->cases[s->n];
            result = case_of(&list[i], c);
            const struct nb_record *harmed = result == 0 ? harm(s->q->results, c->variant) : NULL;
            if (result != 0 || is_known(s->searched, c)) continue;
            const bool is_away = c->backend == NB_BACKEND_CUDA, searched = !is_away && !harmed;
            char *reason freed = is_away ? nb_strdup("a search calls its kernel on the host's memory")
                                 : harmed
                                     ? nb_textf("not searched: %s in %s", nb_status_name(harmed->status), harmed->key)
                                     : nb_strdup("the run ended before it"); /* its place until its answer comes */
            put_without_answer(s, c, searched ? NB_NOT_RUN : NB_SKIPPED, reason);
            s->n += searched;
        }
    free(list);
    return result;
}

/* ---- the search ----------------------------------------------------------------------------------------------------- */

static bool all_done(const struct nb_searched *searched) {
    const cJSON *study;
    cJSON_ArrayForEach(study, searched->list) {
        if (!is_answered(study)) return false;
    }
    return true;
}

int nb_stress_search(const struct nb_stress_search *q, struct nb_searched *searched) {
    assert(q->dir && q->budget_s >= 0);
    struct search s = {.q = q, .searched = searched, .start_s = nb_now_s()};
    char *reproducers freed = nb_path_join(q->dir, "reproducers");
    char *absolute freed = NULL; /* replay lines work from anywhere */
    cJSON *options released_by(nb_json_release) = cJSON_CreateObject();
    if (!searched->list) searched->list = cJSON_CreateArray();
    s.before_s = isfinite(searched->elapsed_s) ? searched->elapsed_s : 0;
    int result = nb_dir_make(reproducers) == 0 ? choose(&s) : -1;
    if (result == 0) absolute = realpath(reproducers, NULL);
    nb_json_text(options, "reproducer_dir", absolute ? absolute : reproducers);
    const struct nb_study study = {.kind = "search",
                                   .cases = s.cases,
                                   .n_cases = s.n,
                                   .plugins = q->plugins,
                                   .n_plugins = q->n_plugins,
                                   .options = options,
                                   .budget_s = q->budget_s,
                                   .silence_s = q->silence_s,
                                   .label = "searching",
                                   .side_by_side = true};
    if (result == 0 && s.n > 0) {
        nb_note("searching %d variant%s for at most %.0f s", s.n, s.n == 1 ? "" : "s", q->budget_s);
        result = nb_study_run(&study, keep, &s);
    }
    searched->complete = result == 0 && all_done(searched);
    if (result >= 0 && (s.failed || write_so_far(&s) != 0)) result = -1;
    free(s.cases);
    return result;
}
