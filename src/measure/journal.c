// SPDX-License-Identifier: Apache-2.0
/* The journal as a file: whole lines or nothing, one writer, and a reader that distinguishes a torn end from damage. */
#include "src/measure/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"

/* A line without its newline, as an object with a "type"; null when it is none. */
static cJSON *parse_line(const char *text, size_t len) {
    if (strlen(text) != len || !nb_json_is_utf8(text)) return NULL;
    cJSON *json = cJSON_ParseWithOpts(text, NULL, true);
    if (cJSON_IsObject(json) && nb_json_get_text(json, "type")) return json;
    cJSON_Delete(json);
    return NULL;
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

/* One writer at a time, for as long as the file is open. */
static int lock(const struct nb_journal *j) {
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EWOULDBLOCK)
        return nb_error("%s: another run is writing here; take another --out, or wait for its end", j->path);
    return nb_error("%s: cannot be locked: %s", j->path, strerror(errno));
}

/* A run that was killed before it wrote its first line left an empty file, which no run needs. */
int nb_journal_create(struct nb_journal *j, const char *dir) {
    *j = (struct nb_journal){.fd = -1};
    if (nb_dir_make(dir) != 0) return -1;
    char *results = nb_path_join(dir, "results.json");
    struct stat st;
    j->path = nb_path_join(dir, NB_JOURNAL_FILE);
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
    int result = -1;
    if (j->fd < 0 || fstat(j->fd, &st) != 0)
        nb_error("%s: %s", j->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        nb_error("%s: is no file; take another --out", j->path);
    else if (lock(j) == 0 && fstat(j->fd, &st) == 0)
        result =
            st.st_size == 0 && !nb_path_exists(results)
                ? 0
                : nb_error("%s: holds a run already; take another --out, or go on with it by --resume %s", dir, dir);
    free(results);
    if (result != 0) nb_journal_close(j);
    return result;
}

/* Ends the file behind its last whole line. A last line that lacks nothing but its newline is whole. */
static int cut_torn_line(const struct nb_journal *j) {
    FILE *f = nb_file_open(j->path);
    if (!f) return -1;
    char *text = NULL;
    size_t cap = 0;
    off_t whole = 0;
    bool open_end = false;
    for (ssize_t n; (n = getline(&text, &cap, f)) > 0;) {
        open_end = text[n - 1] != '\n';
        cJSON *last = open_end ? parse_line(text, (size_t)n) : NULL;
        if (!open_end || last) whole += n;
        cJSON_Delete(last);
    }
    bool failed = ferror(f) || fclose(f) != 0;
    free(text);
    if (failed) return nb_error("%s: cannot be read", j->path);
    if (whole == 0)
        return nb_error("%s: holds no whole line, so there is nothing to go on with; start the run again", j->path);
    struct stat st;
    if (fstat(j->fd, &st) != 0) return nb_error("%s: %s", j->path, strerror(errno));
    bool done = st.st_size > whole ? ftruncate(j->fd, whole) == 0 : !open_end || write(j->fd, "\n", 1) == 1;
    if (st.st_size > whole) nb_note("%s: its last line was torn, and is cut off", j->path);
    return done ? 0 : nb_error("%s: %s", j->path, strerror(errno));
}

int nb_journal_append_to(struct nb_journal *j, const char *dir) {
    *j = (struct nb_journal){.fd = -1};
    j->path = nb_path_join(dir, NB_JOURNAL_FILE);
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC);
    int result = j->fd < 0 ? nb_error("%s: %s; there is no run to go on with", j->path, strerror(errno)) : lock(j);
    if (result == 0) result = cut_torn_line(j);
    if (result != 0) nb_journal_close(j);
    return result;
}

