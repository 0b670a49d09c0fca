// SPDX-License-Identifier: Apache-2.0
/* The shards of one plan to the results of one run: the same records in the same order as if one machine had done it all. */
#include "src/record/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/record/fingerprint.h"

/* What a run with --shard left: its document names the shard and the plan. */
struct shard {
    struct nb_results results; /* its records go to those of all */
    const char *dir, *hash;    /* borrowed; of the plan */
    int i, n;                  /* "i of n", from 1 */
    int machine;
};

static int by_number(const void *a, const void *b) {
    return ((const struct shard *)a)->i - ((const struct shard *)b)->i;
}

/* Sorted by number: are all of one plan, and each there once? */
static int check_family(const struct shard *shards, size_t n) {
    const struct shard *first = &shards[0];
    for (size_t k = 1; k < n; k++) {
        const struct shard *s = &shards[k];
        if (strcmp(first->hash, s->hash) != 0)
            return nb_error("%s and %s are shards of different plans (hash %s and %s)", first->dir, s->dir, first->hash,
                            s->hash);
        if (s->n != first->n)
            return nb_error("%s is one of %d shards, %s one of %d", first->dir, first->n, s->dir, s->n);
        if (s->i == s[-1].i) return nb_error("%s and %s are both shard %d/%d", s[-1].dir, s->dir, s->i, s->n);
    }
    return 0;
}

/* "2 5 6" in text, the numbers in json too. */
static size_t missing_shards(const struct shard *shards, size_t n, struct nb_strbuf *text, cJSON *json) {
    size_t missing = 0, k = 0;
    for (int i = 1; i <= shards[0].n; i++) {
        if (k < n && shards[k].i == i) {
            k++;
            continue;
        }
        nb_strbuf_addf(text, "%s%d", missing++ ? " " : "", i);
        cJSON_AddItemToArray(json, cJSON_CreateNumber(i));
    }
    return missing;
}

/* -1 after nb_error: it is none. */
static int read_shard(struct shard *s, const char *dir) {
    if (nb_results_read(&s->results, dir) != 0) return -1;
    const cJSON *document = s->results.meta, *shard = nb_json_get(document, "shard");
    const cJSON *i = cJSON_GetArrayItem(shard, 0), *n = cJSON_GetArrayItem(shard, 1);
    const char *hash = nb_json_get_text(nb_json_get(document, "plan"), "hash");
    if (!cJSON_IsNumber(i) || !cJSON_IsNumber(n) || i->valueint < 1 || i->valueint > n->valueint)
        return nb_error("%s: is not a shard: its run had no --shard i/n", dir);
    s->dir = dir;
    s->hash = hash ? hash : "";
    s->i = i->valueint;
    s->n = n->valueint;
    return 0;
}

/* Sorts them by number. -1 after nb_error: they are of different plans, one is there twice, or one is missing; with partial that is a
 * warning. missing: an array for their numbers. */
static int check_shards(struct shard *shards, size_t n, bool partial, cJSON *missing) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    qsort(shards, n, sizeof *shards, by_number);
    int result = check_family(shards, n);
    if (result == 0 && missing_shards(shards, n, &text, missing) > 0) {
        if (partial)
            nb_warn("of %d shards these are missing: %s", shards[0].n, text.text);
        else
            result =
                nb_error("of %d shards these are missing: %s (--partial merges without them)", shards[0].n, text.text);
    }
    return result;
}

/* ---- several machines -------------------------------------------------------------------------------------------- */

/* Fingerprints that differ in anything but where the tuning came from and the memory that the system leaves are different machines. */

/* A missing value prints as null. */
static void add_difference(const char *path, const cJSON *here, const cJSON *first, void *differs) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(&text, "%s: ", path);
    nb_json_print(here, &text);
    nb_strbuf_add(&text, ", first machine ");
    nb_json_print(first, &text);
    cJSON_AddItemToArray(differs, cJSON_CreateString(text.text));
}

/* What tells machines apart: not where a tuning was read and when it was measured, nor the memory, which is less by what each boot keeps. */
static cJSON *machine_of(const cJSON *fingerprint) {
    cJSON *json = cJSON_Duplicate(fingerprint, true), *tuning = nb_json_get(json, "tuning");
    static const char *const origins[] = {"source", "file", "measured"};
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(tuning, origins[i]);
    cJSON_DeleteItemFromObjectCaseSensitive(nb_json_get(json, "system"), "memory_bytes");
    return json;
}

static bool is_machine(const cJSON *a, const cJSON *b) {
    released_by(nb_json_release) cJSON *one = machine_of(a), *other = machine_of(b);
    return cJSON_Compare(one, other, true);
}

