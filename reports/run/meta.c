// SPDX-License-Identifier: Apache-2.0
/* Texts out of a run's meta data, which may be partial. */
#include <stdio.h>
#include <string.h>

#include "reports/run/summary.h"

static const cJSON *at_path(const cJSON *json, const char *path) {
    char name[64];
    while (json && *path) {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        json = cJSON_GetObjectItemCaseSensitive(json, name);
        path += len + (path[len] == '.');
    }
    return json;
}

const char *nb_meta_text(const struct nb_results *results, const char *path) {
    const cJSON *item = at_path(results->meta, path);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Merged results of several machines have no CPU of their own. */
static const char *cpu_model(const struct nb_results *results) {
    const cJSON *machines = cJSON_GetObjectItemCaseSensitive(results->meta, "machines");
    if (cJSON_GetArraySize(machines) > 1) return "several machines";
    return nb_meta_text(results, "fingerprint.cpu.model");
}

void nb_meta_footer(const struct nb_results *results, struct nb_strbuf *out) {
    const char *cpu = cpu_model(results), *started = nb_meta_text(results, "started");
    int day = (int)strcspn(started, "T");
    nb_strbuf_addf(out, "%s%s%.*s", cpu, *cpu && day ? ", " : "", day, started);
}
