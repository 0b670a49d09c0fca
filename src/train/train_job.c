// SPDX-License-Identifier: Apache-2.0
/* A training job: steps of arms that take turns, the memory of one arm, or one run from its beginning (src/train/train_results.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/worker.h"
#include "src/train/course.h"
#include "src/train/data.h"
#include "src/train/options.h"
#include "src/train/train_results.h"

enum { MOST_BLOCKS = 256, RECORDS = 11, MEMORY_STEPS = 2 };

struct order { /* the job's options, read */
    const struct nb_workload *workload;
    struct nb_train_options *arms;
    const char **names; /* borrowed */
    int n, steps;
    double launch_s;
    struct nb_text text;
    struct nb_workplace *place;
};

static int read_arm(struct order *o, const cJSON *item, int threads, int round) {
    char reason[200];
    struct nb_train_options *arm = &o->arms[o->n];
    if (!cJSON_IsString(item)) return nb_error("a training job's arm is no text");
    if (nb_arm_parse(arm, NULL, item->valuestring, reason, sizeof reason)) return nb_error("%s", reason);
    if (arm->n_threads == 0) arm->n_threads = threads;
    arm->seed = (uint64_t)round + 1;
    o->names[o->n++] = item->valuestring;
    return 0;
}

static int read_order(struct order *o, struct nb_workplace *w) {
    const cJSON *json = w->job.options, *arms = cJSON_GetObjectItemCaseSensitive(json, "arms"), *item;
    const char *name = nb_json_get_text(json, "workload");
    const unsigned n = (unsigned)cJSON_GetArraySize(arms);
    *o = (struct order){.workload = name ? nb_workload_find(name) : NULL,
                        .arms = nb_alloc(n + 1, sizeof *o->arms),
                        .names = nb_alloc(n + 1, sizeof *o->names),
                        .steps = (int)nb_json_get_number(json, "steps"),
                        .launch_s = nb_json_get_number(json, "launch_s"),
                        .place = w};
    if (!o->workload) return nb_error("no workload %s", name ? name : "(none)");
    const int threads = (int)nb_json_get_number(json, "threads"), round = (int)nb_json_get_number(json, "round");
    cJSON_ArrayForEach(item, arms) {
        if (read_arm(o, item, threads, round) != 0) return -1;
    }
    if (o->n == 0) return nb_error("a training job without arms");
    return nb_text_open(&o->text, nb_json_get_text(json, "text"));
}

static void release_order(struct order *o) {
    nb_text_release(&o->text);
    free(o->arms);
    free(o->names);
}

static void beat(void *context, int at) {
    struct nb_workplace *w = context;
    (void)at;
    nb_worker_at(w, -1);
}

static void add_numbers(cJSON *json, const char *name, const double *values, int n) {
    cJSON *list = cJSON_AddArrayToObject(json, name);
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(list, isfinite(values[i]) ? cJSON_CreateNumber(values[i]) : cJSON_CreateNull());
}

static cJSON *new_answer(cJSON **arms) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "type", "answer");
    nb_json_text(answer, "status", "ok");
    *arms = cJSON_AddArrayToObject(answer, "arms");
    return answer;
}

static cJSON *new_arm(cJSON *arms, const char *name) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "arm", name);
    cJSON_AddItemToArray(arms, json);
    return json;
}

