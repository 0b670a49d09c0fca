// SPDX-License-Identifier: Apache-2.0
/* What is in results.json is held against what it says of itself: its sums, and how many records it had. */

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/measure/journal.h"
#include "src/record/record.h"

/* Whole files are read into memory; this is some million records. */
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
    bool outdated = false;
    if (stat(journal, &new) == 0)
        outdated = stat(results, &old) != 0 || new.st_mtim.tv_sec > old.st_mtim.tv_sec ||
                   (new.st_mtim.tv_sec == old.st_mtim.tv_sec &&new.st_mtim.tv_nsec > old.st_mtim.tv_nsec);
    return outdated;
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
