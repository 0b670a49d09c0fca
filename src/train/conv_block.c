// SPDX-License-Identifier: Apache-2.0
/* Forward in the order of the header, backward in the reverse. */
#include "src/train/conv_block.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/train/pooling.h"

static const float LEAK = 0.1f;

static int64_t pixels(const struct nb_conv_block *b) { return b->c.height * b->c.width; }
int64_t nb_conv_block_outputs(const struct nb_conv_block *b) { return b->c.batch * b->c.out * pixels(b); }
static bool turns(const struct nb_conv_block *b) { return b->norm.choice.kind == NB_NORM_BATCHNORM; }
static bool has_norm(const struct nb_conv_block *b) { return b->norm.choice.kind != NB_NORM_NONE; }

static struct nb_parameter *add(struct nb_conv_block *b, struct nb_model *model, const char *what, int64_t rows,
                                int64_t cols, bool decays) {
    char name[48];
    snprintf(name, sizeof name, "%s.%s", b->place, what);
    return nb_parameter_add(&model->parameters, name, rows, cols, decays);
}

static void take_arenas(struct nb_conv_block *b, struct nb_arena *kept) {
    const int64_t n = nb_conv_block_outputs(b);
    b->before = nb_arena_take(kept, n);
    b->normed = has_norm(b) ? nb_arena_take(kept, n) : b->before;
    b->out = nb_arena_take(kept, n);
    if (turns(b)) b->turned = nb_arena_take(kept, n);
    if (!b->pools) return;
    b->pooled = nb_arena_take(kept, n / 4);
    b->from = nb_alloc((unsigned long long)(n / 4), sizeof *b->from);
}

int nb_conv_block_init(struct nb_conv_block *b, struct nb_model *model, int index, const struct nb_convolution *c,
                       bool pools, struct nb_arena *kept) {
    const struct nb_norm_choice *choice = &model->options.norm;
    struct nb_norm_choice plain = *choice;
    char name[24];
    *b = (struct nb_conv_block){.c = *c, .pools = pools};
    snprintf(b->place, sizeof b->place, "layer%d", index);
    snprintf(name, sizeof name, "%s.norm", b->place);
    const int64_t patch = c->in * c->side * c->side;
    b->w = add(b, model, "w", c->out, patch, true);
    b->gain = add(b, model, "gain", 1, c->out, false);
    b->bias = add(b, model, "bias", 1, c->out, false);
    nb_parameter_draw(b->w, model->options.seed, sqrt(2.0 / (double)patch)); /* He et al. 2015 */
    nb_parameter_fill(b->gain, 1);
    b->gain->frozen = choice->kind == NB_NORM_NONE || choice->affine == NB_NORM_FROZEN;
    /* Gain and bias are of channels here; the kernel's own, of columns, stay 1 and 0. */
    plain.affine = NB_NORM_FROZEN;
    const bool by_channel = choice->kind == NB_NORM_BATCHNORM;
    const int result = nb_norm_layer_init(&b->norm, name, &plain, by_channel ? c->batch * pixels(b) : c->batch * c->out,
                                          by_channel ? c->out : pixels(b), &model->parameters, model->pool);
    if (result == 0) take_arenas(b, kept);
    return result;
}

void nb_conv_block_release(struct nb_conv_block *b) {
    nb_norm_layer_release(&b->norm);
    free(b->from);
    *b = (struct nb_conv_block){0};
}

/* to[image][col][row] = from[image][row][col] */
static void turn(float *to, const float *from, int64_t images, int64_t rows, int64_t cols) {
    for (int64_t image = 0; image < images; image++, to += rows * cols, from += rows * cols)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t col = 0; col < cols; col++) to[col * rows + row] = from[row * cols + col];
}

/* ---- forward ---- */

