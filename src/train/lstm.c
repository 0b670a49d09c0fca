// SPDX-License-Identifier: Apache-2.0
/* The products over the state are made step by step; that of the input and all gradients of weights for all steps at once. */
#include "src/train/lstm.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/train/precision.h"
#include "src/train/sigmoid.h"

static struct nb_projection_shape part(const struct nb_lstm_shape *s, int64_t in, unsigned flags) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, 4 * s->hidden, flags | NB_PROJECTION_NORMED};
}

static void make_arena(struct nb_lstm *l, struct nb_model_arenas *arenas) {
    const int64_t state = l->shape.batch * l->shape.hidden, all = l->shape.n_steps * state;
    l->gates = nb_arena_take(&arenas->kept, 4 * all);
    l->cells = nb_arena_take(&arenas->kept, all + state);
    l->squashed = nb_arena_take(&arenas->kept, all);
    l->normed = nb_arena_take(&arenas->passing, state);
    l->dnormed = nb_arena_take(&arenas->passing, state);
    l->through = nb_arena_take(&arenas->passing, state);
    l->dcell = nb_arena_take(&arenas->passing, state);
}

int nb_lstm_init(struct nb_lstm *l, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                 const struct nb_lstm_shape *s) {
    *l = (struct nb_lstm){.shape = *s, .model = model};
    const struct nb_projection_shape x = part(s, s->in, NB_PROJECTION_BY_STEP), h = part(s, s->hidden, 0);
    char full[64];
    const int length = snprintf(l->name, sizeof l->name, "%s", name);
    assert(length < (int)sizeof l->name);
    (void)length;
    make_arena(l, arenas);
    snprintf(full, sizeof full, "%s.x", name);
    if (nb_projection_init(&l->x, model, arenas, full, &x, NULL) != 0) return -1;
    snprintf(full, sizeof full, "%s.h", name);
    if (nb_projection_init(&l->h, model, arenas, full, &h, l->x.gradient) != 0) return -1;
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

/* ---- where a step's tensors lie ---- */

static int64_t state_size(const struct nb_lstm *l) { return l->shape.batch * l->shape.hidden; }
static int64_t before(const struct nb_lstm *l, int64_t step) { return (step + l->shape.backwards) * state_size(l); }
static int64_t after(const struct nb_lstm *l, int64_t step) { return (step + !l->shape.backwards) * state_size(l); }
static int64_t in_turn(const struct nb_lstm *l, int64_t i) { return l->shape.backwards ? l->shape.n_steps - 1 - i : i; }
float *nb_lstm_outputs(const struct nb_lstm *l, float *states) { return states + after(l, 0); }

/* ---- forward ---- */

static void open_gates(struct nb_lstm *l, int64_t step, const float *state) {
    const int64_t h = l->shape.hidden;
    const float *from_x = nb_projection_result(&l->x, step), *from_h = nb_projection_forward(&l->h, state, step, 1);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const int64_t at = b * 4 * h;
        float *gates = l->gates + step * 4 * state_size(l) + at;
        for (int64_t i = 0; i < 4 * h; i++) gates[i] = from_x[at + i] + from_h[at + i] + l->bias->value[i];
        nb_sigmoid_tensor(gates, 3 * h);
        nb_tanh_tensor(gates + 3 * h, h);
    }
    nb_round_tensor(l->gates + step * 4 * state_size(l), 4 * state_size(l), l->model->options.dtype);
}

static void move_cell(const struct nb_lstm *l, int64_t step) {
    const int64_t h = l->shape.hidden;
    const float *cell = l->cells + before(l, step);
    float *next = l->cells + after(l, step);
    for (int64_t b = 0; b < l->shape.batch; b++) {
        const float *i_gate = l->gates + step * 4 * state_size(l) + b * 4 * h, *f_gate = i_gate + h,
                    *g = i_gate + 3 * h;
        for (int64_t i = 0; i < h; i++) next[b * h + i] = f_gate[i] * cell[b * h + i] + i_gate[i] * g[i];
    }
    nb_round_tensor(next, state_size(l), l->model->options.dtype);
}

static void say_state(struct nb_lstm *l, int64_t step, float *next) {
    const int64_t h = l->shape.hidden, n = state_size(l);
    float *squashed = l->squashed + step * n;
    memcpy(squashed, nb_norm_steps_forward(&l->cell_norm, l->normed, l->cells + after(l, step), step, 1),
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
        const int64_t t = in_turn(l, i);
        open_gates(l, t, states + before(l, t));
        move_cell(l, t);
        say_state(l, t, states + after(l, t));
    }
}

/* ---- backward ---- */

/* Gradient by the state after the step goes into the output gate and, through the norm, into dcell. */
static void cell_backward(struct nb_lstm *l, int64_t step, const float *dnext) {
    const int64_t h = l->shape.hidden, n = state_size(l);
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
        nb_norm_steps_backward(&l->cell_norm, l->through, l->dnormed, l->cells + after(l, step), step, 1);
    for (int64_t i = 0; i < n; i++) l->dcell[i] += through[i];
}

/* The other gates; dcell becomes the gradient by the cell before the step. */
static void gates_backward(struct nb_lstm *l, int64_t step) {
    const int64_t h = l->shape.hidden, n = state_size(l);
    const float *cell = l->cells + before(l, step);
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
    memset(l->dcell, 0, (size_t)state_size(l) * sizeof *l->dcell);
    for (int64_t i = l->shape.n_steps - 1; i >= 0; i--) {
        const int64_t t = in_turn(l, i);
        cell_backward(l, t, dstates + after(l, t));
        gates_backward(l, t);
        nb_projection_backward(&l->h, dstates + before(l, t), t, 1, 1);
    }
    nb_projection_backward(&l->x, dx, 0, l->shape.n_steps, 0);
    nb_projection_finish(&l->x, x);
    nb_projection_finish(&l->h, states + before(l, 0));
    bias_backward(l);
}

void nb_lstm_tell(const struct nb_lstm *l) {
    nb_projection_tell(&l->x);
    nb_projection_tell(&l->h);
    nb_model_tell(l->model, l->name, "cell", l->cells + after(l, 0), l->shape.n_steps * state_size(l));
}

void nb_lstm_tell_gradients(const struct nb_lstm *l) {
    nb_projection_tell_gradients(&l->x);
    nb_projection_tell_gradients(&l->h);
}

double nb_lstm_flops(const struct nb_lstm_shape *s) {
    const struct nb_projection_shape x = part(s, s->in, 0), h = part(s, s->hidden, 0);
    return nb_projection_flops(&x) + nb_projection_flops(&h);
}
