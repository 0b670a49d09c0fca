// SPDX-License-Identifier: Apache-2.0
/* ConvPool-CNN-C (Springenberg et al. 2015, as Salimans & Kingma 2016 and the RMSNorm paper's table 10 train it) on images of CIFAR-10's
 * shape (data.h): three convolutions of 96 channels, pooling, three of 192, pooling, one of 192 and two of 192 with a side of 1, the
 * mean of each plane, ten classes. Pooling takes the largest of 2 x 2 where theirs takes 3 x 3 with a stride of 2.
 *
 * Behind each convolution a norm, a gain and a bias for each channel, and a leaky ReLU of 0.1. As in the paper's code the norm of LayerNorm,
 * RMSNorm and pRMSNorm is over height and width of one channel of one image; a row of the kernel is such a plane. BatchNorm is over all
 * images and positions of a channel; for its kernels, which want channels to be columns, planes are turned, which takes time of its own
 * that is not counted as the norm's. */
#include "src/train/tensor.h"
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/norm_layer.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

/* ---- convolutions of images [channel][row][column], one image after another: what the kernel sees at each position becomes a column of a
 * matrix (im2col); its inverse, col2im, adds what positions share. Stride 1, an odd side,
 * edges filled with zeros: height and width stay ---- */

struct convolution {
    int64_t batch, height, width, in, out; /* in, out: channels */
    int64_t side;                          /* of the kernel */
};

static int64_t pixels(const struct convolution *c) { return c->height * c->width; }
static int64_t patch(const struct convolution *c) { return c->in * c->side * c->side; }

/* Floats that the columns of one image take; nothing is kept from forward to backward. */
static int64_t convolution_columns(const struct convolution *c) { return patch(c) * pixels(c); }

/* One row of an image under one element of the kernel: columns [first, end) of the output see columns shift further on. */
struct strip {
    int64_t row, shift, first, end; /* row outside the image: first == end */
};

static struct strip strip_of(const struct convolution *c, int64_t row, int64_t k_row, int64_t k_col) {
    struct strip s = {.row = row + k_row - c->side / 2, .shift = k_col - c->side / 2};
    if (s.row < 0 || s.row >= c->height) return s;
    s.first = s.shift < 0 ? -s.shift : 0;
    s.end = s.shift > 0 ? c->width - s.shift : c->width;
    if (s.end < s.first) s.first = s.end = 0;
    return s;
}

static void take(const struct convolution *c, float *to, const float *plane, const struct strip *s) {
    memset(to, 0, (size_t)c->width * sizeof *to);
    if (s->end > s->first)
        memcpy(to + s->first, plane + s->row * c->width + s->first + s->shift,
               (size_t)(s->end - s->first) * sizeof *to);
}

static void give_back(const struct convolution *c, float *plane, const float *from, const struct strip *s) {
    if (s->end <= s->first) return;
    float *to = plane + s->row * c->width + s->shift;
    for (int64_t i = s->first; i < s->end; i++) to[i] += from[i];
}

/* To the columns where x is given, else from them to dx. */
static void walk(const struct convolution *c, float *columns, const float *x, float *dx) {
    for (int64_t channel = 0; channel < c->in; channel++)
        for (int64_t k = 0; k < c->side * c->side; k++)
            for (int64_t row = 0; row < c->height; row++) {
                const struct strip s = strip_of(c, row, k / c->side, k % c->side);
                float *at = columns + ((channel * c->side * c->side + k) * c->height + row) * c->width;
                if (x)
                    take(c, at, x + channel * pixels(c), &s);
                else if (dx)
                    give_back(c, dx + channel * pixels(c), at, &s);
            }
}

/* y[batch][out][h][w] = w[out][in][side][side] over x[batch][in][h][w] */
static void convolution_forward(const struct convolution *c, float *y, const float *x, const float *w, float *columns) {
    assert(c->side % 2 == 1);
    nb_op(1);
    for (int64_t image = 0; image < c->batch; image++) {
        const float *from = x + image * c->in * pixels(c);
        if (c->side > 1) walk(c, columns, from, NULL);
        nb_matrix_multiply(NB_AS_STORED, y + image * c->out * pixels(c), w, c->side > 1 ? columns : from, c->out,
                           pixels(c), patch(c), 0);
    }
}

