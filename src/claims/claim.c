// SPDX-License-Identifier: Apache-2.0
/* What a claim holds, what machines may lack, and how a claim is read. */
#include "src/claims/claim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/measure/counters.h"

static void release_reading(struct nb_reading *r) {
    free(r->id);
    free(r->text);
    nb_strings_release(&r->needs);
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_release(&r->rules[i]);
    free(r->rules);
}

void nb_claim_release(struct nb_claim *c) {
    for (size_t i = 0; i < c->n_sources; i++) {
        free(c->sources[i].cite);
        free(c->sources[i].says);
        free(c->sources[i].note);
    }
    for (size_t i = 0; i < c->n_experiments; i++) nb_experiment_release(&c->experiments[i]);
    for (size_t i = 0; i < c->n_readings; i++) release_reading(&c->readings[i]);
    for (size_t i = 0; i < c->n_sensitivities; i++) {
        free(c->sensitivities[i].axis);
        free(c->sensitivities[i].reading);
        free(c->sensitivities[i].text);
    }
    free(c->sources);
    free(c->experiments);
    free(c->readings);
    free(c->sensitivities);
    free(c->id);
    free(c->path);
    free(c->title);
    free(c->statement);
    free(c->scope);
    free(c->correction);
    free(c->remark);
    *c = (struct nb_claim){0};
}

const struct nb_reading *nb_claim_reading(const struct nb_claim *c, const char *id) {
    for (size_t i = 0; i < c->n_readings; i++)
        if (strcmp(c->readings[i].id, id) == 0) return &c->readings[i];
    return NULL;
}

/* A kernel on a device comes from a table of its own, as a plugin's does. */
static const char *lacks_gpu(void) {
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const char *plugin = nb_registry_at(i)->plugin;
        if (plugin && strncmp(plugin, "cuda", 4) == 0) return NULL;
    }
    return "a GPU: no kernel that is loaded here runs on one";
}

static const char *lacks_counters(void) {
    return nb_counters_have_hardware() ? NULL : "hardware counters (a PMU), which this machine does not offer";
}

static const struct need {
    const char *name;
    const char *(*lacks)(void);
} needs[] = {{"gpu", lacks_gpu}, {"hardware_counters", lacks_counters}};
enum { N_NEEDS = sizeof needs / sizeof needs[0] };

static const struct need *find_need(const char *name) {
    for (int i = 0; i < N_NEEDS; i++)
        if (strcmp(needs[i].name, name) == 0) return &needs[i];
    return NULL;
}

const char *nb_claim_lacks(const char *need) {
    const struct need *known = find_need(need);
    assert(known);
    return known->lacks();
}

/* ---- reading, strictly: a key that is silently ignored would make a claim that nobody made ---- */

enum { MAX_ENTRIES = 100 };

/* The entries of a list of objects; -1 after nb_error. */
static int count_entries(const struct nb_jsonc *file, const cJSON *node, size_t *n) {
    *n = (size_t)cJSON_GetArraySize(node);
    if (!cJSON_IsArray(node) || *n == 0 || *n > MAX_ENTRIES)
        return nb_jsonc_wrong_type(file, node, node->string, "a list of 1 to 100 entries");
    return 0;
}

static int read_sources(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {
        {"cite", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim_source, cite), .required = true},
        {"says", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim_source, says)},
        {"note", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim_source, note)}};
    struct nb_claim *c = into;
    size_t n;
    if (count_entries(file, node, &n) != 0) return -1;
    c->sources = nb_alloc(n, sizeof *c->sources);
    for (const cJSON *item = node->child; item; item = item->next)
        if (nb_fields_read(file, item, fields, 3, "a source", &c->sources[c->n_sources++]) != 0) return -1;
    return 0;
}

static int read_experiments(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_claim *c = into;
    if (!cJSON_IsObject(node) || !node->child)
        return nb_jsonc_wrong_type(file, node, node->string, "an object: a name for each experiment");
    c->experiments = nb_alloc((unsigned)cJSON_GetArraySize(node), sizeof *c->experiments);
    for (const cJSON *item = node->child; item; item = item->next) {
        for (size_t i = 0; i < c->n_experiments; i++)
            if (strcmp(c->experiments[i].name, item->string) == 0) return nb_jsonc_twice(file, item);
        if (nb_experiment_read(&c->experiments[c->n_experiments++], c->id, file, item) != 0) return -1;
    }
    return 0;
}

/* ---- readings ---- */

struct written_reading {
    struct nb_reading reading;
    char *experiment; /* its name */
};
#define OF_READING(member) offsetof(struct written_reading, reading.member)

static int read_expect(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_reading *r = &((struct written_reading *)into)->reading;
    size_t n;
    if (count_entries(file, node, &n) != 0) return -1;
    r->rules = nb_alloc(n, sizeof *r->rules);
    for (const cJSON *item = node->child; item; item = item->next)
        if (nb_rule_read(&r->rules[r->n_rules++], file, item) != 0) return -1;
    return 0;
}

static int read_needs(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_reading *r = &((struct written_reading *)into)->reading;
    if (nb_strings_read(file, node, &r->needs) != 0) return -1;
    for (size_t i = 0; i < r->needs.n; i++)
        if (!find_need(r->needs.items[i]))
            return nb_error("%s:%d: \"needs\": '%s' is none of gpu, hardware_counters", file->path,
                            nb_jsonc_line(file, node), r->needs.items[i]);
    return 0;
}

static int resolve_experiment(const struct nb_claim *c, const char *name, size_t *at) {
    for (*at = 0; *at < c->n_experiments; ++*at)
        if (strcmp(c->experiments[*at].name, name) == 0) return 0;
    return -1;
}

