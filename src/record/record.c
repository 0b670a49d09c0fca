// SPDX-License-Identifier: Apache-2.0
/* A record as JSON. The key says what was measured; the axes it is made of stand beside it as text, for
 * readers that do not parse keys. */
#include "src/record/record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/axes.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"

#define R(KIND, field) NB_MEMBER(KIND, struct nb_record, field)
static const struct nb_member place[] = {R(STRING, reason), R(COUNT, group), R(COUNT, machine), NB_MEMBERS_END};
static const struct nb_member size[] = {R(AMOUNT, bytes), NB_MEMBERS_END};

static void add_axes(cJSON *json, const struct nb_case *c) {
    cJSON *axes = cJSON_AddObjectToObject(json, "axes");
    for (size_t i = 0; i < nb_n_axes; i++) {
        char *text freed = nb_axes[i].kind == NB_AXIS_CELL ? nb_case_axis_text(c, nb_axes[i].name) : NULL;
        if (text && *text) nb_json_text(axes, nb_axes[i].name, text);
    }
}

bool nb_record_is_over_budget(const struct nb_record *r) {
    if (r->has_timing) return strcmp(r->timing.stopped, nb_stop_names[NB_STOP_BUDGET]) == 0;
    const char *why = r->status == NB_SKIPPED ? r->reason : r->timing_reason;
    return why && strcmp(why, NB_OVER_BUDGET) == 0;
}

cJSON *nb_record_to_json(const struct nb_record *r) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "key", r->key);
    nb_json_text(json, "status", nb_status_name(r->status));
    nb_json_add_members(json, place, r);
    nb_kernel_fields_to_json(json, &r->c);
    add_axes(json, &r->c);
    nb_json_number(json, "rows", (double)r->c.shape.rows);
    nb_json_number(json, "cols", (double)r->c.shape.cols);
    nb_json_add_members(json, size, r);
    nb_json_add_members(json, nb_facts_members, &r->facts);
    nb_json_text(json, "replay", r->replay);
    cJSON_AddItemToObject(json, "accuracy",
                          r->has_accuracy ? nb_accuracy_to_json(&r->accuracy, nb_number_of((enum nb_dtype)r->c.dtype))
                                          : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "evidence", r->has_evidence ? nb_evidence_to_json(&r->evidence) : cJSON_CreateNull());
    if (r->metamorphic)
        cJSON_AddItemToObject(json, "metamorphic", nb_json_of_members(nb_metamorphic_members, r->metamorphic));
    if (r->labels.n > 0)
        cJSON_AddItemToObject(json, "labels",
                              cJSON_CreateStringArray((const char *const *)r->labels.items, (int)r->labels.n));
    if (!r->has_timing && r->timing_reason) nb_json_text(json, "timing_reason", r->timing_reason);
    cJSON_AddItemToObject(json, "timing",
                          r->has_timing ? nb_json_of_members(nb_timing_members, &r->timing) : cJSON_CreateNull());
    cJSON *counters = cJSON_AddArrayToObject(json, "counters");
    for (int i = 0; i < r->n_counters; i++)
        cJSON_AddItemToArray(counters, nb_json_of_members(nb_counter_members, &r->counters[i]));
    nb_json_add_sum(json);
    return json;
}

static int identity_from_json(struct nb_record *r, const cJSON *json) {
    const char *key = nb_json_get_text(json, "key"), *status = nb_json_get_text(json, "status");
    const char *replay = nb_json_get_text(json, "replay");
    if (!key || !status) return nb_error("a record without \"key\" or \"status\"");
    r->status = nb_status_parse(status);
    if (r->status == NB_N_STATUSES) return nb_error("%s: unknown status \"%s\"", key, status);
    const char *variant = nb_json_get_text(json, "variant");
    if (nb_case_parse(&r->c, key) != 0) return -1;
    if (!variant || strcmp(variant, r->c.variant) != 0) return nb_error("%s: \"variant\" is not the key's", key);
    if (nb_kernel_fields_from_json(&r->c, json) != 0) return -1;
    r->key = nb_strdup(key);
    r->replay = nb_strdup(replay ? replay : "");
    if (nb_json_get_members(json, size, r, "a record") != 0) return -1;
    return nb_json_get_members(json, place, r, key);
}

