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
static cJSON *ask(const struct nb_study *study, int i, const char *key, const cJSON *options, int cpu,
                  struct nb_outcome *o) {
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
                         .options = options};
    nb_process_run(&job, -1, study->silence_s, job.seed, keep_answer, &answer, o);
    if (o->ending == NB_NOT_STARTED || o->ending == NB_ENDED_BY_USER) {
        cJSON_Delete(answer);
        return NULL;
    }
    /* An answer stands, whatever the kernel did to the process afterwards. */
    return answer ? answer : failure(o);
}

/* How the time of a study with a budget went so far. */
struct purse {
    double start_s, given_s, spent_s; /* given: as budgets; spent: by workers, on what else they do besides */
    int n;
};

/* What is left, in equal shares, less what a worker needs besides its budget. Negative: nothing is left. */
static double share(const struct purse *p, const struct nb_study *study, int i) {
    static const double least_s = 0.1;
    const double left_s = study->budget_s - (nb_now_s() - p->start_s);
    const double besides_s = p->n > 0 ? (p->spent_s - p->given_s) / p->n : 0;
    const double mine_s = left_s / (study->n_cases - i) - besides_s;
    if (left_s <= 0) return -1;
    return mine_s > least_s ? mine_s : least_s;
}

static cJSON *not_run(void) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "status", nb_status_name(NB_NOT_RUN));
    nb_json_text(answer, "reason", "the time allowed for all was used up before");
    return answer;
}

/* The options of one case; owned. */
static cJSON *options_with(const struct nb_study *study, double budget_s) {
    cJSON *options = study->options ? cJSON_Duplicate(study->options, true) : cJSON_CreateObject();
    if (study->budget_s > 0) nb_json_number(options, "budget_s", budget_s);
    return options;
}

int nb_study_run(const struct nb_study *study, void (*take)(int i, cJSON *answer, void *arg), void *arg) {
    const double start = nb_now_s();
    int cpus[NB_MAX_CPUS], result = 0;
    const int n_cpus = nb_cpu_allowed(cpus, NB_MAX_CPUS);
    struct purse purse = {.start_s = start};
    nb_watch_interrupts();
    for (int i = 0; i < study->n_cases && result == 0 && !nb_interrupted(); i++) {
        struct nb_outcome o;
        struct nb_strbuf key = {0}, label = {0};
        nb_strbuf_addf(&label, "%s %s", study->label, study->cases[i].variant);
        nb_progress(i, study->n_cases, nb_now_s() - start, label.text);
        nb_case_key(&study->cases[i], &key);
        const double budget_s = study->budget_s > 0 ? share(&purse, study, i) : 0, before_s = nb_now_s();
        cJSON *options = options_with(study, budget_s), *answer;
        o.ending = NB_ENDED_WELL;
        answer = budget_s < 0 ? not_run() : ask(study, i, key.text, options, n_cpus > 0 ? cpus[i % n_cpus] : 0, &o);
        purse.given_s += budget_s;
        purse.spent_s += nb_now_s() - before_s;
        purse.n++;
        cJSON_Delete(options);
        nb_strbuf_release(&key);
        nb_strbuf_release(&label);
        if (o.ending == NB_NOT_STARTED) result = -1;
        if (answer) take(i, answer, arg);
    }
    nb_progress_end();
    return result == 0 ? nb_interrupted() : result;
}