static void normalize(struct nb_conv_block *b, bool training, const struct nb_conv_arenas *arenas) {
    const int64_t images = b->c.batch, channels = b->c.out;
    if (!has_norm(b)) return;
    if (!turns(b)) {
        nb_norm_forward(&b->norm, b->normed, b->before, images * channels, training);
        return;
    }
    turn(b->turned, b->before, images, channels, pixels(b));
    nb_norm_forward(&b->norm, arenas->turned, b->turned, images * pixels(b), training);
    turn(b->normed, arenas->turned, images, pixels(b), channels);
}

static void activate(struct nb_conv_block *b) {
    const int64_t n = pixels(b);
    for (int64_t plane = 0; plane < b->c.batch * b->c.out; plane++) {
        const float gain = b->gain->value[plane % b->c.out], bias = b->bias->value[plane % b->c.out];
        for (int64_t i = plane * n; i < (plane + 1) * n; i++) {
            const float v = gain * b->normed[i] + bias;
            b->out[i] = v > 0 ? v : LEAK * v;
        }
    }
}

const float *nb_conv_block_forward(struct nb_conv_block *b, const struct nb_model *model, const float *x, bool training,
                                   const struct nb_conv_arenas *arenas) {
    b->x = x;
    nb_convolution_forward(&b->c, b->before, x, b->w->value, arenas->columns);
    normalize(b, training, arenas);
    activate(b);
    nb_model_tell(model, b->place, "convolution", b->before, nb_conv_block_outputs(b));
    nb_model_tell(model, b->place, "output", b->out, nb_conv_block_outputs(b));
    if (!b->pools) return b->out;
    nb_max_pool_forward(b->pooled, b->from, b->out, b->c.batch * b->c.out, b->c.height, b->c.width);
    return b->pooled;
}

/* ---- backward ---- */

/* d, the gradient by out, becomes that by normed. The sign of out is that of what went in. */
static void activate_back(struct nb_conv_block *b, float *d) {
    const int64_t n = pixels(b);
    for (int64_t plane = 0; plane < b->c.batch * b->c.out; plane++) {
        const int64_t channel = plane % b->c.out;
        const float gain = b->gain->value[channel];
        float dgain = 0, dbias = 0;
        for (int64_t i = plane * n; i < (plane + 1) * n; i++) {
            const float dv = b->out[i] > 0 ? d[i] : LEAK * d[i];
            dgain += dv * b->normed[i];
            dbias += dv;
            d[i] = gain * dv;
        }
        b->gain->gradient[channel] += dgain;
        b->bias->gradient[channel] += dbias;
    }
}

/* Returns the gradient by before. */
static const float *normalize_back(struct nb_conv_block *b, const float *d, const struct nb_conv_arenas *arenas) {
    const int64_t images = b->c.batch, channels = b->c.out;
    if (!has_norm(b)) return d;
    if (!turns(b)) {
        nb_norm_backward(&b->norm, arenas->other, d, b->before, images * channels);
        return arenas->other;
    }
    turn(arenas->turned, d, images, channels, pixels(b));
    nb_norm_backward(&b->norm, arenas->turned_back, arenas->turned, b->turned, images * pixels(b));
    turn(arenas->other, arenas->turned_back, images, pixels(b), channels);
    return arenas->other;
}

void nb_conv_block_backward(struct nb_conv_block *b, const struct nb_model *model, float *dx, float *dy,
                            const struct nb_conv_arenas *arenas) {
    float *d = dy;
    if (b->pools) {
        d = arenas->d;
        nb_max_pool_backward(d, dy, b->from, b->c.batch * b->c.out, b->c.height, b->c.width);
    }
    nb_model_tell_gradient(model, b->place, "output", d, nb_conv_block_outputs(b));
    activate_back(b, d);
    const float *dbefore = normalize_back(b, d, arenas);
    nb_model_tell_gradient(model, b->place, "convolution", dbefore, nb_conv_block_outputs(b));
    nb_convolution_backward(&b->c, dx, b->w->gradient, dbefore, b->x, b->w->value, arenas->columns);
}
