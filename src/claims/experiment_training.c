// SPDX-License-Identifier: Apache-2.0
/* Training experiments as claim files have them: arms in words with their tags, and the kind of experiment. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/claims/training.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/models/study.h"

static void tag(void *finding, const char *axis, const char *value) { nb_finding_tag(finding, axis, value); }

static const char *add_arm(struct nb_training *t, const char *common, const char *words, char *reason, size_t n) {
    struct nb_model_arm arm;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    const char *wrong = nb_model_arm_parse(&arm, common, words, reason, n);
    if (wrong) return wrong;
    nb_model_arm_print(&arm, &text);
    for (size_t j = 0; j < t->arms.n; j++)
        if (strcmp(t->arms.items[j], text.text) == 0) {
            snprintf(reason, n, "two arms are '%s'", text.text);
            return reason;
        }
    nb_strings_add(&t->arms, text.text);
    if (t->workload) nb_model_arm_complete(&arm, t->workload);
    struct nb_finding *tags = nb_findings_add_exact(&t->tags, "arm", "", 0);
    nb_finding_tag(tags, "workload", t->workload_name);
    nb_model_arm_tag(&arm, tag, tags);
    return NULL;
}

static void release_arms(struct nb_training *t) {
    nb_strings_release(&t->arms);
    nb_findings_release(&t->tags);
}

/* Arms, with their tags, from the words; on_cpu: words of all of them, or null. Null, or what is wrong. */
static const char *complete_arms(struct nb_training *t, const char *on_cpu, char *reason, size_t n) {
    char *common freed = nb_textf("%s %s", t->common ? t->common : "", on_cpu ? on_cpu : "");
    const char *wrong = NULL;
    release_arms(t);
    for (size_t i = 0; i < t->words.n && !wrong; i++) wrong = add_arm(t, common, t->words.items[i], reason, n);
    return wrong;
}

/* Fills workload, measure, arms and tags from the names. Null, or what is wrong with the file; text goes to reason. */
static const char *complete(struct nb_training *t, char *reason, size_t n) {
    t->workload = nb_model_workload_find(t->workload_name);
    const int measure = nb_name_find(nb_torch_measure_names, t->measure_name);
    if (measure < 0) {
        snprintf(reason, n, "\"measure\" is '%s', and not steps, inference, memory or course", t->measure_name);
        return reason;
    }
    t->measure = (enum nb_torch_measure)measure;
    if (t->measure != NB_TORCH_COURSE && t->seeds > 0) return "\"seeds\" are of a \"course\"";
    if (t->measure != NB_TORCH_COURSE) t->steps = 0;
    if (t->words.n == 0) return "\"arms\" is empty";
    return complete_arms(t, NULL, reason, n) ? reason : complete_arms(t, t->on_cpu, reason, n);
}

/* Whole steps of a model, its memory, or its training from the beginning, with one norm or another. The file names
 * the workload, what is measured, the arms, and which arms are compared:
 *   steps   and inference: cut, time_ratio of pairs, seconds of arms, by part (step, forward, backward, update)
 *   memory  memory_cut, memory_ratio of pairs; memory of arms, by what (peak of the process, activations kept)
 *   course  loss_ratio of pairs; final_loss, failed_steps, std_*, gradient_* of arms */

enum { USUAL_STEPS = 200, MOST_STEPS = 1000000, MOST_SEEDS = 1000 };

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {
        {NB_FIELD(MEMBER, struct nb_sides, of), .required = true, .read = nb_selector_read},
        {NB_FIELD(MEMBER, struct nb_sides, against), .required = true, .read = nb_selector_read}};
    struct nb_training *t = into;
    const bool list = cJSON_IsArray(node);
    t->pairs = nb_alloc(list ? (unsigned)cJSON_GetArraySize(node) + 1 : 1, sizeof *t->pairs);
    for (const cJSON *item = list ? node->child : node; item; item = list ? item->next : NULL)
        if (nb_fields_read(file, item, fields, 2, "an entry of \"compare\"", &t->pairs[t->n_pairs++]) != 0) return -1;
    return 0;
}

