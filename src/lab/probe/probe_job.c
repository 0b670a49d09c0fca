// SPDX-License-Identifier: Apache-2.0
/* Answers of the probe study. The list of jobs is made of the files *_job.c. */
#include "src/lab/probe/probe.h"
#include "src/measure/worker.h"

static int probe_job(struct nb_workplace *w) {
    for (int i = 0; i < w->job.n_cases; i++) {
        nb_worker_at(w, i);
        cJSON *answer = nb_probe_kernel(&w->job.cases[i], w->job.entries[i], w, i);
        cJSON_AddStringToObject(answer, "type", "answer");
        cJSON_AddNumberToObject(answer, "case", i);
        nb_worker_say(answer);
    }
    return 0;
}

const struct nb_job_type nb_probe_job = {.work = probe_job};
