// SPDX-License-Identifier: Apache-2.0
/* The widest variants come first: should the time end, they are what most people run. */
#include "src/lab/stress/stress_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/launcher.h"

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

/* ---- which ---------------------------------------------------------------------------------------------------------- */

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

static bool is_known(const struct nb_searched *searched, const struct nb_case *c) {
    struct nb_strbuf key = {0};
    const cJSON *study;
    bool known = false;
    nb_case_key(c, &key);
    cJSON_ArrayForEach(study, searched->list) {
        const char *other = nb_json_get_text(study, "key"), *status = nb_json_get_text(study, "status");
        known = known || (other && strcmp(other, key.text) == 0 && status && nb_status_parse(status) != NB_NOT_RUN);
    }
    nb_strbuf_release(&key);
    return known;
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

static const char *plugin_file(const struct nb_case *c) {
    const struct nb_entry *entry = nb_registry_find(c->variant);
    return entry && entry->plugin ? entry->file : NULL;
}

/* In the place of an earlier one that was not run. */
static void put(struct nb_searched *searched, cJSON *study) {
    const char *key = nb_json_get_text(study, "key");
    for (int i = 0; i < cJSON_GetArraySize(searched->list); i++) {
        const char *other = nb_json_get_text(cJSON_GetArrayItem(searched->list, i), "key");
        if (!other || strcmp(other, key) != 0) continue;
        cJSON_ReplaceItemInArray(searched->list, i, study);
        return;
    }
    cJSON_AddItemToArray(searched->list, study);
}

static int write_so_far(struct search *s) {
    s->searched->elapsed_s = s->before_s + nb_now_s() - s->start_s;
    cJSON *stress = nb_stress_judge(s->q->results, s->q->grades, s->searched);
    int result = nb_stress_write(stress, s->q->dir);
    cJSON_Delete(stress);
    return result;
}

/* How much of a search a kill may cost: the file is long. */
static const double between_writes_s = 5;

static void keep(int i, cJSON *answer, void *arg) {
    struct search *s = arg;
    put(s->searched, nb_stress_study(&s->cases[i], plugin_file(&s->cases[i]), answer));
    cJSON_Delete(answer);
    if (s->failed || nb_now_s() < s->written_s + between_writes_s) return;
    if (write_so_far(s) != 0) s->failed = true;
    s->written_s = nb_now_s();
}

static void leave_out(struct search *s, const struct nb_case *c, const struct nb_record *r) {
    struct nb_strbuf reason = {0};
    cJSON *answer = cJSON_CreateObject();
    nb_strbuf_addf(&reason, "not searched: %s in %s", nb_status_name(r->status), r->key);
    nb_json_text(answer, "status", nb_status_name(NB_SKIPPED));
    nb_json_text(answer, "reason", reason.text);
    put(s->searched, nb_stress_study(c, plugin_file(c), answer));
    cJSON_Delete(answer);
    nb_strbuf_release(&reason);
}

/* Its place in the list, whenever its answer comes. */
static void expect(struct search *s, const struct nb_case *c) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(NB_NOT_RUN));
    nb_json_text(answer, "reason", "the run ended before it");
    put(s->searched, nb_stress_study(c, plugin_file(c), answer));
    cJSON_Delete(answer);
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
            if (harmed)
                leave_out(s, c, harmed);
            else
                expect(s, &s->cases[s->n++]);
        }
    free(list);
    return result;
}

/* ---- the search ----------------------------------------------------------------------------------------------------- */

static bool all_done(const struct nb_searched *searched) {
    const cJSON *study;
    cJSON_ArrayForEach(study, searched->list) {
        const char *status = nb_json_get_text(study, "status");
        if (!status || nb_status_parse(status) == NB_NOT_RUN) return false;
    }
    return true;
}

int nb_stress_search(const struct nb_stress_search *q, struct nb_searched *searched) {
    assert(q->dir && q->budget_s >= 0);
    struct search s = {.q = q, .searched = searched, .start_s = nb_now_s()};
    char *witnesses = nb_path_join(q->dir, "witnesses"), *absolute = NULL; /* replay lines work from anywhere */
    cJSON *options = cJSON_CreateObject();
    if (!searched->list) searched->list = cJSON_CreateArray();
    s.before_s = isfinite(searched->elapsed_s) ? searched->elapsed_s : 0;
    int result = nb_dir_make(witnesses) == 0 ? choose(&s) : -1;
    if (result == 0) absolute = realpath(witnesses, NULL);
    nb_json_text(options, "witness_dir", absolute ? absolute : witnesses);
    const struct nb_study study = {.kind = "search",
                                   .cases = s.cases,
                                   .n_cases = s.n,
                                   .plugins = q->plugins,
                                   .n_plugins = q->n_plugins,
                                   .max_width = q->max_width,
                                   .options = options,
                                   .budget_s = q->budget_s,
                                   .silence_s = q->silence_s,
                                   .label = "searching",
                                   .side_by_side = true};
    if (result == 0 && s.n > 0) {
        nb_note("searching %d variant%s for about %.0f s", s.n, s.n == 1 ? "" : "s", q->budget_s);
        result = nb_study_run(&study, keep, &s);
    }
    searched->complete = result == 0 && all_done(searched);
    if (result >= 0 && (s.failed || write_so_far(&s) != 0)) result = -1;
    cJSON_Delete(options);
    free(s.cases);
    free(witnesses);
    free(absolute);
    return result;
}
