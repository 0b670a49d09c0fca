// SPDX-License-Identifier: Apache-2.0
/* The request as a job, and the worker's line as logarithms of ratios. */
#include "src/gate/gate_launch.h"

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

/* The first arm that went wrong while timed. */
static void find_failure(const cJSON *arms, struct nb_gate_answer *out) {
    const cJSON *arm;
    int i = 0;
    cJSON_ArrayForEach(arm, arms) {
        const double error = nb_json_get_number(arm, "error");
        const char *harmed = nb_json_get_text(arm, "harmed");
        if (error != 0) {
            out->status = NB_RETURNED_ERROR;
            snprintf(out->reason, sizeof out->reason, "run() returned %g while timed", error);
        } else if (harmed) {
            out->status = nb_json_get_bool(arm, "changed_input") ? NB_CHANGED_INPUT : NB_WROTE_OUTSIDE;
            snprintf(out->reason, sizeof out->reason, "%s", harmed);
        } else if (!nb_json_get_bool(arm, "reproduced")) {
            out->status = NB_WRONG_WHEN_TIMED;
            snprintf(out->reason, sizeof out->reason, "what it wrote while timed differs from what it wrote before");
        }
        if (out->status != NB_OK) {
            out->failed = i;
            return;
        }
        i++;
    }
}

int nb_gate_launch_read(const cJSON *line, int n_arms, int layout, struct nb_gate_answer *out) {
    const cJSON *arms = cJSON_GetObjectItemCaseSensitive(line, "arms"), *arm;
    struct nb_samples samples[NB_GATE_ARMS] = {{0}};
    int n = 0, result = -1;
    *out = (struct nb_gate_answer){.status = NB_OK};
    if (n_arms > NB_GATE_ARMS || cJSON_GetArraySize(arms) != n_arms) return -1;
    cJSON_ArrayForEach(arm, arms) {
        struct nb_samples *s = &samples[n++];
        if (nb_samples_from_json(s, arm) != 0 || s->n == 0 || !s->position) goto out;
    }
    out->chunked = nb_json_get_bool(line, "chunked");
    out->n_blocks = samples[0].n;
    out->per_sample = nb_json_get_number(line, "per_sample");
    find_failure(arms, out);
    for (int i = 0; i < n_arms; i++) {
        out->call_ns[i] = nb_samples_median(&samples[i]);
        out->launch[i] = (struct nb_gate_launch){
            .ratio = nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_ALL),
            .control = n_arms > 1 ? nb_paired_ln(&samples[1], &samples[0], NB_PAIRS_ALL) : (double)NAN,
            .ratio_min = log(nb_samples_fastest(&samples[i]) / nb_samples_fastest(&samples[0])),
            .order_effect = nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_FIRST) -
                            nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_SECOND),
            .halves = nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_HALF_A) -
                      nb_paired_ln(&samples[i], &samples[0], NB_PAIRS_HALF_B),
            .contaminated = nb_paired_contaminated(&samples[i], &samples[0]),
            .layout = layout};
    }
    result = 0;
out:
    for (int i = 0; i < NB_GATE_ARMS; i++) nb_samples_release(&samples[i]);
    return result;
}

int nb_gate_launch_run(const struct nb_gate_request *q, struct nb_gate_answer *out) {
    int cpus[NB_MAX_CPUS], samples[NB_GATE_ARMS] = {0}, percent[NB_GATE_ARMS];
    struct nb_outcome o;
    cJSON *options = cJSON_CreateObject();
    memcpy(percent, q->extra_percent, sizeof percent);
    cJSON_AddItemToObject(options, "extra_percent", cJSON_CreateIntArray(percent, q->n_arms));
    struct nb_job job = {.kind = "gate",
                         .launch = q->launch,
                         .plugins = q->files,
                         .n_plugins = q->n_files,
                         .keys = (const char **)(uintptr_t)q->keys,
                         .samples = samples,
                         .n_cases = q->n_arms,
                         .blocks = q->blocks,
                         .sample_s = 1e-3 * q->sample_ms,
                         .digests_at = -1,
                         .seed = nb_random_bits(nb_random_stream(q->seed, (uint64_t)q->launch), 0),
                         .cpus = cpus,
                         .n_cpus = q->threads,
                         .options = options};
    nb_launcher_cpus(cpus, q->threads, q->launch);
    cJSON *raw = nb_launcher_ask(&job, q->silence_s, &o);
    cJSON_Delete(options);
    if (!raw) return nb_launcher_ends(&o);
    if (nb_gate_launch_read(raw, q->n_arms, q->layout, out) != 0) {
        *out = (struct nb_gate_answer){.failed = o.current >= 0 ? o.current : 0};
        out->status = nb_outcome_blame(&o, out->reason, sizeof out->reason);
        cJSON_Delete(raw);
        raw = NULL;
    }
    out->raw = raw;
    return 0;
}
