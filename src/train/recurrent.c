// SPDX-License-Identifier: Apache-2.0
/* In the cells the products over the state are made step by step; those of the input and all gradients of weights for many steps at
 * once. */
#include "src/train/recurrent.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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
    nb_op(1 + (keep != 0));
    const float *before = (p->before ? p->before : p->gradient) + at_step(p, first);
    nb_matrix_multiply(NB_AS_STORED, dx, before, nb_parameter_used(p->weight), rows, p->shape.in, p->shape.out, keep);
    nb_round_tensor(dx, rows * p->shape.in, p->model->options.dtype);
}

void nb_projection_finish(struct nb_projection *p, const float *x) {
    const float *before = p->before ? p->before : p->gradient;
    nb_linear_backward(NULL, p->weight->gradient, p->bias ? p->bias->gradient : NULL, before, x,
                       nb_parameter_used(p->weight), all_rows(p), p->shape.in, p->shape.out);
}

/* Shows the observer product and result, or the gradients of both, over all steps. */
static void projection_observe(const struct nb_projection *p, enum nb_observed what) {
    const float *dproduct = p->before ? p->before : p->gradient;
    nb_model_observe(p->model, what, p->place.text, "product", what == NB_GRADIENT ? dproduct : p->product,
                     all_size(p));
    nb_model_observe(p->model, what, p->place.text, "result",
                     what == NB_GRADIENT ? p->gradient : nb_projection_result(p, 0), all_size(p));
}

double nb_projection_flops(struct nb_projection_shape s) {
    return 6.0 * (double)s.n_steps * (double)s.rows * (double)s.in * (double)s.out;
}

/* ---- the options of recurrent workloads; eps and the share of pRMSNorm are those of the paper's recurrent code ---- */

enum {
    UNIT = 16,
    LEAST_SEQUENCE = 4,
    MOST_HIDDEN = 1 << 13,
    MOST_BATCH = 1 << 12,
    MOST_SEQUENCE = 1 << 12,
    MOST_TOKENS = 1 << 17
};

static bool within(int v, int least, int most) { return v >= least && v <= most; }

const char *nb_recurrent_complete(const void *usual, struct nb_train_options *o) {
    nb_train_options_fill(o, usual);
    nb_train_options_fill(o, &(struct nb_train_options){.layers = 1, .norm = {.eps = 1e-5, .partial = 0.0625}});
    if (o->norm.kind == NB_NORM_BATCHNORM)
        return "BatchNorm would need running statistics of each step of time: choose another norm";
    if (o->layers != 1) return "it has one layer: leave layers out, or 1";
    if (!within(o->hidden, UNIT, MOST_HIDDEN) || o->hidden % UNIT != 0)
        return "hidden must be a multiple of 16, at most 8192";
    if (!within(o->batch, 2, MOST_BATCH)) return "batch must be 2 to 4096";
    if (!within(o->sequence, LEAST_SEQUENCE, MOST_SEQUENCE)) return "sequence must be 4 to 4096";
    if ((int64_t)o->batch * o->sequence > MOST_TOKENS) return "batch times sequence must be at most 131072";
    return nb_train_options_refused(o, false);
}

/* ---- where a step's tensors lie; states has one more than there are steps ---- */

static int64_t state_size(const struct nb_recurrent_shape *s) { return s->batch * s->hidden; }
static int64_t before(const struct nb_recurrent_shape *s, int64_t step) {
    return (step + s->backwards) * state_size(s);
}
static int64_t after(const struct nb_recurrent_shape *s, int64_t step) {
    return (step + !s->backwards) * state_size(s);
}
static int64_t in_turn(const struct nb_recurrent_shape *s, int64_t i) { return s->backwards ? s->n_steps - 1 - i : i; }

float *nb_recurrent_outputs(const struct nb_recurrent_shape *s, float *states) { return states + after(s, 0); }

