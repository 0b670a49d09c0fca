// SPDX-License-Identifier: Apache-2.0
/* A journal, line by line, to the records of its run. */
#include "src/record/record.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/measure/lines.h"

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* Every case that was planned has a record before anything is known of it, so that nothing can be forgotten silently. */

/* A case within a group. The reference case of a group that was split is an arm of each part, and one record. */
struct fold_arm {
    const char *key; /* of the record, or of the run line */
    size_t record;   /* NB_NOWHERE: another shard reports it */
    bool reported;   /* this arm's figures are the record's */
    bool checked;
    int *seen; /* the launches it took part in */
    int n_seen;
    struct nb_launches launches;
    char copy[NB_VARIANT_MAX], other_copy[NB_VARIANT_MAX];
    bool chunked;
    double per_sample;
};
struct fold_group {
    struct fold_arm *arms;
    size_t n, reference;
    int index, part; /* in the whole plan */
    int n_launches;  /* what it was given; -1: it was not said, since the run was cut off or the number was fixed */
    const char *stopped;
    bool left_out; /* by the budget: with fewer launches than were planned */
};
static const struct nb_member group_members[] = {NB_MEMBER(COUNT, struct fold_group, index),
                                                 NB_MEMBER(COUNT, struct fold_group, part),
                                                 NB_MEMBER(COUNT, struct fold_group, reference), NB_MEMBERS_END};
/* What the "run" line planned, and what the later lines have left for each case so far. */
struct fold {
    struct nb_results *results; /* records with identity, status NB_NOT_RUN or NB_SKIPPED */
    cJSON *run;                 /* the first line; null until it came */
    struct fold_group *groups;
    size_t n_groups;
    int launches, most_launches;             /* planned; the most: 0 where launches is the number */
    struct nb_text_map keys;                 /* -> index of the record */
    cJSON *resumed;                          /* later lines of this type, in order */
    struct nb_floors floors;                 /* of the whole run */
    double elapsed_s, peak_mib, interrupted; /* of the parts that came to their end; NaN: none did */
};
static const struct nb_member plan_members[] = {NB_MEMBER(COUNT, struct fold, launches),
                                                NB_MEMBER(POSITIVE, struct fold, most_launches), NB_MEMBERS_END};

/* The file of the plugin that a variant "plugin:name" comes from; null for a built-in kernel. */
static const char *plugin_file(const cJSON *run, const char *variant) {
    const char *colon = strchr(variant, ':');
    const cJSON *plugin;
    cJSON_ArrayForEach(plugin, nb_json_get(run, "plugins")) {
        const char *name = nb_json_get_text(plugin, "name");
        size_t len = colon ? (size_t)(colon - variant) : 0;
        if (colon && name && strlen(name) == len && strncmp(name, variant, len) == 0)
            return nb_json_get_text(plugin, "file");
    }
    return NULL;
}

/* What the run's calls carried beyond the defaults of its CPU, or null. */
static const char *tuning_of(const cJSON *run) {
    const cJSON *fingerprint = nb_json_get(run, "fingerprint");
    return nb_json_get_text(nb_json_get(fingerprint, "tuning"), "replay");
}

/* ---- records ------------------------------------------------------------------------------------------------------ */

struct kernels {
    const cJSON **items;
    struct nb_text_map by_variant;
};

static int index_kernels(struct kernels *k, const cJSON *run) {
    const cJSON *list = nb_json_get(run, "kernels"), *item;
    size_t n = 0;
    k->items = nb_alloc((size_t)cJSON_GetArraySize(list), sizeof *k->items);
    cJSON_ArrayForEach(item, list) {
        const char *variant = nb_json_get_text(item, "variant");
        if (!variant) return nb_error("a kernel without \"variant\"");
        k->items[n] = item;
        if (nb_text_map_add(&k->by_variant, variant, n++) != NB_NOWHERE) return nb_error("kernel %s twice", variant);
    }
    return 0;
}

/* What the run was told that a replay has to be told, too: try's kernels have half the time that others have. */
static void add_timeouts(const cJSON *run, struct nb_strbuf *out) {
    static const char *const names[] = {"--case-timeout", "--load-timeout"};
    const cJSON *argv = nb_json_get(run, "argv"), *word;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        const char *value = NULL;
        cJSON_ArrayForEach(word, argv) {
            if (!cJSON_IsString(word) || strncmp(word->valuestring, names[i], n) != 0) continue;
            if (word->valuestring[n] == '=') value = word->valuestring + n + 1;
            if (!word->valuestring[n] && cJSON_IsString(word->next)) value = word->next->valuestring;
        }
        if (!value && i == 0 && cJSON_IsString(argv ? argv->child : NULL) &&
            strcmp(argv->child->valuestring, "try") == 0)
            value = "10";
        if (value && value[strspn(value, "0123456789.")] == '\0') nb_strbuf_addf(out, " %s %s", names[i], value);
    }
}

