// SPDX-License-Identifier: Apache-2.0
/* A journal, line by line, to the records of its run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/fold_launch.h"
#include "src/record/fold_plan.h"
#include "src/record/results.h"

static const cJSON *member(const cJSON *json, const char *name) { return cJSON_GetObjectItemCaseSensitive(json, name); }

static struct nb_record *record_of(struct nb_fold *f, const struct nb_fold_arm *arm) {
    return arm->record == NB_NOWHERE ? NULL : &f->results->records[arm->record];
}

/* The first failure decides: what comes later is its consequence, or another launch's word for it. */
static void fail(struct nb_record *r, enum nb_status status, const char *reason) {
    if (nb_status_failed(r->status)) return;
    r->status = status;
    free(r->reason);
    r->reason = reason ? nb_strdup(reason) : NULL;
}

static int get_status(const cJSON *json, enum nb_status *status) {
    const char *name = nb_json_get_text(json, "status");
    *status = name ? nb_status_parse(name) : NB_N_STATUSES;
    if (*status == NB_N_STATUSES || *status == NB_NOT_RUN)
        return nb_error("\"%s\" is not a status that a case can come out with", name ? name : "(no status)");
    return 0;
}

/* ---- lines -------------------------------------------------------------------------------------------------------- */

/* A reference that fails in a later part of its group has failed; its figures are those of the first part. */
static int fold_checked_case(struct nb_fold *f, struct nb_fold_group *group, const cJSON *json) {
    struct nb_fold_arm *arm = nb_fold_find_arm(group, json);
    enum nb_status status;
    if (!arm || get_status(json, &status) != 0) return -1;
    if (arm->checked) return nb_error("%s is checked a second time", arm->key);
    arm->checked = true;
    struct nb_record *r = record_of(f, arm);
    if (r && (arm->reported || nb_status_failed(status))) fail(r, status, nb_json_get_text(json, "reason"));
    if (!r || !arm->reported) return 0;
    const cJSON *accuracy = member(json, "accuracy");
    r->chain = nb_record_chain(json, "chain");
    r->column_chain = nb_record_chain(json, "column_chain");
    r->row_local = nb_json_get_bool(json, "row_local");
    nb_record_take_library(r, json);
    const cJSON *evidence = member(json, "evidence");
    const cJSON *metamorphic = member(json, "metamorphic");
    r->has_metamorphic = cJSON_IsObject(metamorphic);
    if (r->has_metamorphic && nb_metamorphic_from_json(&r->metamorphic, metamorphic) != 0) return -1;
    r->has_evidence = cJSON_IsObject(evidence);
    if (r->has_evidence && nb_evidence_from_json(&r->evidence, evidence) != 0) return -1;
    r->has_accuracy = cJSON_IsObject(accuracy);
    return r->has_accuracy ? nb_accuracy_from_json(&r->accuracy, accuracy) : 0;
}

static int fold_check(struct nb_fold *f, const cJSON *line) {
    struct nb_fold_group *group = nb_fold_find_group(f, line);
    int result = group ? 0 : -1;
    const cJSON *item;
    cJSON_ArrayForEach(item, member(line, "cases")) {
        if (result == 0) result = fold_checked_case(f, group, item);
    }
    return result;
}

static int fold_case_counters(struct nb_fold *f, struct nb_fold_group *group, const cJSON *json) {
    struct nb_fold_arm *arm = nb_fold_find_arm(group, json);
    if (!arm) return -1;
    struct nb_record *r = record_of(f, arm);
    const cJSON *counter;
    if (!r || !arm->reported) return 0;
    if (r->n_counters > 0) return nb_error("%s is counted a second time", arm->key);
    cJSON_ArrayForEach(counter, member(json, "counters")) {
        if (r->n_counters == NB_MAX_COUNTERS) return nb_error("%s: over %d counters", arm->key, NB_MAX_COUNTERS);
        if (nb_counter_from_json(&r->counters[r->n_counters], counter) != 0) return -1;
        r->n_counters++;
    }
    return 0;
}

static int fold_counters(struct nb_fold *f, const cJSON *line) {
    struct nb_fold_group *group = nb_fold_find_group(f, line);
    int result = group ? 0 : -1;
    const cJSON *item;
    cJSON_ArrayForEach(item, member(line, "cases")) {
        if (result == 0) result = fold_case_counters(f, group, item);
    }
    return result;
}

static int fold_failure(struct nb_fold *f, const cJSON *line) {
    struct nb_fold_group *group = nb_fold_find_group(f, line);
    struct nb_fold_arm *arm = group ? nb_fold_find_arm(group, line) : NULL;
    enum nb_status status;
    if (!arm || get_status(line, &status) != 0) return -1;
    if (!nb_status_failed(status)) return nb_error("%s: a failure whose status is none", arm->key);
    struct nb_record *r = record_of(f, arm);
    if (r)
        fail(r, status, nb_json_get_text(line, "reason"));
    else
        nb_warn("%s failed as the reference of a group that another shard reports", arm->key);
    return 0;
}

