// SPDX-License-Identifier: Apache-2.0
/* A norm over steps of time: before each call the layer is given the place where the statistics of the step lie. */
#include "src/train/projection.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "src/train/matrix.h"
#include "src/train/tensor.h"

int nb_norm_steps_init(struct nb_norm_steps *s, struct nb_model *model, const char *name, int64_t n_steps, int64_t rows,
                       int64_t cols) {
    *s = (struct nb_norm_steps){.model = model, .rows = rows};
    if (nb_norm_layer_init(&s->layer, name, &model->options.norm, n_steps * rows, cols, &model->parameters,
                           model->pool) != 0)
        return -1;
    s->mean = s->layer.mean;
    s->rstd = s->layer.rstd;
    model->activation_bytes += nb_norm_kept_bytes(&s->layer);
    return 0;
}

static bool norm_steps_are_none(const struct nb_norm_steps *s) { return s->layer.choice.kind == NB_NORM_NONE; }

static void look_at(struct nb_norm_steps *s, int64_t first) {
    s->layer.mean = s->mean + first * s->rows;
    s->layer.rstd = s->rstd + first * s->rows;
}

static void account(struct nb_norm_steps *s) {
    s->model->norm_seconds += s->layer.seconds;
    s->model->norm_calls += s->layer.calls;
    s->layer.seconds = 0;
    s->layer.calls = 0;
}

const float *nb_norm_steps_forward(struct nb_norm_steps *s, float *buffer, const float *x, int64_t first,
                                   int64_t n_steps) {
    if (norm_steps_are_none(s)) return x;
    look_at(s, first);
    nb_norm_forward(&s->layer, buffer, x, n_steps * s->rows, true);
    account(s);
    nb_round_tensor(buffer, n_steps * s->rows * s->layer.cols, s->model->options.dtype);
    return buffer;
}

const float *nb_norm_steps_backward(struct nb_norm_steps *s, float *buffer, const float *dy, const float *x,
                                    int64_t first, int64_t n_steps) {
    if (norm_steps_are_none(s)) return dy;
    look_at(s, first);
    nb_norm_backward(&s->layer, buffer, dy, x, n_steps * s->rows);
    account(s);
    nb_round_tensor(buffer, n_steps * s->rows * s->layer.cols, s->model->options.dtype);
    return buffer;
}

void nb_norm_steps_release(struct nb_norm_steps *s) {
    s->layer.mean = s->mean;
    s->layer.rstd = s->rstd;
    nb_norm_layer_release(&s->layer);
    *s = (struct nb_norm_steps){0};
}

/* ---- projections; without a normalization nothing is copied: result and gradient are those of the product ---- */

static int64_t all_rows(const struct nb_projection *p) { return p->shape.n_steps * p->shape.rows; }
static int64_t all_size(const struct nb_projection *p) { return all_rows(p) * p->shape.out; }
static int64_t at_step(const struct nb_projection *p, int64_t step) { return step * p->shape.rows * p->shape.out; }

/* Variance 1 / in: the sum over inputs of variance 1 has variance 1, and a square matrix keeps lengths as an orthogonal one does on
 * average. */
static void add_parameters(struct nb_projection *p) {
    char full[48];
    struct nb_parameters *all = &p->model->parameters;
    snprintf(full, sizeof full, "%s.weight", p->name);
    p->weight = nb_parameter_add(all, full, p->shape.out, p->shape.in, true);
    nb_parameter_draw(p->weight, p->model->options.seed, 1 / sqrt((double)p->shape.in));
    if (!(p->shape.flags & NB_PROJECTION_BIASED)) return;
    snprintf(full, sizeof full, "%s.bias", p->name);
    p->bias = nb_parameter_add(all, full, 1, p->shape.out, false);
}

