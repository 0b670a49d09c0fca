// SPDX-License-Identifier: Apache-2.0
/* Norm, function and residual path in either order. */
#include "src/train/sublayer.h"

#include <stdio.h>
#include <string.h>

#include "src/train/precision.h"

int nb_sublayer_init(struct nb_sublayer *s, struct nb_model *model, const char *place, const char *norm_name,
                     int64_t rows, int64_t width, struct nb_arena *kept) {
    *s = (struct nb_sublayer){.model = model, .rows = rows, .width = width};
    snprintf(s->place, sizeof s->place, "%s", place);
    s->sum = nb_arena_take(kept, rows * width);
    if (model->options.norm.kind != NB_NORM_NONE) s->normed = nb_arena_take(kept, rows * width);
    return nb_norm_layer_init(&s->norm, norm_name, &model->options.norm, rows, width, &model->parameters, model->pool);
}

static int64_t size_of(const struct nb_sublayer *s) { return s->rows * s->width; }

static void add(float *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void round_to_dtype(const struct nb_sublayer *s, float *values) {
    nb_round_tensor(values, size_of(s), s->model->options.dtype);
}

static const float *normalize(struct nb_sublayer *s, const float *x, bool training) {
    const float *y = nb_norm_pass(&s->norm, s->normed, x, s->rows, training);
    if (y == s->normed) round_to_dtype(s, s->normed);
    return y;
}

const float *nb_sublayer_forward(struct nb_sublayer *s, const float *x, bool training) {
    const struct nb_train_options *o = &s->model->options;
    const bool pre = o->place == NB_PRE_NORM;
    const float *input = pre ? normalize(s, x, training) : x;
    s->x = x;
    nb_model_tell(s->model, s->place, "input", input, size_of(s));
    s->forward(s->inside, s->sum, input, training);
    nb_model_tell(s->model, s->place, "output", s->sum, size_of(s));
    if (o->residual) {
        add(s->sum, x, size_of(s));
        round_to_dtype(s, s->sum);
    }
    const float *out = pre ? s->sum : normalize(s, s->sum, training);
    nb_model_tell(s->model, s->place, "stream", out, size_of(s));
    return out;
}

/* Adds the gradient that came past f, or takes only the one that came through it. */
static void join(const struct nb_sublayer *s, float *d, const float *past, const float *through) {
    const size_t bytes = (size_t)size_of(s) * sizeof *d;
    if (!s->model->options.residual) {
        memcpy(d, through, bytes);
        return;
    }
    if (d != past) memcpy(d, past, bytes);
    add(d, through, size_of(s));
    round_to_dtype(s, d);
}

static const float *normalize_back(struct nb_sublayer *s, float *arena, const float *dy, const float *x) {
    const float *dx = nb_norm_pass_back(&s->norm, arena, dy, x, s->rows);
    if (dx == arena) round_to_dtype(s, arena);
    return dx;
}

static void tell_gradient(const struct nb_sublayer *s, const char *what, const float *d) {
    nb_model_tell_gradient(s->model, s->place, what, d, size_of(s));
}

static void pre_backward(struct nb_sublayer *s, float *d, float *arena, float *other_arena) {
    const float *input = s->norm.choice.kind == NB_NORM_NONE ? s->x : s->normed;
    tell_gradient(s, "output", d);
    s->backward(s->inside, arena, d, input);
    tell_gradient(s, "input", arena);
    join(s, d, d, normalize_back(s, other_arena, arena, s->x));
}

static void post_backward(struct nb_sublayer *s, float *d, float *arena, float *other_arena) {
    const float *dsum = normalize_back(s, other_arena, d, s->sum);
    tell_gradient(s, "output", dsum);
    s->backward(s->inside, arena, dsum, s->x);
    tell_gradient(s, "input", arena);
    join(s, d, dsum, arena);
}

void nb_sublayer_backward(struct nb_sublayer *s, float *d, float *arena, float *other_arena) {
    tell_gradient(s, "stream", d);
    if (s->model->options.place == NB_PRE_NORM)
        pre_backward(s, d, arena, other_arena);
    else
        post_backward(s, d, arena, other_arena);
}

void nb_sublayer_release(struct nb_sublayer *s) { nb_norm_layer_release(&s->norm); }
