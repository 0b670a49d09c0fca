// SPDX-License-Identifier: Apache-2.0
/* The check of a group: every case against the oracle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/gradient.h"
#include "src/core/json.h"
#include "src/core/timer.h"
#include "src/measure/check.h"
#include "src/measure/lines.h"
#include "src/measure/metamorphic.h"
#include "src/measure/worker.h"

/* May two cases share an oracle? All that it follows is the same. */
static bool same_mathematics(const struct nb_case *a, const struct nb_case *b) {
    return a->op == b->op && a->eps == b->eps && a->formula.eps_place == b->formula.eps_place && a->k == b->k &&
           a->recomputes == b->recomputes && a->alpha == b->alpha && a->momentum == b->momentum && a->mode == b->mode &&
           a->formula.weight_offset == b->formula.weight_offset && a->formula.affine == b->formula.affine &&
           a->formula.param == b->formula.param && a->formula.round_sum == b->formula.round_sum;
}

static const char *or_null(const char *text) { return text && *text ? text : NULL; }

/* As much of a kernel's own text as anybody reads: the journal has it in each case. */
struct words {
    char text[200];
};
static const char *shorten(const char *text, struct words *out) {
    if (!or_null(text)) return NULL;
    snprintf(out->text, sizeof out->text, "%s", text);
    return out->text;
}

static const char *library_of(const struct nb_kernel *k) {
    if (nb_kernel_is_of_program(k)) return nb_kernel_program_language(k);
    return k->version ? k->version() : NULL;
}

static void say_checked(const struct nb_job *job, int i, const struct nb_checked *checked,
                        const struct nb_metamorphic *metamorphic) {
    const struct nb_kernel *k = job->entries[i]->kernel;
    const struct nb_case *c = &job->cases[i];
    struct nb_call call;
    struct words library, implementation;
    nb_case_call(c, &call);
    struct nb_check_line line = {.key = job->asked[i].key,
                                 .status = checked->status,
                                 .reason = or_null(checked->reason),
                                 .facts.summation_depth = checked->chain,
                                 .facts.column_summation_depth = c->pass == NB_BACKWARD ? checked->column_chain : 0,
                                 .facts.row_local = checked->row_local,
                                 .facts.rows_judged = checked->rows_judged,
                                 .facts.calls = checked->calls,
                                 .facts.library = shorten(library_of(k), &library),
                                 .facts.implementation =
                                     k->implementation ? shorten(k->implementation(&call), &implementation) : NULL,
                                 .has_accuracy = checked->has_accuracy,
                                 .has_evidence = checked->has_accuracy,
                                 .has_metamorphic = metamorphic != NULL,
                                 .accuracy = checked->accuracy,
                                 .evidence = checked->evidence};
    if (metamorphic) line.metamorphic = *metamorphic;
    if (checked->digests)
        snprintf(line.facts.digest, sizeof line.facts.digest, "%016llx",
                 (unsigned long long)nb_row_digest(checked->digests, nb_n_digests(c->shape.rows), sizeof(uint64_t)));
    cJSON *json = nb_check_line_to_json(&line, nb_number_of(c->dtype));
    nb_json_text(json, "type", "case");
    nb_worker_say(json);
}

/* Are the tensors of two cases the same, but for those that only one of their ops has? */
static bool same_inputs(const struct nb_case *a, const struct nb_case *b) {
    return a->pass == b->pass && a->dtype == b->dtype && a->seed == b->seed && a->pad == b->pad &&
           strcmp(a->shape.text, b->shape.text) == 0 && strcmp(a->data, b->data) == 0 && strcmp(a->dy, b->dy) == 0 &&
           strcmp(a->params, b->params) == 0 && nb_case_n_params(a) == nb_case_n_params(b);
}

/* Inputs that serve case i and those behind it with the same ones. */
static int make_inputs(struct nb_workplace *w, int i) {
    int end = i + 1;
    while (end < w->job.n_cases && same_inputs(&w->job.cases[i], &w->job.cases[end])) end++;
    return nb_worker_make_inputs(w, i, end);
}

/* What neighbouring cases of one mathematics share. */
struct shared_truth {
    const struct nb_case *of; /* null: nothing there */
    struct nb_oracle oracle;
    struct nb_yardstick yardstick; /* of a check alone */
    struct nb_gradient gradient;   /* of a backward pass */
    bool device_is_lost;           /* by a case that was checked in this process */
};

static bool has_gradient(const struct nb_case *c) { return c->pass == NB_BACKWARD && c->op != NB_OP_COPY; }

static void release_truth(struct shared_truth *t) {
    if (!t->of) return;
    if (has_gradient(t->of)) nb_gradient_release(&t->gradient);
    nb_yardstick_release(&t->yardstick);
    nb_oracle_release(&t->oracle);
    t->of = NULL;
}