/* A product behind which stands a norm. */
static struct nb_projection_shape part(const struct nb_recurrent_shape *s, int64_t in, int64_t out, unsigned flags) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, out, flags | NB_PROJECTION_NORMED};
}

/* ---- GRU ---- */

void nb_gru_init(struct nb_gru *g, struct nb_model *model, const char *place, const char *what,
                 const struct nb_recurrent_shape *s) {
    *g = (struct nb_gru){.shape = *s, .model = model};
    const struct nb_place name = nb_place_of(place, what);
    const int64_t h = s->hidden, rows = s->n_steps * s->batch;
    const unsigned input = NB_PROJECTION_BIASED | (s->input_by_step ? (unsigned)NB_PROJECTION_BY_STEP : 0u);
    g->gates = nb_arena_take(&model->kept, rows * 2 * h);
    g->candidate = nb_arena_take(&model->kept, rows * h);
    nb_projection_init(&g->x_gates, model, name.text, "x_gates", part(s, s->in, 2 * h, input), NULL);
    nb_projection_init(&g->x_candidate, model, name.text, "x_candidate", part(s, s->in, h, input), NULL);
    nb_projection_init(&g->h_gates, model, name.text, "h_gates", part(s, h, 2 * h, 0), g->x_gates.gradient);
    nb_projection_init(&g->h_candidate, model, name.text, "h_candidate", part(s, h, h, NB_PROJECTION_READ_BACK), NULL);
}

/* ---- GRU: a step ---- */

void nb_gru_input(struct nb_gru *g, const float *x, int64_t first, int64_t n_steps) {
    nb_projection_forward(&g->x_gates, x, first, n_steps);
    nb_projection_forward(&g->x_candidate, x, first, n_steps);
}

