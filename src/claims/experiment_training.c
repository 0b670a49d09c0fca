// SPDX-License-Identifier: Apache-2.0
/* Training experiments: whole steps of a model, its memory, or its training from the beginning, with one norm or another. The file names
 * the workload, what is measured, the arms, and which arms are compared:
 *   steps   cut, time_ratio of pairs by part (step, forward, backward, norm); norm_share, seconds of arms
 *   memory  memory_cut, memory_ratio of pairs; memory of arms, by what (peak of the process, activations kept)
 *   course  loss_ratio of pairs; final_loss, failed_steps, std_*, gradient_* of arms */
#include <stdlib.h>

#include "src/claims/experiment.h"
#include "src/claims/training.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/train/train_study.h"

enum { USUAL_STEPS = 200, MOST_STEPS = 1000000, MOST_SEEDS = 1000 };

static int skip(const struct nb_jsonc *file, const cJSON *node, void *into) {
    (void)file, (void)node, (void)into;
    return 0;
}
static int read_of(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct nb_training_pair *)into)->of, file, node);
}
static int read_against(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_selector_read(&((struct nb_training_pair *)into)->against, file, node);
}

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {{"of", NB_FIELD_READ, 0, true, read_of},
                                             {"against", NB_FIELD_READ, 0, true, read_against}};
    struct nb_training *t = into;
    const bool list = cJSON_IsArray(node);
    t->pairs = nb_alloc(list ? (unsigned)cJSON_GetArraySize(node) + 1 : 1, sizeof *t->pairs);
    for (const cJSON *item = list ? node->child : node; item; item = list ? item->next : NULL)
        if (nb_fields_read(file, item, fields, 2, "an entry of \"compare\"", &t->pairs[t->n_pairs++]) != 0) return -1;
    return 0;
}

static int read_steps(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_jsonc_number(file, node, 1, MOST_STEPS, true, &((struct nb_training *)into)->steps);
}

static int read_seeds(const struct nb_jsonc *file, const cJSON *node, void *into) {
    return nb_jsonc_number(file, node, 1, MOST_SEEDS, true, &((struct nb_training *)into)->seeds);
}

static int read_training(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_READ, 0, true, skip},
        {"workload", NB_FIELD_TEXT, offsetof(struct nb_training, workload_name), true, NULL},
        {"measure", NB_FIELD_TEXT, offsetof(struct nb_training, measure_name), true, NULL},
        {"arms", NB_FIELD_TEXTS, offsetof(struct nb_training, words), true, NULL},
        {"common", NB_FIELD_TEXT, offsetof(struct nb_training, common), false, NULL},
        {"steps", NB_FIELD_READ, 0, false, read_steps},
        {"seeds", NB_FIELD_READ, 0, false, read_seeds},
        {"compare", NB_FIELD_READ, 0, false, read_compare}};
    struct nb_training *t = nb_alloc(1, sizeof *t);
    char reason[400];
    e->own = t;
    t->steps = USUAL_STEPS;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a training experiment", t) != 0)
        return -1;
    const char *wrong = nb_training_complete(t, reason, sizeof reason);
    return wrong ? nb_error("%s:%d: %s", file->path, nb_jsonc_line(file, node), wrong) : 0;
}

static void release(struct nb_experiment *e) {
    nb_training_release(e->own);
    free(e->own);
}

static const char *refuses(const struct nb_experiment *e) {
    const struct nb_training *t = e->own;
    return t->workload ? nb_train_lacks() : "a training workload that this build does not have";
}

static void train(const struct nb_experiment *e, struct nb_train_plan *plan) {
    const struct nb_training *t = e->own;
    for (size_t i = 0; i < t->words.n && t->workload; i++)
        nb_train_plan_add(plan, t->measure, t->workload, (int)t->steps, (int)t->seeds, t->arms[i]);
}

static void find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    nb_training_find(e->own, m->training, m->no_training, out);
}

const struct nb_experiment_kind nb_experiment_training = {.name = "training",
                                                          .summary = "steps of a model, with one norm or another",
                                                          .read = read_training,
                                                          .release = release,
                                                          .train = train,
                                                          .refuses = refuses,
                                                          .find = find};
