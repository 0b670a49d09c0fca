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
#include "src/models/blas.h"
#include "src/train/train_study.h"
#include "src/train/workload.h"

static void tag_arm(struct nb_finding *f, const struct nb_train_options *o, const char *workload) {
    nb_finding_tag(f, "workload", workload);
    nb_finding_tag(f, "norm", nb_norm_kind_names[o->norm.kind]);
    if (nb_arm_has_kernel(o)) nb_finding_tag(f, "style", nb_style_names[o->norm.style]);
    if (o->norm.kind != NB_NORM_NONE) {
        nb_finding_tag(f, "affine", o->norm.affine == NB_NORM_FROZEN ? "frozen" : "learned");
        nb_finding_tag(f, "place", nb_norm_place_names[o->place]);
    }
    if (o->norm.kind == NB_NORM_BATCHNORM)
        nb_finding_tag(f, "statistics", o->norm.by_position ? "position" : "feature");
    nb_finding_tag(f, "padding", nb_padding_names[o->padding]);
    nb_finding_tag(f, "residual", o->residual ? "yes" : "no");
    nb_finding_tag(f, "mask", o->causal ? "causal" : "bidirectional");
    nb_finding_tag(f, "dtype", nb_dtype_names[o->dtype]);
    nb_finding_tag(f, "subnormals", o->flushed ? "flushed" : "kept");
    nb_finding_tag_number(f, "dispatch", o->dispatch);
    nb_finding_tag_number(f, "layers", o->layers);
    nb_finding_tag_number(f, "hidden", o->hidden);
    if (o->n_threads > 0) nb_finding_tag_number(f, "threads", o->n_threads);
    nb_finding_tag_number(f, "tokens", (double)o->batch * o->sequence);
}

static const char *add_arm(struct nb_training *t, size_t i, char *reason, size_t n) {
    struct nb_train_options o;
    struct nb_strbuf text = {0};
    const char *wrong = nb_arm_parse(&o, t->common, t->words.items[i], reason, n);
    if (wrong) return wrong;
    nb_arm_print(&o, &text);
    t->arms[i] = text.text;
    for (size_t j = 0; j < i; j++)
        if (strcmp(t->arms[j], text.text) == 0) {
            snprintf(reason, n, "arms '%s' and '%s' are one", t->words.items[j], t->words.items[i]);
            return reason;
        }
    if (t->workload && (wrong = t->workload->family->complete(t->workload->own, &o))) {
        snprintf(reason, n, "arm '%s': %s", t->words.items[i], wrong);
        return reason;
    }
    tag_arm(nb_findings_add_exact(&t->tags, "arm", "", 0), &o, t->workload_name);
    return NULL;
}

/* The list of arms ends with a null. */
static void release_arms(struct nb_training *t) {
    for (char **arm = t->arms; arm && *arm; arm++) free(*arm);
    free(t->arms);
    nb_findings_release(&t->tags);
}

/* Arms with their tags from the words. Null, or what is wrong. */
static const char *complete_arms(struct nb_training *t, char *reason, size_t n) {
    release_arms(t);
    t->arms = nb_alloc(t->words.n + 1, sizeof *t->arms);
    for (size_t i = 0; i < t->words.n; i++)
        if (add_arm(t, i, reason, n)) return reason;
    return NULL;
}

static void exchange_arms(struct nb_training *t) {
    const struct nb_strings words = t->words;
    t->words = t->quick;
    t->quick = words;
}

/* Fills workload, measure, arms and tags from the names. Null, or what is wrong with the file; text goes to reason. */
static const char *complete(struct nb_training *t, char *reason, size_t n) {
    t->workload = nb_workload_find(t->workload_name);
    const int measure = nb_name_find(nb_train_measure_names, t->measure_name);
    if (measure < 0) {
        snprintf(reason, n, "\"measure\" is '%s', and not steps, memory or course", t->measure_name);
        return reason;
    }
    t->measure = (enum nb_train_measure)measure;
    if (t->measure != NB_TRAIN_COURSE && t->seeds > 0) return "\"seeds\" are of a \"course\"";
    if (t->measure != NB_TRAIN_COURSE) t->steps = 0;
    if (t->words.n == 0) return "\"arms\" is empty";
    for (int quick = t->quick.n > 0; quick >= 0; quick--) { /* the usual ones last */
        if (quick || t->quick.n > 0) exchange_arms(t);
        if (complete_arms(t, reason, n)) return reason;
    }
    return NULL;
}