static void add(float *sum, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

/* Sum and sigmoid of the gates; product, sum and tanh of the candidate; 1 - u, two products, a sum. Backward, for each product two,
 * for each other operation one, and a sum where two paths meet. */
enum { GRU_FORWARD_OPS = 9, GRU_BACKWARD_OPS = 12 };

void nb_gru_step(struct nb_gru *g, int64_t step, float *next, const float *state) {
    const int64_t h = g->shape.hidden, n = state_size(&g->shape);
    const enum nb_dtype dtype = g->model->options.dtype;
    float *gates = g->gates + step * 2 * n, *c = g->candidate + step * n;
    nb_op(GRU_FORWARD_OPS);
    add(gates, nb_projection_result(&g->x_gates, step), nb_projection_forward(&g->h_gates, state, step, 1), 2 * n);
    nb_sigmoid_tensor(gates, 2 * n);
    nb_round_tensor(gates, 2 * n, dtype);
    const float *from_x = nb_projection_result(&g->x_candidate, step);
    const float *from_h = nb_projection_forward(&g->h_candidate, state, step, 1);
    for (int64_t b = 0; b < g->shape.batch; b++)
        for (int64_t i = 0; i < h; i++) c[b * h + i] = from_x[b * h + i] + gates[b * 2 * h + i] * from_h[b * h + i];
    nb_tanh_tensor(c, n);
    nb_round_tensor(c, n, dtype);
    for (int64_t b = 0; b < g->shape.batch; b++) {
        const float *u = gates + b * 2 * h + h;
        for (int64_t i = b * h; i < b * h + h; i++, u++) next[i] = *u * state[i] + (1 - *u) * c[i];
    }
    nb_round_tensor(next, n, dtype);
}

/* One row of gradients: of gates and candidates before their sigmoid and tanh, and the direct path to the state. */
struct row {
    const float *gates, *c, *from_h, *state, *dnext;
    float *dgates, *dfrom_x, *dfrom_h, *dstate;
};

static void row_backward(const struct row *row, int64_t h) {
    const float *r = row->gates, *u = row->gates + h;
    for (int64_t i = 0; i < h; i++) {
        const float d = row->dnext[i];
        const float dc = d * (1 - u[i]) * (1 - row->c[i] * row->c[i]);
        row->dstate[i] += d * u[i];
        row->dfrom_x[i] = dc;
        row->dfrom_h[i] = dc * r[i];
        row->dgates[i] = dc * row->from_h[i] * r[i] * (1 - r[i]);
        row->dgates[h + i] = d * (row->state[i] - row->c[i]) * u[i] * (1 - u[i]);
    }
}

void nb_gru_step_backward(struct nb_gru *g, int64_t step, float *dstate, const float *dnext, const float *state) {
    const int64_t h = g->shape.hidden;
    nb_op(GRU_BACKWARD_OPS);
    for (int64_t b = 0; b < g->shape.batch; b++) {
        const int64_t at = b * h, wide = b * 2 * h;
        row_backward(&(struct row){.gates = g->gates + step * 2 * state_size(&g->shape) + wide,
                                   .c = g->candidate + step * state_size(&g->shape) + at,
                                   .from_h = nb_projection_result(&g->h_candidate, step) + at,
                                   .state = state + at,
                                   .dnext = dnext + at,
                                   .dgates = nb_projection_gradient(&g->h_gates, step) + wide,
                                   .dfrom_x = nb_projection_gradient(&g->x_candidate, step) + at,
                                   .dfrom_h = nb_projection_gradient(&g->h_candidate, step) + at,
                                   .dstate = dstate + at},
                     h);
    }
    nb_projection_backward(&g->h_gates, dstate, step, 1, 1);
    nb_projection_backward(&g->h_candidate, dstate, step, 1, 1);
}

void nb_gru_input_backward(struct nb_gru *g, float *dx, int64_t first, int64_t n_steps, float keep) {
    nb_projection_backward(&g->x_gates, dx, first, n_steps, keep);
    nb_projection_backward(&g->x_candidate, dx, first, n_steps, 1);
}

void nb_gru_finish(struct nb_gru *g, const float *x, const float *states_before) {
    nb_projection_finish(&g->x_gates, x);
    nb_projection_finish(&g->x_candidate, x);
    nb_projection_finish(&g->h_gates, states_before);
    nb_projection_finish(&g->h_candidate, states_before);
}

/* ---- GRU: all steps ---- */

void nb_gru_forward(struct nb_gru *g, float *states, const float *x) {
    nb_gru_input(g, x, 0, g->shape.n_steps);
    for (int64_t i = 0; i < g->shape.n_steps; i++) {
        const int64_t t = in_turn(&g->shape, i);
        nb_gru_step(g, t, states + after(&g->shape, t), states + before(&g->shape, t));
    }
}

void nb_gru_backward(struct nb_gru *g, float *dx, float *dstates, const float *states, const float *x) {
    for (int64_t i = g->shape.n_steps - 1; i >= 0; i--) {
        const int64_t t = in_turn(&g->shape, i);
        nb_gru_step_backward(g, t, dstates + before(&g->shape, t), dstates + after(&g->shape, t),
                             states + before(&g->shape, t));
    }
    nb_gru_input_backward(g, dx, 0, g->shape.n_steps, 0);
    nb_gru_finish(g, x, states + before(&g->shape, 0));
}

void nb_gru_observe(const struct nb_gru *g, enum nb_observed what) {
    projection_observe(&g->x_gates, what);
    projection_observe(&g->x_candidate, what);
    projection_observe(&g->h_gates, what);
    projection_observe(&g->h_candidate, what);
}

/* Of the products of input and state, each so many times as wide as the state. */
static double cell_flops(const struct nb_recurrent_shape *s, int64_t times) {
    return nb_projection_flops(part(s, s->in, times * s->hidden, 0)) +
           nb_projection_flops(part(s, s->hidden, times * s->hidden, 0));
}

double nb_gru_flops(const struct nb_recurrent_shape *s) { return cell_flops(s, 3); }
double nb_lstm_flops(const struct nb_recurrent_shape *s) { return cell_flops(s, 4); }

/* ---- LSTM ---- */

void nb_lstm_init(struct nb_lstm *l, struct nb_model *model, const char *place, const char *what,
                  const struct nb_recurrent_shape *s) {
    *l = (struct nb_lstm){.shape = *s, .model = model, .place = nb_place_of(place, what)};
    const int64_t h = s->hidden, state = state_size(s), all = s->n_steps * state;
    const char *name = l->place.text;
    l->gates = nb_arena_take(&model->kept, 4 * all);
    l->cells = nb_arena_take(&model->kept, all + state);
    l->squashed = nb_arena_take(&model->kept, all);
    l->normed = nb_arena_take(&model->passing, state);
    l->dnormed = nb_arena_take(&model->passing, state);
    l->through = nb_arena_take(&model->passing, state);
    l->dcell = nb_arena_take(&model->passing, state);
    nb_projection_init(&l->x, model, name, "x", part(s, s->in, 4 * h, NB_PROJECTION_BY_STEP), NULL);
    nb_projection_init(&l->h, model, name, "h", part(s, h, 4 * h, 0), l->x.gradient);
    l->bias = nb_parameter_vector(&model->parameters, name, "bias", 4 * h, 0);
    nb_norm_layer_init(&l->cell_norm, model, nb_place_of(name, "cell").text, s->n_steps * s->batch, h);
}

/* ---- forward ---- */

/* Two sums, sigmoid and tanh of the gates; two products and a sum of the cell; tanh and a product of the state. */
enum { LSTM_FORWARD_OPS = 9, LSTM_BACKWARD_OPS = 13 };

static void open_gates(struct nb_lstm *l, int64_t step, const float *state) {
    const int64_t h = l->shape.hidden;
    nb_op(LSTM_FORWARD_OPS);
    const float *from_x = nb_projection_result(&l->x, step), *from_h = nb_projection_forward(&l->h, state, step, 1);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const int64_t at = b * 4 * h;
        float *gates = l->gates + step * 4 * state_size(&l->shape) + at;
        for (int64_t i = 0; i < 4 * h; i++) gates[i] = from_x[at + i] + from_h[at + i] + l->bias->value[i];
        nb_sigmoid_tensor(gates, 3 * h);
        nb_tanh_tensor(gates + 3 * h, h);
    }
    nb_round_tensor(l->gates + step * 4 * state_size(&l->shape), 4 * state_size(&l->shape), l->model->options.dtype);
}

