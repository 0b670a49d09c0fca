// SPDX-License-Identifier: Apache-2.0
/* Trials of the kernels that are there, their launches, their verdicts. */
#include "src/tune/tune_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/core/timer.h"
#include "src/core/tuning_file.h"
#include "src/measure/process.h"
#include "src/tune/tune_launch.h"

/* ---- trials ---- */

/* The widest variant of a built-in kernel that runs here; null: there is none. */
static const struct nb_entry *widest(const char *kernel, uint32_t dtype) {
    const struct nb_entry *found = NULL;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        const struct nb_kernel *k = e->kernel;
        if (e->plugin || strcmp(k->name, kernel) != 0 || k->dtype != dtype || nb_cpu_refuses(k->cpu_features, k->width))
            continue;
        if (!found || k->width > found->kernel->width) found = e;
    }
    return found;
}

static int make_case(struct nb_case *c, const struct nb_entry *entry, const char *shape, const struct nb_tuning *base) {
    struct nb_call call;
    char reason[256];
    nb_case_init(c);
    c->formula.affine = NB_N_AFFINES; /* the op's usual one */
    nb_case_set_entry(c, entry);
    if (nb_shape_parse(&c->shape, shape, reason, sizeof reason) != 0) return -1;
    nb_case_normalize(c);
    c->tuning = base;
    nb_case_call(c, &call);
    return nb_ask_applicable(entry, &call) ? -1 : 0;
}

static void add_trials(struct nb_tune_outcome *o, const struct nb_entry *entry, const struct nb_tune_run *run) {
    int base_arm[NB_TUNE_SHAPES];
    nb_tune_base_arms(o->topic, &run->base, o->shapes, o->n_shapes, base_arm);
    for (size_t s = 0; s < o->n_shapes && o->n_trials < NB_TUNE_TRIALS; s++) {
        struct nb_tune_trial *t = &o->trials[o->n_trials];
        if (make_case(&o->cases[o->n_trials], entry, o->shapes[s].text, &run->base) != 0) continue;
        *t = (struct nb_tune_trial){.shape = s, .base_arm = base_arm[s], .n_arms = o->n_arms};
        for (int a = 0; a < o->n_arms; a++) t->gain[a] = nb_alloc((unsigned)run->options.launches, sizeof *t->gain[a]);
        o->n_trials++;
    }
}

static void plan_topic(struct nb_tune_outcome *o, const struct nb_tune_topic *topic, const struct nb_tune_run *run) {
    *o = (struct nb_tune_outcome){.topic = topic, .verdict = {.candidate = -1, .gain = {NAN, NAN, NAN}}};
    o->n_arms = nb_tune_arms(topic, &run->base, o->arms);
    for (int d = 0; d < topic->n_dtypes; d++) {
        const int64_t item = topic->dtypes[d] == NB_F32 ? 4 : 2;
        o->n_shapes = topic->shapes(nb_cpu_light(), item, o->shapes);
        for (int k = 0; topic->kernels[k]; k++) {
            const struct nb_entry *entry = widest(topic->kernels[k], topic->dtypes[d]);
            if (entry) add_trials(o, entry, run);
        }
    }
    o->n_candidates = nb_tune_candidates(topic, &run->base, o->shapes, o->n_shapes, o->candidates);
    if (o->n_trials == 0) snprintf(o->reason, sizeof o->reason, "this build has no %s", topic->kernels[0]);
}

/* ---- launches ---- */

/* A trial that went wrong is out, and says why. */
static int launch_trial(struct nb_tune_outcome *o, size_t trial, int launch, const struct nb_tune_options *options) {
    struct nb_tune_trial *t = &o->trials[trial];
    struct nb_tune_answer answer;
    const struct nb_tune_request q = {.c = &o->cases[trial],
                                      .arms = o->arms,
                                      .n_arms = o->n_arms,
                                      .base_arm = t->base_arm,
                                      .launch = launch,
                                      .blocks = options->blocks,
                                      .sample_ms = options->sample_ms};
    if (t->n_launches < (size_t)launch) return 0;
    const int ended = nb_tune_launch(&q, &answer);
    if (ended != 0) return ended;
    if (answer.differs)
        snprintf(answer.reason, sizeof answer.reason, "its results depend on the tuning, which they must not");
    if (answer.reason[0]) {
        snprintf(o->reason, sizeof o->reason, "%.80s on %.60s: %.80s", q.c->variant, q.c->shape.text, answer.reason);
        nb_warn("tune: %s", o->reason);
        t->n_launches = 0;
        return 0;
    }
    for (int a = 0; a < o->n_arms; a++) t->gain[a][t->n_launches] = answer.gain[a];
    t->n_launches++;
    return 0;
}

static int launch_all(struct nb_tune_run *run, double start_s) {
    size_t total = 0, done = 0;
    for (size_t i = 0; i < run->n_topics; i++) total += run->topics[i].n_trials * (size_t)run->options.launches;
    for (int l = 0; l < run->options.launches; l++)
        for (size_t i = 0; i < run->n_topics; i++)
            for (size_t t = 0; t < run->topics[i].n_trials; t++) {
                nb_progress((double)done++, (double)total, nb_now_s() - start_s, run->topics[i].topic->name);
                const int ended = launch_trial(&run->topics[i], t, l, &run->options);
                if (ended != 0) return ended;
                if (nb_interrupted()) return nb_interrupted();
            }
    return 0;
}

/* ---- verdicts ---- */

/* The fields in which the candidate is not like the defaults; two topics share none. */
static void take_over(struct nb_tuning *t, const struct nb_tuning *candidate, const struct nb_tuning *base) {
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const int64_t value = nb_tuning_get(candidate, &nb_tuning_fields[i]);
        if (value != nb_tuning_get(base, &nb_tuning_fields[i])) nb_tuning_set(t, &nb_tuning_fields[i], value);
    }
}

static void judge(struct nb_tune_run *run) {
    run->tuned = run->base;
    for (size_t i = 0; i < run->n_topics; i++) {
        struct nb_tune_outcome *o = &run->topics[i];
        nb_tune_judge(o->trials, o->n_trials, o->candidates, o->n_candidates, &o->verdict);
        if (o->verdict.candidate >= 0) take_over(&run->tuned, &o->candidates[o->verdict.candidate].tuning, &run->base);
    }
}

int nb_tune_run(struct nb_tune_run *run, const struct nb_tune_options *options) {
    const double start_s = nb_now_s();
    *run = (struct nb_tune_run){.options = *options, .n_topics = nb_n_tune_topics};
    nb_tuning_default(&run->base);
    run->topics = nb_alloc(run->n_topics, sizeof *run->topics);
    for (size_t i = 0; i < run->n_topics; i++) {
        plan_topic(&run->topics[i], &nb_tune_topics[i], run);
        run->n_measured += run->topics[i].n_trials > 0;
    }
    nb_watch_interrupts();
    const int ended = launch_all(run, start_s);
    nb_progress_end();
    run->elapsed_s = nb_now_s() - start_s;
    if (ended == 0) judge(run);
    return ended;
}

void nb_tune_run_release(struct nb_tune_run *run) {
    for (size_t i = 0; run->topics && i < run->n_topics; i++)
        for (size_t t = 0; t < run->topics[i].n_trials; t++)
            for (int a = 0; a < run->topics[i].n_arms; a++) free(run->topics[i].trials[t].gain[a]);
    free(run->topics);
    *run = (struct nb_tune_run){0};
}
