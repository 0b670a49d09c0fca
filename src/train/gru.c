// SPDX-License-Identifier: Apache-2.0
/* The products over the state are made step by step; those of the input and all gradients of weights for many steps at once. */
#include "src/train/gru.h"

#include <stdio.h>

#include "src/train/precision.h"
#include "src/train/sigmoid.h"

static struct nb_projection_shape part(const struct nb_gru_shape *s, int64_t in, int64_t out, unsigned flags) {
    return (struct nb_projection_shape){s->n_steps, s->batch, in, out, flags | NB_PROJECTION_NORMED};
}

static unsigned input_flags(const struct nb_gru_shape *s) {
    return NB_PROJECTION_BIASED | (s->input_by_step ? (unsigned)NB_PROJECTION_BY_STEP : 0u);
}

static int init_part(struct nb_projection *p, struct nb_gru *g, struct nb_model_arenas *arenas, const char *name,
                     const char *what, struct nb_projection_shape shape, float *gradient) {
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return nb_projection_init(p, g->model, arenas, full, &shape, gradient);
}

int nb_gru_init(struct nb_gru *g, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                const struct nb_gru_shape *s) {
    *g = (struct nb_gru){.shape = *s, .model = model};
    const int64_t h = s->hidden, rows = s->n_steps * s->batch;
    g->gates = nb_arena_take(&arenas->kept, rows * 2 * h);
    g->candidate = nb_arena_take(&arenas->kept, rows * h);
    if (init_part(&g->x_gates, g, arenas, name, "x_gates", part(s, s->in, 2 * h, input_flags(s)), NULL) != 0) return -1;
    if (init_part(&g->x_candidate, g, arenas, name, "x_candidate", part(s, s->in, h, input_flags(s)), NULL) != 0)
        return -1;
    if (init_part(&g->h_gates, g, arenas, name, "h_gates", part(s, h, 2 * h, 0), g->x_gates.gradient) != 0) return -1;
    return init_part(&g->h_candidate, g, arenas, name, "h_candidate", part(s, h, h, NB_PROJECTION_READ_BACK), NULL);
}

void nb_gru_release(struct nb_gru *g) {
    nb_projection_release(&g->x_gates);
    nb_projection_release(&g->x_candidate);
    nb_projection_release(&g->h_gates);
    nb_projection_release(&g->h_candidate);
    *g = (struct nb_gru){0};
}

static int64_t state_size(const struct nb_gru *g) { return g->shape.batch * g->shape.hidden; }

/* ---- a step ---- */

void nb_gru_input(struct nb_gru *g, const float *x, int64_t first, int64_t n_steps) {
    nb_projection_forward(&g->x_gates, x, first, n_steps);
    nb_projection_forward(&g->x_candidate, x, first, n_steps);
}

static void add(float *sum, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

void nb_gru_step(struct nb_gru *g, int64_t step, float *next, const float *state) {
    const int64_t h = g->shape.hidden, n = state_size(g);
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
        row_backward(&(struct row){.gates = g->gates + step * 2 * state_size(g) + wide,
                                   .c = g->candidate + step * state_size(g) + at,
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

/* ---- all steps: states has one more than there are steps ---- */

static int64_t before(const struct nb_gru *g, int64_t step) { return (step + g->shape.backwards) * state_size(g); }
static int64_t after(const struct nb_gru *g, int64_t step) { return (step + !g->shape.backwards) * state_size(g); }
static int64_t in_turn(const struct nb_gru *g, int64_t i) { return g->shape.backwards ? g->shape.n_steps - 1 - i : i; }

float *nb_gru_outputs(const struct nb_gru *g, float *states) { return states + after(g, 0); }

void nb_gru_forward(struct nb_gru *g, float *states, const float *x) {
    nb_gru_input(g, x, 0, g->shape.n_steps);
    for (int64_t i = 0; i < g->shape.n_steps; i++) {
        const int64_t t = in_turn(g, i);
        nb_gru_step(g, t, states + after(g, t), states + before(g, t));
    }
}

void nb_gru_backward(struct nb_gru *g, float *dx, float *dstates, const float *states, const float *x) {
    for (int64_t i = g->shape.n_steps - 1; i >= 0; i--) {
        const int64_t t = in_turn(g, i);
        nb_gru_step_backward(g, t, dstates + before(g, t), dstates + after(g, t), states + before(g, t));
    }
    nb_gru_input_backward(g, dx, 0, g->shape.n_steps, 0);
    nb_gru_finish(g, x, states + before(g, 0));
}

void nb_gru_tell(const struct nb_gru *g) {
    nb_projection_tell(&g->x_gates);
    nb_projection_tell(&g->x_candidate);
    nb_projection_tell(&g->h_gates);
    nb_projection_tell(&g->h_candidate);
}

void nb_gru_tell_gradients(const struct nb_gru *g) {
    nb_projection_tell_gradients(&g->x_gates);
    nb_projection_tell_gradients(&g->x_candidate);
    nb_projection_tell_gradients(&g->h_gates);
    nb_projection_tell_gradients(&g->h_candidate);
}

double nb_gru_flops(const struct nb_gru_shape *s) {
    const struct nb_projection_shape x = part(s, s->in, 3 * s->hidden, 0), h = part(s, s->hidden, 3 * s->hidden, 0);
    return nb_projection_flops(&x) + nb_projection_flops(&h);
}