static void move_cell(const struct nb_lstm *l, int64_t step) {
    const int64_t h = l->shape.hidden;
    const float *cell = l->cells + before(&l->shape, step);
    float *next = l->cells + after(&l->shape, step);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const float *i_gate = l->gates + step * 4 * state_size(&l->shape) + b * 4 * h, *f_gate = i_gate + h,
                    *g = i_gate + 3 * h;
        for (int64_t i = 0; i < h; i++) next[b * h + i] = f_gate[i] * cell[b * h + i] + i_gate[i] * g[i];
    }
    nb_round_tensor(next, state_size(&l->shape), l->model->options.dtype);
}

static void say_state(struct nb_lstm *l, int64_t step, float *next) {
    const int64_t h = l->shape.hidden, n = state_size(&l->shape);
    float *squashed = l->squashed + step * n;
    memcpy(squashed,
           nb_norm_forward(&l->cell_norm, l->normed, l->cells + after(&l->shape, step), step * l->shape.batch,
                           l->shape.batch, true),
           (size_t)n * sizeof *squashed);
    nb_tanh_tensor(squashed, n);
    nb_round_tensor(squashed, n, l->model->options.dtype);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const float *o = l->gates + step * 4 * n + b * 4 * h + 2 * h;
        for (int64_t i = 0; i < h; i++) next[b * h + i] = o[i] * squashed[b * h + i];
    }
    nb_round_tensor(next, n, l->model->options.dtype);
}

