// SPDX-License-Identifier: Apache-2.0
/* In the cells the products over the state are made step by step; those of the input and all gradients of weights for many steps at
 * once. */
#include "src/train/recurrent.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/train/tensor.h"

/* ---- what the recurrent workloads share; eps and the share of pRMSNorm are those of the paper's recurrent code ---- */

static const double EPS = 1e-5, PARTIAL = 0.0625;
enum {
    UNIT = 16,
    LEAST_SEQUENCE = 4,
    MOST_HIDDEN = 1 << 13,
    MOST_BATCH = 1 << 12,
    MOST_SEQUENCE = 1 << 12,
    MOST_TOKENS = 1 << 17
};

static void fill(const struct nb_recurrent_defaults *defaults, struct nb_train_options *o) {
    if (o->layers == 0) o->layers = 1;
    if (o->hidden == 0) o->hidden = defaults->hidden;
    if (o->batch == 0) o->batch = defaults->batch;
    if (o->sequence == 0) o->sequence = defaults->sequence;
    if (o->learning_rate == 0) o->learning_rate = defaults->learning_rate;
    if (o->norm.eps == 0) o->norm.eps = EPS;
    if (o->norm.partial == 0) o->norm.partial = PARTIAL;
}

static bool within(double v, double least, double most) { return v >= least && v <= most; } /* NaN is not */

const char *nb_recurrent_complete(const void *defaults, struct nb_train_options *o) {
    fill(defaults, o);
    if (o->norm.kind == NB_NORM_BATCHNORM)
        return "BatchNorm would need running statistics of each step of time: choose another norm";
    if (o->layers != 1) return "it has one layer: leave layers out, or 1";
    if (!within(o->hidden, UNIT, MOST_HIDDEN) || o->hidden % UNIT != 0)
        return "hidden must be a multiple of 16, at most 8192";
    if (!within(o->batch, 2, MOST_BATCH)) return "batch must be 2 to 4096";
    if (!within(o->sequence, LEAST_SEQUENCE, MOST_SEQUENCE)) return "sequence must be 4 to 4096";
    if ((int64_t)o->batch * o->sequence > MOST_TOKENS) return "batch times sequence must be at most 131072";
    if (!within(o->norm.partial, 0x1p-30, 1)) return "partial must be above 0 and at most 1";
    if (!within(o->norm.eps, 0, 1)) return "eps must be 0 to 1";
    if (!within(o->learning_rate, 0, 1e3)) return "learning_rate must be 0 to 1000";
    return nb_padding_refused(o);
}

struct nb_optimizer nb_recurrent_optimizer(const void *defaults, const struct nb_train_options *options) {
    (void)defaults;
    return (struct nb_optimizer){
        .kind = NB_ADAMW, .learning_rate = options->learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
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

static struct nb_projection_shape gru_part(const struct nb_recurrent_shape *s, int64_t in, int64_t out,
                                           unsigned flags) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, out, flags | NB_PROJECTION_NORMED};
}

static unsigned input_flags(const struct nb_recurrent_shape *s) {
    return NB_PROJECTION_BIASED | (s->input_by_step ? (unsigned)NB_PROJECTION_BY_STEP : 0u);
}

static int init_part(struct nb_projection *p, struct nb_gru *g, const char *name, const char *what,
                     struct nb_projection_shape shape, float *gradient) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return nb_projection_init(p, g->model, full, &shape, gradient);
}

int nb_gru_init(struct nb_gru *g, struct nb_model *model, const char *name, const struct nb_recurrent_shape *s) {
    *g = (struct nb_gru){.shape = *s, .model = model};
    const int64_t h = s->hidden, rows = s->n_steps * s->batch;
    g->gates = nb_arena_take(&model->kept, rows * 2 * h);
    g->candidate = nb_arena_take(&model->kept, rows * h);
    if (init_part(&g->x_gates, g, name, "x_gates", gru_part(s, s->in, 2 * h, input_flags(s)), NULL) != 0) return -1;
    if (init_part(&g->x_candidate, g, name, "x_candidate", gru_part(s, s->in, h, input_flags(s)), NULL) != 0) return -1;
    if (init_part(&g->h_gates, g, name, "h_gates", gru_part(s, h, 2 * h, 0), g->x_gates.gradient) != 0) return -1;
    return init_part(&g->h_candidate, g, name, "h_candidate", gru_part(s, h, h, NB_PROJECTION_READ_BACK), NULL);
}

