// SPDX-License-Identifier: Apache-2.0
/* Launch lines of a journal, by case. */
#include "src/record/launch_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/paired.h"

static struct nb_case_launches *find(const struct nb_launch_times *t, const cJSON *key) {
    const size_t at = cJSON_IsString(key) ? nb_text_map_find(&t->index, key->valuestring) : NB_NOWHERE;
    return at == NB_NOWHERE ? NULL : &t->cases[at];
}

/* A reference case stands in every part of its group, and is reported in the first. */
static void take_groups(struct nb_launch_times *t, const cJSON *line) {
    const cJSON *group, *key;
    double number = 0;
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(line, "groups")) {
        cJSON_ArrayForEach(key, cJSON_GetObjectItemCaseSensitive(group, "keys")) {
            struct nb_case_launches *c = find(t, key);
            if (c && isnan(c->group)) c->group = number;
        }
        number++;
    }
}

static int take_case(struct nb_case_launches *c, const cJSON *json, double cpu_per_wall) {
    struct nb_samples samples;
    const int result = nb_samples_from_json(&samples, json);
    const double median = nb_samples_median(&samples);
    if (result == 0 && isfinite(median)) {
        const double per_sample = nb_json_get_number(json, "per_sample");
        const double rows = nb_json_get_bool(json, "chunked") && c->rows > 0 ? (double)c->rows : 1;
        size_t n = 0;
        for (size_t b = 0; b < samples.n; b++) n += isfinite(samples.ns[b]) != 0;
        c->launches = nb_realloc(c->launches, c->n + 1, sizeof *c->launches);
        c->launches[c->n++] = (struct nb_launch_time){median, median * cpu_per_wall, (double)n * per_sample / rows};
    }
    nb_samples_release(&samples);
    return result;
}

static int take_launch(struct nb_launch_times *t, const cJSON *line) {
    const cJSON *noise = cJSON_GetObjectItemCaseSensitive(line, "noise"), *item;
    const double group = nb_json_get_number(line, "group");
    const double wall = nb_json_get_number(noise, "wall_s"), cpu = nb_json_get_number(noise, "cpu_s");
    const double cpu_per_wall = wall > 0 && cpu > 0 ? cpu / wall : (double)NAN;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(line, "cases")) {
        struct nb_case_launches *c = find(t, cJSON_GetObjectItemCaseSensitive(item, "key"));
        if (c && c->group == group && take_case(c, item, cpu_per_wall) != 0) return -1;
    }
    return 0;
}

static int take_line(const cJSON *line, void *arg) {
    const char *type = nb_json_get_text(line, "type");
    if (type && strcmp(type, "run") == 0) take_groups(arg, line);
    return type && strcmp(type, "launch") == 0 ? take_launch(arg, line) : 0;
}

int nb_launch_times_read(struct nb_launch_times *t, const struct nb_results *results) {
    *t = (struct nb_launch_times){.cases = nb_alloc(results->n + 1, sizeof *t->cases), .n = results->n};
    for (size_t i = 0; i < results->n; i++) {
        t->cases[i].group = NAN;
        t->cases[i].rows = results->records[i].c.shape.rows;
        if (results->records[i].key) nb_text_map_add(&t->index, results->records[i].key, i);
    }
    if (!results->dir) return 0;
    char *path = nb_path_join(results->dir, NB_JOURNAL_FILE);
    const int result = nb_path_exists(path) ? nb_journal_read(results->dir, take_line, t) : 0;
    free(path);
    return result;
}

void nb_launch_times_release(struct nb_launch_times *t) {
    for (size_t i = 0; i < t->n; i++) free(t->cases[i].launches);
    free(t->cases);
    nb_text_map_release(&t->index);
    *t = (struct nb_launch_times){0};
}