void nb_lstm_forward(struct nb_lstm *l, float *states, const float *x) {
    nb_projection_forward(&l->x, x, 0, l->shape.n_steps);
    for (int64_t i = 0; i < l->shape.n_steps; i++) {
        const int64_t t = in_turn(&l->shape, i);
        open_gates(l, t, states + before(&l->shape, t));
        move_cell(l, t);
        say_state(l, t, states + after(&l->shape, t));
    }
}

/* ---- backward ---- */

/* Gradient by the state after the step goes into the output gate and, through the norm, into dcell. */
static void cell_backward(struct nb_lstm *l, int64_t step, const float *dnext) {
    const int64_t h = l->shape.hidden, n = state_size(&l->shape);
    float *dgates = nb_projection_gradient(&l->h, step);
    nb_op(LSTM_BACKWARD_OPS);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const float *o = l->gates + step * 4 * n + b * 4 * h + 2 * h;
        for (int64_t i = 0; i < h; i++) {
            const float d = dnext[b * h + i], squashed = l->squashed[step * n + b * h + i];
            dgates[b * 4 * h + 2 * h + i] = d * squashed * o[i] * (1 - o[i]);
            l->dnormed[b * h + i] = d * o[i] * (1 - squashed * squashed);
        }
    }
    nb_round_tensor(l->dnormed, n, l->model->options.dtype);
    const float *through = nb_norm_backward(&l->cell_norm, l->through, l->dnormed, l->cells + after(&l->shape, step),
                                            step * l->shape.batch, l->shape.batch);
    for (int64_t i = 0; i < n; i++) l->dcell[i] += through[i];
}

/* The other gates; dcell becomes the gradient by the cell before the step. */
static void gates_backward(struct nb_lstm *l, int64_t step) {
    const int64_t h = l->shape.hidden, n = state_size(&l->shape);
    const float *cell = l->cells + before(&l->shape, step);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const float *i_gate = l->gates + step * 4 * n + b * 4 * h, *f_gate = i_gate + h, *g = i_gate + 3 * h;
        float *di = nb_projection_gradient(&l->h, step) + b * 4 * h, *df = di + h, *dg = di + 3 * h;
        for (int64_t i = 0; i < h; i++) {
            const float d = l->dcell[b * h + i];
            di[i] = d * g[i] * i_gate[i] * (1 - i_gate[i]);
            df[i] = d * cell[b * h + i] * f_gate[i] * (1 - f_gate[i]);
            dg[i] = d * i_gate[i] * (1 - g[i] * g[i]);
            l->dcell[b * h + i] = d * f_gate[i];
        }
    }
    nb_round_tensor(l->dcell, n, l->model->options.dtype);
}

static void bias_backward(struct nb_lstm *l) {
    const int64_t width = 4 * l->shape.hidden;
    const float *d = nb_projection_gradient(&l->h, 0);
    nb_op(1);
    for (int64_t r = 0; r < l->shape.n_steps * l->shape.batch; r++)
        for (int64_t i = 0; i < width; i++) l->bias->gradient[i] += d[r * width + i];
}

void nb_lstm_backward(struct nb_lstm *l, float *dx, float *dstates, const float *states, const float *x) {
    memset(l->dcell, 0, (size_t)state_size(&l->shape) * sizeof *l->dcell);
    for (int64_t i = l->shape.n_steps - 1; i >= 0; i--) {
        const int64_t t = in_turn(&l->shape, i);
        cell_backward(l, t, dstates + after(&l->shape, t));
        gates_backward(l, t);
        nb_projection_backward(&l->h, dstates + before(&l->shape, t), t, 1, 1);
    }
    nb_projection_backward(&l->x, dx, 0, l->shape.n_steps, 0);
    nb_projection_finish(&l->x, x);
    nb_projection_finish(&l->h, states + before(&l->shape, 0));
    bias_backward(l);
}