void nb_gru_release(struct nb_gru *g) {
    nb_projection_release(&g->x_gates);
    nb_projection_release(&g->x_candidate);
    nb_projection_release(&g->h_gates);
    nb_projection_release(&g->h_candidate);
    *g = (struct nb_gru){0};
}

/* ---- GRU: a step ---- */

void nb_gru_input(struct nb_gru *g, const float *x, int64_t first, int64_t n_steps) {
    nb_projection_forward(&g->x_gates, x, first, n_steps);
    nb_projection_forward(&g->x_candidate, x, first, n_steps);
}

static void add(float *sum, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

void nb_gru_step(struct nb_gru *g, int64_t step, float *next, const float *state) {
    const int64_t h = g->shape.hidden, n = state_size(&g->shape);
    const enum nb_dtype dtype = g->model->options.dtype;
    float *gates = g->gates + step * 2 * n, *c = g->candidate + step * n;
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

float *nb_gru_outputs(const struct nb_gru *g, float *states) { return states + after(&g->shape, 0); }

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

void nb_gru_observe(const struct nb_gru *g) {
    nb_projection_observe(&g->x_gates);
    nb_projection_observe(&g->x_candidate);
    nb_projection_observe(&g->h_gates);
    nb_projection_observe(&g->h_candidate);
}

void nb_gru_observe_gradients(const struct nb_gru *g) {
    nb_projection_observe_gradients(&g->x_gates);
    nb_projection_observe_gradients(&g->x_candidate);
    nb_projection_observe_gradients(&g->h_gates);
    nb_projection_observe_gradients(&g->h_candidate);
}

double nb_gru_flops(const struct nb_recurrent_shape *s) {
    const struct nb_projection_shape x = gru_part(s, s->in, 3 * s->hidden, 0),
                                     h = gru_part(s, s->hidden, 3 * s->hidden, 0);
    return nb_projection_flops(&x) + nb_projection_flops(&h);
}

/* ---- LSTM ---- */

static struct nb_projection_shape lstm_part(const struct nb_recurrent_shape *s, int64_t in, unsigned flags) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, 4 * s->hidden, flags | NB_PROJECTION_NORMED};
}

static void allocate(struct nb_lstm *l, struct nb_model *model) {
    const int64_t state = l->shape.batch * l->shape.hidden, all = l->shape.n_steps * state;
    l->gates = nb_arena_take(&model->kept, 4 * all);
    l->cells = nb_arena_take(&model->kept, all + state);
    l->squashed = nb_arena_take(&model->kept, all);
    l->normed = nb_arena_take(&model->passing, state);
    l->dnormed = nb_arena_take(&model->passing, state);
    l->through = nb_arena_take(&model->passing, state);
    l->dcell = nb_arena_take(&model->passing, state);
}

int nb_lstm_init(struct nb_lstm *l, struct nb_model *model, const char *name, const struct nb_recurrent_shape *s) {
    *l = (struct nb_lstm){.shape = *s, .model = model};
    const struct nb_projection_shape x = lstm_part(s, s->in, NB_PROJECTION_BY_STEP), h = lstm_part(s, s->hidden, 0);
    char full[64];
    const int length = snprintf(l->name, sizeof l->name, "%s", name);
    assert(length < (int)sizeof l->name);
    (void)length;
    allocate(l, model);
    snprintf(full, sizeof full, "%s.x", name);
    if (nb_projection_init(&l->x, model, full, &x, NULL) != 0) return -1;
    snprintf(full, sizeof full, "%s.h", name);
    if (nb_projection_init(&l->h, model, full, &h, l->x.gradient) != 0) return -1;
    snprintf(full, sizeof full, "%s.bias", name);
    l->bias = nb_parameter_add(&model->parameters, full, 1, 4 * s->hidden, false);
    snprintf(full, sizeof full, "%s.cell", name);
    return nb_norm_steps_init(&l->cell_norm, model, full, s->n_steps, s->batch, s->hidden);
}

void nb_lstm_release(struct nb_lstm *l) {
    nb_projection_release(&l->x);
    nb_projection_release(&l->h);
    nb_norm_steps_release(&l->cell_norm);
    *l = (struct nb_lstm){0};
}

float *nb_lstm_outputs(const struct nb_lstm *l, float *states) { return states + after(&l->shape, 0); }

/* ---- forward ---- */

