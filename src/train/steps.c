// SPDX-License-Identifier: Apache-2.0
/* The arms take turns. */
#include "src/train/steps.h"

#include <assert.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"

const char *const nb_step_part_names[NB_N_STEP_PARTS] = {"step", "passes", "forward", "backward", "norm"};

static void shuffle(int *order, int n, uint64_t *state) {
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(nb_random_next(state) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static void reverse(int *order, int n) {
    for (int i = 0; i < n / 2; i++) {
        const int t = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = t;
    }
}

static void step(struct nb_step_arm *arm, const struct nb_text *text, int block) {
    struct nb_model *m = &arm->model;
    m->norm_seconds = m->forward_seconds = m->backward_seconds = 0;
    const double start = nb_now_s();
    const double loss = nb_model_step(m, text, block);
    const double whole = nb_now_s() - start;
    arm->kept_bytes = m->activation_bytes;
    arm->seconds[NB_STEP_WHOLE][block] = whole;
    arm->seconds[NB_STEP_PASSES][block] = m->forward_seconds + m->backward_seconds;
    arm->seconds[NB_STEP_FORWARD][block] = m->forward_seconds;
    arm->seconds[NB_STEP_BACKWARD][block] = m->backward_seconds;
    arm->seconds[NB_STEP_NORM][block] = m->norm_seconds;
    arm->loss[block] = loss;
}

static void beat(const struct nb_steps_options *options, int arm) {
    if (options->beat) options->beat(options->context, arm);
}

/* The first step allocates, touches every page and lets the matrix library settle. */
static int make_arms(struct nb_step_arm *arms, int n_arms, const struct nb_workload *workload,
                     const struct nb_text *text, const struct nb_steps_options *options) {
    for (int a = 0; a < n_arms; a++) {
        beat(options, a);
        for (int p = 0; p < NB_N_STEP_PARTS; p++)
            arms[a].seconds[p] = nb_alloc((unsigned)options->most_blocks, sizeof(double));
        arms[a].loss = nb_alloc((unsigned)options->most_blocks, sizeof(double));
        if (nb_model_init(&arms[a].model, workload, &arms[a].options) != 0) return -1;
        beat(options, a);
        step(&arms[a], text, 0);
    }
    return 0;
}

int nb_steps_measure(struct nb_step_arm *arms, int n_arms, const struct nb_workload *workload,
                     const struct nb_text *text, const struct nb_steps_options *options, int *n_blocks) {
    assert(arms && n_arms > 0 && workload && text && n_blocks);
    int *order = nb_alloc((unsigned)n_arms, sizeof *order), block = 0;
    uint64_t state = options->seed;
    const int result = make_arms(arms, n_arms, workload, text, options);
    const double start = nb_now_s();
    for (int a = 0; a < n_arms; a++) order[a] = a;
    while (result == 0 && block + 2 <= options->most_blocks && (block == 0 || nb_now_s() - start < options->launch_s)) {
        shuffle(order, n_arms, &state);
        for (int half = 0; half < 2; half++, block++) {
            for (int i = 0; i < n_arms; i++) {
                beat(options, order[i]);
                step(&arms[order[i]], text, block);
            }
            reverse(order, n_arms);
        }
    }
    *n_blocks = block;
    free(order);
    return result;
}

void nb_steps_release(struct nb_step_arm *arms, int n_arms) {
    for (int a = 0; a < n_arms; a++) {
        for (int p = 0; p < NB_N_STEP_PARTS; p++) free(arms[a].seconds[p]);
        free(arms[a].loss);
        if (arms[a].model.workload) nb_model_release(&arms[a].model);
    }
}