/* Where nothing is timed relations between calls are judged, too. */
static char *replay_of(const struct fold *f, const cJSON *run, const struct nb_record *r) {
    struct nb_strbuf options released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&options, f->launches > 0 && nb_case_is_timed(&r->c) ? "" : " --check-only");
    add_timeouts(run, &options);
    return nb_replay_command(
        &(struct nb_replay){r->key, options.text + (options.len > 0), plugin_file(run, r->c.variant), tuning_of(run)});
}

/* The index of a new record, NB_NOWHERE after nb_error. */
static size_t add_record(struct fold *f, const cJSON *run, const struct kernels *kernels, const char *key) {
    struct nb_results *results = f->results;
    results->records = nb_realloc(results->records, results->n + 1, sizeof *results->records);
    struct nb_record *r = &results->records[results->n];
    *r = (struct nb_record){.status = NB_NOT_RUN};
    if (nb_case_parse(&r->c, key) != 0) return NB_NOWHERE;
    size_t kernel = nb_text_map_find(&kernels->by_variant, r->c.variant);
    if (kernel == NB_NOWHERE) return nb_error("%s: its kernel is not among \"kernels\"", key), NB_NOWHERE;
    if (nb_kernel_fields_from_json(&r->c, kernels->items[kernel]) != 0) return NB_NOWHERE;
    r->key = nb_strdup(key);
    r->bytes = nb_case_bytes(&r->c);
    r->replay = replay_of(f, run, r);
    size_t twice = nb_text_map_add(&f->keys, r->key, results->n++);
    if (twice != NB_NOWHERE) nb_error("%s is planned twice", key);
    return twice == NB_NOWHERE ? results->n - 1 : NB_NOWHERE;
}