void nb_lstm_observe(const struct nb_lstm *l, enum nb_observed what) {
    projection_observe(&l->x, what);
    projection_observe(&l->h, what);
    if (what == NB_ACTIVATION)
        nb_model_observe(l->model, what, l->place.text, "cell", l->cells + after(&l->shape, 0),
                         l->shape.n_steps * state_size(&l->shape));
}

/* ---- additive attention: scores and sums over the sources by plain loops, a pair of query and source at a time ---- */

static struct nb_projection_shape query_part(const struct nb_additive_shape *s) {
    return (struct nb_projection_shape){s->n_steps, s->batch, s->query, s->width,
                                        s->normed ? (unsigned)NB_PROJECTION_NORMED : 0u};
}
static struct nb_projection_shape memory_part(const struct nb_additive_shape *s) {
    return (struct nb_projection_shape){s->n_sources, s->batch, s->memory, s->width,
                                        (s->normed ? (unsigned)NB_PROJECTION_NORMED : 0u) | NB_PROJECTION_BIASED};
}

void nb_additive_init(struct nb_additive *a, struct nb_model *model, const char *name,
                      const struct nb_additive_shape *s) {
    *a = (struct nb_additive){.shape = *s, .model = model};
    a->hidden = nb_arena_take(&model->kept, s->n_steps * s->n_sources * s->batch * s->width);
    a->weights = nb_arena_take(&model->kept, s->n_steps * s->batch * s->n_sources);
    nb_projection_init(&a->from_query, model, name, "query", query_part(s), NULL);
    nb_projection_init(&a->from_memory, model, name, "memory", memory_part(s), NULL);
    a->score = nb_parameter_matrix(&model->parameters, name, "score", 1, s->width, model->options.seed,
                                   1 / sqrt((double)s->width));
}

/* Hidden layer of sample b at a source. */
static float *hidden_at(const struct nb_additive *a, int64_t step, int64_t source, int64_t b) {
    return a->hidden + ((step * a->shape.n_sources + source) * a->shape.batch + b) * a->shape.width;
}
static const float *memory_at(const struct nb_additive *a, const float *memory, int64_t source, int64_t b) {
    return memory + (source * a->shape.batch + b) * a->shape.memory;
}
static float *weights_at(const struct nb_additive *a, int64_t step, int64_t b) {
    return a->weights + (step * a->shape.batch + b) * a->shape.n_sources;
}

