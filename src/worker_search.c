// SPDX-License-Identifier: Apache-2.0
/* Answers of the search study. */
#include "src/worker.h"

int nb_worker_search(struct nb_workplace *w) {
    for (int i = 0; i < w->job.n_cases; i++) {
        nb_worker_at(w, i);
        cJSON *answer = cJSON_CreateObject();
        cJSON_AddStringToObject(answer, "type", "answer");
        cJSON_AddNumberToObject(answer, "case", i);
        nb_worker_say(answer);
    }
    return 0;
}