static int write_all(int fd, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int nb_journal_write(struct nb_journal *j, const cJSON *line) {
    assert(nb_json_get_text(line, "type"));
    struct nb_strbuf text = {0};
    struct stat before;
    nb_json_print(line, &text);
    nb_strbuf_add(&text, "\n");
    int result = fstat(j->fd, &before);
    if (result == 0) {
        result = write_all(j->fd, text.text, text.len);
        if (result == 0) result = fdatasync(j->fd);
        int why = errno;
        /* A half line followed by the next one would be damage like any other to a reader. */
        if (result != 0 && ftruncate(j->fd, before.st_size) != 0) nb_warn("%s: ends in half a line", j->path);
        errno = why;
    }
    nb_strbuf_release(&text);
    return result == 0 ? 0 : nb_error("%s: %s", j->path, strerror(errno));
}

void nb_journal_close(struct nb_journal *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    *j = (struct nb_journal){.fd = -1};
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* Keeps the schema of the first line, which says what the others mean, and puts each into today's words. */
static int take_schema(const char *path, size_t number, cJSON *line, char schema[16]) {
    const char *own = nb_json_get_text(line, "schema");
    if (number == 1 && (strcmp(nb_json_get_text(line, "type"), "run") != 0 || !own))
        return nb_error("%s:1: is not the \"run\" line that a journal begins with", path);
    if (number == 1) snprintf(schema, 16, "%s", own);
    if (nb_schema_update(line, schema)) return 0;
    return nb_error("%s:1: schema %s; this version reads 1.0 to %s", path, schema, NB_SCHEMA_VERSION);
}

static int read_lines(FILE *f, const char *path, int (*visit)(const cJSON *line, void *arg), void *arg) {
    char *text = NULL;
    size_t cap = 0, number = 0;
    char schema[16] = "";
    int result = 0;
    for (ssize_t n; result == 0 && (n = getline(&text, &cap, f)) > 0;) {
        number++;
        bool ended = text[n - 1] == '\n';
        if (ended) text[--n] = '\0';
        cJSON *line = parse_line(text, (size_t)n);
        if (!line && ended)
            result = nb_error("%s:%zu: is not a line of a journal (a JSON object with a \"type\")", path, number);
        else if (!line)
            nb_note("%s:%zu: this last line is torn, and is left out", path, number);
        else if (take_schema(path, number, line, schema) != 0)
            result = -1;
        else if ((result = visit(line, arg)) < 0)
            nb_error("%s:%zu: this line cannot be used", path, number);
        cJSON_Delete(line);
    }
    if (result == 0 && ferror(f)) result = nb_error("%s: %s", path, strerror(errno));
    if (result == 0 && number == 0)
        result = nb_error("%s: is empty: the run ended before it began; start it again", path);
    free(text);
    return result;
}

int nb_journal_read(const char *dir, int (*visit)(const cJSON *line, void *arg), void *arg) {
    char *path = nb_path_join(dir, NB_JOURNAL_FILE);
    FILE *f = nb_file_open(path);
    int result = f ? read_lines(f, path, visit, arg) : -1;
    if (f) fclose(f);
    free(path);
    return result < 0 ? -1 : 0;
}

/* ---- what a case has from its kernel ------------------------------------------------------------------------------ */

/* The fields that are one of an enum, with the names of its values. */
static const struct enum_field {
    const char *name;
    const char *const *values;
    size_t offset; /* in struct nb_case */
} enum_fields[] = {
    {"op", nb_op_names, offsetof(struct nb_case, op)},
    {"pass", nb_pass_names, offsetof(struct nb_case, pass)},
    {"dtype", nb_dtype_names, offsetof(struct nb_case, dtype)},
    {"width", nb_width_names, offsetof(struct nb_case, width)},
    {"style", nb_style_names, offsetof(struct nb_case, style)},
    {"stats", nb_stats_names, offsetof(struct nb_case, stats)},
    {"stats_dtype", nb_stats_dtype_names, offsetof(struct nb_case, stats_dtype)},
    {"variance", nb_variance_names, offsetof(struct nb_case, variance)},
};
enum { N_ENUM_FIELDS = sizeof enum_fields / sizeof enum_fields[0] };

static const char peer_prefix[] = "peer:";

void nb_kernel_fields_to_json(cJSON *object, const struct nb_case *c) {
    struct nb_strbuf backend = {0};
    nb_case_axis(c, "backend", &backend);
    nb_json_text(object, "variant", c->variant);
    nb_json_text(object, "backend", backend.text);
    nb_strbuf_release(&backend);
    for (size_t i = 0; i < N_ENUM_FIELDS; i++) {
        uint32_t value;
        memcpy(&value, (const char *)c + enum_fields[i].offset, sizeof value);
        nb_json_text(object, enum_fields[i].name, enum_fields[i].values[value]);
    }
    if (c->op != NB_OP_COPY) return;
    nb_json_number(object, "copy_loads", c->copy_loads);
    nb_json_number(object, "copy_stores", c->copy_stores);
}

int nb_kernel_fields_from_json(struct nb_case *c, const cJSON *object) {
    const char *variant = nb_json_get_text(object, "variant"), *backend = nb_json_get_text(object, "backend");
    if (!variant || strlen(variant) >= sizeof c->variant) return nb_error("\"variant\" is missing or too long");
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    c->is_peer = backend && strncmp(backend, peer_prefix, sizeof peer_prefix - 1) == 0;
    for (size_t i = 0; i < N_ENUM_FIELDS; i++) {
        const struct enum_field *field = &enum_fields[i];
        const char *text = nb_json_get_text(object, field->name);
        uint32_t value = 0;
        while (text && field->values[value] && strcmp(text, field->values[value]) != 0) value++;
        if (!text || !field->values[value])
            return nb_error("%s: \"%s\" is \"%s\", which this version does not know", variant, field->name,
                            text ? text : "(missing)");
        memcpy((char *)c + field->offset, &value, sizeof value);
    }
    double loads = nb_json_get_number(object, "copy_loads"), stores = nb_json_get_number(object, "copy_stores");
    c->copy_loads = isfinite(loads) ? loads : 0;
    c->copy_stores = isfinite(stores) ? stores : 0;
    nb_case_normalize(c);
    return 0;
}

/* ---- the plan in the first line ---------------------------------------------------------------------------------- */

/* What the first line of a journal says about the plan: enough to fold the rest without the kernels that it names. */

/* Cases that get a record of their own: the reference of a group that was split is repeated in its later parts. */
static size_t count_cases(const struct nb_plan *plan) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_groups; i++) n += plan->groups[i].n - (plan->groups[i].part > 0);
    return n;
}

