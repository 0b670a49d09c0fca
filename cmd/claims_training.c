// SPDX-License-Identifier: Apache-2.0
/* What is trained, for how long. */
#include "cmd/claims_training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/train/train_study.h"

#define FOLDER "training"
/* Eight launches narrow an interval against the six that are the fewest for one; six seeds, since a seed is a whole training. */
enum { USUAL_LAUNCHES = 8, LEAST_ROUNDS = 6 };
static const double USUAL_BUDGET_S = 1680, MOST_LAUNCH_S = 12, LEAST_LAUNCH_S = 2, SHARE_OF_STEPS = 0.5;

static void plan(const struct nb_claims *claims, struct nb_train_plan *p) {
    for (size_t i = 0; i < claims->n; i++)
        for (size_t j = 0; j < claims->items[i].n_experiments; j++) {
            const struct nb_experiment *e = &claims->items[i].experiments[j];
            if (e->kind->train && !e->kind->refuses(e)) e->kind->train(e, p);
        }
}

static double budget_of(const struct nb_claims_options *o) {
    return !isnan(o->train_budget_s) ? o->train_budget_s : o->quick ? 0 : USUAL_BUDGET_S;
}

/* Half of the time allowed goes to launches, as long as they do not get longer than is of use. */
static double launch_of(const struct nb_train_plan *p, double budget_s, int launches) {
    int n = 0;
    for (int g = 0; g < p->n; g++) n += p->groups[g].measure == NB_TRAIN_STEPS;
    return fmin(MOST_LAUNCH_S, fmax(LEAST_LAUNCH_S, n ? SHARE_OF_STEPS * budget_s / (n * launches) : 0));
}

/* The first line of the file says what --resume goes on with. */
static int begin(const struct nb_claims_options *o, const char *folder) {
    char *path = nb_path_join(folder, NB_TRAINING_FILE);
    const bool there = nb_path_exists(path);
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "run");
    cJSON *argv = cJSON_AddArrayToObject(line, "argv");
    for (int i = 0; i < o->argc; i++) cJSON_AddItemToArray(argv, cJSON_CreateString(o->argv[i]));
    int result = nb_dir_make(folder);
    if (result == 0 && !there) result = nb_train_results_append(folder, line);
    cJSON_Delete(line);
    free(path);
    return result;
}

int nb_claims_train(const struct nb_claims_options *o, const struct nb_claims *claims, const char *dir,
                    struct nb_claims_trained *out) {
    struct nb_train_plan p = {0};
    const double budget_s = budget_of(o);
    const int launches = o->request.launches ? o->request.launches : o->quick ? LEAST_ROUNDS : USUAL_LAUNCHES;
    const int seeds = o->request.launches ? o->request.launches : LEAST_ROUNDS;
    char *folder = nb_path_join(dir, FOLDER);
    int result = 0;
    plan(claims, &p);
    if (o->request.launches) nb_train_plan_usual_seeds(&p); /* the user's number counts */
    if (budget_s <= 0) {
        out->why = o->quick ? "training, which --quick leaves out: --train-budget SECONDS takes it along"
                            : "training, which --train-budget 0 leaves out";
    } else if (p.n > 0) {
        const struct nb_train_study study = {
            .plan = &p,
            .dir = folder,
            .text = o->train_text,
            .max_width = o->request.max_width,
            .budget_s = budget_s,
            .launch_s = launch_of(&p, budget_s, launches),
            .rounds = {[NB_TRAIN_STEPS] = launches, [NB_TRAIN_MEMORY] = seeds, [NB_TRAIN_COURSE] = seeds}};
        out->there = true;
        result = begin(o, folder);
        if (result == 0) result = nb_train_study_run(&study, &out->results);
    }
    nb_train_plan_release(&p);
    free(folder);
    return result;
}

int nb_claims_training_argv(const char *dir, struct nb_journaled_argv *saved) {
    char *folder = nb_path_join(dir, FOLDER), *path = nb_path_join(folder, NB_TRAINING_FILE);
    char *text = nb_path_exists(path) ? nb_file_read(path, (size_t)1 << 29, NULL) : NULL;
    cJSON *line = text ? cJSON_ParseWithLength(text, strcspn(text + 1, "\n") + 1) : NULL;
    const cJSON *argv = cJSON_GetObjectItemCaseSensitive(line, "argv"), *item;
    cJSON_ArrayForEach(item, argv) {
        if (!cJSON_IsString(item)) continue;
        saved->argv = nb_realloc(saved->argv, (unsigned)saved->argc + 2, sizeof *saved->argv);
        saved->argv[saved->argc++] = nb_strdup(item->valuestring);
        saved->argv[saved->argc] = NULL;
    }
    cJSON_Delete(line);
    free(text);
    free(path);
    free(folder);
    return saved->argc > 0 ? 0 : -1;
}