/* Adds to dw, overwrites dx, which may be null. */
static void convolution_backward(const struct convolution *c, float *dx, float *dw, const float *dy, const float *x,
                                 const float *w, float *columns) {
    nb_op(1 + (dx != NULL));
    for (int64_t image = 0; image < c->batch; image++) {
        const float *from = x + image * c->in * pixels(c), *d = dy + image * c->out * pixels(c);
        if (c->side > 1) walk(c, columns, from, NULL);
        nb_matrix_multiply(NB_B_TRANSPOSED, dw, d, c->side > 1 ? columns : from, c->out, patch(c), pixels(c), 1);
        if (!dx) continue;
        float *to = dx + image * c->in * pixels(c);
        nb_matrix_multiply(NB_A_TRANSPOSED, c->side > 1 ? columns : to, w, d, patch(c), pixels(c), c->out, 0);
        if (c->side == 1) continue;
        memset(to, 0, (size_t)(c->in * pixels(c)) * sizeof *to);
        walk(c, columns, NULL, to);
    }
}

/* ---- pooling; of equal values the first counts ---- */

/* The largest of each 2 x 2; height and width even. from: index of it within the plane, for backward, which overwrites dx. */
static void max_pool_forward(float *y, int32_t *from, const float *x, int64_t planes, int64_t height, int64_t width) {
    assert(height % 2 == 0 && width % 2 == 0);
    nb_op(1);
    for (int64_t plane = 0; plane < planes; plane++, x += height * width)
        for (int64_t row = 0; row < height; row += 2)
            for (int64_t col = 0; col < width; col += 2) {
                const int64_t at = row * width + col, others[] = {at + 1, at + width, at + width + 1};
                int64_t best = at;
                for (int i = 0; i < 3; i++)
                    if (x[others[i]] > x[best]) best = others[i];
                *y++ = x[best];
                *from++ = (int32_t)best;
            }
}

static void max_pool_backward(float *dx, const float *dy, const int32_t *from, int64_t planes, int64_t height,
                              int64_t width) {
    const int64_t pooled = height * width / 4;
    nb_op(1);
    memset(dx, 0, (size_t)(planes * height * width) * sizeof *dx);
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < pooled; i++)
            dx[plane * height * width + from[plane * pooled + i]] += dy[plane * pooled + i];
}

/* The mean of each plane. */
static void mean_pool_forward(float *y, const float *x, int64_t planes, int64_t pixels) {
    for (int64_t plane = 0; plane < planes; plane++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++) sum += (double)x[plane * pixels + i];
        y[plane] = (float)(sum / (double)pixels);
    }
}

static void mean_pool_backward(float *dx, const float *dy, int64_t planes, int64_t pixels) {
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < pixels; i++) dx[plane * pixels + i] = dy[plane] / (float)pixels;
}

/* ---- a convolution with what follows it: norm, gain and bias of each channel, leaky ReLU, pooling where there is one ---- */

struct conv_block {
    char place[16]; /* "layer3" */
    struct convolution c;
    bool pools;
    struct nb_parameter *w, *gain, *bias;
    struct nb_norm_layer norm;
    float *before, *normed, *out, *pooled; /* kept; normed is before without a norm */
    float *turned;                         /* BatchNorm: before with channels as columns; kept */
    int32_t *from;                         /* of pooling */
    const float *x;                        /* of the last forward; borrowed */
};
struct conv_buffers { /* shared by the blocks of a model: each as large as the largest needs */
    float *columns, *d, *other, *turned, *turned_back;
};

/* ---- a block, forward and backward ---- */

static const float LEAK = 0.1f;

/* before pooling */
static int64_t conv_block_outputs(const struct conv_block *b) { return b->c.batch * b->c.out * pixels(&b->c); }
static bool turns(const struct conv_block *b) { return b->norm.choice.kind == NB_NORM_BATCHNORM; }
static bool has_norm(const struct conv_block *b) { return b->norm.choice.kind != NB_NORM_NONE; }

static void allocate_block(struct conv_block *b, struct nb_model *model) {
    const int64_t n = conv_block_outputs(b);
    b->before = nb_arena_take(&model->kept, n);
    b->normed = has_norm(b) ? nb_arena_take(&model->kept, n) : b->before;
    b->out = nb_arena_take(&model->kept, n);
    if (turns(b)) b->turned = nb_arena_take(&model->kept, n);
    if (!b->pools) return;
    b->pooled = nb_arena_take(&model->kept, n / 4);
    b->from = nb_arena_take_bytes(&model->passing, (size_t)(n / 4) * sizeof *b->from);
}

