// SPDX-License-Identifier: Apache-2.0
/* The request as a job whose cases are one case many times, and the worker's samples as gains. */
#include "src/tune/tune_launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/paired.h"
#include "src/measure/process.h"
#include "src/measure/session.h"

static const double silence_s = 20;

static void keep(cJSON *line, void *arg) {
    cJSON **answer = arg;
    if (*answer || strcmp(nb_json_get_text(line, "type"), "answer") != 0) {
        cJSON_Delete(line);
        return;
    }
    *answer = line;
}

static int read_answer(const struct nb_tune_request *q, const cJSON *answer, struct nb_tune_answer *out) {
    const cJSON *arms = cJSON_GetObjectItemCaseSensitive(answer, "arms"), *arm;
    const char *reason = nb_json_get_text(answer, "reason");
    struct nb_samples samples[NB_TUNE_SETTINGS + 1] = {{0}};
    int n = 0, result = cJSON_GetArraySize(arms) == q->n_arms ? 0 : -1;
    out->differs = nb_json_get_bool(answer, "differs");
    if (reason) snprintf(out->reason, sizeof out->reason, "%s", reason);
    cJSON_ArrayForEach(arm, arms) {
        if (result == 0) result = nb_samples_from_json(&samples[n++], arm);
    }
    for (int a = 0; a < q->n_arms && result == 0; a++)
        out->gain[a] = nb_paired_ln(&samples[q->base_arm], &samples[a], NB_PAIRS_ALL);
    for (int a = 0; a < n; a++) nb_samples_release(&samples[a]);
    return result;
}

int nb_tune_launch(const struct nb_tune_request *q, struct nb_tune_answer *out) {
    struct nb_strbuf key = {0};
    const char *keys[NB_TUNE_SETTINGS + 1];
    int cpus[NB_MAX_CPUS], samples[NB_TUNE_SETTINGS + 1] = {0};
    const int n_cpus = nb_cpu_allowed(cpus, NB_MAX_CPUS);
    struct nb_outcome o;
    cJSON *options = cJSON_CreateObject(), *answer = NULL, *tunings = cJSON_AddArrayToObject(options, "tunings");
    *out = (struct nb_tune_answer){.reason = ""};
    nb_case_key(q->c, &key);
    for (int a = 0; a < q->n_arms; a++) {
        keys[a] = key.text;
        cJSON_AddItemToArray(tunings, nb_tuning_to_json(&q->arms[a]));
    }
    const struct nb_job job = {.kind = "tune",
                               .launch = q->launch,
                               .keys = keys,
                               .samples = samples,
                               .n_cases = q->n_arms,
                               .blocks = q->blocks,
                               .sample_s = 1e-3 * q->sample_ms,
                               .digests_at = -1,
                               .seed = nb_random_bits(nb_random_stream(1, (uint64_t)q->launch), 0),
                               .cpus =
                                   &cpus[n_cpus > 0 ? q->launch % n_cpus : 0], /* launches alternate between the CPUs */
                               .n_cpus = n_cpus > 0,
                               .options = options};
    nb_process_run(&job, -1, silence_s, job.seed, keep, &answer, &o);
    cJSON_Delete(options);
    nb_strbuf_release(&key);
    if (!answer)
        nb_session_blame(&o, out->reason, sizeof out->reason);
    else if (read_answer(q, answer, out) != 0)
        snprintf(out->reason, sizeof out->reason, "what its worker said cannot be read");
    cJSON_Delete(answer);
    return o.ending == NB_NOT_STARTED ? -1 : o.ending == NB_ENDED_BY_USER ? nb_interrupted() : 0;
}