/* The names of one key's labels. -1 after nb_error. */
static int add_labels(struct nb_record *r, const cJSON *run, const cJSON *list) {
    const cJSON *labels = nb_json_get(run, "labels"), *at;
    cJSON_ArrayForEach(at, list) {
        const double i = cJSON_IsNumber(at) ? at->valuedouble : -1;
        const bool is_index = i >= 0 && i < (double)cJSON_GetArraySize(labels) && i == floor(i);
        const char *name = is_index ? nb_json_get_text(cJSON_GetArrayItem(labels, (int)i), "name") : NULL;
        if (!name) return nb_error("%s has a label that is not among \"labels\"", r->key);
        nb_strings_add(&r->labels, name);
    }
    return 0;
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

static int plan_group(struct fold *f, struct fold_group *group, const cJSON *run, const struct kernels *kernels,
                      const cJSON *json) {
    const cJSON *keys = nb_json_get(json, "keys"), *key;
    const cJSON *labels = nb_json_get(json, "labels");
    const size_t n = (size_t)cJSON_GetArraySize(keys);
    if (n == 0) return nb_error("a group without \"keys\"");
    if (nb_json_get_members(json, group_members, group, "group") != 0) return -1;
    if (group->reference >= n) return nb_error("group: \"reference\" is not a whole number from 0 to %zu", n - 1);
    group->arms = nb_alloc(n, sizeof *group->arms);
    group->n_launches = f->most_launches ? -1 : f->launches;
    group->stopped = nb_stop_names[f->most_launches || f->launches == 0 ? NB_STOP_UNKNOWN : NB_STOP_FIXED];
    cJSON_ArrayForEach(key, keys) {
        struct fold_arm *arm = &group->arms[group->n];
        if (!cJSON_IsString(key)) return nb_error("a key that is no text");
        *arm = (struct fold_arm){.key = key->valuestring,
                                 .reported = group->part == 0 || group->n != group->reference,
                                 .launches.adaptive = f->most_launches > 0};
        group->n++;
        if (!arm->reported) continue;
        arm->record = add_record(f, run, kernels, key->valuestring);
        if (arm->record == NB_NOWHERE) return -1;
        struct nb_record *r = &f->results->records[arm->record];
        r->group = group->index;
        if (!nb_case_is_timed(&r->c)) group->n_launches = 0;
        if (add_labels(r, run, cJSON_GetArrayItem(labels, (int)group->n - 1)) != 0) return -1;
    }
    return 0;
}

/* After all groups: the record of a reference stands in the first part of its group. */
static void link_references(struct fold *f) {
    for (size_t g = 0; g < f->n_groups; g++) {
        for (size_t a = 0; a < f->groups[g].n; a++) {
            struct fold_arm *arm = &f->groups[g].arms[a];
            if (!arm->reported) arm->record = nb_text_map_find(&f->keys, arm->key);
        }
    }
}

static int by_key(const void *a, const void *b) {
    return strcmp(nb_json_get_text(*(const cJSON *const *)a, "key"), nb_json_get_text(*(const cJSON *const *)b, "key"));
}

/* In the order of their keys, which does not depend on how the plan was cut into shards. */
static int plan_skips(struct fold *f, const cJSON *run, const struct kernels *kernels) {
    const cJSON *list = nb_json_get(run, "skips"), *skip;
    const cJSON **keyed freed = nb_alloc((size_t)cJSON_GetArraySize(list), sizeof *keyed);
    size_t n = 0;
    int result = 0;
    cJSON_ArrayForEach(skip, list) {
        if (!nb_json_get_text(skip, "reason")) result = nb_error("a skip without \"reason\"");
        if (nb_json_get_text(skip, "key")) keyed[n++] = skip;
    }
    qsort(keyed, n, sizeof *keyed, by_key);
    for (size_t i = 0; i < n && result == 0; i++) {
        size_t at = add_record(f, run, kernels, nb_json_get_text(keyed[i], "key"));
        result = at == NB_NOWHERE ? -1 : 0;
        if (result != 0) break;
        f->results->records[at].status = NB_SKIPPED;
        f->results->records[at].reason = nb_strdup(nb_json_get_text(keyed[i], "reason"));
    }
    return result;
}

static int fold_plan(struct fold *f, const cJSON *run) {
    if (f->run) return nb_error("a second \"run\" line");
    f->run = cJSON_Duplicate(run, true);
    struct kernels kernels = {0};
    const cJSON *groups = nb_json_get(f->run, "groups"), *group;
    int result = nb_json_get_members(nb_json_get(f->run, "plan"), plan_members, f, "plan");
    if (result == 0) result = index_kernels(&kernels, f->run);
    f->groups = nb_alloc((size_t)cJSON_GetArraySize(groups), sizeof *f->groups);
    cJSON_ArrayForEach(group, groups) {
        if (result == 0) result = plan_group(f, &f->groups[f->n_groups++], f->run, &kernels, group);
    }
    if (result == 0) result = plan_skips(f, f->run, &kernels);
    link_references(f);
    free(kernels.items);
    nb_text_map_release(&kernels.by_variant);
    return result;
}

static void fold_release(struct fold *f) {
    for (size_t g = 0; g < f->n_groups; g++) {
        for (size_t a = 0; a < f->groups[g].n; a++) {
            free(f->groups[g].arms[a].seen);
            nb_launches_release(&f->groups[g].arms[a].launches);
        }
        free(f->groups[g].arms);
    }
    free(f->groups);
    nb_floors_release(&f->floors);
    nb_text_map_release(&f->keys);
    cJSON_Delete(f->run);
    cJSON_Delete(f->resumed);
    *f = (struct fold){0};
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* A launch line is taken in whole or not at all: first all its samples are read, then paired. */

static struct fold_group *fold_find_group(struct fold *f, const cJSON *line) {
    const int group = nb_json_get_index(line, "group");
    if (group >= 0 && (size_t)group < f->n_groups) return &f->groups[group];
    nb_error("\"group\" is not the number of a group, 0 to %zu", f->n_groups - (f->n_groups > 0));
    return NULL;
}

static struct fold_arm *fold_find_arm(struct fold_group *group, const char *key) {
    for (size_t i = 0; key && i < group->n; i++)
        if (strcmp(group->arms[i].key, key) == 0) return &group->arms[i];
    nb_error("\"%s\" is no case of group %d", key ? key : "(no key)", group->index);
    return NULL;
}

/* A launch counts once: a second line about it would give one process the weight of two. */
static int mark_seen(struct fold_arm *arm, int launch) {
    for (int i = 0; i < arm->n_seen; i++)
        if (arm->seen[i] == launch) return nb_error("%s: launch %d a second time", arm->key, launch);
    *NB_PUSH(arm->seen, arm->n_seen) = launch;
    return 0;
}

static int set_copy(char to[NB_VARIANT_MAX], const char *name, const char *key) {
    if (!name) return 0;
    if (strlen(name) >= NB_VARIANT_MAX) return nb_error("%s: the name of its copy is too long", key);
    snprintf(to, NB_VARIANT_MAX, "%s", name);
    return 0;
}

static struct nb_record *record_of(const struct fold *f, const struct fold_arm *arm) {
    return arm->record == NB_NOWHERE ? NULL : &f->results->records[arm->record];
}

static int add_case(const struct fold *f, const struct nb_launch_line *l, struct fold_group *group,
                    const struct nb_timed *t) {
    const struct nb_timed *floor = nb_launch_line_copy(l, l->floor);
    struct fold_arm *arm = fold_find_arm(group, t->key);
    if (!arm) return -1;
    if (set_copy(arm->copy, t->copy, t->key) != 0 || set_copy(arm->other_copy, t->other_copy, t->key) != 0) return -1;
    if (mark_seen(arm, l->launch) != 0) return -1;
    const bool is_valid = nb_launch_line_add(l, t, group->arms[group->reference].key, &arm->launches);
    if (t->level && is_valid)
        nb_launches_bound(&arm->launches, t->core_ns, floor ? nb_samples_median(&floor->samples) : t->floor_ns,
                          t->level);
    const struct nb_record *r = record_of(f, arm);
    if (r && r->c.cache != NB_COLD && r->c.backend == NB_BACKEND_CPU && is_valid)
        nb_launches_clock(&arm->launches, l->clock_ghz, l->highest_ghz);
    arm->chunked = t->chunked;
    arm->per_sample = t->per_sample;
    return 0;
}

static int fold_launch(struct fold *f, const cJSON *line) {
    struct nb_launch_line l released_by(nb_launch_line_release);
    struct fold_group *group = fold_find_group(f, line);
    const int most = f->most_launches ? f->most_launches : f->launches;
    int result = nb_launch_line_read(&l, line, &f->floors);
    if (!group) result = -1;
    if (result == 0 && l.launch >= most) result = nb_error("\"launch\" is not the number of one of %d launches", most);
    for (size_t i = 0; result == 0 && i < l.n_cases; i++) result = add_case(f, &l, group, &l.arms[i]);
    return result;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void set_status(struct nb_record *r, enum nb_status status, const char *reason) {
    r->status = status;
    free(r->reason);
    r->reason = reason ? nb_strdup(reason) : NULL;
}
/* The first failure decides: what comes later is its consequence, or another launch's word for it. */
static void fail(struct nb_record *r, enum nb_status status, const char *reason) {
    if (!nb_status_failed(r->status)) set_status(r, status, reason);
}

/* A reference that fails in a later part of its group has failed; its figures are those of the first part. */
static int fold_checked_case(struct fold *f, struct fold_group *group, const cJSON *json) {
    struct nb_check_line line;
    struct fold_arm *arm = nb_check_line_read(&line, json) == 0 ? fold_find_arm(group, line.key) : NULL;
    if (!arm) return -1;
    if (arm->checked) return nb_error("%s is checked a second time", arm->key);
    arm->checked = true;
    struct nb_record *r = record_of(f, arm);
    if (r && (arm->reported || nb_status_failed(line.status))) fail(r, line.status, line.reason);
    if (r && arm->reported) nb_record_take_check(r, &line);
    return 0;
}

static int fold_case_counters(struct fold *f, struct fold_group *group, const cJSON *json) {
    struct fold_arm *arm = fold_find_arm(group, nb_json_get_text(json, "key"));
    if (!arm) return -1;
    struct nb_record *r = record_of(f, arm);
    if (!r || !arm->reported) return 0;
    return r->n_counters > 0 ? nb_error("%s is counted a second time", arm->key) : nb_record_take_counters(r, json);
}

static int fold_cases(struct fold *f, const cJSON *line,
                      int (*fold)(struct fold *f, struct fold_group *group, const cJSON *json)) {
    struct fold_group *group = fold_find_group(f, line);
    int result = group ? 0 : -1;
    const cJSON *item;
    cJSON_ArrayForEach(item, nb_json_get(line, "cases")) {
        if (result == 0) result = fold(f, group, item);
    }
    return result;
}

static int fold_check(struct fold *f, const cJSON *line) { return fold_cases(f, line, fold_checked_case); }
static int fold_counters(struct fold *f, const cJSON *line) { return fold_cases(f, line, fold_case_counters); }

static int fold_failure(struct fold *f, const cJSON *line) {
    struct nb_failure failure;
    struct fold_group *group = nb_failure_read(&failure, line) == 0 ? fold_find_group(f, line) : NULL;
    struct fold_arm *arm = group ? fold_find_arm(group, failure.key) : NULL;
    if (!arm) return -1;
    struct nb_record *r = record_of(f, arm);
    if (r)
        fail(r, failure.status, failure.reason);
    else
        nb_warn("%s failed as the reference of a group that another shard reports", arm->key);
    return 0;
}

static int fold_stop(struct fold *f, const cJSON *line) {
    struct fold_group *group = fold_find_group(f, line);
    const char *why = nb_json_get_text(line, "why");
    const int launches = nb_json_get_index(line, "launches"), most = f->most_launches ? f->most_launches : f->launches;
    if (!group) return -1;
    if (launches < 0 || launches > most) return nb_error("\"launches\" is not a number of launches up to %d", most);
    for (int i = NB_STOP_FIXED; why && nb_stop_names[i]; i++)
        if (strcmp(nb_stop_names[i], why) == 0) group->stopped = nb_stop_names[i];
    if (!*group->stopped) return nb_error("\"why\" is no reason to stop");
    group->n_launches = launches;
    group->left_out = strcmp(group->stopped, nb_stop_names[NB_STOP_BUDGET]) == 0 &&
                      (group->n_launches < f->launches || f->launches == 0);
    return 0;
}

static int fold_resume(struct fold *f, const cJSON *line) {
    cJSON *item = cJSON_Duplicate(line, true);
    cJSON_DeleteItemFromObjectCaseSensitive(item, "type");
    cJSON_AddItemToArray(f->resumed, item);
    return 0;
}

static int fold_end(struct fold *f, const cJSON *line) {
    const double s = nb_json_get_number(line, "elapsed_s");
    f->elapsed_s = isfinite(f->elapsed_s) ? f->elapsed_s + s : s;
    f->peak_mib = fmax(f->peak_mib, nb_json_get_number(line, "peak_memory_mib"));
    f->interrupted = nb_json_get_number(line, "interrupted");
    return 0;
}

static int fold_line(const cJSON *line, void *arg) {
    static const struct {
        const char *type;
        int (*fold)(struct fold *f, const cJSON *line);
    } types[] = {
        {"run", fold_plan},        {"check", fold_check},   {"launch", fold_launch}, {"counters", fold_counters},
        {"failure", fold_failure}, {"resume", fold_resume}, {"end", fold_end},       {"stop", fold_stop},
    };
    const char *type = nb_json_get_text(line, "type");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].type, type) == 0) return types[i].fold(arg, line);
    return nb_error("unknown type \"%s\"", type);
}