static void conv_block_init(struct conv_block *b, struct nb_model *model, int index, const struct convolution *c,
                            bool pools) {
    const struct nb_norm_choice *choice = &model->options.norm;
    struct nb_parameters *all = &model->parameters;
    const int64_t patch = c->in * c->side * c->side;
    *b = (struct conv_block){.c = *c, .pools = pools};
    snprintf(b->place, sizeof b->place, "layer%d", index);
    b->w = nb_parameter_matrix(all, b->place, "w", c->out, patch, model->options.seed,
                               sqrt(2.0 / (double)patch)); /* He et al. 2015 */
    b->gain = nb_parameter_vector(all, b->place, "gain", c->out, 1);
    b->bias = nb_parameter_vector(all, b->place, "bias", c->out, 0);
    b->gain->frozen = choice->kind == NB_NORM_NONE || choice->affine == NB_NORM_FROZEN;
    const bool by_channel = choice->kind == NB_NORM_BATCHNORM;
    nb_norm_layer_init(&b->norm, model, nb_place_of(b->place, "norm").text,
                       by_channel ? c->batch * pixels(&b->c) : c->batch * c->out, by_channel ? c->out : pixels(&b->c));
    /* Gain and bias are of channels here; the kernel's own, of columns, stay 1 and 0. */
    if (b->norm.gamma) b->norm.gamma->frozen = true;
    if (b->norm.beta) b->norm.beta->frozen = true;
    allocate_block(b, model);
}

/* to[image][col][row] = from[image][row][col] */
static void turn(float *to, const float *from, int64_t images, int64_t rows, int64_t cols) {
    for (int64_t image = 0; image < images; image++, to += rows * cols, from += rows * cols)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t col = 0; col < cols; col++) to[col * rows + row] = from[row * cols + col];
}

/* ---- forward ---- */

static void normalize(struct conv_block *b, bool training, const struct conv_buffers *buffers) {
    const int64_t images = b->c.batch, channels = b->c.out;
    if (!has_norm(b)) return;
    if (!turns(b)) {
        nb_norm_forward(&b->norm, b->normed, b->before, 0, images * channels, training);
        return;
    }
    turn(b->turned, b->before, images, channels, pixels(&b->c));
    nb_norm_forward(&b->norm, buffers->turned, b->turned, 0, images * pixels(&b->c), training);
    turn(b->normed, buffers->turned, images, pixels(&b->c), channels);
}

static void activate(struct conv_block *b) {
    const int64_t n = pixels(&b->c);
    nb_op(3);
    for (int64_t plane = 0; plane < b->c.batch * b->c.out; plane++) {
        const float gain = b->gain->value[plane % b->c.out], bias = b->bias->value[plane % b->c.out];
        for (int64_t i = plane * n; i < (plane + 1) * n; i++) {
            const float v = gain * b->normed[i] + bias, leaked = LEAK * v;
            b->out[i] = v > leaked ? v : leaked; /* a maximum: no branch that a norm's signs could mislead */
        }
    }
}

static const float *conv_block_forward(struct conv_block *b, const struct nb_model *model, const float *x,
                                       bool training, const struct conv_buffers *buffers) {
    b->x = x;
    convolution_forward(&b->c, b->before, x, b->w->value, buffers->columns);
    normalize(b, training, buffers);
    activate(b);
    nb_model_observe(model, NB_ACTIVATION, b->place, "convolution", b->before, conv_block_outputs(b));
    nb_model_observe(model, NB_ACTIVATION, b->place, "output", b->out, conv_block_outputs(b));
    if (!b->pools) return b->out;
    max_pool_forward(b->pooled, b->from, b->out, b->c.batch * b->c.out, b->c.height, b->c.width);
    return b->pooled;
}

/* ---- backward ---- */

/* d, the gradient by out, becomes that by normed. The sign of out is that of what went in. */
static void activate_back(struct conv_block *b, float *d) {
    const int64_t n = pixels(&b->c);
    nb_op(5);
    for (int64_t plane = 0; plane < b->c.batch * b->c.out; plane++) {
        const int64_t channel = plane % b->c.out;
        const float gain = b->gain->value[channel];
        float dgain = 0, dbias = 0;
        for (int64_t i = plane * n; i < (plane + 1) * n; i++) {
            const float slopes[] = {LEAK, 1}, dv = slopes[b->out[i] > 0] * d[i];
            dgain += dv * b->normed[i];
            dbias += dv;
            d[i] = gain * dv;
        }
        b->gain->gradient[channel] += dgain;
        b->bias->gradient[channel] += dbias;
    }
}

