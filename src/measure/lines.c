// SPDX-License-Identifier: Apache-2.0
/* What a check, a launch and a failure say. */
#include "src/measure/lines.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

/* ---- checks and counters ------------------------------------------------------------------------------------------- */

static const struct nb_member outcome_members[] = {
    NB_MEMBER(BORROWED, struct nb_check_line, key), NB_MEMBER_NAMED(struct nb_check_line, status, nb_status_names),
    NB_MEMBER_OPTIONAL(BORROWED, struct nb_check_line, reason), NB_MEMBERS_END};
#define FACT(KIND, field) NB_MEMBER(KIND, struct nb_facts, field)
#define FACT_OPTIONAL(KIND, field) NB_MEMBER_OPTIONAL(KIND, struct nb_facts, field)
const struct nb_member nb_facts_members[] = {FACT(POSITIVE, summation_depth),
                                             FACT_OPTIONAL(POSITIVE, column_summation_depth),
                                             FACT(BOOL, row_local),
                                             FACT_OPTIONAL(POSITIVE, rows_judged),
                                             FACT_OPTIONAL(POSITIVE, calls),
                                             FACT_OPTIONAL(BORROWED, library),
                                             FACT_OPTIONAL(BORROWED, implementation),
                                             FACT_OPTIONAL(TEXT, digest),
                                             NB_MEMBERS_END};

cJSON *nb_check_line_to_json(const struct nb_check_line *l, enum nb_number number) {
    assert(l && l->key && l->status < NB_NOT_RUN);
    cJSON *json = cJSON_CreateObject();
    nb_json_add_members(json, outcome_members, l);
    if (l->has_accuracy) cJSON_AddItemToObject(json, "accuracy", nb_accuracy_to_json(&l->accuracy, number));
    if (l->has_evidence) cJSON_AddItemToObject(json, "evidence", nb_evidence_to_json(&l->evidence));
    if (l->has_metamorphic)
        cJSON_AddItemToObject(json, "metamorphic", nb_json_of_members(nb_metamorphic_members, &l->metamorphic));
    nb_json_add_members(json, nb_facts_members, &l->facts);
    return json;
}

int nb_check_line_read_figures(struct nb_check_line *l, const cJSON *json) {
    const cJSON *accuracy = nb_json_get(json, "accuracy");
    const cJSON *evidence = nb_json_get(json, "evidence");
    const cJSON *metamorphic = nb_json_get(json, "metamorphic");
    *l = (struct nb_check_line){.has_accuracy = cJSON_IsObject(accuracy),
                                .has_evidence = cJSON_IsObject(evidence),
                                .has_metamorphic = cJSON_IsObject(metamorphic)};
    if (nb_json_get_members(json, nb_facts_members, &l->facts, "a checked case") != 0) return -1;
    if (l->has_accuracy && nb_accuracy_from_json(&l->accuracy, accuracy) != 0) return -1;
    if (l->has_evidence && nb_evidence_from_json(&l->evidence, evidence) != 0) return -1;
    if (!l->has_metamorphic) return 0;
    return nb_json_get_members(metamorphic, nb_metamorphic_members, &l->metamorphic, "metamorphic");
}

int nb_check_line_read(struct nb_check_line *l, const cJSON *line) {
    if (nb_check_line_read_figures(l, line) != 0) return -1;
    if (nb_json_get_members(line, outcome_members, l, "a checked case") != 0) return -1;
    if (!l->key) return nb_error("a checked case without \"key\"");
    if (l->status < NB_NOT_RUN) return 0;
    return nb_error("%s: \"%s\" is not a status that a case can come out with", l->key, nb_status_name(l->status));
}

int nb_counters_read(struct nb_counter *counters, const cJSON *json) {
    const cJSON *item;
    int n = 0;
    cJSON_ArrayForEach(item, nb_json_get(json, "counters")) {
        if (n == NB_MAX_COUNTERS) return nb_error("more than %d counters", NB_MAX_COUNTERS);
        struct nb_counter *counter = &counters[n++];
        if (nb_json_get_members(item, nb_counter_members, counter, "counter") != 0) return -1;
        if (!counter->name[0] || !counter->source[0]) return nb_error("a counter without \"name\" or \"source\"");
    }
    return n;
}

/* ---- launches ------------------------------------------------------------------------------------------------------- */

#define T(KIND, field) NB_MEMBER(KIND, struct nb_timed, field)
const struct nb_member nb_timed_case_members[] = {T(BORROWED, key),
                                                  T(BORROWED, copy),
                                                  T(NUMBER, per_sample),
                                                  T(BOOL, chunked),
                                                  T(NUMBER, core_ns),
                                                  T(NUMBER, floor_ns),
                                                  NB_MEMBER_OPTIONAL(BORROWED, struct nb_timed, level),
                                                  NB_MEMBER_OPTIONAL(BORROWED, struct nb_timed, other_copy),
                                                  NB_MEMBERS_END};
const struct nb_member nb_timed_copy_members[] = {T(BORROWED, variant), NB_MEMBERS_END};