static void open_gates(struct nb_lstm *l, int64_t step, const float *state) {
    const int64_t h = l->shape.hidden;
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
    memcpy(squashed, nb_norm_steps_forward(&l->cell_norm, l->normed, l->cells + after(&l->shape, step), step, 1),
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
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const float *o = l->gates + step * 4 * n + b * 4 * h + 2 * h;
        for (int64_t i = 0; i < h; i++) {
            const float d = dnext[b * h + i], squashed = l->squashed[step * n + b * h + i];
            dgates[b * 4 * h + 2 * h + i] = d * squashed * o[i] * (1 - o[i]);
            l->dnormed[b * h + i] = d * o[i] * (1 - squashed * squashed);
        }
    }
    nb_round_tensor(l->dnormed, n, l->model->options.dtype);
    const float *through =
        nb_norm_steps_backward(&l->cell_norm, l->through, l->dnormed, l->cells + after(&l->shape, step), step, 1);
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

void nb_lstm_observe(const struct nb_lstm *l) {
    nb_projection_observe(&l->x);
    nb_projection_observe(&l->h);
    nb_model_observe(l->model, l->name, "cell", l->cells + after(&l->shape, 0),
                     l->shape.n_steps * state_size(&l->shape));
}

void nb_lstm_observe_gradients(const struct nb_lstm *l) {
    nb_projection_observe_gradients(&l->x);
    nb_projection_observe_gradients(&l->h);
}

double nb_lstm_flops(const struct nb_recurrent_shape *s) {
    const struct nb_projection_shape x = lstm_part(s, s->in, 0), h = lstm_part(s, s->hidden, 0);
    return nb_projection_flops(&x) + nb_projection_flops(&h);
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

int nb_additive_init(struct nb_additive *a, struct nb_model *model, const char *name,
                     const struct nb_additive_shape *s) {
    *a = (struct nb_additive){.shape = *s, .model = model};
    const struct nb_projection_shape query = query_part(s), memory = memory_part(s);
    char full[64];
    a->hidden = nb_arena_take(&model->kept, s->n_steps * s->n_sources * s->batch * s->width);
    a->weights = nb_arena_take(&model->kept, s->n_steps * s->batch * s->n_sources);
    snprintf(full, sizeof full, "%s.query", name);
    if (nb_projection_init(&a->from_query, model, full, &query, NULL) != 0) return -1;
    snprintf(full, sizeof full, "%s.memory", name);
    if (nb_projection_init(&a->from_memory, model, full, &memory, NULL) != 0) return -1;
    snprintf(full, sizeof full, "%s.score", name);
    a->score = nb_parameter_add(&model->parameters, full, 1, s->width, true);
    nb_parameter_draw(a->score, model->options.seed, 1 / sqrt((double)s->width));
    return 0;
}

void nb_additive_release(struct nb_additive *a) {
    nb_projection_release(&a->from_query);
    nb_projection_release(&a->from_memory);
    *a = (struct nb_additive){0};
}

void nb_additive_memory(struct nb_additive *a, const float *memory) {
    nb_projection_forward(&a->from_memory, memory, 0, a->shape.n_sources);
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
    nb_projection_forward(&a->from_query, query, step, 1);
    memset(context, 0, (size_t)(s->batch * s->memory) * sizeof *context);
    for (int64_t b = 0; b < s->batch; b++) {
        float *weights = weights_at(a, step, b);
        for (int64_t j = 0; j < s->n_sources; j++) weights[j] = score_of(a, step, j, b);
        softmax(weights, s->n_sources);
        for (int64_t j = 0; j < s->n_sources; j++)
            add_scaled(context + b * s->memory, weights[j], memory_at(a, memory, j, b), s->memory);
    }
    nb_round_tensor(context, s->batch * s->memory, a->model->options.dtype);
}

/* Gradients by the keys are sums over the steps. */
void nb_additive_start_backward(struct nb_additive *a) {
    const int64_t n = a->shape.n_sources * a->shape.batch * a->shape.width;
    memset(nb_projection_gradient(&a->from_memory, 0), 0, (size_t)n * sizeof(float));
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
    memset(nb_projection_gradient(&a->from_query, step), 0, (size_t)(s->batch * s->width) * sizeof(float));
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
    const struct nb_projection_shape query = query_part(s), memory = memory_part(s);
    const double pairs = (double)s->n_steps * (double)s->n_sources * (double)s->batch;
    return nb_projection_flops(&query) + nb_projection_flops(&memory) + 6 * pairs * (double)(s->width + s->memory);
}
