// SPDX-License-Identifier: Apache-2.0
/* The "run" line to records: every case that was planned has one before anything is known of it, so that nothing can be
 * forgotten silently. */
#include "src/record/fold_plan.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

static void add_quoted(struct nb_strbuf *out, const char *text) {
    nb_strbuf_add(out, "'");
    for (; *text; text++) {
        if (*text == '\'')
            nb_strbuf_add(out, "'\\''");
        else
            nb_strbuf_addn(out, text, 1);
    }
    nb_strbuf_add(out, "'");
}

char *nb_replay_command(const char *key, const char *file, const char *tuning) {
    struct nb_strbuf out = {0};
    nb_strbuf_add(&out, "normbench replay ");
    add_quoted(&out, key);
    if (file) {
        nb_strbuf_add(&out, " --plugin ");
        add_quoted(&out, file);
    }
    if (tuning) {
        nb_strbuf_add(&out, " --tuning ");
        add_quoted(&out, tuning);
    }
    return out.text;
}

/* A whole number from 0 to max; -1 after nb_error. */
static int get_whole(const cJSON *json, const char *name, double max, size_t *value) {
    double number = nb_json_get_number(json, name);
    if (!(number >= 0 && number <= max && number == floor(number)))
        return nb_error("\"%s\" is not a whole number from 0 to %.0f", name, max);
    *value = (size_t)number;
    return 0;
}

/* The file of the plugin that a variant "plugin:name" comes from; null for a built-in kernel. */
static const char *plugin_file(const cJSON *run, const char *variant) {
    const char *colon = strchr(variant, ':');
    const cJSON *plugin;
    cJSON_ArrayForEach(plugin, cJSON_GetObjectItemCaseSensitive(run, "plugins")) {
        const char *name = nb_json_get_text(plugin, "name");
        size_t len = colon ? (size_t)(colon - variant) : 0;
        if (colon && name && strlen(name) == len && strncmp(name, variant, len) == 0)
            return nb_json_get_text(plugin, "file");
    }
    return NULL;
}

/* What the run's calls carried beyond the defaults of its CPU, or null. */
static const char *tuning_of(const cJSON *run) {
    const cJSON *fingerprint = cJSON_GetObjectItemCaseSensitive(run, "fingerprint");
    return nb_json_get_text(cJSON_GetObjectItemCaseSensitive(fingerprint, "tuning"), "replay");
}

/* ---- records ------------------------------------------------------------------------------------------------------ */

struct kernels {
    const cJSON **items;
    struct nb_text_map by_variant;
};

static int index_kernels(struct kernels *k, const cJSON *run) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(run, "kernels"), *item;
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

/* The index of a new record, NB_NOWHERE after nb_error. */
static size_t add_record(struct nb_fold *f, const cJSON *run, const struct kernels *kernels, const char *key) {
    struct nb_results *results = f->results;
    results->records = nb_realloc(results->records, results->n + 1, sizeof *results->records);
    struct nb_record *r = &results->records[results->n];
    *r = (struct nb_record){.status = NB_NOT_RUN};
    if (nb_case_parse(&r->c, key) != 0) return NB_NOWHERE;
    size_t kernel = nb_text_map_find(&kernels->by_variant, r->c.variant);
    if (kernel == NB_NOWHERE) {
        nb_error("%s: its kernel is not among \"kernels\"", key);
        return NB_NOWHERE;
    }
    if (nb_kernel_fields_from_json(&r->c, kernels->items[kernel]) != 0) return NB_NOWHERE;
    r->key = nb_strdup(key);
    r->bytes = nb_case_bytes(&r->c);
    r->replay = nb_replay_command(key, plugin_file(run, r->c.variant), tuning_of(run));
    size_t twice = nb_text_map_add(&f->keys, r->key, results->n++);
    if (twice != NB_NOWHERE) nb_error("%s is planned twice", key);
    return twice == NB_NOWHERE ? results->n - 1 : NB_NOWHERE;
}

