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
#include "src/measure/launcher.h"
#include "src/measure/paired.h"

static const double silence_s = 20;

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
    int cpu, samples[NB_TUNE_SETTINGS + 1] = {0};
    struct nb_outcome o;
    cJSON *options = cJSON_CreateObject(), *tunings = cJSON_AddArrayToObject(options, "tunings");
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
                               .cpus = &cpu,
                               .n_cpus = 1,
                               .options = options};
    nb_launcher_cpus(&cpu, 1, q->launch);
    cJSON *answer = nb_launcher_ask(&job, silence_s, &o);
    cJSON_Delete(options);
    nb_strbuf_release(&key);
    if (answer && read_answer(q, answer, out) != 0 && !out->reason[0])
        snprintf(out->reason, sizeof out->reason, "what its worker said cannot be read");
    cJSON_Delete(answer);
    return nb_launcher_ends(&o);
}
