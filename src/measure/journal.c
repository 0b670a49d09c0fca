// SPDX-License-Identifier: Apache-2.0
/* The journal as a file: whole lines or nothing, one writer, and a reader to whom a damaged line is as if it had not been written. */
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

#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/peers.h"
#include "src/core/registry.h"
#include "src/core/text.h"

/* Ends each line: a hash of the bytes before it, which any one byte that changes changes. */
#define SUM ",\"sum\":\"%016llx\"}"
static const size_t largest_file = (size_t)16 << 30;
enum { SUM_CHARS = sizeof ",\"sum\":\"0123456789abcdef\"}" - 1 };

/* An object's text gets its sum as a last member. */
static void add_sum(struct nb_strbuf *line) {
    line->text[--line->len] = '\0'; /* the brace, which comes back behind the sum */
    nb_strbuf_addf(line, SUM, (unsigned long long)nb_hash(NB_HASH_EMPTY, line->text, line->len));
}

static bool has_right_sum(const char *text, size_t len) {
    char sum[SUM_CHARS + 1];
    if (len <= SUM_CHARS) return false;
    snprintf(sum, sizeof sum, SUM, (unsigned long long)nb_hash(NB_HASH_EMPTY, text, len - SUM_CHARS));
    return memcmp(text + len - SUM_CHARS, sum, SUM_CHARS) == 0;
}

/* A line without its newline, as an object with a "type" and without its sum; null when it is none. A "run" line of a schema that had no sums
 * comes as it is, to be refused by its schema. */
static cJSON *parse_line(const char *text, size_t len) {
    if (strlen(text) != len || !nb_json_is_utf8(text)) return NULL;
    cJSON *json = cJSON_ParseWithOpts(text, NULL, true);
    const char *type = cJSON_IsObject(json) ? nb_json_get_text(json, "type") : NULL;
    const char *schema =
        type && strcmp(type, "run") == 0 && !cJSON_HasObjectItem(json, "sum") ? nb_json_get_text(json, "schema") : NULL;
    if (type && (has_right_sum(text, len) || (schema && strcmp(schema, NB_SCHEMA_VERSION) != 0))) {
        cJSON_DeleteItemFromObjectCaseSensitive(json, "sum");
        return json;
    }
    cJSON_Delete(json);
    return NULL;
}

/* ---- line by line ------------------------------------------------------------------------------------------------- */

/* A damaged line costs what stood in it, and no more. All lines depend on the first, the "run" line, which stands there twice. */

struct damaged_line {
    off_t at;
    size_t n, number; /* n: without its newline */
    bool is_torn;     /* the last one, which has none: by the end of the process that wrote it */
    char what[48];
};

struct lines {
    FILE *f;
    const char *path;
    char *text; /* of the last one */
    size_t cap, number;
    off_t at;       /* where the next begins */
    bool is_open;   /* the last one that came lacks its newline, and nothing else */
    bool has_begun; /* the run line was read */
    uint64_t run;   /* its hash: there is a copy of it */
    struct damaged_line *damaged;
    size_t n_damaged;
};

/* What a line says that it is, as far as it can be read. */
static void describe(const char *text, char what[48]) {
    char type[12] = "";
    int group = -1, launch = -1;
    sscanf(text, "{\"type\":\"%11[a-z]\",\"group\":%d,\"launch\":%d", type, &group, &launch);
    if (launch >= 0 && strcmp(type, "launch") == 0)
        snprintf(what, 48, ", launch %d of group %d", launch, group);
    else if (group >= 0)
        snprintf(what, 48, ", the %s of group %d", type, group);
    else
        what[0] = '\0';
}

static void note_damage(struct lines *l, off_t at, size_t n, bool is_torn) {
    struct damaged_line *d = NB_PUSH(l->damaged, l->n_damaged);
    *d = (struct damaged_line){.at = at, .n = n, .number = l->number, .is_torn = is_torn};
    describe(l->text, d->what);
}

/* The whole line that ends a text, null when there is none; *skipped: the bytes before it. Where a newline was lost, it is the second of two
 * lines. */
static cJSON *parse_end(const char *text, size_t len, size_t *skipped) {
    const char *at = text + strspn(text, " ");
    cJSON *line = NULL;
    while (at && !(line = parse_line(at, len - (size_t)(at - text)))) at = *at ? strstr(at + 1, "{\"type\":\"") : NULL;
    *skipped = line ? (size_t)(at - text) : len;
    return line;
}