bool nb_record_has_label(const struct nb_record *r, const char *label) {
    for (size_t i = 0; i < r->labels.n; i++)
        if (strcmp(r->labels.items[i], label) == 0) return true;
    return false;
}

void nb_record_take_check(struct nb_record *r, const struct nb_check_line *l) {
    r->facts = l->facts;
    if (l->facts.library) r->facts.library = nb_strdup(l->facts.library);
    if (l->facts.implementation) r->facts.implementation = nb_strdup(l->facts.implementation);
    r->has_accuracy = l->has_accuracy;
    r->has_evidence = l->has_evidence;
    r->accuracy = l->accuracy;
    r->evidence = l->evidence;
    if (!l->has_metamorphic) return;
    r->metamorphic = nb_alloc(1, sizeof *r->metamorphic);
    *r->metamorphic = l->metamorphic;
}

int nb_record_take_counters(struct nb_record *r, const cJSON *json) {
    struct nb_counter counters[NB_MAX_COUNTERS];
    const int n = nb_counters_read(counters, json);
    for (int i = 0; i < n; i++) *NB_PUSH(r->counters, r->n_counters) = counters[i];
    return n < 0 ? -1 : 0;
}

static int figures_from_json(struct nb_record *r, const cJSON *json) {
    static const char *const objects[] = {"accuracy", "evidence", "metamorphic", "timing"};
    const cJSON *timing = nb_json_get(json, "timing"), *label;
    const char *reason = nb_json_get_text(json, "timing_reason");
    struct nb_check_line check;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        const cJSON *item = nb_json_get(json, objects[i]);
        if (item && !cJSON_IsNull(item) && !cJSON_IsObject(item))
            return nb_error("a record's \"%s\" is not an object or null", objects[i]);
    }
    r->timing_reason = reason ? nb_strdup(reason) : NULL;
    cJSON_ArrayForEach(label, nb_json_get(json, "labels")) {
        if (cJSON_IsString(label)) nb_strings_add(&r->labels, label->valuestring);
    }
    r->has_timing = cJSON_IsObject(timing);
    if (r->has_timing && nb_json_get_members(timing, nb_timing_members, &r->timing, "timing") != 0) return -1;
    if (nb_check_line_read_figures(&check, json) != 0) return -1;
    nb_record_take_check(r, &check);
    return nb_record_take_counters(r, json);
}

int nb_record_from_json(struct nb_record *r, const cJSON *json) {
    *r = (struct nb_record){0};
    if (identity_from_json(r, json) == 0 && figures_from_json(r, json) == 0) return 0;
    nb_record_release(r);
    return -1;
}

void nb_record_release(struct nb_record *r) {
    nb_free_all(r->key, r->reason, (char *)r->facts.library, (char *)r->facts.implementation, r->replay,
                r->timing.reference, r->timing_reason, r->metamorphic, r->counters);
    nb_strings_release(&r->labels);
    *r = (struct nb_record){0};
}

/* ---- replay ------------------------------------------------------------------------------------------------------ */

static void add_quoted(struct nb_strbuf *out, const char *text) {
    nb_strbuf_add(out, "'");
    for (; *text; text++) nb_strbuf_addf(out, *text == '\'' ? "'\\''" : "%c", *text);
    nb_strbuf_add(out, "'");
}