static int make_truth(struct shared_truth *t, const struct nb_case *c, const struct nb_workplace *w) {
    if (nb_oracle_init(&t->oracle, c, &w->inputs) != 0) return -1;
    if (has_gradient(c) && nb_saved_statistics_gradient(&t->gradient, c, &w->inputs) != 0) {
        nb_oracle_release(&t->oracle);
        return -1;
    }
    t->of = c;
    if (w->job.check_only && c->pass == NB_FORWARD) nb_yardstick_init(&t->yardstick, &t->oracle);
    return 0;
}

/* A relation that is broken is a failure, whatever the accuracy of each result. */
static void judge_relations(struct nb_checked *checked, const struct nb_metamorphic *m) {
    for (int r = 0; r < NB_N_RELATIONS; r++) {
        if (m->relations[r].verdict != NB_BROKEN) continue;
        const bool same_bits = r == NB_REL_ROW_ORDER || r == NB_REL_BATCH || r == NB_REL_RANGES || r == NB_REL_TWICE;
        const struct nb_relation_result *of = &m->relations[r];
        const bool is_ratio = r == NB_REL_PERMUTE || r == NB_REL_SHIFT || r == NB_REL_SQUARES || r == NB_REL_SUM;
        char where[80] = "";
        if (of->row >= 0 && of->col >= 0)
            snprintf(where, sizeof where, ", %s [%lld][%lld]", is_ratio ? "worst at" : "first at", (long long)of->row,
                     (long long)of->col);
        else if (of->row >= 0)
            snprintf(where, sizeof where, ", in row %lld", (long long)of->row);
        nb_checked_fail(checked, same_bits ? NB_NOT_REPRODUCIBLE : NB_INACCURATE,
                        "the relation %s is broken: %s: %.3g %s%s", nb_relation_name((enum nb_relation)r), of->reason,
                        of->figure,
                        is_ratio    ? "times what is allowed"
                        : same_bits ? "rows"
                                    : "elements",
                        where);
        return;
    }
}

/* In a process of its own. */
static void check_one(struct nb_workplace *w, int i, void *arg) {
    const struct nb_job *job = &w->job;
    const struct nb_case *c = &job->cases[i];
    struct shared_truth *truth = arg;
    const struct nb_device_api *device = nb_device_of(c->backend);
    const bool measures = job->check_only && c->pass == NB_FORWARD; /* y alone has a yardstick */
    const struct nb_exact exact = {.oracle = &truth->oracle,
                                   .yardstick = measures ? &truth->yardstick : NULL,
                                   .gradient = has_gradient(c) ? &truth->gradient : NULL};
    struct nb_checked checked;
    struct nb_metamorphic metamorphic;
    nb_check_case(c, job->entries[i], &w->inputs, &exact, &checked);
    if (job->asked[i].many) nb_check_on(c, job->entries[i], &w->inputs, &checked);
    uint64_t *digests = nb_worker_digests(w, i);
    if (digests && checked.digests)
        memcpy(digests, checked.digests, (size_t)nb_n_digests(c->shape.rows) * sizeof *digests);
    const bool tries = job->check_only && nb_status_timed(checked.status);
    if (tries) nb_metamorphic_check(c, job->entries[i], &truth->oracle, &metamorphic);
    if (tries) judge_relations(&checked, &metamorphic);
    say_checked(job, i, &checked, tries ? &metamorphic : NULL);
    /* After an access outside every call on the device fails, whoever makes it. */
    truth->device_is_lost = !nb_device_is_host(device) && device->synchronise() != 0;
    free(checked.digests);
}

static int check_cases(struct nb_workplace *w) {
    struct nb_job *job = &w->job;
    struct shared_truth truth = {0};
    bool goes_on = true;
    for (int i = 0; i < job->n_cases && goes_on && !(job->until_s > 0 && nb_now_s() > job->until_s); i++) {
        const struct nb_case *c = &job->cases[i];
        nb_worker_at(w, i);
        nb_worked("check", job->entries[i]->file, 1, (double)c->shape.rows * (double)c->shape.cols);
        const bool other_inputs = i == 0 || !same_inputs(&job->cases[i - 1], c);
        if (truth.of && (other_inputs || !same_mathematics(truth.of, c))) release_truth(&truth);
        if (other_inputs && make_inputs(w, i) != 0) return -1;
        if (!truth.of && make_truth(&truth, c, w) != 0) return -1;
        goes_on = nb_worker_apart(w, i, check_one, &truth) && !truth.device_is_lost;
    }
    release_truth(&truth);
    return 0;
}

static int check_job(struct nb_workplace *w) {
    const int result = check_cases(w);
    nb_worker_at(w, -1);
    return result;
}

const struct nb_job_type nb_check_job = {.work = check_job, .own_inputs = true, .apart = true};