static void add_head(cJSON *run, const struct nb_plan *plan, int shard, int n_shards) {
    cJSON *json = cJSON_AddObjectToObject(run, "plan");
    nb_json_text(json, "hash", plan->hash);
    nb_json_number(json, "n_cases", (double)count_cases(plan));
    nb_json_number(json, "launches", plan->launches);
    nb_json_number(json, "blocks", plan->blocks);
    nb_json_number(json, "sample_ms", plan->sample_ms);
    nb_json_uint64(json, "order_seed", plan->order_seed);
    if (plan->compare.ours.n > 0) cJSON_AddItemToObject(json, "compare", nb_compare_settings_to_json(&plan->compare));
    if (n_shards > 0)
        cJSON_AddItemToObject(run, "shard", cJSON_CreateIntArray((const int[]){shard, n_shards}, 2));
    else
        cJSON_AddNullToObject(run, "shard");
}

/* Each variant once, in the order of its first case. */
static void add_kernel(cJSON *kernels, struct nb_text_map *known, const struct nb_case *c) {
    if (nb_text_map_find(known, c->variant) != NB_NOWHERE) return;
    cJSON *json = cJSON_CreateObject();
    nb_kernel_fields_to_json(json, c);
    nb_text_map_add(known, nb_json_get_text(json, "variant"), 0);
    cJSON_AddItemToArray(kernels, json);
}

/* A skipped case has no struct nb_case in the plan; its variant is what the key begins with. */
static void add_skipped_kernel(cJSON *kernels, struct nb_text_map *known, const char *key) {
    struct nb_case c = {0};
    if (nb_case_parse(&c, key) != 0) return;
    const struct nb_entry *entry = nb_registry_find(c.variant);
    if (!entry) return;
    nb_case_set_entry(&c, entry);
    add_kernel(kernels, known, &c);
}

/* Of each key, indices into the run line's labels. */
static void add_labels(cJSON *json, const struct nb_plan *plan, const struct nb_group *group) {
    cJSON *lists = cJSON_AddArrayToObject(json, "labels");
    for (size_t i = 0; i < group->n; i++) {
        const struct nb_label_set *set = &plan->case_labels[group->cases[i]];
        cJSON *list = cJSON_CreateArray();
        for (size_t j = 0; j < set->n; j++) cJSON_AddItemToArray(list, cJSON_CreateNumber((double)set->at[j]));
        cJSON_AddItemToArray(lists, list);
    }
}

