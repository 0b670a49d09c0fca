// SPDX-License-Identifier: Apache-2.0
/* A job as text and back. Cases travel as keys: whatever a worker needs to know stands in them. */
#include "src/measure/job.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/json_members.h"
#include "src/core/log.h"
#include "src/core/tuning.h"

#define NB_JOB_ENTRY(name) extern const struct nb_job_type nb_##name##_job;
#include "job_list.h"
#undef NB_JOB_ENTRY

static const struct {
    const char *kind;
    const struct nb_job_type *type;
} types[] = {
#define NB_JOB_ENTRY(name) {#name, &nb_##name##_job},
#include "job_list.h"
#undef NB_JOB_ENTRY
};

/* Null: no such kind. */
static const struct nb_job_type *find_type(const char *kind) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(kind, types[i].kind) == 0) return types[i].type;
    return NULL;
}

#define J(KIND, field) NB_MEMBER(KIND, struct nb_job, field)
static const struct nb_member members[] = {
    J(BORROWED, kind),      J(INDEX, group),         J(INDEX, launch),    J(BOOL, check_only), J(BOOL, single_width),
    J(BORROWED, max_width), J(COUNT, blocks),        J(NUMBER, sample_s), J(UINT64, seed),     J(NUMBER, cold_bytes),
    J(INDEX, digests_at),   J(COUNT, digests_bytes), NB_MEMBERS_END};

static void add_texts(cJSON *object, const char *name, const char *const *texts, int n) {
    cJSON *array = cJSON_AddArrayToObject(object, name);
    for (int i = 0; i < n; i++) cJSON_AddItemToArray(array, cJSON_CreateString(texts[i]));
}

char *nb_job_print(const struct nb_job *job) {
    assert(find_type(job->kind));
    cJSON *json = nb_json_of_members(members, job);
    add_texts(json, "plugins", job->plugins, job->n_plugins);
    add_texts(json, "copies", job->copies, job->n_copies);
    if (nb_tuning_used()) cJSON_AddItemToObject(json, "tuning", nb_tuning_to_json(nb_tuning_used()));
    cJSON_AddItemToObject(json, "cpus", cJSON_CreateIntArray(job->cpus, job->n_cpus));
    if (job->options) cJSON_AddItemToObject(json, "options", cJSON_Duplicate(job->options, 1));
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (int i = 0; i < job->n_cases; i++) {
        cJSON *c = cJSON_CreateObject();
        nb_json_text(c, "key", job->keys[i]);
        cJSON_AddNumberToObject(c, "sample", job->samples[i]);
        cJSON_AddNumberToObject(c, "copy", job->copy_of ? job->copy_of[i] : -1);
        cJSON_AddBoolToObject(c, "step", job->steps && job->steps[i]);
        cJSON_AddItemToArray(cases, c);
    }
    struct nb_strbuf text = {0};
    nb_json_print(json, &text);
    cJSON_Delete(json);
    return text.text;
}

/* Texts of an array, borrowed. */
static const char **get_texts(const cJSON *json, const char *name, int *n) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, name), *item;
    *n = 0;
    const char **texts = nb_alloc((unsigned)cJSON_GetArraySize(array), sizeof *texts);
    cJSON_ArrayForEach(item, array) if (cJSON_IsString(item)) texts[(*n)++] = item->valuestring;
    return texts;
}

static int get_case(struct nb_job *job, int i, const cJSON *json) {
    job->keys[i] = nb_json_get_text(json, "key");
    job->samples[i] = (int)nb_json_get_number(json, "sample");
    job->copy_of[i] = (int)nb_json_get_number(json, "copy");
    job->steps[i] = nb_json_get_bool(json, "step");
    if (!job->keys[i] || nb_case_parse(&job->cases[i], job->keys[i]) != 0) return -1;
    job->entries[i] = nb_registry_find(job->cases[i].variant);
    if (!job->entries[i]) return nb_error("no kernel %s", job->cases[i].variant);
    nb_case_set_entry(&job->cases[i], job->entries[i]);
    return 0;
}

/* Before any case is read, since cases take it along. */
static int use_tuning(const cJSON *json) {
    struct nb_tuning tuning = {0};
    if (!json) return 0;
    if (nb_tuning_from_json(&tuning, json) != 0) return -1;
    nb_tuning_use(&tuning);
    return 0;
}

static int load_kernels(struct nb_job *job) {
    if (nb_registry_size() > 0) return 0; /* born of a fork server that has them */
    if (nb_registry_load_builtin() != 0) return -1;
    for (int i = 0; i < job->n_plugins; i++)
        if (nb_registry_load(job->plugins[i]) != 0) return -1;
    return 0;
}

int nb_job_read(struct nb_job *job, const char *text) {
    *job = (struct nb_job){.json = cJSON_Parse(text)};
    const cJSON *json = job->json, *item;
    const bool read = json && nb_json_get_members(json, members, job, "a worker's job") == 0;
    job->type = read && job->kind ? find_type(job->kind) : NULL;
    if (!job->type) return nb_error("a worker's job cannot be read");
    job->plugins = get_texts(json, "plugins", &job->n_plugins);
    job->copies = get_texts(json, "copies", &job->n_copies);
    job->options = cJSON_GetObjectItemCaseSensitive(json, "options");
    const cJSON *cpus = cJSON_GetObjectItemCaseSensitive(json, "cpus");
    job->cpus = nb_alloc((unsigned)cJSON_GetArraySize(cpus), sizeof(int));
    cJSON_ArrayForEach(item, cpus) job->cpus[job->n_cpus++] = item->valueint;
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(json, "cases");
    const unsigned n = (unsigned)cJSON_GetArraySize(cases);
    job->cases = nb_alloc(n, sizeof *job->cases);
    job->keys = nb_alloc(n, sizeof *job->keys);
    job->entries = nb_alloc(n, sizeof *job->entries);
    job->samples = nb_alloc(n, sizeof *job->samples);
    job->copy_of = nb_alloc(n, sizeof *job->copy_of);
    job->steps = nb_alloc(n, sizeof *job->steps);
    if (use_tuning(cJSON_GetObjectItemCaseSensitive(json, "tuning")) != 0 || load_kernels(job) != 0) return -1;
    cJSON_ArrayForEach(item, cases) if (get_case(job, job->n_cases++, item) != 0) return -1;
    return job->n_cases > 0 || job->type->no_cases ? 0 : nb_error("a worker's job has no case");
}

void nb_job_release(struct nb_job *job) {
    free(job->plugins);
    free(job->copies);
    free(job->cpus);
    free(job->cases);
    free(job->keys);
    free(job->entries);
    free(job->samples);
    free(job->copy_of);
    free(job->steps);
    cJSON_Delete(job->json);
    *job = (struct nb_job){0};
}