/* Returns the gradient by before. */
static const float *normalize_back(struct conv_block *b, const float *d, const struct conv_buffers *buffers) {
    const int64_t images = b->c.batch, channels = b->c.out;
    if (!turns(b)) return nb_norm_backward(&b->norm, buffers->other, d, b->before, 0, images * channels);
    turn(buffers->turned, d, images, channels, pixels(&b->c));
    nb_norm_backward(&b->norm, buffers->turned_back, buffers->turned, b->turned, 0, images * pixels(&b->c));
    turn(buffers->other, buffers->turned_back, images, pixels(&b->c), channels);
    return buffers->other;
}

/* dx may be null. dy is written over. */
static void conv_block_backward(struct conv_block *b, const struct nb_model *model, float *dx, float *dy,
                                const struct conv_buffers *buffers) {
    float *d = dy;
    if (b->pools) {
        d = buffers->d;
        max_pool_backward(d, dy, b->from, b->c.batch * b->c.out, b->c.height, b->c.width);
    }
    nb_model_observe(model, NB_GRADIENT, b->place, "output", d, conv_block_outputs(b));
    activate_back(b, d);
    const float *dbefore = normalize_back(b, d, buffers);
    nb_model_observe(model, NB_GRADIENT, b->place, "convolution", dbefore, conv_block_outputs(b));
    convolution_backward(&b->c, dx, b->w->gradient, dbefore, b->x, b->w->value, buffers->columns);
}

/* ---- the net: blocks in a row, the mean of each plane, a linear layer ---- */

enum { BLOCKS = 9 };
struct convpool {
    struct conv_block blocks[BLOCKS];
    struct conv_buffers buffers;
    struct nb_parameter *w, *bias;
    float *images, *features, *logits; /* logits: probabilities behind the loss */
    float *d, *dnext;
    int32_t *classes;
    const float *last; /* what the mean is taken of */
};

/* hidden: channels of the first three convolutions, half of those of the others; sequence: the side of an image */
static const struct nb_train_options full = {.hidden = 96, .batch = 16, .sequence = 32, .learning_rate = 3e-4};
static const struct nb_train_options tiny = {.hidden = 8, .batch = 8, .sequence = 16, .learning_rate = 3e-3};
/* eps as the paper's code, partial as the paper in this experiment */
static const struct nb_train_options both = {.layers = BLOCKS, .norm = {.eps = 1e-6, .partial = 0.125}};

/* ---- sizes ---- */

static const char *convpool_complete(const void *own, struct nb_train_options *o) {
    nb_train_options_fill(o, own);
    nb_train_options_fill(o, &both);
    if (o->layers != BLOCKS) return "layers must be 9: the net is what it is";
    if (o->batch < 2 || o->batch > 4096) return "batch must be 2 to 4096 images";
    if (o->sequence < 8 || o->sequence > 256 || o->sequence % 4 != 0)
        return "sequence, the side of an image, must be a multiple of 4 from 8 to 256";
    if (o->hidden < 1 || o->hidden > 4096) return "hidden must be 1 to 4096 channels";
    if (o->dtype != NB_F32) return "dtype must be f32: this net does not round";
    if (o->place != NB_PRE_NORM || !o->residual) return "place and residual paths are of other models";
    return nb_train_options_refused(o, false);
}

static struct convolution convolution_of(const struct nb_train_options *o, int index) {
    const int64_t wide = 2 * (int64_t)o->hidden, side = o->sequence / (index < 3 ? 1 : index < 6 ? 2 : 4);
    return (struct convolution){.batch = o->batch,
                                .height = side,
                                .width = side,
                                .in = index == 0  ? NB_TEXTURE_COLOURS
                                      : index < 4 ? o->hidden
                                                  : wide,
                                .out = index < 3 ? o->hidden : wide,
                                .side = index < 7 ? 3 : 1};
}
static bool pools_behind(int index) { return index == 2 || index == 5; }

static double convpool_flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    double sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const struct convolution c = convolution_of(o, i);
        sum += 2.0 * (double)c.batch * (double)c.out * (double)convolution_columns(&c);
    }
    return 3 * sum;
}

