// SPDX-License-Identifier: Apache-2.0
#include "src/record/old_names.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/text.h"
#include "src/record/journal.h"

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

bool nb_schema_readable(const char *schema) {
    return schema && atoi(schema) >= 1 && atoi(schema) <= atoi(NB_SCHEMA_VERSION);
}

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

void nb_rename_old(cJSON *json, int schema_major) {
    if (schema_major < atoi(NB_SCHEMA_VERSION)) rename_all(json);
}