static int steps(struct order *o) {
    struct nb_step_arm *arms = nb_alloc((unsigned)o->n, sizeof *arms);
    const struct nb_steps_options options = {.launch_s = o->launch_s,
                                             .most_blocks = MOST_BLOCKS,
                                             .seed = o->place->job.seed,
                                             .beat = beat,
                                             .context = o->place};
    int n_blocks;
    for (int i = 0; i < o->n; i++) arms[i].options = o->arms[i];
    const int result = nb_steps_measure(arms, o->n, o->workload, &o->text, &options, &n_blocks);
    if (result == 0) {
        cJSON *list, *answer = new_answer(&list);
        for (int i = 0; i < o->n; i++) {
            cJSON *json = new_arm(list, o->names[i]);
            for (int p = 0; p < NB_N_STEP_PARTS; p++)
                add_numbers(json, nb_step_part_names[p], arms[i].seconds[p], n_blocks);
            add_numbers(json, "loss", arms[i].loss, n_blocks);
            nb_json_number(json, "kept_bytes", (double)arms[i].kept_bytes);
        }
        nb_worker_say(answer);
    }
    nb_steps_release(arms, o->n);
    free(arms);
    return result;
}

/* The peak of the process so far: it made nothing but this model. */
static double peak_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * (double)usage.ru_maxrss : (double)NAN;
}

static int memory(struct order *o) {
    struct nb_model model;
    if (nb_model_init(&model, o->workload, &o->arms[0]) != 0) return -1;
    for (int s = 0; s < MEMORY_STEPS; s++) {
        nb_worker_at(o->place, -1);
        nb_model_step(&model, &o->text, s);
    }
    cJSON *list, *answer = new_answer(&list), *json = new_arm(list, o->names[0]);
    nb_json_number(json, "peak_bytes", peak_bytes());
    nb_json_number(json, "kept_bytes", (double)model.activation_bytes);
    nb_json_number(json, "parameter_bytes", (double)nb_parameters_count(&model.parameters) * sizeof(float));
    nb_worker_say(answer);
    nb_model_release(&model);
    return 0;
}

static void add_curves(cJSON *json, const struct nb_curves *c) {
    cJSON_AddItemToObject(json, "recorded_steps", cJSON_CreateIntArray(c->steps, c->n_records));
    cJSON *list = cJSON_AddArrayToObject(json, "curves");
    for (int i = 0; i < c->n; i++) {
        cJSON *one = cJSON_CreateObject();
        nb_json_text(one, "place", c->items[i].place);
        cJSON_AddBoolToObject(one, "gradient", c->items[i].gradient);
        add_numbers(one, "std", c->items[i].std, c->n_records);
        cJSON_AddItemToArray(list, one);
    }
}

static int course(struct order *o) {
    struct nb_course c;
    const struct nb_course_options how = {.steps = o->steps, .records = RECORDS, .beat = beat, .context = o->place};
    const int result = nb_course_run(&c, o->workload, &o->arms[0], &o->text, &how);
    if (result == 0) {
        cJSON *list, *answer = new_answer(&list), *json = new_arm(list, o->names[0]);
        add_numbers(json, "loss", c.loss, c.n_steps);
        nb_json_number(json, "wanted_steps", o->steps);
        nb_json_number(json, "failed_steps", c.n_failed);
        nb_json_number(json, "final_loss", nb_course_final_loss(c.loss, c.n_steps, o->steps));
        nb_json_number(json, "unseen_loss", c.unseen_loss);
        nb_json_number(json, "kept_bytes", (double)c.kept_bytes);
        add_curves(json, &c.curves);
        nb_worker_say(answer);
    }
    nb_course_release(&c);
    return result;
}

static int train_job(struct nb_workplace *w) {
    struct order o;
    const char *measure = nb_json_get_text(w->job.options, "measure");
    int result = read_order(&o, w);
    if (result == 0 && measure && strcmp(measure, nb_train_measure_names[NB_TRAIN_STEPS]) == 0)
        result = steps(&o);
    else if (result == 0 && measure && strcmp(measure, nb_train_measure_names[NB_TRAIN_MEMORY]) == 0)
        result = memory(&o);
    else if (result == 0)
        result = o.steps > 0 ? course(&o) : -1;
    if (result != 0) nb_worker_say_skipped("the model cannot be made or trained here (stderr says why)");
    release_order(&o);
    return 0;
}

const struct nb_job_type nb_train_job = {.work = train_job, .own_inputs = true, .no_cases = true};
