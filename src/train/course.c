// SPDX-License-Identifier: Apache-2.0
/* A run step by step. */
#include "src/train/course.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"

enum { UNSEEN_BATCHES = 16, UNSEEN_FROM = 1 << 24 };

static bool is_recorded(int step, const struct nb_course_options *how) {
    const int last = how->steps - 1, parts = how->records - 1;
    if (step == last) return true;
    if (parts < 1) return false;
    for (int r = 0; r < parts; r++)
        if (step == (int)((double)last * r / parts + 0.5)) return true;
    return false;
}

static bool succeeded(const struct nb_model *m, double loss, int64_t skipped_before) {
    return isfinite(loss) && isfinite(m->gradient_norm) && m->loss_scale.skipped_steps == skipped_before;
}

static void train(struct nb_course *c, struct nb_model *m, const struct nb_text *text,
                  const struct nb_course_options *how) {
    for (int s = 0; s < how->steps; s++) {
        const bool recorded = is_recorded(s, how) && c->curves.n_records < c->curves.most_records;
        const int64_t skipped = m->loss_scale.skipped_steps;
        if (how->beat) how->beat(how->context, s);
        if (recorded) nb_curves_begin(&c->curves, s, m->loss_scale.scale);
        m->observer = recorded ? &c->curves.observer : NULL;
        c->loss[s] = nb_model_step(m, text, s);
        c->n_steps = s + 1;
        c->n_failed += !succeeded(m, c->loss[s], skipped);
        if (!isfinite(c->loss[s]) && !m->loss_scale.dynamic) {
            c->n_failed += how->steps - c->n_steps;
            break;
        }
    }
    m->observer = NULL;
    c->kept_bytes = m->activation_bytes;
}

static double unseen(struct nb_model *m, const struct nb_text *text) {
    double sum = 0;
    for (int i = 0; i < UNSEEN_BATCHES; i++) sum += nb_model_forward(m, text, UNSEEN_FROM + i, false);
    return sum / UNSEEN_BATCHES;
}

int nb_course_run(struct nb_course *c, const struct nb_workload *workload, const struct nb_train_options *options,
                  const struct nb_text *text, const struct nb_course_options *how) {
    struct nb_model model;
    *c = (struct nb_course){.loss = nb_alloc((unsigned)how->steps, sizeof *c->loss), .unseen_loss = NAN};
    nb_curves_init(&c->curves, how->records + 1);
    if (nb_model_init(&model, workload, options) != 0) return -1;
    train(c, &model, text, how);
    c->uniform_loss = c->loss[0];
    c->unseen_loss = c->n_steps == how->steps && isfinite(c->loss[how->steps - 1]) ? unseen(&model, text) : NAN;
    nb_model_release(&model);
    return 0;
}

double nb_course_final_loss(const double *loss, int n_steps, int n_wanted) {
    const int tail = n_wanted < 10 ? 1 : n_wanted / 10;
    double sum = 0;
    if (n_steps < n_wanted) return loss[0];
    for (int s = n_wanted - tail; s < n_wanted; s++) sum += loss[s];
    return isfinite(sum) ? sum / tail : loss[0];
}

void nb_course_release(struct nb_course *c) {
    free(c->loss);
    nb_curves_release(&c->curves);
    *c = (struct nb_course){0};
}