static int keep(cJSON **list, const cJSON *line) {
    if (!*list) *list = cJSON_CreateArray();
    cJSON_AddItemToArray(*list, cJSON_Duplicate(line, true));
    return 0;
}

static int fold_resume(struct nb_fold *f, const cJSON *line) { return keep(&f->resumed, line); }
static int fold_end(struct nb_fold *f, const cJSON *line) { return keep(&f->ends, line); }

static int fold_line(const cJSON *line, void *arg) {
    static const struct {
        const char *type;
        int (*fold)(struct nb_fold *f, const cJSON *line);
    } types[] = {
        {"run", nb_fold_plan},     {"check", fold_check},   {"launch", nb_fold_launch}, {"counters", fold_counters},
        {"failure", fold_failure}, {"resume", fold_resume}, {"end", fold_end},
    };
    const char *type = nb_json_get_text(line, "type");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].type, type) == 0) return types[i].fold(arg, line);
    }
    return nb_error("unknown type \"%s\"", type);
}

/* ---- what it comes to --------------------------------------------------------------------------------------------- */

static void not_run(struct nb_record *r, const char *reason) {
    r->status = NB_NOT_RUN;
    free(r->reason);
    r->reason = nb_strdup(reason);
}

/* Times of a case that failed, whenever it did, are no times. Returns whether nothing of the plan is missing. */
static bool finish_arm(struct nb_fold *f, const struct nb_fold_group *group, struct nb_fold_arm *arm) {
    struct nb_record *r = record_of(f, arm);
    if (!r || !arm->reported || nb_status_failed(r->status) || r->status == NB_SKIPPED) return true;
    if (!arm->checked) {
        not_run(r, "the run ended before it");
    } else if (arm->launches.n > 0) {
        r->has_timing = true;
        nb_launches_finish(&arm->launches, r->bytes, &r->timing);
        memcpy(r->timing.copy, arm->copy, sizeof r->timing.copy);
        r->timing.chunked = arm->chunked;
        r->timing.per_sample = arm->per_sample;
        r->timing.reference = nb_strdup(group->arms[group->reference].key);
    } else if (f->launches == 0) {
        r->timing_reason = nb_strdup("not timed: the plan has no launches");
    } else {
        not_run(r, arm->n_seen > 0 ? "checked, but no sample of it was timed"
                                   : "checked, but the run ended before its timing");
    }
    return r->status != NB_NOT_RUN && arm->n_seen == f->launches;
}

static void add_copy(cJSON *meta, const cJSON *from, const char *name) {
    const cJSON *item = member(from, name);
    cJSON_AddItemToObject(meta, name, item ? cJSON_Duplicate(item, true) : cJSON_CreateNull());
}

/* Sums over the parts of a run that was resumed; NaN when no part came to its end. */
static void add_ends(cJSON *meta, const cJSON *ends) {
    double elapsed_s = NAN, peak_mib = NAN, interrupted = NAN;
    const cJSON *end;
    cJSON_ArrayForEach(end, ends) {
        double s = nb_json_get_number(end, "elapsed_s");
        elapsed_s = isfinite(elapsed_s) ? elapsed_s + s : s;
        peak_mib = fmax(peak_mib, nb_json_get_number(end, "peak_memory_mib"));
        interrupted = nb_json_get_number(end, "interrupted");
    }
    nb_json_number(meta, "elapsed_s", elapsed_s);
    nb_json_number(meta, "peak_memory_mib", peak_mib);
    nb_json_number(meta, "interrupted", interrupted);
}

static void add_meta(struct nb_fold *f, bool complete) {
    static const char *const copied[] = {"schema", "program", "version", "started",     "config", "argv",
                                         "shard",  "plan",    "plugins", "fingerprint", "skips"};
    cJSON *meta = f->results->meta = cJSON_CreateObject(), *resumed, *line;
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) add_copy(meta, f->run, copied[i]);
    resumed = cJSON_AddArrayToObject(meta, "resumed");
    cJSON_ArrayForEach(line, f->resumed) {
        cJSON *item = cJSON_Duplicate(line, true);
        cJSON_DeleteItemFromObjectCaseSensitive(item, "type");
        cJSON_AddItemToArray(resumed, item);
    }
    if (member(f->run, "labels")) add_copy(meta, f->run, "labels");
    add_ends(meta, f->ends);
    cJSON_AddBoolToObject(meta, "complete", complete);
    nb_results_count(f->results);
}

int nb_results_fold(struct nb_results *r, const char *dir) {
    *r = (struct nb_results){.dir = nb_strdup(dir)};
    struct nb_fold f = {.results = r};
    int result = nb_journal_read(dir, fold_line, &f);
    if (result == 0 && !f.run) result = nb_error("%s/%s: holds no whole line", dir, NB_JOURNAL_FILE);
    bool complete = true;
    for (size_t g = 0; result == 0 && g < f.n_groups; g++) {
        for (size_t a = 0; a < f.groups[g].n; a++)
            complete = finish_arm(&f, &f.groups[g], &f.groups[g].arms[a]) && complete;
    }
    if (result == 0)
        add_meta(&f, complete);
    else
        nb_results_release(r);
    nb_fold_release(&f);
    return result;
}
