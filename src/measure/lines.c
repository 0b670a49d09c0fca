// SPDX-License-Identifier: Apache-2.0
/* What a launch and a failure say. */
#include "src/measure/lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

/* ---- launches ------------------------------------------------------------------------------------------------------- */

#define T(KIND, field) NB_MEMBER(KIND, struct nb_timed, field)
const struct nb_member nb_timed_case_members[] = {
    T(BORROWED, key), T(BORROWED, copy),  T(NUMBER, per_sample),
    T(BOOL, chunked), T(NUMBER, core_ns), NB_MEMBER_OPTIONAL(BORROWED, struct nb_timed, level),
    NB_MEMBERS_END};
const struct nb_member nb_timed_copy_members[] = {T(BORROWED, variant), NB_MEMBERS_END};

#define L(KIND, field) NB_MEMBER(KIND, struct nb_launch_line, field)
const struct nb_member nb_launch_line_members[] = {L(COUNT, group), L(COUNT, launch),
                                                   NB_MEMBER_STRUCT(struct nb_launch_line, noise, nb_noise_members),
                                                   L(NUMBER, elapsed_s), NB_MEMBERS_END};

static int read_arm(struct nb_launch_line *l, const struct nb_member *members, const cJSON *json) {
    struct nb_timed *t = &l->arms[l->n++];
    if (nb_json_get_members(json, members, t, "launch") != 0 || nb_samples_from_json(&t->samples, json) != 0) return -1;
    if (l->n == 1) l->n_blocks = t->samples.n;
    if (t->samples.n == l->n_blocks) return 0;
    return nb_error("%zu samples beside %zu of the other arms", t->samples.n, l->n_blocks);
}

static bool has_copy(const struct nb_launch_line *l, const char *variant) {
    for (size_t i = l->n_cases; i < l->n; i++)
        if (strcmp(l->arms[i].variant, variant) == 0) return true;
    return false;
}

static int check_case(const struct nb_launch_line *l, size_t i) {
    const struct nb_timed *t = &l->arms[i];
    if (!t->key) return nb_error("a case without \"key\"");
    if (t->copy && !has_copy(l, t->copy)) return nb_error("%s: its copy %s is not among \"copies\"", t->key, t->copy);
    for (size_t j = 0; j < i; j++)
        if (strcmp(l->arms[j].key, t->key) == 0) return nb_error("%s: twice in one launch", t->key);
    return 0;
}

int nb_launch_line_read(struct nb_launch_line *l, const cJSON *line) {
    assert(l);
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(line, "cases"), *item;
    const cJSON *copies = cJSON_GetObjectItemCaseSensitive(line, "copies");
    *l = (struct nb_launch_line){.n_cases = (size_t)cJSON_GetArraySize(cases)};
    l->arms = nb_alloc(l->n_cases + (size_t)cJSON_GetArraySize(copies), sizeof *l->arms);
    if (nb_json_get_members(line, nb_launch_line_members, l, "launch") != 0) return -1;
    cJSON_ArrayForEach(item, cases) {
        if (read_arm(l, nb_timed_case_members, item) != 0) return -1;
    }
    cJSON_ArrayForEach(item, copies) {
        if (read_arm(l, nb_timed_copy_members, item) != 0) return -1;
        if (!l->arms[l->n - 1].variant) return nb_error("a copy without \"variant\"");
    }
    for (size_t i = 0; i < l->n_cases; i++)
        if (check_case(l, i) != 0) return -1;
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
    assert(f);
    *f = (struct nb_failure){0};
    if (nb_json_get_members(line, failure_members, f, "failure") != 0) return -1;
    if (!f->key || !f->reason) return nb_error("a failure without \"%s\"", f->key ? "reason" : "key");
    if (nb_status_ends(f->status)) return 0;
    return nb_error("%s: a failure whose status is %s", f->key, nb_status_name(f->status));
}