char *nb_replay_command(const struct nb_replay *q) {
    struct nb_strbuf out = {0};
    nb_strbuf_add(&out, "normbench replay ");
    add_quoted(&out, q->key);
    if (q->options && *q->options) nb_strbuf_addf(&out, " %s", q->options);
    if (q->file) {
        char *file freed = nb_path_absolute(q->file);
        nb_strbuf_add(&out, " --plugin ");
        add_quoted(&out, file);
    }
    if (q->tuning) {
        nb_strbuf_add(&out, " --tuning ");
        add_quoted(&out, q->tuning);
    }
    return out.text;
}

/* ---- a run's results: folded from the journal, kept in DIR/results.json, merged from the shards of one plan ---- */

void nb_results_count(struct nb_results *r) {
    size_t counts[NB_N_STATUSES] = {0};
    for (size_t i = 0; i < r->n; i++) counts[r->records[i].status]++;
    cJSON_DeleteItemFromObjectCaseSensitive(r->meta, "counts");
    cJSON *json = cJSON_AddObjectToObject(r->meta, "counts");
    for (int s = 0; s < NB_N_STATUSES; s++)
        if (counts[s]) nb_json_number(json, nb_status_name((enum nb_status)s), (double)counts[s]);
}

size_t nb_results_failed(const struct nb_results *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += nb_status_failed(r->records[i].status);
    return n;
}

static void print_meta(const struct nb_results *r, struct nb_strbuf *out) {
    nb_strbuf_add(out, "{\n");
    const cJSON *item;
    nb_json_add_sum(r->meta);
    cJSON_ArrayForEach(item, r->meta) {
        nb_strbuf_add(out, "  ");
        nb_json_print_text(item->string, out);
        nb_strbuf_add(out, ": ");
        nb_json_print_pretty(item, 2, out);
        nb_strbuf_add(out, ",\n");
    }
    nb_strbuf_add(out, "  \"records\": [");
}

static void print_record(const struct nb_results *r, size_t i, struct nb_strbuf *out) {
    cJSON *record released_by(nb_json_release) = nb_record_to_json(&r->records[i]);
    nb_strbuf_add(out, i ? ",\n    " : "\n    ");
    nb_json_print_pretty(record, 4, out);
}

/* The text in parts: the meta data, each record, the end. */
struct parts {
    const struct nb_results *results;
    size_t next;
};

static bool print_part(void *context, struct nb_strbuf *out) {
    struct parts *p = context;
    const size_t part = p->next++, n = p->results->n;
    if (part == 0)
        print_meta(p->results, out);
    else if (part <= n)
        print_record(p->results, part - 1, out);
    else
        nb_strbuf_add(out, n ? "\n  ]\n}\n" : "]\n}\n");
    return part <= n;
}

void nb_results_print(const struct nb_results *r, struct nb_strbuf *out) {
    struct parts parts = {.results = r};
    while (print_part(&parts, out)) {
    }
}

int nb_results_write(const struct nb_results *r, const char *dir) {
    struct parts parts = {.results = r};
    char *path freed = nb_path_join(dir, NB_RESULTS_FILE);
    int result = nb_dir_make(dir);
    if (result == 0) result = nb_file_write_parts(path, print_part, &parts);
    return result;
}

/* What is in results.json is held against what it says of itself: its sums, and how many records it had. Whole files are read into memory; this is some million records. */
static const size_t largest_file = (size_t)4 << 30;

/* The document without its records, and the records apart; both owned by the caller. */
static int parse_document(const char *path, const char *mend, cJSON **meta, cJSON **records) {
    size_t len;
    const char *end = NULL;
    char *text freed = nb_file_read(path, largest_file, &len);
    if (!text) return -1;
    int result = -1;
    if (strlen(text) == len && nb_json_is_utf8(text)) *meta = cJSON_ParseWithOpts(text, &end, true);
    *records = cJSON_DetachItemFromObjectCaseSensitive(*meta, "records");
    if (len == 0)
        nb_error("%s: is empty", path);
    else if (!*meta)
        nb_error("%s:%d: is not JSON in UTF-8", path, nb_text_line(text, end ? end : text));
    else if (nb_json_check_schema(*meta, path, NB_SCHEMA_VERSION) != 0)
        result = -1;
    else if (!cJSON_IsArray(*records))
        nb_error("%s: is not a results file: \"records\" is missing", path);
    else if (cJSON_HasObjectItem(*meta, "records"))
        nb_error("%s: \"records\" stands twice", path);
    else
        result = nb_json_check_sum(*meta, path, "its head", mend);
    return result;
}

