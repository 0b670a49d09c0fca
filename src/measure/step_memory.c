// SPDX-License-Identifier: Apache-2.0
/* Known instruction counts, by what decides them. */
#include "src/measure/step_memory.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"

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

const cJSON *nb_step_memory_find(const struct nb_step_memory *m, const struct nb_case *c) {
    char *what = what_decides(c);
    const cJSON *found = NULL;
    for (size_t i = 0; i < m->n && !found; i++)
        if (strcmp(m->steps[i].what, what) == 0) found = m->steps[i].counter;
    free(what);
    return found;
}

void nb_step_memory_exchange(struct nb_step_memory *m, const struct nb_case *c, cJSON *answer) {
    cJSON *counters = cJSON_GetObjectItemCaseSensitive(answer, "counters"), *counter;
    cJSON_ArrayForEach(counter, counters) {
        const char *name = nb_json_get_text(counter, "name");
        if (!name || strcmp(name, "instructions_exact") != 0) continue;
        m->steps = nb_realloc(m->steps, m->n + 1, sizeof *m->steps);
        m->steps[m->n++] = (struct nb_step){what_decides(c), cJSON_Duplicate(counter, 1)};
        return;
    }
    const cJSON *known = nb_step_memory_find(m, c);
    if (known) cJSON_AddItemToArray(counters, cJSON_Duplicate(known, 1));
}

void nb_step_memory_release(struct nb_step_memory *m) {
    for (size_t i = 0; i < m->n; i++) {
        free(m->steps[i].what);
        cJSON_Delete(m->steps[i].counter);
    }
    free(m->steps);
    *m = (struct nb_step_memory){0};
}
