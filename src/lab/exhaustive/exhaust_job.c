// SPDX-License-Identifier: Apache-2.0
/* Every short row through a plugin's kernels: the options go to a worker process, and the answer comes back. */
#include <assert.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/measure/launcher.h"
#include "src/measure/worker.h"

enum { MOST_EPS = 64, MOST_NAMES = 64, SILENCE_S = 60 };

/* What both sides read and write; lists stand beside. */
static const struct nb_member members[] = {NB_MEMBER(COUNT, struct nb_exhaust_options, threads),
                                           NB_MEMBER(COUNT, struct nb_exhaust_options, stride),
                                           NB_MEMBER(COUNT, struct nb_exhaust_options, dtype),
                                           NB_MEMBER(EXACT, struct nb_exhaust_options, gamma), NB_MEMBERS_END};

/* ---- in the worker ---- */

static void beat(void *context) { nb_worker_at(context, 0); }

static int exhaust_job(struct nb_workplace *w) {
    const cJSON *options = w->job.options, *item;
    struct nb_exhaust_options o = {.of_plugins = true, .beat = beat, .context = w};
    const char *mode = nb_json_get_text(options, "mode"), *names[MOST_NAMES];
    double eps[MOST_EPS];
    if (!mode || nb_json_get_members(options, members, &o, "options") != 0) return -1;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(options, "eps")) if (o.n_eps < MOST_EPS) eps[o.n_eps++] =
        item->valuedouble;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(options, "names")) if (o.n_names < MOST_NAMES)
        names[o.n_names++] = item->valuestring;
    o.eps = eps;
    o.names = names;
    cJSON *answer = cJSON_CreateObject();
    const struct nb_exhaust_mode *rows = strcmp(mode, "row1") == 0 ? &nb_exhaust_row1 : &nb_exhaust_row2;
    const int result = rows->run(&o, answer);
    cJSON_AddStringToObject(answer, "type", "answer");
    cJSON_AddNumberToObject(answer, "result", result);
    nb_worker_say(answer);
    return 0;
}

const struct nb_job_type nb_exhaust_job = {.work = exhaust_job, .own_inputs = true, .no_cases = true};

/* ---- in the parent ---- */

cJSON *nb_exhaust_plugins(const char *mode, const struct nb_exhaust_options *o, const char **plugins, int n_plugins) {
    assert(mode && o && plugins && n_plugins > 0);
    if (o->n_eps > MOST_EPS || o->n_names > MOST_NAMES) {
        nb_error("at most %d values of eps and %d of --kernel", MOST_EPS, MOST_NAMES);
        return NULL;
    }
    struct nb_outcome outcome;
    cJSON *options = nb_json_of_members(members, o);
    cJSON_AddStringToObject(options, "mode", mode);
    cJSON_AddItemToObject(options, "eps", cJSON_CreateDoubleArray(o->eps, o->n_eps));
    cJSON_AddItemToObject(options, "names", cJSON_CreateStringArray(o->names, o->n_names));
    const struct nb_job job = {
        .kind = "exhaust", .plugins = plugins, .n_plugins = n_plugins, .digests_at = -1, .options = options};
    cJSON *answer = nb_launcher_ask(&job, SILENCE_S, &outcome);
    cJSON_Delete(options);
    if (answer && cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(answer, "result"))) return answer;
    const char *reason = answer ? nb_json_get_text(answer, "reason") : NULL;
    nb_error("a plugin's kernel ended its process: %s", reason ? reason : "no answer came");
    cJSON_Delete(answer);
    return NULL;
}
