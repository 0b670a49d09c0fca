// SPDX-License-Identifier: Apache-2.0
#include "src/measure/known_counts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"

struct nb_known_count {
    char *what;
    cJSON *counter;
};

/* A library that is opened for more threads takes another way through the same call. */
static bool has_own_threads(const struct nb_case *c) {
    const struct nb_entry *entry = nb_registry_find(c->variant);
    return entry && entry->kernel->flags & NB_FLAG_OWN_THREADS;
}

/* The case with everything that the count does not depend on at its default. */
static char *what_decides(const struct nb_case *c) {
    struct nb_case plain = *c;
    struct nb_strbuf key = {0};
    struct nb_case defaults;
    nb_case_init(&defaults);
    plain.seed = defaults.seed;
    if (!has_own_threads(c)) plain.threads = defaults.threads;
    plain.cache = defaults.cache;
    plain.pad = defaults.pad;
    memcpy(plain.data, defaults.data, sizeof plain.data);
    memset(plain.shape.text, 0, sizeof plain.shape.text);
    nb_case_key(&plain, &key);
    nb_strbuf_addf(&key, " %u %lld", c->shape.layout, (long long)c->shape.cols);
    return key.text;
}

const cJSON *nb_known_counts_find(const struct nb_known_counts *known, const struct nb_case *c) {
    char *what freed = what_decides(c);
    const cJSON *found = NULL;
    for (size_t i = 0; i < known->n && !found; i++)
        if (strcmp(known->items[i].what, what) == 0) found = known->items[i].counter;
    return found;
}

void nb_known_counts_exchange(struct nb_known_counts *known, const struct nb_case *c, cJSON *answer) {
    cJSON *counters = nb_json_get(answer, "counters"), *counter;
    cJSON_ArrayForEach(counter, counters) {
        const char *name = nb_json_get_text(counter, "name");
        if (!name || strcmp(name, "instructions_exact") != 0) continue;
        *NB_PUSH(known->items, known->n) = (struct nb_known_count){what_decides(c), cJSON_Duplicate(counter, 1)};
        return;
    }
    const cJSON *found = nb_known_counts_find(known, c);
    if (found) cJSON_AddItemToArray(counters, cJSON_Duplicate(found, 1));
}

void nb_known_counts_release(struct nb_known_counts *known) {
    for (size_t i = 0; i < known->n; i++) {
        free(known->items[i].what);
        cJSON_Delete(known->items[i].counter);
    }
    free(known->items);
    *known = (struct nb_known_counts){0};
}