static int training_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_ELSEWHERE, .required = true},
        {"workload", NB_FIELD_TEXT, .offset = offsetof(struct nb_training, workload_name), .required = true},
        {"measure", NB_FIELD_TEXT, .offset = offsetof(struct nb_training, measure_name), .required = true},
        {"arms", NB_FIELD_TEXTS, .offset = offsetof(struct nb_training, words), .required = true},
        {NB_FIELD(TEXT, struct nb_training, common)},
        {NB_FIELD(TEXT, struct nb_training, on_cpu)},
        {NB_FIELD(COUNT, struct nb_training, steps), .low = 1, .high = MOST_STEPS},
        {NB_FIELD(COUNT, struct nb_training, seeds), .low = 1, .high = MOST_SEEDS},
        {"compare", NB_FIELD_READ, .read = read_compare}};
    struct nb_training *t = nb_alloc(1, sizeof *t);
    char reason[400];
    e->own = t;
    t->steps = USUAL_STEPS;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a training experiment", t) != 0)
        return -1;
    const char *wrong = complete(t, reason, sizeof reason);
    return wrong ? nb_jsonc_error(file, node, "%s", wrong) : 0;
}

static void training_release(struct nb_experiment *e) {
    struct nb_training *t = e->own;
    for (size_t i = 0; i < t->n_pairs; i++) nb_sides_release(&t->pairs[i]);
    release_arms(t);
    nb_free_all(t->pairs, t->workload_name, t->measure_name, t->common, t->needed, t->on_cpu);
    nb_strings_release(&t->words);
}

static const char *training_refuses(const struct nb_experiment *e) {
    const struct nb_training *t = e->own;
    return t->workload ? t->needed : "a model that this build does not have";
}

static void add_to_plan(const struct nb_training *t, struct nb_torch_plan *plan) {
    for (size_t i = 0; i < t->arms.n && t->workload; i++)
        nb_torch_plan_add(plan, t->measure, t->workload, t->steps, t->seeds, t->arms.items[i]);
}

static void training_torch(const struct nb_experiment *e, struct nb_torch_plan *plan, const char *device) {
    struct nb_training *t = e->own;
    char reason[400];
    t->left_out = !device;
    if (device && strcmp(device, "cuda") == 0)
        complete_arms(t, NULL, reason, sizeof reason); /* tried when it was read */
    if (device) add_to_plan(t, plan);
}

/* On two cores. */
static double minutes_of(const struct nb_training *t) {
    struct nb_torch_plan p released_by(nb_torch_plan_release) = {0};
    add_to_plan(t, &p);
    return ceil(nb_torch_plan_s(&p) / 2 / 60);
}

static void training_describe(const struct nb_experiment *e, struct nb_strbuf *out) {
    const struct nb_training *t = e->own;
    nb_strbuf_addf(out, "%s of %s in PyTorch, %zu arms: about %.0f min on two cores", t->measure_name, t->workload_name,
                   t->arms.n, minutes_of(t));
}

/* Without PyTorch's answers every reading says what is needed, whatever its figures would be called. */
static void training_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    struct nb_training *t = e->own;
    const struct nb_torch_results *results = t->left_out ? NULL : m->training;
    if (t->left_out)
        t->needed = nb_textf(
            "PyTorch, which --quick leaves out (--train-budget SECONDS includes it): about %.0f min on two cores",
            minutes_of(t));
    else if (!results && m->no_training)
        t->needed = nb_strdup(m->no_training);
    nb_training_find(t, results, t->needed, out);
}

const struct nb_experiment_kind nb_experiment_training = {
    .name = "training",
    .summary = "steps of a model in PyTorch, with one norm or another",
    .read = training_read,
    .release = training_release,
    .torch = training_torch,
    .describe = training_describe,
    .refuses = training_refuses,
    .find = training_find,
};