int nb_projection_init(struct nb_projection *p, struct nb_model *model, const char *name,
                       const struct nb_projection_shape *shape, float *gradient) {
    *p = (struct nb_projection){.shape = *shape, .model = model};
    const int length = snprintf(p->name, sizeof p->name, "%s", name);
    assert(length < (int)sizeof p->name);
    (void)length;
    add_parameters(p);
    if (shape->flags & NB_PROJECTION_NORMED &&
        nb_norm_steps_init(&p->norm, model, name, shape->n_steps, shape->rows, shape->out) != 0)
        return -1;
    const bool is_normed = !norm_steps_are_none(&p->norm);
    struct nb_arena *result = shape->flags & NB_PROJECTION_READ_BACK ? &model->kept : &model->passing;
    p->product = nb_arena_take(is_normed ? &model->kept : result, all_size(p));
    p->gradient = gradient ? gradient : nb_arena_take(&model->passing, all_size(p));
    if (!is_normed) return 0;
    p->normed = nb_arena_take(result, all_size(p));
    p->before = nb_arena_take(&model->passing, all_size(p));
    return 0;
}

void nb_projection_release(struct nb_projection *p) {
    nb_norm_steps_release(&p->norm);
    *p = (struct nb_projection){0};
}

const float *nb_projection_result(const struct nb_projection *p, int64_t step) {
    return (p->normed ? p->normed : p->product) + at_step(p, step);
}
float *nb_projection_gradient(const struct nb_projection *p, int64_t step) { return p->gradient + at_step(p, step); }

/* Calls of the norm for `n_steps`: one, or one a step. */
static int64_t at_once(const struct nb_projection *p, int64_t n_steps) {
    return p->shape.flags & NB_PROJECTION_BY_STEP ? 1 : n_steps;
}

const float *nb_projection_forward(struct nb_projection *p, const float *x, int64_t first, int64_t n_steps) {
    assert(first >= 0 && n_steps > 0 && first + n_steps <= p->shape.n_steps);
    const int64_t rows = n_steps * p->shape.rows, step = at_once(p, n_steps);
    float *product = p->product + at_step(p, first);
    nb_linear_forward(product, x, nb_parameter_used(p->weight), p->bias ? p->bias->value : NULL, rows, p->shape.in,
                      p->shape.out);
    nb_round_tensor(product, rows * p->shape.out, p->model->options.dtype);
    for (int64_t t = first; p->normed && t < first + n_steps; t += step)
        nb_norm_steps_forward(&p->norm, p->normed + at_step(p, t), p->product + at_step(p, t), t, step);
    return nb_projection_result(p, first);
}

void nb_projection_backward(struct nb_projection *p, float *dx, int64_t first, int64_t n_steps, float keep) {
    assert(first >= 0 && n_steps > 0 && first + n_steps <= p->shape.n_steps);
    const int64_t rows = n_steps * p->shape.rows, step = at_once(p, n_steps);
    nb_round_tensor(p->gradient + at_step(p, first), rows * p->shape.out, p->model->options.dtype);
    for (int64_t t = first; p->before && t < first + n_steps; t += step)
        nb_norm_steps_backward(&p->norm, p->before + at_step(p, t), p->gradient + at_step(p, t),
                               p->product + at_step(p, t), t, step);
    if (!dx) return;
    const float *before = (p->before ? p->before : p->gradient) + at_step(p, first);
    nb_matrix_multiply(dx, before, nb_parameter_used(p->weight), rows, p->shape.in, p->shape.out, keep);
    nb_round_tensor(dx, rows * p->shape.in, p->model->options.dtype);
}

void nb_projection_finish(struct nb_projection *p, const float *x) {
    const float *before = p->before ? p->before : p->gradient;
    nb_linear_backward(NULL, p->weight->gradient, p->bias ? p->bias->gradient : NULL, before, x,
                       nb_parameter_used(p->weight), all_rows(p), p->shape.in, p->shape.out);
}

void nb_projection_observe(const struct nb_projection *p) {
    nb_model_observe(p->model, p->name, "product", p->product, all_size(p));
    nb_model_observe(p->model, p->name, "result", nb_projection_result(p, 0), all_size(p));
}

void nb_projection_observe_gradients(const struct nb_projection *p) {
    nb_model_observe_gradient(p->model, p->name, "product", p->before ? p->before : p->gradient, all_size(p));
    nb_model_observe_gradient(p->model, p->name, "result", p->gradient, all_size(p));
}

double nb_projection_flops(const struct nb_projection_shape *shape) {
    return 6.0 * (double)shape->n_steps * (double)shape->rows * (double)shape->in * (double)shape->out;
}
