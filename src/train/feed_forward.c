// SPDX-License-Identifier: Apache-2.0
/* Feed-forward sublayer, gated or not. */
#include "src/train/feed_forward.h"

#include <math.h>
#include <stdio.h>

#include "src/train/matrix.h"
#include "src/train/precision.h"
#include "src/train/swiglu.h"

void nb_feed_forward_arena_take(struct nb_feed_forward_arena *out, struct nb_arena *arena,
                                const struct nb_transformer_shape *shape) {
    const int64_t n = (int64_t)shape->batch * shape->sequence * shape->ffn;
    *out = (struct nb_feed_forward_arena){.dgate = shape->swiglu ? nb_arena_take(arena, n) : NULL,
                                          .dup = nb_arena_take(arena, n),
                                          .dinner = nb_arena_take(arena, n)};
}

static struct nb_parameter *add(struct nb_model *model, const char *name, const char *what, int64_t out, int64_t in,
                                double deviation) {
    char full[48];
    const bool is_matrix = in > 1;
    snprintf(full, sizeof full, "%s.%s", name, what);
    struct nb_parameter *p = nb_parameter_add(&model->parameters, full, out, in, is_matrix);
    if (is_matrix)
        nb_parameter_draw(p, model->options.seed, deviation > 0 ? deviation : sqrt(2.0 / (double)(in + out)));
    return p;
}

void nb_feed_forward_init(struct nb_feed_forward *f, const char *name, struct nb_model *model,
                          const struct nb_transformer_shape *shape, struct nb_arena *kept,
                          const struct nb_feed_forward_arena *arena) {
    const int64_t rows = (int64_t)shape->batch * shape->sequence, n = rows * shape->ffn;
    *f = (struct nb_feed_forward){
        .rows = rows, .hidden = shape->hidden, .ffn = shape->ffn, .dtype = model->options.dtype, .arena = *arena};
    if (shape->swiglu) {
        f->gate = add(model, name, "gate", shape->ffn, shape->hidden, shape->deviation);
        f->at_gate = nb_arena_take(kept, n);
    } else {
        f->bias = add(model, name, "bias", shape->ffn, 1, 0);
        f->bias_down = add(model, name, "bias_down", shape->hidden, 1, 0);
    }
    f->up = add(model, name, "up", shape->ffn, shape->hidden, shape->deviation);
    f->down = add(model, name, "down", shape->hidden, shape->ffn, shape->deviation);
    f->at_up = nb_arena_take(kept, n);
    f->inner = nb_arena_take(kept, n);
}

static const float *value_of(const struct nb_parameter *p) { return p ? p->value : NULL; }
static float *gradient_of(const struct nb_parameter *p) { return p ? p->gradient : NULL; }

void nb_feed_forward_forward(struct nb_feed_forward *f, float *y, const float *x) {
    const int64_t n = f->rows * f->ffn;
    nb_linear_forward(f->at_up, x, nb_parameter_used(f->up), value_of(f->bias), f->rows, f->hidden, f->ffn);
    nb_round_tensor(f->at_up, n, f->dtype);
    if (f->gate) {
        nb_linear_forward(f->at_gate, x, nb_parameter_used(f->gate), NULL, f->rows, f->hidden, f->ffn);
        nb_round_tensor(f->at_gate, n, f->dtype);
        nb_swiglu_forward(f->inner, f->at_gate, f->at_up, n);
    } else {
        nb_relu_forward(f->inner, f->at_up, n);
    }
    nb_round_tensor(f->inner, n, f->dtype);
    nb_linear_forward(y, f->inner, nb_parameter_used(f->down), value_of(f->bias_down), f->rows, f->ffn, f->hidden);
    nb_round_tensor(y, f->rows * f->hidden, f->dtype);
}

void nb_feed_forward_backward(struct nb_feed_forward *f, float *dx, const float *dy, const float *x) {
    const int64_t n = f->rows * f->ffn;
    const struct nb_feed_forward_arena *r = &f->arena;
    nb_linear_backward(r->dinner, f->down->gradient, gradient_of(f->bias_down), dy, f->inner,
                       nb_parameter_used(f->down), f->rows, f->ffn, f->hidden);
    nb_round_tensor(r->dinner, n, f->dtype);
    if (f->gate) {
        nb_swiglu_backward(r->dgate, r->dup, r->dinner, f->at_gate, f->at_up, n);
        nb_round_tensor(r->dgate, n, f->dtype);
    } else {
        nb_relu_backward(r->dup, r->dinner, f->at_up, n);
    }
    nb_round_tensor(r->dup, n, f->dtype);
    nb_linear_backward(dx, f->up->gradient, gradient_of(f->bias), r->dup, x, nb_parameter_used(f->up), f->rows,
                       f->hidden, f->ffn);
    if (f->gate) {
        nb_linear_backward(NULL, f->gate->gradient, NULL, r->dgate, x, NULL, f->rows, f->hidden, f->ffn);
        nb_matrix_multiply(dx, r->dgate, nb_parameter_used(f->gate), f->rows, f->hidden, f->ffn, 1);
    }
    nb_round_tensor(dx, f->rows * f->hidden, f->dtype);
}