/* The index in machines ([{"fingerprint", "differs"}]) of this fingerprint, which is added when none is equal. "differs" names every path
 * whose value is not that of the first machine: "cpu.model: \"A\", first machine \"B\"". */
static int machine_index(cJSON *machines, const cJSON *fingerprint) {
    int index = 0;
    const cJSON *machine;
    cJSON_ArrayForEach(machine, machines) {
        if (is_machine(nb_json_get(machine, "fingerprint"), fingerprint)) return index;
        index++;
    }
    cJSON *json = cJSON_CreateObject(), *differs = cJSON_CreateArray();
    const cJSON *first = nb_json_get(cJSON_GetArrayItem(machines, 0), "fingerprint");
    if (first) nb_json_differences(fingerprint, first, add_difference, differs);
    cJSON_AddItemToObject(json, "fingerprint", cJSON_Duplicate(fingerprint, true));
    cJSON_AddItemToObject(json, "differs", differs);
    cJSON_AddItemToArray(machines, json);
    return index;
}

/* ---- records ------------------------------------------------------------------------------------------------------ */

/* Moves the shard's records behind those of the shards before, each with its machine. -1 after nb_error: one is there already. */
static int take_records(struct nb_results *out, struct shard *shard, struct nb_text_map *keys) {
    struct nb_results *own = &shard->results;
    int result = 0;
    out->records = nb_realloc(out->records, out->n + own->n + 1, sizeof *out->records);
    for (size_t i = 0; i < own->n; i++) {
        own->records[i].machine = shard->machine;
        if (result == 0 && nb_text_map_add(keys, own->records[i].key, i) != NB_NOWHERE)
            result = nb_error("%s: %s is in another shard too", own->dir, own->records[i].key);
        out->records[out->n++] = own->records[i];
    }
    free(own->records);
    own->records = NULL;
    own->n = 0;
    return result;
}

/* As nb_results_fold orders them: planned ones by group, in a group as they came; skipped ones last, by key. */
static int by_place(const void *a, const void *b) {
    const struct nb_record *p = *(const struct nb_record *const *)a, *q = *(const struct nb_record *const *)b;
    bool p_skipped = p->status == NB_SKIPPED, q_skipped = q->status == NB_SKIPPED;
    if (p_skipped != q_skipped) return p_skipped - q_skipped;
    if (p_skipped) return strcmp(p->key, q->key);
    if (p->group != q->group) return p->group < q->group ? -1 : 1;
    return p < q ? -1 : p > q;
}

/* Moves each record to its place, round by round of those that take each other's, with room for one of them. */
static void sort_records(struct nb_record *records, size_t n) {
    const struct nb_record **from freed = nb_alloc(n, sizeof *from);
    for (size_t i = 0; i < n; i++) from[i] = &records[i];
    qsort(from, n, sizeof *from, by_place);
    for (size_t i = 0; i < n; i++) {
        const struct nb_record first = records[i];
        size_t to = i;
        for (size_t at; (at = (size_t)(from[to] - records)) != i; to = at) {
            records[to] = records[at];
            from[to] = &records[to];
        }
        records[to] = first;
        from[to] = &records[to];
    }
}

/* ---- meta data ---------------------------------------------------------------------------------------------------- */

static bool every_shard_skips(const struct shard *shards, size_t n, const cJSON *skip) {
    for (size_t k = 0; k < n; k++) {
        const cJSON *other = nb_json_get(shards[k].results.meta, "skips");
        other = other ? other->child : NULL;
        while (other && !cJSON_Compare(other, skip, true)) other = other->next;
        if (!other) return false;
    }
    return true;
}

/* Cases by key are each in one shard. Cells without one were left out before the plan was cut, by all shards alike; what only
 * one shard left out is what others have. */
static cJSON *merged_skips(const struct shard *shards, size_t n) {
    cJSON *skips = cJSON_CreateArray();
    for (size_t k = 0; k < n; k++) {
        const cJSON *skip;
        cJSON_ArrayForEach(skip, nb_json_get(shards[k].results.meta, "skips")) {
            if (nb_json_get(skip, "key") || (k == 0 && every_shard_skips(shards, n, skip)))
                cJSON_AddItemToArray(skips, cJSON_Duplicate(skip, true));
        }
    }
    return skips;
}

static cJSON *shard_summary(const struct shard *s) {
    cJSON *json = cJSON_CreateObject();
    const cJSON *meta = s->results.meta;
    cJSON_AddItemToObject(json, "shard", cJSON_Duplicate(nb_json_get(meta, "shard"), true));
    nb_json_text(json, "started", nb_json_get_text(meta, "started"));
    nb_json_number(json, "elapsed_s", nb_json_get_number(meta, "elapsed_s"));
    cJSON_AddBoolToObject(json, "complete", nb_json_get_bool(meta, "complete"));
    nb_json_number(json, "machine", s->machine);
    return json;
}

