// SPDX-License-Identifier: Apache-2.0
/* Answers of the search study: how far each case's kernel can be taken, its worst rows, its errors over scale and rho.
 *   {"type":"answer","case":i,"frontiers":[..],"worst":[..],"map":{..}}
 * as src/lab/stress/search.h has them; null, with "reason", where the op has none or the kernel failed. */
#include "src/measure/worker.h"

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/stress/search.h"

typedef cJSON *(*search_fn)(struct nb_trial *t, const cJSON *options);

static const struct {
    const char *name;
    search_fn search;
} searches[] = {
    {"frontiers", nb_frontiers},
    {"worst", nb_worst_case},
    {"map", nb_landscape},
};

/* Each search has a trial of its own: none finds the rows, parameters or eps that another left. */
static void answer_one(struct nb_workplace *w, int at, cJSON *answer, const char *name, search_fn search) {
    struct nb_trial t released_by(nb_trial_release);
    cJSON *found = NULL;
    if (nb_trial_init(&t, &w->job.cases[at], w->job.entries[at]) == 0) {
        t.worker = w;
        t.at = at;
        found = search(&t, w->job.options);
    }
    if (!found && !nb_json_get(answer, "reason")) nb_json_text(answer, "reason", t.reason);
    cJSON_AddItemToObject(answer, name, found ? found : cJSON_CreateNull());
}

static int search_job(struct nb_workplace *w) {
    for (int i = 0; i < w->job.n_cases; i++) {
        cJSON *answer = cJSON_CreateObject();
        nb_worker_at(w, i);
        nb_json_text(answer, "type", "answer");
        cJSON_AddNumberToObject(answer, "case", i);
        for (size_t s = 0; s < sizeof searches / sizeof searches[0]; s++)
            answer_one(w, i, answer, searches[s].name, searches[s].search);
        nb_worker_say(answer);
    }
    return 0;
}

const struct nb_job_type nb_search_job = {.work = search_job};