static void add_group(cJSON *groups, const struct nb_plan *plan, const struct nb_group *group) {
    cJSON *json = cJSON_CreateObject();
    nb_json_number(json, "index", (double)group->index);
    nb_json_number(json, "part", group->part);
    if (group->single_width) nb_json_number(json, "family", (double)group->family);
    cJSON *keys = cJSON_AddArrayToObject(json, "keys");
    for (size_t i = 0; i < group->n; i++) cJSON_AddItemToArray(keys, cJSON_CreateString(plan->keys[group->cases[i]]));
    nb_json_number(json, "reference", (double)group->reference);
    if (plan->labels.n > 0) add_labels(json, plan, group);
    cJSON_AddItemToArray(groups, json);
}

static void add_skip(cJSON *skips, const struct nb_skip *skip) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "reason", skip->reason);
    nb_json_number(json, "count", (double)skip->n);
    if (skip->key) nb_json_text(json, "key", skip->key);
    cJSON_AddItemToArray(skips, json);
}

void nb_journal_add_plan(cJSON *run, const struct nb_plan *plan, int shard, int n_shards) {
    add_head(run, plan, shard, n_shards);
    cJSON *kernels = cJSON_AddArrayToObject(run, "kernels");
    struct nb_text_map known = {0};
    for (size_t i = 0; i < plan->n_cases; i++) add_kernel(kernels, &known, &plan->cases[i]);
    if (plan->labels.n > 0) cJSON_AddItemToObject(run, "labels", nb_labels_to_json(&plan->labels));
    cJSON *groups = cJSON_AddArrayToObject(run, "groups"), *skips = cJSON_AddArrayToObject(run, "skips");
    for (size_t i = 0; i < plan->n_groups; i++) add_group(groups, plan, &plan->groups[i]);
    for (size_t i = 0; i < plan->n_skips; i++) {
        if (plan->skips[i].key) add_skipped_kernel(kernels, &known, plan->skips[i].key);
        add_skip(skips, &plan->skips[i]);
    }
    nb_text_map_release(&known);
}

/* ---- files of schema 1 ------------------------------------------------------------------------------------------- */

static const struct {
    const char *old, *now;
} members[] = {{"twin", "copy"},
               {"twins", "copies"},
               {"twin_drift", "copy_drift"},
               {"twin_loads", "copy_loads"},
               {"twin_stores", "copy_stores"},
               {"slot_ns", "sample_ns"},
               {"slot_ms", "sample_ms"},
               {"per_slot", "per_sample"},
               {"n_slots", "n_samples"}},
  /* Wherever they stand in a text: the longer ones first, since a shorter one is their end. */
    words[] = {{"twin_add_copy", "copy_add"}, {"twin_copy", "copy"}, {"twin_", "copy_"}};

static void rename_member(cJSON *item) {
    for (size_t i = 0; item->string && i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(item->string, members[i].old) != 0) continue;
        cJSON_free(item->string);
        item->string = nb_strdup(members[i].now);
        return;
    }
}

static void rename_words(cJSON *item) {
    if (!cJSON_IsString(item) || !strstr(item->valuestring, "twin")) return;
    struct nb_strbuf text = {0};
    const size_t n = sizeof words / sizeof words[0];
    for (const char *at = item->valuestring; *at;) {
        size_t i = 0;
        while (i < n && strncmp(at, words[i].old, strlen(words[i].old)) != 0) i++;
        nb_strbuf_addn(&text, i < n ? words[i].now : at, i < n ? strlen(words[i].now) : 1);
        at += i < n ? strlen(words[i].old) : 1;
    }
    cJSON_SetValuestring(item, strcmp(text.text, "twin") == 0 ? "copy" : text.text); /* the op */
    nb_strbuf_release(&text);
}

/* Recursion is as deep as the parser lets a document be. */
static void rename_all(cJSON *json) {
    cJSON *item;
    cJSON_ArrayForEach(item, json) {
        rename_member(item);
        rename_words(item);
        rename_all(item);
    }
}

bool nb_schema_update(cJSON *json, const char *schema) {
    const int major = schema ? atoi(schema) : 0, today = atoi(NB_SCHEMA_VERSION);
    if (major < 1 || major > today) return false;
    if (major < today) rename_all(json);
    return true;
}