struct totals {
    double elapsed_s, peak_mib, n_cases;
    const char *started; /* the earliest; ISO 8601 in UTC sorts as text */
    bool complete;
};

static struct totals sum_up(const struct shard *shards, size_t n) {
    struct totals t = {
        .peak_mib = NAN, .started = nb_json_get_text(shards[0].results.meta, "started"), .complete = true};
    for (size_t k = 0; k < n; k++) {
        const cJSON *meta = shards[k].results.meta;
        const char *started = nb_json_get_text(meta, "started");
        t.elapsed_s += nb_json_get_number(meta, "elapsed_s");
        t.peak_mib = fmax(t.peak_mib, nb_json_get_number(meta, "peak_memory_mib"));
        t.n_cases += nb_json_get_number(nb_json_get(meta, "plan"), "n_cases");
        t.complete = t.complete && nb_json_get_bool(meta, "complete");
        if (started && (!t.started || strcmp(started, t.started) < 0)) t.started = started;
    }
    return t;
}

/* object may be null: a shard without a plan has none to be changed. Takes the item over. */
static void replace(cJSON *object, const char *name, cJSON *item) {
    if (!cJSON_ReplaceItemInObjectCaseSensitive(object, name, item) && !cJSON_AddItemToObject(object, name, item))
        cJSON_Delete(item);
}

static cJSON *number_or_null(double value) { return isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull(); }

/* The first shard's, with what is not the same for all of them summed up. Takes missing over. */
static void merge_meta(struct nb_results *out, const struct shard *shards, size_t n, cJSON *machines, cJSON *missing) {
    struct totals t = sum_up(shards, n);
    cJSON *meta = out->meta = cJSON_Duplicate(shards[0].results.meta, true), *resumed = cJSON_CreateArray(), *merged;
    replace(meta, "started", cJSON_CreateString(t.started ? t.started : ""));
    replace(meta, "shard", cJSON_CreateNull());
    replace(nb_json_get(meta, "plan"), "n_cases", number_or_null(t.n_cases));
    replace(meta, "skips", merged_skips(shards, n));
    for (size_t k = 0; k < n; k++) {
        const cJSON *line;
        cJSON_ArrayForEach(line, nb_json_get(shards[k].results.meta, "resumed"))
            cJSON_AddItemToArray(resumed, cJSON_Duplicate(line, true));
    }
    replace(meta, "resumed", resumed);
    replace(meta, "elapsed_s", number_or_null(t.elapsed_s));
    replace(meta, "peak_memory_mib", number_or_null(t.peak_mib));
    replace(meta, "interrupted", cJSON_CreateNull());
    replace(meta, "complete", cJSON_CreateBool(t.complete && cJSON_GetArraySize(missing) == 0));
    merged = cJSON_AddArrayToObject(meta, "merged");
    for (size_t k = 0; k < n; k++) cJSON_AddItemToArray(merged, shard_summary(&shards[k]));
    cJSON_AddItemToObject(meta, "machines", machines);
    cJSON_AddItemToObject(meta, "missing_shards", missing);
    nb_results_count(out);
}

static int merge_shards(struct nb_results *r, struct shard *shards, size_t n, cJSON *missing) {
    struct nb_text_map keys released_by(nb_text_map_release) = {0};
    cJSON *machines = cJSON_CreateArray();
    int result = 0;
    for (size_t k = 0; k < n && result == 0; k++) {
        shards[k].machine = machine_index(machines, nb_json_get(shards[k].results.meta, "fingerprint"));
        result = take_records(r, &shards[k], &keys);
    }
    if (result == 0) {
        sort_records(r->records, r->n);
        merge_meta(r, shards, n, machines, missing);
    } else {
        cJSON_Delete(machines);
        cJSON_Delete(missing);
    }
    return result;
}

int nb_results_merge(struct nb_results *r, const char *const *dirs, size_t n, bool partial) {
    *r = (struct nb_results){0};
    if (n == 0) return nb_error("no folder to merge");
    struct shard *shards freed = nb_alloc(n, sizeof *shards);
    cJSON *missing = cJSON_CreateArray();
    int result = 0;
    for (size_t k = 0; k < n && result == 0; k++) result = read_shard(&shards[k], dirs[k]);
    if (result == 0) result = check_shards(shards, n, partial, missing);
    if (result == 0)
        result = merge_shards(r, shards, n, missing);
    else
        cJSON_Delete(missing);
    for (size_t k = 0; k < n; k++) nb_results_release(&shards[k].results);
    if (result != 0) nb_results_release(r);
    return result;
}