/* Four sums side by side: additions do not wait for each other. */
static float dot(const float *x, const float *y, int64_t n) {
    float sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += x[i + k] * y[i + k];
    for (; i < n; i++) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void add_scaled(float *y, float factor, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += factor * x[i];
}

static void softmax(float *scores, int64_t n) {
    float most = scores[0], sum = 0;
    for (int64_t i = 1; i < n; i++) most = scores[i] > most ? scores[i] : most;
    for (int64_t i = 0; i < n; i++) sum += scores[i] = expf(scores[i] - most);
    for (int64_t i = 0; i < n; i++) scores[i] /= sum;
}

static float score_of(const struct nb_additive *a, int64_t step, int64_t source, int64_t b) {
    const int64_t width = a->shape.width;
    const float *query = nb_projection_result(&a->from_query, step) + b * width;
    const float *key = nb_projection_result(&a->from_memory, source) + b * width;
    float *hidden = hidden_at(a, step, source, b);
    for (int64_t i = 0; i < width; i++) hidden[i] = query[i] + key[i];
    nb_tanh_tensor(hidden, width);
    nb_round_tensor(hidden, width, a->model->options.dtype);
    return dot(hidden, nb_parameter_used(a->score), width);
}

void nb_additive_step(struct nb_additive *a, int64_t step, float *context, const float *query, const float *memory) {
    const struct nb_additive_shape *s = &a->shape;
    if (step == 0) nb_projection_forward(&a->from_memory, memory, 0, s->n_sources);
    nb_projection_forward(&a->from_query, query, step, 1);
    memset(context, 0, (size_t)(s->batch * s->memory) * sizeof *context);
    nb_op(5); /* sum, tanh, product with v, softmax, weighted sum */
    for (int64_t b = 0; b < s->batch; b++) {
        float *weights = weights_at(a, step, b);
        for (int64_t j = 0; j < s->n_sources; j++) weights[j] = score_of(a, step, j, b);
        softmax(weights, s->n_sources);
        for (int64_t j = 0; j < s->n_sources; j++)
            add_scaled(context + b * s->memory, weights[j], memory_at(a, memory, j, b), s->memory);
    }
    nb_round_tensor(context, s->batch * s->memory, a->model->options.dtype);
}

/* Through the hidden layer of one pair: dscore is the gradient by its score. */
static void score_backward(const struct nb_additive *a, int64_t step, int64_t source, int64_t b, float dscore) {
    const int64_t width = a->shape.width;
    const float *hidden = hidden_at(a, step, source, b), *v = nb_parameter_used(a->score);
    float *dquery = nb_projection_gradient(&a->from_query, step) + b * width;
    float *dkey = nb_projection_gradient(&a->from_memory, source) + b * width;
    float *dv = a->score->gradient;
    for (int64_t i = 0; i < width; i++) {
        const float d = dscore * v[i] * (1 - hidden[i] * hidden[i]);
        dv[i] += dscore * hidden[i];
        dquery[i] += d;
        dkey[i] += d;
    }
}

static void sample_backward(const struct nb_additive *a, int64_t step, int64_t b, float *dmemory, const float *dcontext,
                            const float *memory) {
    const struct nb_additive_shape *s = &a->shape;
    const float *weights = weights_at(a, step, b);
    float mean = 0; /* of the gradient by the weights, weighted */
    for (int64_t j = 0; j < s->n_sources; j++)
        mean += weights[j] * dot(dcontext, memory_at(a, memory, j, b), s->memory);
    for (int64_t j = 0; j < s->n_sources; j++) {
        const float dweight = dot(dcontext, memory_at(a, memory, j, b), s->memory);
        add_scaled(dmemory + (j * s->batch + b) * s->memory, weights[j], dcontext, s->memory);
        score_backward(a, step, j, b, weights[j] * (dweight - mean));
    }
}

void nb_additive_step_backward(struct nb_additive *a, int64_t step, float *dquery, float *dmemory,
                               const float *dcontext, const float *memory) {
    const struct nb_additive_shape *s = &a->shape;
    if (step == s->n_steps - 1) /* gradients by the keys are sums over the steps */
        memset(nb_projection_gradient(&a->from_memory, 0), 0,
               (size_t)(s->n_sources * s->batch * s->width) * sizeof(float));
    memset(nb_projection_gradient(&a->from_query, step), 0, (size_t)(s->batch * s->width) * sizeof(float));
    nb_op(8); /* the weighted sum's two, softmax, product with v twice, tanh, two sums */
    for (int64_t b = 0; b < s->batch; b++) sample_backward(a, step, b, dmemory, dcontext + b * s->memory, memory);
    nb_projection_backward(&a->from_query, dquery, step, 1, 1);
}

void nb_additive_finish(struct nb_additive *a, float *dmemory, const float *memory, const float *queries) {
    nb_projection_backward(&a->from_memory, dmemory, 0, a->shape.n_sources, 1);
    nb_projection_finish(&a->from_memory, memory);
    nb_projection_finish(&a->from_query, queries);
}

/* A pair of query and source costs 2 width for the score and 2 memory for the sum, twice that backward. */
double nb_additive_flops(const struct nb_additive_shape *s) {
    const double pairs = (double)s->n_steps * (double)s->n_sources * (double)s->batch;
    return nb_projection_flops(query_part(s)) + nb_projection_flops(memory_part(s)) +
           6 * pairs * (double)(s->width + s->memory);
}