/* The first whole line says what the others mean. */
static int begin(struct lines *l, const cJSON *line, uint64_t hash) {
    if (strcmp(nb_json_get_text(line, "type"), "run") != 0)
        return l->n_damaged > 0
                   ? nb_error("%s:1: the plan is damaged, and nothing can be read without it; start the run again",
                              l->path)
                   : nb_error("%s:1: is not the \"run\" line that a journal begins with", l->path);
    l->has_begun = true;
    l->run = hash;
    return nb_json_check_schema(line, l->path, NB_SCHEMA_VERSION);
}

/* The next whole line, owned. 1; 0: there is none; -1 after nb_error. */
static int next_line(struct lines *l, cJSON **line) {
    for (ssize_t n; (n = getline(&l->text, &l->cap, l->f)) > 0;) {
        const size_t len = (size_t)n - (l->text[n - 1] == '\n');
        size_t skipped;
        l->number++;
        l->is_open = len == (size_t)n;
        l->text[len] = '\0';
        *line = parse_end(l->text, len, &skipped);
        if (strspn(l->text, " ") < skipped || (!*line && l->is_open)) /* blanks: taken out by mend() */
            note_damage(l, l->at, skipped, !*line && l->is_open);
        l->at += n;
        const uint64_t hash = nb_hash(NB_HASH_EMPTY, l->text + skipped, len - skipped);
        if (*line && l->run == hash) cJSON_Delete(*line), *line = NULL;
        if (!*line) continue;
        if (l->has_begun || begin(l, *line, hash) == 0) return 1;
        cJSON_Delete(*line);
        return -1;
    }
    if (ferror(l->f)) return nb_error("%s: %s", l->path, strerror(errno));
    if (l->number == 0) return nb_error("%s: is empty: the run ended before it began; start it again", l->path);
    if (!l->has_begun) return nb_error("%s: holds no whole line; start the run again", l->path);
    return 0;
}

static void say_damage(const struct lines *l, const char *then) {
    enum { NAMED = 5 };
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    if (l->n_damaged == 0) return;
    for (size_t i = 0; i < l->n_damaged && i < NAMED; i++)
        nb_strbuf_addf(&text, "%s%zu%s", i ? "; " : "", l->damaged[i].number,
                       l->damaged[i].is_torn ? ", torn at the end" : l->damaged[i].what);
    if (l->n_damaged > NAMED) nb_strbuf_addf(&text, "; %zu more", l->n_damaged - NAMED);
    nb_warn("%s: damaged and left out: line %s%s", l->path, text.text, then);
}

static int open_lines(struct lines *l, const char *path) {
    *l = (struct lines){.path = path, .f = nb_file_open(path, largest_file)};
    return l->f ? 0 : -1;
}

static void close_lines(struct lines *l) {
    if (l->f) fclose(l->f);
    free(l->text);
    free(l->damaged);
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

/* One writer at a time, for as long as the file is open. */
static int lock(const struct nb_journal *j) {
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EWOULDBLOCK)
        return nb_error("%s: another run is writing here; use another --out, or wait until it ends", j->path);
    return nb_error("%s: cannot be locked: %s", j->path, strerror(errno));
}

