// SPDX-License-Identifier: Apache-2.0
/* Without a normalization nothing is copied: result and gradient are those of the product. */
#include "src/train/projection.h"

#include <assert.h>
#include <math.h>

#include "src/train/matrix.h"
#include "src/train/tensor.h"

static int64_t all_rows(const struct nb_projection *p) { return p->shape.n_steps * p->shape.rows; }
static int64_t all_size(const struct nb_projection *p) { return all_rows(p) * p->shape.out; }
static int64_t at_step(const struct nb_projection *p, int64_t step) { return step * p->shape.rows * p->shape.out; }
static bool is_normed(const struct nb_projection *p) { return p->norm.choice.kind != NB_NORM_NONE; }

void nb_projection_init(struct nb_projection *p, struct nb_model *model, const char *name, const char *what,
                        struct nb_projection_shape shape, float *gradient) {
    *p = (struct nb_projection){.shape = shape, .model = model, .place = nb_place_of(name, what)};
    struct nb_parameters *all = &model->parameters;
    /* Variance 1 / in: the sum over inputs of variance 1 has variance 1, and a square matrix keeps lengths as an orthogonal one does on
     * average. */
    p->weight = nb_parameter_matrix(all, p->place.text, "weight", shape.out, shape.in, model->options.seed,
                                    1 / sqrt((double)shape.in));
    if (shape.flags & NB_PROJECTION_BIASED) p->bias = nb_parameter_vector(all, p->place.text, "bias", shape.out, 0);
    if (shape.flags & NB_PROJECTION_NORMED) nb_norm_layer_init(&p->norm, model, p->place.text, all_rows(p), shape.out);
    struct nb_arena *result = shape.flags & NB_PROJECTION_READ_BACK ? &model->kept : &model->passing;
    p->product = nb_arena_take(is_normed(p) ? &model->kept : result, all_size(p));
    p->gradient = gradient ? gradient : nb_arena_take(&model->passing, all_size(p));
    if (!is_normed(p)) return;
    p->normed = nb_arena_take(result, all_size(p));
    p->before = nb_arena_take(&model->passing, all_size(p));
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
        nb_norm_forward(&p->norm, p->normed + at_step(p, t), p->product + at_step(p, t), t * p->shape.rows,
                        step * p->shape.rows, true);
    return nb_projection_result(p, first);
}

void nb_projection_backward(struct nb_projection *p, float *dx, int64_t first, int64_t n_steps, float keep) {
    assert(first >= 0 && n_steps > 0 && first + n_steps <= p->shape.n_steps);
    const int64_t rows = n_steps * p->shape.rows, step = at_once(p, n_steps);
    nb_round_tensor(p->gradient + at_step(p, first), rows * p->shape.out, p->model->options.dtype);
    for (int64_t t = first; p->before && t < first + n_steps; t += step)
        nb_norm_backward(&p->norm, p->before + at_step(p, t), p->gradient + at_step(p, t), p->product + at_step(p, t),
                         t * p->shape.rows, step * p->shape.rows);
    if (!dx) return;
    const float *before = (p->before ? p->before : p->gradient) + at_step(p, first);
    nb_matrix_multiply(NB_AS_STORED, dx, before, nb_parameter_used(p->weight), rows, p->shape.in, p->shape.out, keep);
    nb_round_tensor(dx, rows * p->shape.in, p->model->options.dtype);
}

void nb_projection_finish(struct nb_projection *p, const float *x) {
    const float *before = p->before ? p->before : p->gradient;
    nb_linear_backward(NULL, p->weight->gradient, p->bias ? p->bias->gradient : NULL, before, x,
                       nb_parameter_used(p->weight), all_rows(p), p->shape.in, p->shape.out);
}

void nb_projection_observe(const struct nb_projection *p, enum nb_observed what) {
    const float *dproduct = p->before ? p->before : p->gradient;
    nb_model_observe(p->model, what, p->place.text, "product", what == NB_GRADIENT ? dproduct : p->product,
                     all_size(p));
    nb_model_observe(p->model, what, p->place.text, "result",
                     what == NB_GRADIENT ? p->gradient : nb_projection_result(p, 0), all_size(p));
}

double nb_projection_flops(struct nb_projection_shape s) {
    return 6.0 * (double)s.n_steps * (double)s.rows * (double)s.in * (double)s.out;
}