/* ---- what it comes to --------------------------------------------------------------------------------------------- */

/* Times of a case that failed, whenever it did, are no times. Returns whether nothing of the plan is missing. */
static bool finish_arm(struct fold *f, const struct fold_group *group, struct fold_arm *arm) {
    struct nb_record *r = record_of(f, arm);
    if (!r || !arm->reported || nb_status_failed(r->status) || r->status == NB_SKIPPED) return true;
    if (!arm->checked) {
        set_status(r, group->left_out ? NB_SKIPPED : NB_NOT_RUN,
                   group->left_out ? NB_OVER_BUDGET : "the run ended before it");
        return group->left_out;
    }
    if (arm->launches.n > 0) {
        r->has_timing = true;
        nb_launches_finish(&arm->launches, r->bytes, &r->timing);
        const double datasheet =
            nb_json_get_number(nb_json_get(nb_json_get(f->run, "fingerprint"), "gpu"), "gbytes_per_s");
        const bool from_memory = r->c.backend == NB_BACKEND_CUDA && strcmp(arm->launches.level, "DRAM") == 0;
        r->timing.of_datasheet = from_memory ? r->timing.gbytes_per_s / datasheet : (double)NAN;
        memcpy(r->timing.copy, nb_launches_other_copy_is_faster(&arm->launches) ? arm->other_copy : arm->copy,
               sizeof r->timing.copy);
        r->timing.chunked = arm->chunked;
        r->timing.per_sample = arm->per_sample;
        snprintf(r->timing.stopped, sizeof r->timing.stopped, "%s", group->stopped);
        r->timing.reference = nb_strdup(group->arms[group->reference].key);
    } else if (!nb_case_is_timed(&r->c)) {
        r->timing_reason = nb_strdup("emulated");
    } else if (f->launches == 0) {
        r->timing_reason = nb_strdup("not timed: the plan has no launches");
    } else if (group->left_out && arm->n_seen == 0) {
        r->timing_reason = nb_strdup(NB_OVER_BUDGET);
    } else {
        set_status(r, NB_NOT_RUN,
                   arm->n_seen > 0 ? "checked, but no sample of it was timed"
                                   : "checked, but the run ended before its timing");
    }
    return r->status != NB_NOT_RUN && arm->n_seen == group->n_launches;
}

