// SPDX-License-Identifier: Apache-2.0
/* The layer is told before each call where the statistics of the step lie. */
#include "src/train/norm_steps.h"

#include "src/train/precision.h"

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

bool nb_norm_steps_are_none(const struct nb_norm_steps *s) { return s->layer.choice.kind == NB_NORM_NONE; }

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

const float *nb_norm_steps_forward(struct nb_norm_steps *s, float *arena, const float *x, int64_t first,
                                   int64_t n_steps) {
    if (nb_norm_steps_are_none(s)) return x;
    look_at(s, first);
    nb_norm_forward(&s->layer, arena, x, n_steps * s->rows, true);
    account(s);
    nb_round_tensor(arena, n_steps * s->rows * s->layer.cols, s->model->options.dtype);
    return arena;
}

const float *nb_norm_steps_backward(struct nb_norm_steps *s, float *arena, const float *dy, const float *x,
                                    int64_t first, int64_t n_steps) {
    if (nb_norm_steps_are_none(s)) return dy;
    look_at(s, first);
    nb_norm_backward(&s->layer, arena, dy, x, n_steps * s->rows);
    account(s);
    nb_round_tensor(arena, n_steps * s->rows * s->layer.cols, s->model->options.dtype);
    return arena;
}

void nb_norm_steps_release(struct nb_norm_steps *s) {
    s->layer.mean = s->mean;
    s->layer.rstd = s->rstd;
    nb_norm_layer_release(&s->layer);
    *s = (struct nb_norm_steps){0};
}
