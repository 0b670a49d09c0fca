// SPDX-License-Identifier: Apache-2.0
/* A launch line is taken in whole or not at all: first all its samples are read, then paired. */
#include "src/record/fold_launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

struct nb_fold_group *nb_fold_find_group(struct nb_fold *f, const cJSON *line) {
    double group = nb_json_get_number(line, "group");
    if (group >= 0 && group < (double)f->n_groups && group == floor(group)) return &f->groups[(size_t)group];
    nb_error("\"group\" is not the number of a group, 0 to %zu", f->n_groups - (f->n_groups > 0));
    return NULL;
}

struct nb_fold_arm *nb_fold_find_arm(struct nb_fold_group *group, const cJSON *json) {
    const char *key = nb_json_get_text(json, "key");
    for (size_t i = 0; key && i < group->n; i++) {
        if (strcmp(group->arms[i].key, key) == 0) return &group->arms[i];
    }
    nb_error("\"%s\" is no case of group %d", key ? key : "(no key)", group->index);
    return NULL;
}

/* One entry of "cases" or "copies". */
struct timed {
    const cJSON *json;
    struct nb_fold_arm *arm; /* null for a copy */
    double *ns;
    bool *contaminated;
};
struct launch_line {
    struct timed *entries; /* cases first, then copies */
    size_t n, n_cases, n_blocks;
    struct nb_launch_noise noise;
};

static int read_samples(struct launch_line *l, struct timed *t) {
    const cJSON *samples = cJSON_GetObjectItemCaseSensitive(t->json, "sample_ns"), *item;
    size_t n = (size_t)cJSON_GetArraySize(samples), block = 0;
    if (t == l->entries) l->n_blocks = n;
    if (n != l->n_blocks) return nb_error("%zu samples beside %zu of the other arms", n, l->n_blocks);
    t->ns = nb_alloc(n, sizeof *t->ns);
    t->contaminated = nb_alloc(n, sizeof *t->contaminated);
    cJSON_ArrayForEach(item, samples) {
        bool time = cJSON_IsNumber(item) && item->valuedouble > 0 && isfinite(item->valuedouble);
        if (!time && !cJSON_IsNull(item)) return nb_error("a sample's time is neither positive nor null");
        t->ns[block++] = time ? item->valuedouble : (double)NAN;
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(t->json, "contaminated")) {
        double at = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(at >= 0 && at < (double)n && at == floor(at))) return nb_error("\"contaminated\" names no block");
        t->contaminated[(size_t)at] = true;
    }
    return 0;
}

static int read_entries(struct launch_line *l, struct nb_fold_group *group, const cJSON *line) {
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(line, "cases"), *item;
    const cJSON *copies = cJSON_GetObjectItemCaseSensitive(line, "copies");
    l->n_cases = (size_t)cJSON_GetArraySize(cases);
    l->entries = nb_alloc(l->n_cases + (size_t)cJSON_GetArraySize(copies), sizeof *l->entries);
    cJSON_ArrayForEach(item, cases) {
        struct timed *t = &l->entries[l->n++];
        *t = (struct timed){.json = item, .arm = nb_fold_find_arm(group, item)};
        if (!t->arm || read_samples(l, t) != 0) return -1;
    }
    cJSON_ArrayForEach(item, copies) {
        struct timed *t = &l->entries[l->n++];
        *t = (struct timed){.json = item};
        if (!nb_json_get_text(item, "variant")) return nb_error("a copy without \"variant\"");
        if (read_samples(l, t) != 0) return -1;
    }
    return 0;
}

static struct nb_samples samples_of(const struct launch_line *l, const struct timed *t) {
    return (struct nb_samples){t->ns, t->contaminated, l->n_blocks};
}

static const struct timed *find_copy(const struct launch_line *l, const char *variant) {
    for (size_t i = l->n_cases; variant && i < l->n; i++) {
        if (strcmp(nb_json_get_text(l->entries[i].json, "variant"), variant) == 0) return &l->entries[i];
    }
    return NULL;
}

static const struct timed *find_reference(const struct launch_line *l, const struct nb_fold_group *group) {
    for (size_t i = 0; i < l->n_cases; i++) {
        if (l->entries[i].arm == &group->arms[group->reference]) return &l->entries[i];
    }
    return NULL;
}

/* A launch counts once: a second line about it would give one process the weight of two. */
static int mark_seen(struct nb_fold_arm *arm, int launch) {
    for (int i = 0; i < arm->n_seen; i++) {
        if (arm->seen[i] == launch) return nb_error("%s: launch %d a second time", arm->key, launch);
    }
    arm->seen = nb_realloc(arm->seen, (unsigned)arm->n_seen + 1, sizeof *arm->seen);
    arm->seen[arm->n_seen++] = launch;
    return 0;
}

static int add_case(const struct launch_line *l, const struct nb_fold_group *group, const struct timed *t, int launch) {
    const char *variant = nb_json_get_text(t->json, "copy");
    const struct timed *copy = find_copy(l, variant), *reference = find_reference(l, group);
    if (variant && !copy) return nb_error("%s: its copy %s is not among \"copies\"", t->arm->key, variant);
    if (variant && nb_json_copy_text(t->arm->copy, sizeof t->arm->copy, t->json, "copy") != 0) return -1;
    if (mark_seen(t->arm, launch) != 0) return -1;
    struct nb_samples own = samples_of(l, t), copies = {0}, references = {0};
    if (copy) copies = samples_of(l, copy);
    if (reference) references = samples_of(l, reference);
    const size_t before = t->arm->launches.n;
    nb_launches_add(&t->arm->launches, &own, copy ? &copies : NULL, reference ? &references : NULL, &l->noise);
    const char *level = nb_json_get_text(t->json, "level");
    if (level && t->arm->launches.n > before)
        nb_launches_bound(&t->arm->launches, nb_json_get_number(t->json, "core_ns"), level);
    t->arm->chunked = nb_json_get_bool(t->json, "chunked");
    t->arm->per_sample = nb_json_get_number(t->json, "per_sample");
    return 0;
}

static void release_line(struct launch_line *l) {
    for (size_t i = 0; i < l->n; i++) {
        free(l->entries[i].ns);
        free(l->entries[i].contaminated);
    }
    free(l->entries);
}

int nb_fold_launch(struct nb_fold *f, const cJSON *line) {
    struct launch_line l = {0};
    struct nb_fold_group *group = nb_fold_find_group(f, line);
    double launch = nb_json_get_number(line, "launch");
    const cJSON *noise = cJSON_GetObjectItemCaseSensitive(line, "noise");
    if (!group) return -1;
    if (!(launch >= 0 && launch < f->launches && launch == floor(launch)))
        return nb_error("\"launch\" is not the number of one of %d launches", f->launches);
    l.noise = (struct nb_launch_noise){
        .steal_ms = nb_json_get_number(noise, "steal_ms"),
        .involuntary = nb_json_get_number(noise, "involuntary"),
        .wall_s = nb_json_get_number(noise, "wall_s"),
        .cpu_s = nb_json_get_number(noise, "cpu_s"),
    };
    int result = read_entries(&l, group, line);
    for (size_t i = 0; result == 0 && i < l.n_cases; i++) result = add_case(&l, group, &l.entries[i], (int)launch);
    release_line(&l);
    return result;
}