static int read_records(struct nb_results *r, const char *path, const char *mend, const cJSON *records) {
    struct nb_text_map keys released_by(nb_text_map_release) = {0};
    const cJSON *item;
    int result = 0;
    r->records = nb_alloc((size_t)cJSON_GetArraySize(records), sizeof *r->records);
    cJSON_ArrayForEach(item, records) {
        const char *key = nb_json_get_text(item, "key");
        result = nb_json_check_sum(item, path, key ? key : "a record without a key", mend);
        if (result != 0) break;
        result = nb_record_from_json(&r->records[r->n], item);
        if (result != 0) {
            nb_error("%s: record %zu cannot be used: %s", path, r->n + 1, key ? key : "it has no key");
            break;
        }
        const size_t before = nb_text_map_add(&keys, r->records[r->n].key, r->n);
        r->n++;
        if (before == NB_NOWHERE) continue;
        result = nb_error("%s: records %zu and %zu are the same case: %s", path, before + 1, r->n, key);
        break;
    }
    return result;
}

/* A file that lost records says yet how many it had. */
static int check_counts(const struct nb_results *r, const char *path) {
    const cJSON *said = nb_json_get(r->meta, "counts");
    for (int s = 0; said && s < NB_N_STATUSES; s++) {
        const char *name = nb_status_name((enum nb_status)s);
        const double wanted = cJSON_HasObjectItem(said, name) ? nb_json_get_number(said, name) : 0;
        size_t n = 0;
        for (size_t i = 0; i < r->n; i++) n += r->records[i].status == (enum nb_status)s;
        if (wanted != (double)n)
            return nb_error("%s: \"counts\" has %g \"%s\", but \"records\" %zu: it was changed after it was written",
                            path, wanted, name, n);
    }
    return 0;
}

bool nb_results_outdated(const char *dir) {
    char *results freed = nb_path_join(dir, NB_RESULTS_FILE), *journal freed = nb_path_join(dir, NB_JOURNAL_FILE);
    struct stat old, new;
    return stat(journal, &new) == 0 &&
           (stat(results, &old) != 0 || new.st_mtim.tv_sec > old.st_mtim.tv_sec ||
            (new.st_mtim.tv_sec == old.st_mtim.tv_sec &&new.st_mtim.tv_nsec > old.st_mtim.tv_nsec));
}

int nb_results_read(struct nb_results *r, const char *dir) {
    if (nb_results_outdated(dir)) return nb_results_fold(r, dir);
    *r = (struct nb_results){.dir = nb_strdup(dir)};
    char *path freed = nb_path_join(dir, NB_RESULTS_FILE);
    const char *mend = nb_dir_holds(dir, NB_JOURNAL_FILE)
                           ? "delete it, and `normbench report` makes it again from the journal"
                           : "copy, merge or measure it again";
    cJSON *records released_by(nb_json_release) = NULL;
    int result = parse_document(path, mend, &r->meta, &records);
    if (result == 0) result = read_records(r, path, mend, records);
    if (result == 0) result = check_counts(r, path);
    if (result != 0) nb_results_release(r);
    return result;
}

void nb_results_release(struct nb_results *r) {
    for (size_t i = 0; i < r->n; i++) nb_record_release(&r->records[i]);
    free(r->records);
    cJSON_Delete(r->meta);
    free(r->dir);
    *r = (struct nb_results){0};
}