/* The names of one key's labels. -1 after nb_error. */
static int add_labels(struct nb_record *r, const cJSON *run, const cJSON *list) {
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(run, "labels"), *at;
    cJSON_ArrayForEach(at, list) {
        const double i = cJSON_IsNumber(at) ? at->valuedouble : -1;
        const bool is_index = i >= 0 && i < (double)cJSON_GetArraySize(labels) && i == floor(i);
        const char *name = is_index ? nb_json_get_text(cJSON_GetArrayItem(labels, (int)i), "name") : NULL;
        if (!name) return nb_error("%s has a label that is not among \"labels\"", r->key);
        nb_record_add_label(r, name);
    }
    return 0;
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

static int plan_group(struct nb_fold *f, struct nb_fold_group *group, const cJSON *run, const struct kernels *kernels,
                      const cJSON *json) {
    const cJSON *keys = cJSON_GetObjectItemCaseSensitive(json, "keys"), *key;
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(json, "labels");
    size_t part = 0, index = 0, n = (size_t)cJSON_GetArraySize(keys);
    if (n == 0) return nb_error("a group without \"keys\"");
    if (get_whole(json, "index", INT_MAX, &index) != 0 || get_whole(json, "part", INT_MAX, &part) != 0 ||
        get_whole(json, "reference", (double)n - 1, &group->reference) != 0)
        return -1;
    group->index = (int)index;
    group->arms = nb_alloc(n, sizeof *group->arms);
    cJSON_ArrayForEach(key, keys) {
        struct nb_fold_arm *arm = &group->arms[group->n];
        if (!cJSON_IsString(key)) return nb_error("a key that is no text");
        *arm = (struct nb_fold_arm){.key = key->valuestring, .reported = part == 0 || group->n != group->reference};
        group->n++;
        if (!arm->reported) continue;
        arm->record = add_record(f, run, kernels, key->valuestring);
        if (arm->record == NB_NOWHERE) return -1;
        struct nb_record *r = &f->results->records[arm->record];
        r->group = group->index;
        if (add_labels(r, run, cJSON_GetArrayItem(labels, (int)group->n - 1)) != 0) return -1;
    }
    return 0;
}

/* After all groups: the record of a reference stands in the first part of its group. */
static void link_references(struct nb_fold *f) {
    for (size_t g = 0; g < f->n_groups; g++) {
        for (size_t a = 0; a < f->groups[g].n; a++) {
            struct nb_fold_arm *arm = &f->groups[g].arms[a];
            if (!arm->reported) arm->record = nb_text_map_find(&f->keys, arm->key);
        }
    }
}

static int by_key(const void *a, const void *b) {
    return strcmp(nb_json_get_text(*(const cJSON *const *)a, "key"), nb_json_get_text(*(const cJSON *const *)b, "key"));
}

/* In the order of their keys, which does not depend on how the plan was cut into shards. */
static int plan_skips(struct nb_fold *f, const cJSON *run, const struct kernels *kernels) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(run, "skips"), *skip;
    const cJSON **keyed = nb_alloc((size_t)cJSON_GetArraySize(list), sizeof *keyed);
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
    free(keyed);
    return result;
}

int nb_fold_plan(struct nb_fold *f, const cJSON *run) {
    if (f->run) return nb_error("a second \"run\" line");
    f->run = cJSON_Duplicate(run, true);
    struct kernels kernels = {0};
    size_t launches = 0;
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(f->run, "groups"), *group;
    int result = get_whole(cJSON_GetObjectItemCaseSensitive(f->run, "plan"), "launches", INT_MAX, &launches);
    if (result == 0) f->launches = (int)launches;
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

void nb_fold_release(struct nb_fold *f) {
    for (size_t g = 0; g < f->n_groups; g++) {
        for (size_t a = 0; a < f->groups[g].n; a++) {
            free(f->groups[g].arms[a].seen);
            nb_launches_release(&f->groups[g].arms[a].launches);
        }
        free(f->groups[g].arms);
    }
    free(f->groups);
    nb_text_map_release(&f->keys);
    cJSON_Delete(f->run);
    cJSON_Delete(f->resumed);
    cJSON_Delete(f->ends);
    *f = (struct nb_fold){0};
}
