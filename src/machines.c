// SPDX-License-Identifier: Apache-2.0
/* Fingerprints side by side, path by path. */
#include "src/machines.h"

#include <stdbool.h>

#include "src/json.h"
#include "src/log.h"

static void add_difference(cJSON *differs, const char *path, const cJSON *here, const cJSON *first) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s: ", path);
    nb_json_print(here, &text);
    nb_strbuf_add(&text, ", first machine ");
    nb_json_print(first, &text);
    cJSON_AddItemToArray(differs, cJSON_CreateString(text.text));
    nb_strbuf_release(&text);
}

static void compare(cJSON *differs, const char *path, const cJSON *here, const cJSON *first);

static void compare_member(cJSON *differs, const char *path, const char *name, const cJSON *here, const cJSON *first) {
    struct nb_strbuf inner = {0};
    nb_strbuf_addf(&inner, "%s%s%s", path, *path ? "." : "", name);
    compare(differs, inner.text, cJSON_GetObjectItemCaseSensitive(here, name),
            cJSON_GetObjectItemCaseSensitive(first, name));
    nb_strbuf_release(&inner);
}

/* Objects by their members, those of both sides; all else as a whole. A missing value prints as null. */
static void compare(cJSON *differs, const char *path, const cJSON *here, const cJSON *first) {
    const cJSON *child;
    if (cJSON_Compare(here, first, true) || (!here && !first)) return;
    if (!cJSON_IsObject(here) || !cJSON_IsObject(first)) {
        add_difference(differs, path, here, first);
        return;
    }
    cJSON_ArrayForEach(child, here) compare_member(differs, path, child->string, here, first);
    cJSON_ArrayForEach(child, first) {
        if (!cJSON_GetObjectItemCaseSensitive(here, child->string))
            compare_member(differs, path, child->string, here, first);
    }
}

int nb_machine_index(cJSON *machines, const cJSON *fingerprint) {
    int index = 0;
    const cJSON *machine;
    cJSON_ArrayForEach(machine, machines) {
        if (cJSON_Compare(cJSON_GetObjectItemCaseSensitive(machine, "fingerprint"), fingerprint, true)) return index;
        index++;
    }
    cJSON *json = cJSON_CreateObject(), *differs = cJSON_CreateArray();
    const cJSON *first = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(machines, 0), "fingerprint");
    if (first) compare(differs, "", fingerprint, first);
    cJSON_AddItemToObject(json, "fingerprint", cJSON_Duplicate(fingerprint, true));
    cJSON_AddItemToObject(json, "differs", differs);
    cJSON_AddItemToArray(machines, json);
    return index;
}
