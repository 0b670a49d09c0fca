// SPDX-License-Identifier: Apache-2.0
/* A run step by step, and the curves that it leaves: a place is added when it is first observed. */
#include "src/train/course.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"

/* Population standard deviation, two passes in double; NaN and infinities go through. */
static double standard_deviation(const float *values, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)values[i];
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    return sqrt(squares / (double)n);
}

static struct nb_curve *curve_of(struct nb_curves *c, const char *place, bool gradient) {
    for (int i = 0; i < c->n; i++)
        if (c->items[i].gradient == gradient && strcmp(c->items[i].place, place) == 0) return &c->items[i];
    c->items = nb_realloc(c->items, (unsigned)c->n + 1, sizeof *c->items);
    struct nb_curve *one = &c->items[c->n++];
    *one = (struct nb_curve){.gradient = gradient};
    snprintf(one->place, sizeof one->place, "%s", place);
    one->std = nb_alloc((unsigned)c->most_records, sizeof *one->std);
    for (int r = 0; r < c->most_records; r++) one->std[r] = NAN;
    return one;
}

/* Of a tensor that comes in parts the widest part counts. */
static void keep(struct nb_curves *c, const char *place, bool gradient, double std) {
    struct nb_curve *one = curve_of(c, place, gradient);
    double *at = &one->std[c->n_records - 1];
    if (isnan(*at) || !(std <= *at)) *at = std;
}

static void see(void *context, enum nb_observed what, const char *place, const float *values, int64_t n) {
    struct nb_curves *c = context;
    const double std = standard_deviation(values, n);
    keep(c, place, what == NB_GRADIENT, what == NB_GRADIENT ? std / c->scale : std);
}

static void curves_init(struct nb_curves *c, int most_records) {
    *c = (struct nb_curves){.most_records = most_records,
                            .steps = nb_alloc((unsigned)most_records + 1, sizeof *c->steps),
                            .scale = 1,
                            .observer = {.see = see, .context = c}};
}

/* A step to be recorded begins. */
static void curves_begin(struct nb_curves *c, int step, double loss_scale) {
    assert(c->n_records < c->most_records);
    c->steps[c->n_records++] = step;
    c->scale = loss_scale;
}

static void curves_release(struct nb_curves *c) {
    for (int i = 0; i < c->n; i++) free(c->items[i].std);
    free(c->items);
    free(c->steps);
    *c = (struct nb_curves){0};
}

/* ---- the run ---- */

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
        if (recorded) curves_begin(&c->curves, s, m->loss_scale.scale);
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
    assert(c && workload && options && text && how && how->steps > 0);
    struct nb_model model;
    *c = (struct nb_course){.loss = nb_alloc((unsigned)how->steps, sizeof *c->loss), .unseen_loss = NAN};
    curves_init(&c->curves, how->records + 1);
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
    curves_release(&c->curves);
    *c = (struct nb_course){0};
}