static void add_meta(struct fold *f, bool complete) {
    static const char *const copied[] = {"schema", "program", "version", "started",     "config", "argv",
                                         "shard",  "plan",    "plugins", "fingerprint", "skips"};
    cJSON *meta = f->results->meta = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) nb_json_copy(meta, f->run, copied[i]);
    cJSON_AddItemToObject(meta, "resumed", f->resumed);
    f->resumed = NULL;
    if (nb_json_get(f->run, "labels")) nb_json_copy(meta, f->run, "labels");
    nb_json_number(meta, "elapsed_s", f->elapsed_s);
    nb_json_number(meta, "peak_memory_mib", f->peak_mib);
    nb_json_number(meta, "interrupted", f->interrupted);
    cJSON_AddBoolToObject(meta, "complete", complete);
    nb_results_count(f->results);
}

/* ---- what a plugin's kernels were checked on besides ---------------------------------------------------------------- */

/* Of a kernel that is wrong on hundreds of rows the first few say it. */
enum { FAILURES_SHOWN = 3 };

static bool has_room(const struct nb_results *r, size_t from, const struct nb_record *failed) {
    int n = 0;
    for (size_t i = from; i < r->n; i++) n += strcmp(r->records[i].c.variant, failed->c.variant) == 0;
    return n < FAILURES_SHOWN;
}

