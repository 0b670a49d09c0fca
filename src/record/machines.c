// SPDX-License-Identifier: Apache-2.0
/* Fingerprints side by side, path by path. */
#include "src/record/machines.h"

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/json_differences.h"

/* A missing value prints as null. */
static void add_difference(const char *path, const cJSON *here, const cJSON *first, void *differs) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s: ", path);
    nb_json_print(here, &text);
    nb_strbuf_add(&text, ", first machine ");
    nb_json_print(first, &text);
    cJSON_AddItemToArray(differs, cJSON_CreateString(text.text));
    nb_strbuf_release(&text);
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
    if (first) nb_json_differences(fingerprint, first, add_difference, differs);
    cJSON_AddItemToObject(json, "fingerprint", cJSON_Duplicate(fingerprint, true));
    cJSON_AddItemToObject(json, "differs", differs);
    cJSON_AddItemToArray(machines, json);
    return index;
}