/* A run that was killed before it wrote its first line left an empty file, which no run needs. */
int nb_journal_create(struct nb_journal *j, const char *dir) {
    *j = (struct nb_journal){.fd = -1};
    if (nb_dir_make(dir) != 0) return -1;
    struct stat st;
    j->path = nb_path_join(dir, NB_JOURNAL_FILE);
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
    int result = -1;
    if (j->fd < 0 || fstat(j->fd, &st) != 0)
        nb_error("%s: %s", j->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        nb_error("%s: is not a file; use another --out", j->path);
    else if (lock(j) == 0 && fstat(j->fd, &st) == 0)
        result =
            st.st_size == 0 && !nb_dir_holds(dir, "results.json")
                ? 0
                : nb_error("%s: already holds a run; use another --out, or continue it with --resume %s", dir, dir);
    if (result != 0) nb_journal_close(j);
    return result;
}

/* Damaged lines are overwritten with blanks, which no reader sees; a torn last one is cut off. */
static int take_out(const struct lines *l, int fd) {
    bool lacks_newline = l->is_open;
    for (size_t i = 0; i < l->n_damaged; i++) {
        const struct damaged_line *d = &l->damaged[i];
        char *blanks freed = nb_alloc(d->n + 1, 1);
        memset(blanks, ' ', d->n);
        const bool done = d->is_torn ? ftruncate(fd, d->at) == 0 : pwrite(fd, blanks, d->n, d->at) == (ssize_t)d->n;
        if (!done) return -1;
        lacks_newline &= !d->is_torn;
    }
    if (lacks_newline && pwrite(fd, "\n", 1, l->at) != 1) return -1;
    return fdatasync(fd);
}

/* What is not whole is taken out, so that what it held is missing, and measured again. */
static int mend(const struct nb_journal *j) {
    struct lines l;
    cJSON *line;
    int result = open_lines(&l, j->path);
    for (; result == 0 && (result = next_line(&l, &line)) > 0; result = 0) cJSON_Delete(line);
    const int fd = result == 0 ? open(j->path, O_WRONLY | O_CLOEXEC) : -1; /* one that appends could not overwrite */
    if (result == 0 && (fd < 0 || take_out(&l, fd) != 0)) result = nb_error("%s: %s", j->path, strerror(errno));
    if (fd >= 0) close(fd);
    if (result == 0) say_damage(&l, "; what is missing is measured again");
    close_lines(&l);
    return result;
}

int nb_journal_append_to(struct nb_journal *j, const char *dir) {
    *j = (struct nb_journal){.fd = -1};
    j->path = nb_path_join(dir, NB_JOURNAL_FILE);
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC);
    int result = j->fd < 0 ? nb_error("%s: %s; there is no run to continue", j->path, strerror(errno)) : lock(j);
    if (result == 0) result = mend(j);
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
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    struct stat before;
    nb_json_print(line, &text);
    add_sum(&text);
    nb_strbuf_add(&text, "\n");
    if (strcmp(nb_json_get_text(line, "type"), "run") == 0) { /* twice, since nothing can be read without it */
        const size_t once = text.len;
        char *copy freed = nb_strdup(text.text);
        nb_strbuf_addn(&text, copy, once);
    }
    int result = fstat(j->fd, &before);
    if (result == 0) {
        result = write_all(j->fd, text.text, text.len);
        if (result == 0) result = fdatasync(j->fd);
        int why = errno;
        /* A half line followed by the next one would be damage like any other to a reader. */
        if (result != 0 && ftruncate(j->fd, before.st_size) != 0) nb_warn("%s: ends in half a line", j->path);
        errno = why;
    }
    return result == 0 ? 0 : nb_error("%s: %s", j->path, strerror(errno));
}

int nb_journal_write_answer(struct nb_journal *j, const cJSON *answer) {
    cJSON *line released_by(nb_json_release) = cJSON_CreateObject();
    nb_json_text(line, "type", "answer");
    cJSON_AddItemToObject(line, "answer", cJSON_Duplicate(answer, true));
    return nb_journal_write(j, line);
}