/* Whole steps of a model, its memory, or its training from the beginning, with one norm or another. The file names
 * the workload, what is measured, the arms, and which arms are compared:
 *   steps   cut, elsewhere, time_ratio of pairs by part (step, forward, backward, norm, ..); norm_share, seconds of arms
 *   memory  memory_cut, memory_ratio of pairs; memory of arms, by what (peak of the process, activations kept)
 *   course  loss_ratio of pairs; final_loss, failed_steps, std_*, gradient_* of arms */

enum { USUAL_STEPS = 200, MOST_STEPS = 1000000, MOST_SEEDS = 1000 };

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const struct nb_field fields[] = {
        {"of", NB_FIELD_MEMBER, .offset = offsetof(struct nb_sides, of), .required = true, .read = nb_selector_read},
        {"against", NB_FIELD_MEMBER, .offset = offsetof(struct nb_sides, against), .required = true,
         .read = nb_selector_read}};
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

static int training_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_ELSEWHERE, .required = true},
        {"workload", NB_FIELD_TEXT, .offset = offsetof(struct nb_training, workload_name), .required = true},
        {"measure", NB_FIELD_TEXT, .offset = offsetof(struct nb_training, measure_name), .required = true},
        {"arms", NB_FIELD_TEXTS, .offset = offsetof(struct nb_training, words), .required = true},
        {"common", NB_FIELD_TEXT, .offset = offsetof(struct nb_training, common)},
        {"quick", NB_FIELD_TEXTS, .offset = offsetof(struct nb_training, quick)},
        {"steps", NB_FIELD_READ, .read = read_steps},
        {"seeds", NB_FIELD_READ, .read = read_seeds},
        {"compare", NB_FIELD_READ, .read = read_compare}};
    struct nb_training *t = nb_alloc(1, sizeof *t);
    char reason[400];
    e->own = t;
    t->steps = USUAL_STEPS;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a training experiment", t) != 0)
        return -1;
    const char *wrong = complete(t, reason, sizeof reason);
    return wrong ? nb_error("%s:%d: %s", file->path, nb_jsonc_line(file, node), wrong) : 0;
}

static void training_release(struct nb_experiment *e) {
    struct nb_training *t = e->own;
    for (size_t i = 0; i < t->n_pairs; i++) nb_sides_release(&t->pairs[i]);
    release_arms(t);
    free(t->pairs);
    free(t->workload_name);
    free(t->measure_name);
    free(t->common);
    nb_strings_release(&t->quick);
    nb_strings_release(&t->words);
    free(t);
}

static const char *training_refuses(const struct nb_experiment *e) {
    const struct nb_training *t = e->own;
    return t->workload ? nb_blas_lacks() : "a training workload that this build does not have";
}

/* There are no blocks of the matrix, but smaller arms. */
static void training_plan(struct nb_experiment *e, bool quick, struct nb_config configs[NB_N_CLAIMS_PLANS]) {
    struct nb_training *t = e->own;
    char reason[400];
    (void)configs;
    t->is_quick = quick;
    if (!quick || t->quick.n == 0) return;
    exchange_arms(t);
    complete_arms(t, reason, sizeof reason); /* tried when the file was read */
}

static void training_train(const struct nb_experiment *e, struct nb_train_plan *plan, bool all) {
    struct nb_training *t = e->own;
    t->left_out = t->is_quick && t->quick.n == 0 && !all;
    if (t->left_out) return;
    for (size_t i = 0; i < t->words.n && t->workload; i++)
        nb_train_plan_add(plan, t->measure, t->workload, (int)t->steps, (int)t->seeds, t->arms[i]);
}

static void training_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    const struct nb_training *t = e->own;
    const struct nb_train_results *results = t->left_out ? NULL : m->training;
    const char *why =
        t->left_out ? "training, which --quick leaves out: --train-budget SECONDS takes it along" : m->no_training;
    nb_training_find(t, results, why, out);
    if (t->is_quick && t->quick.n > 0) nb_findings_add_missing(out, "arms", "%s", "an arm that --quick leaves out");
}

const struct nb_experiment_kind nb_experiment_training = {
    .name = "training",
    .summary = "steps of a model, with one norm or another",
    .read = training_read,
    .release = training_release,
    .plan = training_plan,
    .train = training_train,
    .refuses = training_refuses,
    .find = training_find,
};
