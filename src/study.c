// SPDX-License-Identifier: Apache-2.0
/* One worker after another, one case each: a new process takes 10 ms, and nothing that a kernel did to the last is left. */
#include "src/study.h"

#include <string.h>

#include "src/cpu.h"
#include "src/json.h"
#include "src/log.h"
#include "src/process.h"
#include "src/timer.h"
#include "src/visit.h"

static void keep_answer(cJSON *line, void *arg) {
    cJSON **answer = arg;
    const char *type = nb_json_get_text(line, "type");
    if (*answer || strcmp(type, "answer") != 0) {
        cJSON_Delete(line);
        return;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(line, "type");
    *answer = line;
}

static cJSON *failure(const struct nb_outcome *o) {
    char reason[200];
    const enum nb_status status = nb_visit_blame(o, reason, sizeof reason);
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(status));
    nb_json_text(answer, "reason", reason);
    return answer;
}

/* Null: not started, or ended by the user. */
static cJSON *ask(const struct nb_study *study, int i, const char *key, int cpu, struct nb_outcome *o) {
    int slot = 0;
    cJSON *answer = NULL;
    struct nb_job job = {.kind = study->kind,
                         .launch = -1,
                         .plugins = study->plugins,
                         .n_plugins = study->n_plugins,
                         .max_width = study->max_width,
                         .keys = &key,
                         .slots = &slot,
                         .n_cases = 1,
                         .digests_at = -1,
                         .seed = study->cases[i].seed,
                         .cpus = &cpu,
                         .n_cpus = 1,
                         .options = study->options};
    nb_process_run(&job, -1, study->silence_s, job.seed, keep_answer, &answer, o);
    if (o->ending == NB_NOT_STARTED || o->ending == NB_ENDED_BY_USER) {
        cJSON_Delete(answer);
        return NULL;
    }
    /* An answer stands, whatever the kernel did to the process afterwards. */
    return answer ? answer : failure(o);
}

int nb_study_run(const struct nb_study *study, void (*take)(int i, cJSON *answer, void *arg), void *arg) {
    const double start = nb_now_s();
    int cpus[NB_MAX_CPUS], result = 0;
    const int n_cpus = nb_cpu_allowed(cpus, NB_MAX_CPUS);
    nb_watch_interrupts();
    for (int i = 0; i < study->n_cases && result == 0 && !nb_interrupted(); i++) {
        struct nb_outcome o;
        struct nb_strbuf key = {0}, label = {0};
        nb_strbuf_addf(&label, "%s %s", study->label, study->cases[i].variant);
        nb_progress(i, study->n_cases, nb_now_s() - start, label.text);
        nb_case_key(&study->cases[i], &key);
        cJSON *answer = ask(study, i, key.text, n_cpus > 0 ? cpus[i % n_cpus] : 0, &o);
        nb_strbuf_release(&key);
        nb_strbuf_release(&label);
        if (o.ending == NB_NOT_STARTED) result = -1;
        if (answer) take(i, answer, arg);
    }
    nb_progress_end();
    return result == 0 ? nb_interrupted() : result;
}