/* ---- life ---- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void allocate(struct nb_model *model, struct convpool *t) {
    const struct nb_train_options *o = &model->options;
    const int64_t wide = 2 * (int64_t)o->hidden;
    int64_t columns = 0, outputs = (int64_t)o->batch * NB_TEXTURE_COLOURS * o->sequence * o->sequence;
    t->images = nb_arena_take(&model->kept, outputs);
    for (int i = 0; i < BLOCKS; i++) {
        columns = larger(columns, convolution_columns(&t->blocks[i].c));
        outputs = larger(outputs, conv_block_outputs(&t->blocks[i]));
    }
    t->features = nb_arena_take(&model->kept, o->batch * wide);
    t->logits = nb_arena_take(&model->kept, (int64_t)o->batch * NB_TEXTURE_CLASSES);
    t->classes = nb_arena_take_bytes(&model->passing, (size_t)o->batch * sizeof *t->classes);
    t->d = nb_arena_take(&model->passing, outputs);
    t->dnext = nb_arena_take(&model->passing, outputs);
    t->buffers.columns = nb_arena_take(&model->passing, columns);
    t->buffers.d = nb_arena_take(&model->passing, outputs);
    t->buffers.other = nb_arena_take(&model->passing, outputs);
    if (o->norm.kind != NB_NORM_BATCHNORM) return;
    t->buffers.turned = nb_arena_take(&model->passing, outputs);
    t->buffers.turned_back = nb_arena_take(&model->passing, outputs);
}

static void convpool_create(struct nb_model *model) {
    struct convpool *t = nb_arena_take_bytes(&model->passing, sizeof *t);
    const int64_t wide = 2 * (int64_t)model->options.hidden;
    model->inside = t;
    for (int i = 0; i < BLOCKS; i++) {
        const struct convolution c = convolution_of(&model->options, i);
        conv_block_init(&t->blocks[i], model, i, &c, pools_behind(i));
    }
    t->w = nb_parameter_matrix(&model->parameters, "head", "w", NB_TEXTURE_CLASSES, wide, model->options.seed,
                               1 / sqrt((double)wide));
    t->bias = nb_parameter_vector(&model->parameters, "head", "bias", NB_TEXTURE_CLASSES, 0);
    allocate(model, t);
}

/* ---- passes ---- */

static void draw_images(const struct nb_train_options *o, struct convpool *t, int64_t batch) {
    const int64_t n = (int64_t)NB_TEXTURE_COLOURS * o->sequence * o->sequence;
    for (int i = 0; i < o->batch; i++)
        t->classes[i] = nb_texture(t->images + i * n, (uint64_t)(batch * o->batch + i), o->sequence);
}

static double convpool_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct convpool *t = model->inside;
    const struct convolution *c = &t->blocks[BLOCKS - 1].c;
    (void)text; /* images are drawn */
    draw_images(&model->options, t, batch);
    t->last = t->images;
    for (int i = 0; i < BLOCKS; i++) t->last = conv_block_forward(&t->blocks[i], model, t->last, training, &t->buffers);
    mean_pool_forward(t->features, t->last, c->batch * c->out, c->height * c->width);
    nb_linear_forward(t->logits, t->features, t->w->value, t->bias->value, c->batch, c->out, NB_TEXTURE_CLASSES);
    nb_model_observe(model, NB_ACTIVATION, "logits", "", t->logits, c->batch * NB_TEXTURE_CLASSES);
    return nb_cross_entropy_forward(t->logits, t->logits, t->classes, c->batch, NB_TEXTURE_CLASSES);
}

static void convpool_backward(struct nb_model *model, double scale) {
    struct convpool *t = model->inside;
    const struct convolution *c = &t->blocks[BLOCKS - 1].c;
    nb_cross_entropy_backward(t->logits, t->logits, t->classes, c->batch, NB_TEXTURE_CLASSES, scale);
    nb_linear_backward(t->buffers.other, t->w->gradient, t->bias->gradient, t->logits, t->features, t->w->value,
                       c->batch, c->out, NB_TEXTURE_CLASSES);
    mean_pool_backward(t->d, t->buffers.other, c->batch * c->out, c->height * c->width);
    for (int i = BLOCKS - 1; i >= 0; i--) {
        conv_block_backward(&t->blocks[i], model, i > 0 ? t->dnext : NULL, t->d, &t->buffers);
        float *const swapped = t->d;
        t->d = t->dnext;
        t->dnext = swapped;
    }
}

static const struct nb_model_family convpool_family = {.complete = convpool_complete,
                                                       .create = convpool_create,
                                                       .forward = convpool_forward,
                                                       .backward = convpool_backward,
                                                       .flops = convpool_flops};

const struct nb_workload nb_workload_convpool = {
    .name = "convpool",
    .summary = "ConvPool-CNN-C on drawn images of 32 x 32 x 3: nine convolutions of 96 and 192 channels, ten classes",
    .family = &convpool_family,
    .own = &full};
const struct nb_workload nb_workload_tiny_convpool = {
    .name = "tiny-convpool",
    .summary = "The same net with 8 and 16 channels on images of 16 x 16 x 3",
    .family = &convpool_family,
    .own = &tiny};
