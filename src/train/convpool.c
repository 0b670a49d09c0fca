// SPDX-License-Identifier: Apache-2.0
/* ConvPool-CNN-C (Springenberg et al. 2015, as Salimans & Kingma 2016 and the RMSNorm paper's table 10 train it) on images of CIFAR-10's
 * shape (data.h): three convolutions of 96 channels, pooling, three of 192, pooling, one of 192 and two of 192 with a side of 1, the
 * mean of each plane, ten classes. Pooling takes the largest of 2 x 2 where theirs takes 3 x 3 with a stride of 2.
 *
 * Behind each convolution a norm, a gain and a bias for each channel, and a leaky ReLU of 0.1. As in the paper's code the norm of LayerNorm,
 * RMSNorm and pRMSNorm is over height and width of one channel of one image; a row of the kernel is such a plane. BatchNorm is over all
 * images and positions of a channel; for its kernels, which want channels to be columns, planes are turned, which takes time of its own
 * that is not counted as the norm's. */

/* A convolution with what follows it: norm, gain and bias of each channel, leaky ReLU, pooling where there is one. */
#include <math.h>
#include <stdio.h>

#include "src/train/convolution.h"
#include "src/train/data.h"
#include "src/train/layers.h"
#include "src/train/matrix.h"
#include "src/train/norm_layer.h"
#include "src/train/tensor.h"
#include "src/train/workload.h"

struct conv_block {
    char place[16]; /* "layer3" */
    struct nb_convolution c;
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

static int64_t pixels(const struct conv_block *b) { return b->c.height * b->c.width; }
/* before pooling */
static int64_t conv_block_outputs(const struct conv_block *b) { return b->c.batch * b->c.out * pixels(b); }
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

static void conv_block_init(struct conv_block *b, struct nb_model *model, int index, const struct nb_convolution *c,
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
                       by_channel ? c->batch * pixels(b) : c->batch * c->out, by_channel ? c->out : pixels(b));
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
    turn(b->turned, b->before, images, channels, pixels(b));
    nb_norm_forward(&b->norm, buffers->turned, b->turned, 0, images * pixels(b), training);
    turn(b->normed, buffers->turned, images, pixels(b), channels);
}

static void activate(struct conv_block *b) {
    const int64_t n = pixels(b);
    for (int64_t plane = 0; plane < b->c.batch * b->c.out; plane++) {
        const float gain = b->gain->value[plane % b->c.out], bias = b->bias->value[plane % b->c.out];
        for (int64_t i = plane * n; i < (plane + 1) * n; i++) {
            const float v = gain * b->normed[i] + bias;
            b->out[i] = v > 0 ? v : LEAK * v;
        }
    }
}

static const float *conv_block_forward(struct conv_block *b, const struct nb_model *model, const float *x,
                                       bool training, const struct conv_buffers *buffers) {
    b->x = x;
    nb_convolution_forward(&b->c, b->before, x, b->w->value, buffers->columns);
    normalize(b, training, buffers);
    activate(b);
    nb_model_observe(model, NB_ACTIVATION, b->place, "convolution", b->before, conv_block_outputs(b));
    nb_model_observe(model, NB_ACTIVATION, b->place, "output", b->out, conv_block_outputs(b));
    if (!b->pools) return b->out;
    nb_max_pool_forward(b->pooled, b->from, b->out, b->c.batch * b->c.out, b->c.height, b->c.width);
    return b->pooled;
}

/* ---- backward ---- */

/* d, the gradient by out, becomes that by normed. The sign of out is that of what went in. */
static void activate_back(struct conv_block *b, float *d) {
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
static const float *normalize_back(struct conv_block *b, const float *d, const struct conv_buffers *buffers) {
    const int64_t images = b->c.batch, channels = b->c.out;
    if (!turns(b)) return nb_norm_backward(&b->norm, buffers->other, d, b->before, 0, images * channels);
    turn(buffers->turned, d, images, channels, pixels(b));
    nb_norm_backward(&b->norm, buffers->turned_back, buffers->turned, b->turned, 0, images * pixels(b));
    turn(buffers->other, buffers->turned_back, images, pixels(b), channels);
    return buffers->other;
}

/* dx may be null. dy is written over. */
static void conv_block_backward(struct conv_block *b, const struct nb_model *model, float *dx, float *dy,
                                const struct conv_buffers *buffers) {
    float *d = dy;
    if (b->pools) {
        d = buffers->d;
        nb_max_pool_backward(d, dy, b->from, b->c.batch * b->c.out, b->c.height, b->c.width);
    }
    nb_model_observe(model, NB_GRADIENT, b->place, "output", d, conv_block_outputs(b));
    activate_back(b, d);
    const float *dbefore = normalize_back(b, d, buffers);
    nb_model_observe(model, NB_GRADIENT, b->place, "convolution", dbefore, conv_block_outputs(b));
    nb_convolution_backward(&b->c, dx, b->w->gradient, dbefore, b->x, b->w->value, buffers->columns);
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

static struct nb_convolution convolution_of(const struct nb_train_options *o, int index) {
    const int64_t wide = 2 * (int64_t)o->hidden, side = o->sequence / (index < 3 ? 1 : index < 6 ? 2 : 4);
    return (struct nb_convolution){.batch = o->batch,
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
        const struct nb_convolution c = convolution_of(o, i);
        sum += 2.0 * (double)c.batch * (double)c.out * (double)nb_convolution_columns(&c);
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
        columns = larger(columns, nb_convolution_columns(&t->blocks[i].c));
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
        const struct nb_convolution c = convolution_of(&model->options, i);
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
    const struct nb_convolution *c = &t->blocks[BLOCKS - 1].c;
    (void)text; /* images are drawn */
    draw_images(&model->options, t, batch);
    t->last = t->images;
    for (int i = 0; i < BLOCKS; i++) t->last = conv_block_forward(&t->blocks[i], model, t->last, training, &t->buffers);
    nb_mean_pool_forward(t->features, t->last, c->batch * c->out, c->height * c->width);
    nb_linear_forward(t->logits, t->features, t->w->value, t->bias->value, c->batch, c->out, NB_TEXTURE_CLASSES);
    nb_model_observe(model, NB_ACTIVATION, "logits", "", t->logits, c->batch * NB_TEXTURE_CLASSES);
    return nb_cross_entropy_forward(t->logits, t->logits, t->classes, c->batch, NB_TEXTURE_CLASSES);
}

static void convpool_backward(struct nb_model *model, double scale) {
    struct convpool *t = model->inside;
    const struct nb_convolution *c = &t->blocks[BLOCKS - 1].c;
    nb_cross_entropy_backward(t->logits, t->logits, t->classes, c->batch, NB_TEXTURE_CLASSES, scale);
    nb_linear_backward(t->buffers.other, t->w->gradient, t->bias->gradient, t->logits, t->features, t->w->value,
                       c->batch, c->out, NB_TEXTURE_CLASSES);
    nb_mean_pool_backward(t->d, t->buffers.other, c->batch * c->out, c->height * c->width);
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