void nb_journal_close(struct nb_journal *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    *j = (struct nb_journal){.fd = -1};
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

static int read_lines(const char *dir, int (*visit)(const cJSON *line, void *arg), void *arg, bool says_damage) {
    char *path freed = nb_path_join(dir, NB_JOURNAL_FILE);
    struct lines l;
    cJSON *line;
    int result = open_lines(&l, path), next = 0;
    while (result == 0 && (next = next_line(&l, &line)) > 0) {
        if ((result = visit(line, arg)) < 0) nb_error("%s:%zu: this line cannot be used", path, l.number);
        cJSON_Delete(line);
    }
    if (says_damage && result == 0 && next == 0) say_damage(&l, "; --resume measures again what is missing");
    close_lines(&l);
    return result < 0 || next < 0 ? -1 : 0;
}

int nb_journal_read(const char *dir, int (*visit)(const cJSON *line, void *arg), void *arg) {
    return read_lines(dir, visit, arg, true);
}

static int take_floors(const cJSON *line, void *floors) {
    if (nb_json_is(line, "type", "run")) nb_floors_from_json(floors, nb_json_get(line, "floors"));
    if (nb_json_is(line, "type", "launch")) nb_floors_take_line(floors, line);
    return 0;
}

int nb_journal_floors(const char *dir, struct nb_floors *f) { return read_lines(dir, take_floors, f, false); }

/* ---- what a case has from its kernel ------------------------------------------------------------------------------ */

#define K(field, names) NB_MEMBER_NAMED(struct nb_case, field, names)
static const struct nb_member kernel_members[] = {K(op, nb_op_names),
                                                  K(pass, nb_pass_names),
                                                  K(dtype, nb_dtype_names),
                                                  K(width, nb_width_names),
                                                  K(style, nb_style_names),
                                                  K(stats, nb_stats_names),
                                                  K(stats_dtype, nb_stats_dtype_names),
                                                  K(variance, nb_variance_names),
                                                  NB_MEMBERS_END};

/* A plugin may call its variants as it likes: where theirs does not follow from the kernel's name, that is kept too. */
static void add_kernel_name(cJSON *object, const struct nb_case *c) {
    struct nb_case unnamed = *c;
    unnamed.kernel[0] = '\0';
    char *name freed = nb_kernel_text(&unnamed);
    if (c->kernel[0] && strcmp(c->kernel, name) != 0) nb_json_text(object, "kernel", c->kernel);
}

void nb_kernel_fields_to_json(cJSON *object, const struct nb_case *c) {
    char *backend freed = nb_case_axis_text(c, "backend");
    nb_json_text(object, "variant", c->variant);
    add_kernel_name(object, c);
    nb_json_text(object, "backend", backend);
    nb_json_add_members(object, kernel_members, c);
    if (c->op != NB_OP_COPY) return;
    nb_json_number(object, "copy_loads", c->copy_loads);
    nb_json_number(object, "copy_stores", c->copy_stores);
}

int nb_kernel_fields_from_json(struct nb_case *c, const cJSON *object) {
    const char *variant = nb_json_get_text(object, "variant"), *backend = nb_json_get_text(object, "backend"),
               *kernel = nb_json_get_text(object, "kernel");
    if (!variant || strlen(variant) >= sizeof c->variant) return nb_error("\"variant\" is missing or too long");
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    snprintf(c->kernel, sizeof c->kernel, "%s", kernel ? kernel : "");
    const int named = backend ? nb_name_find(nb_backend_names, backend) : -1; /* -1: a plugin's, on the CPU */
    c->backend = named > 0 ? (uint32_t)named : NB_BACKEND_CPU;
    c->is_peer = backend && nb_peer_is(backend);
    if (nb_json_get_members(object, kernel_members, c, variant) != 0) return -1;
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
    if (nb_plan_is_adaptive(plan)) {
        nb_json_number(json, "most_launches", plan->most_launches);
        nb_json_number(json, "aim", plan->aim);
    }
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
    cJSON *json = nb_json_add_object(kernels);
    nb_kernel_fields_to_json(json, c);
    nb_text_map_add(known, nb_json_get_text(json, "variant"), 0);
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
    cJSON *json = nb_json_add_object(groups);
    nb_json_number(json, "index", (double)group->index);
    nb_json_number(json, "part", group->part);
    if (group->single_width) nb_json_number(json, "family", (double)group->family);
    cJSON *keys = cJSON_AddArrayToObject(json, "keys");
    for (size_t i = 0; i < group->n; i++) cJSON_AddItemToArray(keys, cJSON_CreateString(plan->keys[group->cases[i]]));
    nb_json_number(json, "reference", (double)group->reference);
    if (plan->labels.n > 0) add_labels(json, plan, group);
}

static void add_skip(cJSON *skips, const struct nb_skip *skip) {
    cJSON *json = nb_json_add_object(skips);
    nb_json_text(json, "reason", skip->reason);
    nb_json_number(json, "count", (double)skip->n);
    if (skip->key) nb_json_text(json, "key", skip->key);
}

/* [{"name","source","text"}] */
static cJSON *labels_to_json(const struct nb_labels *labels) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < labels->n; i++) {
        cJSON *label = nb_json_add_object(list);
        nb_json_text(label, "name", labels->items[i].name);
        nb_json_text(label, "source", labels->items[i].source);
        nb_json_text(label, "text", labels->items[i].text);
    }
    return list;
}

void nb_journal_add_plan(cJSON *run, const struct nb_plan *plan, int shard, int n_shards) {
    add_head(run, plan, shard, n_shards);
    cJSON *kernels = cJSON_AddArrayToObject(run, "kernels");
    struct nb_text_map known released_by(nb_text_map_release) = {0};
    for (size_t i = 0; i < plan->n_cases; i++) add_kernel(kernels, &known, &plan->cases[i]);
    if (plan->labels.n > 0) cJSON_AddItemToObject(run, "labels", labels_to_json(&plan->labels));
    cJSON *groups = cJSON_AddArrayToObject(run, "groups"), *skips = cJSON_AddArrayToObject(run, "skips");
    for (size_t i = 0; i < plan->n_groups; i++) add_group(groups, plan, &plan->groups[i]);
    for (size_t i = 0; i < plan->skips.n; i++) {
        if (plan->skips.items[i].key) add_skipped_kernel(kernels, &known, plan->skips.items[i].key);
        add_skip(skips, &plan->skips.items[i]);
    }
}