static int read_reading(const struct nb_jsonc *file, const cJSON *node, struct nb_claim *c, struct nb_reading *r) {
    static const struct nb_field fields[] = {
        {"id", NB_FIELD_TEXT, .offset = OF_READING(id), .required = true},
        {"text", NB_FIELD_TEXT, .offset = OF_READING(text), .required = true},
        {"experiment", NB_FIELD_TEXT, .offset = offsetof(struct written_reading, experiment), .required = true},
        {"expect", NB_FIELD_READ, .required = true, .read = read_expect},
        {"needs", NB_FIELD_READ, .read = read_needs},
        {"alternative", NB_FIELD_BOOL, .offset = OF_READING(alternative)}};
    struct written_reading w = {0};
    int result = nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a reading", &w);
    *r = w.reading;
    if (result == 0 && resolve_experiment(c, w.experiment, &r->experiment) != 0)
        result = nb_error("%s:%d: \"experiment\": '%s' is not among this claim's \"experiments\"", file->path,
                          nb_jsonc_line(file, node), w.experiment);
    free(w.experiment);
    return result;
}

static int read_readings(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_claim *c = into;
    size_t n;
    if (count_entries(file, node, &n) != 0) return -1;
    if (c->n_experiments == 0)
        return nb_error("%s:%d: \"readings\" stand behind \"experiments\"", file->path, nb_jsonc_line(file, node));
    c->readings = nb_alloc(n, sizeof *c->readings);
    for (const cJSON *item = node->child; item; item = item->next) {
        struct nb_reading *r = &c->readings[c->n_readings++];
        if (read_reading(file, item, c, r) != 0) return -1;
        if (nb_claim_reading(c, r->id) != r)
            return nb_error("%s:%d: reading '%s' is there twice", file->path, nb_jsonc_line(file, item), r->id);
    }
    return 0;
}

/* ---- sensitivity ---- */

static int read_sensitivity(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {
        {"axis", NB_FIELD_TEXT, .offset = offsetof(struct nb_sensitivity, axis), .required = true},
        {"reading", NB_FIELD_TEXT, .offset = offsetof(struct nb_sensitivity, reading)},
        {"text", NB_FIELD_TEXT, .offset = offsetof(struct nb_sensitivity, text)}};
    struct nb_claim *c = into;
    size_t n;
    if (count_entries(file, node, &n) != 0) return -1;
    c->sensitivities = nb_alloc(n, sizeof *c->sensitivities);
    for (const cJSON *item = node->child; item; item = item->next) {
        struct nb_sensitivity *s = &c->sensitivities[c->n_sensitivities++];
        if (cJSON_IsString(item) && *item->valuestring) {
            s->axis = nb_strdup(item->valuestring);
            continue;
        }
        if (nb_fields_read(file, item, fields, 3, "an entry of \"sensitivity\"", s) != 0) return -1;
    }
    return 0;
}

/* ---- the whole ---- */

static int check(const struct nb_claim *c, const struct nb_jsonc *file) {
    bool decides = false;
    for (size_t i = 0; i < c->n_readings; i++) decides |= !c->readings[i].alternative;
    if (!decides && !c->correction)
        return nb_error(
            "%s: needs a reading that is no \"alternative\", or a \"correction\" where nothing can be measured",
            file->path);
    for (size_t i = 0; i < c->n_sensitivities; i++)
        if (c->sensitivities[i].reading && !nb_claim_reading(c, c->sensitivities[i].reading))
            return nb_error("%s: \"sensitivity\": there is no reading '%s'", file->path, c->sensitivities[i].reading);
    return 0;
}

/* "dir/speed-fused.json" -> "speed-fused". */
static char *id_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *id = nb_strdup(slash ? slash + 1 : path);
    const size_t n = strlen(id);
    if (n > 5 && strcmp(id + n - 5, ".json") == 0) id[n - 5] = '\0';
    return id;
}

static int read_claim(struct nb_claim *c, const struct nb_jsonc *file) {
    static const struct nb_field fields[] = {
        {"title", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim, title), .required = true},
        {"statement", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim, statement), .required = true},
        {"sources", NB_FIELD_READ, .required = true, .read = read_sources},
        {"scope", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim, scope), .required = true},
        {"experiments", NB_FIELD_READ, .read = read_experiments},
        {"readings", NB_FIELD_READ, .read = read_readings},
        {"sensitivity", NB_FIELD_READ, .read = read_sensitivity},
        {"correction", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim, correction)},
        {"remark", NB_FIELD_TEXT, .offset = offsetof(struct nb_claim, remark)}};
    *c = (struct nb_claim){.path = nb_strdup(file->path), .id = id_of(file->path)};
    int result = nb_fields_read(file, file->root, fields, sizeof fields / sizeof fields[0], "a claim", c);
    if (result == 0) result = check(c, file);
    if (result != 0) nb_claim_release(c);
    return result;
}

int nb_claim_parse(struct nb_claim *claim, const char *path, const char *text, size_t len) {
    struct nb_jsonc file;
    *claim = (struct nb_claim){0};
    if (nb_jsonc_parse(&file, path, text, len) != 0) return -1;
    const int result = read_claim(claim, &file);
    nb_jsonc_release(&file);
    return result;
}

int nb_claim_read_file(struct nb_claim *claim, const char *path) {
    struct nb_jsonc file;
    *claim = (struct nb_claim){0};
    if (nb_jsonc_read(&file, path) != 0) return -1;
    const int result = read_claim(claim, &file);
    nb_jsonc_release(&file);
    return result;
}
