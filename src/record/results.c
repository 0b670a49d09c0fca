// SPDX-License-Identifier: Apache-2.0
/* results.json: the meta data, then one record a block, in an order that depends on the plan alone. */
#include "src/record/results.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/journal.h"

/* Whole files are read into memory; this is some million records. */
static const size_t largest_file = (size_t)4 << 30;

void nb_results_count(struct nb_results *r) {
    size_t counts[NB_N_STATUSES] = {0};
    for (size_t i = 0; i < r->n; i++) counts[r->records[i].status]++;
    cJSON_DeleteItemFromObjectCaseSensitive(r->meta, "counts");
    cJSON *json = cJSON_AddObjectToObject(r->meta, "counts");
    for (int s = 0; s < NB_N_STATUSES; s++) {
        if (counts[s]) nb_json_number(json, nb_status_name((enum nb_status)s), (double)counts[s]);
    }
}

size_t nb_results_failed(const struct nb_results *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += nb_status_failed(r->records[i].status);
    return n;
}

void nb_results_print(const struct nb_results *r, struct nb_strbuf *out) {
    nb_strbuf_add(out, "{\n");
    const cJSON *item;
    cJSON_ArrayForEach(item, r->meta) {
        nb_strbuf_add(out, "  ");
        nb_json_print_text(item->string, out);
        nb_strbuf_add(out, ": ");
        nb_json_print_pretty(item, 2, out);
        nb_strbuf_add(out, ",\n");
    }
    nb_strbuf_add(out, "  \"records\": [");
    for (size_t i = 0; i < r->n; i++) {
        cJSON *record = nb_record_to_json(&r->records[i]);
        nb_strbuf_add(out, i ? ",\n    " : "\n    ");
        nb_json_print_pretty(record, 4, out);
        cJSON_Delete(record);
    }
    nb_strbuf_add(out, r->n ? "\n  ]\n}\n" : "]\n}\n");
}

int nb_results_write(const struct nb_results *r, const char *dir) {
    struct nb_strbuf text = {0};
    char *path = nb_path_join(dir, NB_RESULTS_FILE);
    nb_results_print(r, &text);
    int result = nb_dir_make(dir);
    if (result == 0) result = nb_file_write(path, text.text, text.len);
    nb_strbuf_release(&text);
    free(path);
    return result;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

static int line_of(const char *text, const char *at) {
    int line = 1;
    for (; text < at; text++) line += *text == '\n';
    return line;
}

/* The document without its records, and the records apart; both owned by the caller. */
static int parse_document(const char *path, cJSON **meta, cJSON **records) {
    size_t len;
    const char *end = NULL;
    char *text = nb_file_read(path, largest_file, &len);
    if (!text) return -1;
    int result = -1;
    if (strlen(text) == len && nb_json_is_utf8(text)) *meta = cJSON_ParseWithOpts(text, &end, true);
    *records = cJSON_DetachItemFromObjectCaseSensitive(*meta, "records");
    const char *schema = nb_json_get_text(*meta, "schema");
    if (len == 0)
        nb_error("%s: is empty", path);
    else if (!*meta)
        nb_error("%s:%d: is not JSON in UTF-8", path, line_of(text, end ? end : text));
    else if (!schema || !cJSON_IsArray(*records))
        nb_error("%s: is not a results file: \"%s\" is missing", path, schema ? "records" : "schema");
    else if (cJSON_HasObjectItem(*meta, "records"))
        nb_error("%s: \"records\" stands twice", path);
    else if (!nb_schema_update(*records, schema) || !nb_schema_update(*meta, schema))
        nb_error("%s: schema %s; this version reads 1.0 to %s", path, schema, NB_SCHEMA_VERSION);
    else
        result = 0;
    free(text);
    return result;
}

static int read_records(struct nb_results *r, const char *path, const cJSON *records) {
    r->records = nb_alloc((size_t)cJSON_GetArraySize(records), sizeof *r->records);
    const cJSON *item;
    cJSON_ArrayForEach(item, records) {
        if (nb_record_from_json(&r->records[r->n], item) != 0)
            return nb_error("%s: record %zu cannot be used", path, r->n + 1);
        r->n++;
    }
    return 0;
}

bool nb_results_outdated(const char *dir) {
    char *results = nb_path_join(dir, NB_RESULTS_FILE), *journal = nb_path_join(dir, NB_JOURNAL_FILE);
    struct stat old, new;
    bool outdated = false;
    if (stat(journal, &new) == 0) {
        outdated = stat(results, &old) != 0 || new.st_mtim.tv_sec > old.st_mtim.tv_sec ||
                   (new.st_mtim.tv_sec == old.st_mtim.tv_sec &&new.st_mtim.tv_nsec > old.st_mtim.tv_nsec);
    }
    free(results);
    free(journal);
    return outdated;
}

int nb_results_read(struct nb_results *r, const char *dir) {
    assert(r && dir);
    if (nb_results_outdated(dir)) return nb_results_fold(r, dir);
    *r = (struct nb_results){.dir = nb_strdup(dir)};
    char *path = nb_path_join(dir, NB_RESULTS_FILE);
    cJSON *records = NULL;
    int result = parse_document(path, &r->meta, &records);
    if (result == 0) result = read_records(r, path, records);
    cJSON_Delete(records);
    free(path);
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