#define L(KIND, field) NB_MEMBER(KIND, struct nb_launch_line, field)
const struct nb_member nb_launch_line_members[] = {L(COUNT, group),
                                                   L(COUNT, launch),
                                                   NB_MEMBER_OPTIONAL(BORROWED, struct nb_launch_line, floor),
                                                   NB_MEMBER_STRUCT(struct nb_launch_line, noise, nb_noise_members),
                                                   L(NUMBER, elapsed_s),
                                                   NB_MEMBERS_END};

static int read_arm(struct nb_launch_line *l, const struct nb_member *members, const cJSON *json, double floor) {
    struct nb_timed *t = &l->arms[l->n++];
    if (nb_json_get_members(json, members, t, "launch") != 0 || nb_samples_from_json(&t->samples, json, floor) != 0)
        return -1;
    if (l->n == 1) l->n_blocks = t->samples.n;
    if (t->samples.n == l->n_blocks) return 0;
    return nb_error("%zu samples, but %zu of the other arms", t->samples.n, l->n_blocks);
}

const struct nb_timed *nb_launch_line_case(const struct nb_launch_line *l, const char *key) {
    for (size_t i = 0; key && i < l->n_cases; i++)
        if (strcmp(l->arms[i].key, key) == 0) return &l->arms[i];
    return NULL;
}

const struct nb_timed *nb_launch_line_copy(const struct nb_launch_line *l, const char *variant) {
    for (size_t i = l->n_cases; variant && i < l->n; i++)
        if (strcmp(l->arms[i].variant, variant) == 0) return &l->arms[i];
    return NULL;
}

bool nb_launch_line_add(const struct nb_launch_line *l, const struct nb_timed *t, const char *reference,
                        struct nb_launches *launches) {
    const struct nb_timed *copy = nb_launch_line_copy(l, t->copy), *other = nb_launch_line_copy(l, t->other_copy);
    const struct nb_timed *compared = nb_launch_line_case(l, reference);
    const size_t before = launches->n;
    nb_launches_add(launches, &t->samples, copy ? &copy->samples : NULL, compared ? &compared->samples : NULL,
                    &l->noise);
    if (other && launches->n > before) nb_launches_add_other(launches, &t->samples, &other->samples);
    return launches->n > before;
}

static int check_case(const struct nb_launch_line *l, const struct nb_timed *t) {
    if (!t->key) return nb_error("a case without \"key\"");
    const char *const copies[] = {t->copy, t->other_copy};
    for (int k = 0; k < 2; k++)
        if (copies[k] && !nb_launch_line_copy(l, copies[k]))
            return nb_error("%s: its copy %s is not among \"copies\"", t->key, copies[k]);
    return nb_launch_line_case(l, t->key) == t ? 0 : nb_error("%s: twice in one launch", t->key);
}

int nb_launch_line_read(struct nb_launch_line *l, const cJSON *line, const struct nb_floors *floors) {
    const cJSON *cases = nb_json_get(line, "cases"), *item;
    const cJSON *copies = nb_json_get(line, "copies");
    *l = (struct nb_launch_line){.n_cases = (size_t)cJSON_GetArraySize(cases)};
    l->arms = nb_alloc(l->n_cases + (size_t)cJSON_GetArraySize(copies), sizeof *l->arms);
    if (nb_json_get_members(line, nb_launch_line_members, l, "launch") != 0) return -1;
    l->clock_ghz = nb_json_get_number(nb_json_get(line, "core"), "clock_ghz");
    l->highest_ghz = nb_floors_clock_of_line(floors, line);
    const double floor = nb_floors_of_line(floors, line);
    cJSON_ArrayForEach(item, cases) {
        if (read_arm(l, nb_timed_case_members, item, floor) != 0) return -1;
    }
    cJSON_ArrayForEach(item, copies) {
        if (read_arm(l, nb_timed_copy_members, item, floor) != 0) return -1;
        if (!l->arms[l->n - 1].variant) return nb_error("a copy without \"variant\"");
    }
    for (size_t i = 0; i < l->n_cases; i++)
        if (check_case(l, &l->arms[i]) != 0) return -1;
    return 0;
}

void nb_launch_line_release(struct nb_launch_line *l) {
    for (size_t i = 0; i < l->n; i++) nb_samples_release(&l->arms[i].samples);
    free(l->arms);
    *l = (struct nb_launch_line){0};
}

/* ---- failures ------------------------------------------------------------------------------------------------------- */

#define F(KIND, field) NB_MEMBER(KIND, struct nb_failure, field)
static const struct nb_member failure_members[] = {
    F(COUNT, group),     F(INDEX, launch),
    F(BORROWED, key),    NB_MEMBER_NAMED(struct nb_failure, status, nb_status_names),
    F(BORROWED, reason), NB_MEMBERS_END};

cJSON *nb_failure_to_json(const struct nb_failure *f) {
    assert(f && f->key && f->reason && nb_status_ends(f->status));
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "failure");
    nb_json_add_members(line, failure_members, f);
    return line;
}

int nb_failure_read(struct nb_failure *f, const cJSON *line) {
    *f = (struct nb_failure){0};
    if (nb_json_get_members(line, failure_members, f, "failure") != 0) return -1;
    if (!f->key || !f->reason) return nb_error("a failure without \"%s\"", f->key ? "reason" : "key");
    if (nb_status_ends(f->status)) return 0;
    return nb_error("%s: a failure whose status is %s", f->key, nb_status_name(f->status));
}