/* A case that was measured too was right there: a relation between calls is broken, which is its failure now. */
static void take_failures(struct fold *f, struct nb_results *checks) {
    struct nb_results *r = f->results;
    const size_t n_measured = r->n;
    int group = 0;
    for (size_t i = 0; i < r->n; i++) group = r->records[i].group > group ? r->records[i].group : group;
    for (size_t i = 0; i < checks->n; i++) {
        struct nb_record *failed = &checks->records[i];
        if (!nb_status_failed(failed->status)) continue;
        const size_t measured = nb_text_map_find(&f->keys, failed->key);
        if (measured != NB_NOWHERE) fail(&r->records[measured], failed->status, failed->reason);
        if (measured != NB_NOWHERE || !has_room(r, n_measured, failed)) continue;
        failed->group = ++group;
        *NB_PUSH(r->records, r->n) = *failed;
        *failed = (struct nb_record){0};
    }
}

static int fold_checks(struct fold *f, const char *dir) {
    char *folder freed = nb_path_join(dir, NB_CHECKS_FOLDER);
    struct nb_results checks released_by(nb_results_release) = {0};
    const int result = nb_dir_holds(folder, NB_JOURNAL_FILE) ? nb_results_fold(&checks, folder) : 0;
    if (result == 0) take_failures(f, &checks);
    return result;
}

int nb_results_fold(struct nb_results *r, const char *dir) {
    *r = (struct nb_results){.dir = nb_strdup(dir)};
    struct fold f released_by(fold_release) = {
        .results = r, .resumed = cJSON_CreateArray(), .elapsed_s = NAN, .peak_mib = NAN, .interrupted = NAN};
    int result = nb_journal_floors(dir, &f.floors);
    if (result == 0) result = nb_journal_read(dir, fold_line, &f);
    if (result == 0 && !f.run) result = nb_error("%s/%s: holds no whole line", dir, NB_JOURNAL_FILE);
    bool complete = true;
    for (size_t g = 0; result == 0 && g < f.n_groups; g++)
        for (size_t a = 0; a < f.groups[g].n; a++)
            complete = finish_arm(&f, &f.groups[g], &f.groups[g].arms[a]) && complete;
    if (result == 0) result = fold_checks(&f, dir);
    if (result == 0)
        add_meta(&f, complete);
    else
        nb_results_release(r);
    return result;
}
