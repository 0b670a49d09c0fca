// SPDX-License-Identifier: Apache-2.0
/* The net: blocks in a row, the mean of each plane, a linear layer. */
#include "src/train/convpool.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/train/conv_block.h"
#include "src/train/loss.h"
#include "src/train/matrix.h"
#include "src/train/pooling.h"
#include "src/train/textures.h"

enum { BLOCKS = 9, MOST_PARAMETERS = 5 * BLOCKS + 2 };
struct shape {
    int hidden, batch, side; /* hidden: channels of the first three convolutions, half of those of the others */
    double learning_rate;
};
struct convpool {
    struct nb_conv_block blocks[BLOCKS];
    struct nb_conv_arenas arenas;
    struct nb_arena kept, shared;
    struct nb_parameter *w, *bias;
    float *images, *features, *logits; /* logits: probabilities behind the loss */
    float *d, *dnext;
    int32_t *classes;
    const float *last; /* what the mean is taken of */
};

static const struct shape full = {.hidden = 96, .batch = 16, .side = 32, .learning_rate = 3e-4};
static const struct shape tiny = {.hidden = 8, .batch = 8, .side = 16, .learning_rate = 3e-3};

/* ---- sizes ---- */

static const char *complete(const void *own, struct nb_train_options *o) {
    const struct shape *shape = own;
    if (o->layers == 0) o->layers = BLOCKS;
    if (o->batch == 0) o->batch = shape->batch;
    if (o->sequence == 0) o->sequence = shape->side;
    if (o->hidden == 0) o->hidden = shape->hidden;
    if (o->learning_rate == 0) o->learning_rate = shape->learning_rate;
    if (o->norm.eps == 0) o->norm.eps = 1e-6;          /* as the paper's code */
    if (o->norm.partial == 0) o->norm.partial = 0.125; /* as the paper in this experiment */
    if (o->layers != BLOCKS) return "layers must be 9: the net is what it is";
    if (o->batch < 2 || o->batch > 4096) return "batch must be 2 to 4096 images";
    if (o->sequence < 8 || o->sequence > 256 || o->sequence % 4 != 0)
        return "sequence, the side of an image, must be a multiple of 4 from 8 to 256";
    if (o->hidden < 1 || o->hidden > 4096) return "hidden must be 1 to 4096 channels";
    if (o->dtype != NB_F32) return "dtype must be f32: this net does not round";
    if (o->place != NB_PRE_NORM || !o->residual) return "place and residual paths are of other models";
    if (!(o->norm.partial > 0 && o->norm.partial <= 1)) return "partial must be above 0 and at most 1";
    return nb_padding_refused(o);
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

static double flops(const void *own, const struct nb_train_options *o) {
    (void)own;
    double sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const struct nb_convolution c = convolution_of(o, i);
        sum += nb_convolution_flops(&c);
    }
    return 3 * sum;
}

/* ---- life ---- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void take_arenas(struct nb_model *model, struct convpool *t) {
    const struct nb_train_options *o = &model->options;
    const int64_t wide = 2 * (int64_t)o->hidden;
    int64_t columns = 0, outputs = (int64_t)o->batch * NB_TEXTURE_COLOURS * o->sequence * o->sequence;
    t->images = nb_arena_take(&t->kept, outputs);
    for (int i = 0; i < BLOCKS; i++) {
        columns = larger(columns, nb_convolution_arena(&t->blocks[i].c));
        outputs = larger(outputs, nb_conv_block_outputs(&t->blocks[i]));
    }
    t->features = nb_arena_take(&t->kept, o->batch * wide);
    t->logits = nb_arena_take(&t->kept, (int64_t)o->batch * NB_TEXTURE_CLASSES);
    t->classes = nb_alloc((unsigned)o->batch, sizeof *t->classes);
    t->d = nb_arena_take(&t->shared, outputs);
    t->dnext = nb_arena_take(&t->shared, outputs);
    t->arenas.columns = nb_arena_take(&t->shared, columns);
    t->arenas.d = nb_arena_take(&t->shared, outputs);
    t->arenas.other = nb_arena_take(&t->shared, outputs);
    if (o->norm.kind != NB_NORM_BATCHNORM) return;
    t->arenas.turned = nb_arena_take(&t->shared, outputs);
    t->arenas.turned_back = nb_arena_take(&t->shared, outputs);
}

static int create(struct nb_model *model) {
    struct convpool *t = nb_alloc(1, sizeof *t);
    const int64_t wide = 2 * (int64_t)model->options.hidden;
    model->inside = t;
    nb_parameters_reserve(&model->parameters, MOST_PARAMETERS);
    for (int i = 0; i < BLOCKS; i++) {
        const struct nb_convolution c = convolution_of(&model->options, i);
        if (nb_conv_block_init(&t->blocks[i], model, i, &c, pools_behind(i), &t->kept) != 0) return -1;
    }
    t->w = nb_parameter_add(&model->parameters, "head.w", NB_TEXTURE_CLASSES, wide, true);
    t->bias = nb_parameter_add(&model->parameters, "head.bias", 1, NB_TEXTURE_CLASSES, false);
    nb_parameter_draw(t->w, model->options.seed, 1 / sqrt((double)wide));
    take_arenas(model, t);
    model->activation_bytes = t->kept.bytes;
    for (int i = 0; i < BLOCKS; i++) model->activation_bytes += nb_norm_kept_bytes(&t->blocks[i].norm);
    return 0;
}

static void release(struct nb_model *model) {
    struct convpool *t = model->inside;
    if (!t) return;
    for (int i = 0; i < BLOCKS; i++) nb_conv_block_release(&t->blocks[i]);
    nb_arena_release(&t->kept);
    nb_arena_release(&t->shared);
    free(t->classes);
    free(t);
    model->inside = NULL;
}

/* ---- passes ---- */

static void take_times(struct nb_model *model, struct convpool *t) {
    for (int i = 0; i < BLOCKS; i++) {
        struct nb_norm_layer *norm = &t->blocks[i].norm;
        model->norm_seconds += norm->seconds;
        model->norm_calls += norm->calls;
        norm->seconds = 0;
        norm->calls = 0;
    }
}

static void draw_images(const struct nb_train_options *o, struct convpool *t, int64_t batch) {
    const int64_t n = (int64_t)NB_TEXTURE_COLOURS * o->sequence * o->sequence;
    for (int i = 0; i < o->batch; i++)
        t->classes[i] = nb_texture(t->images + i * n, (uint64_t)(batch * o->batch + i), o->sequence);
}

static double forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    struct convpool *t = model->inside;
    const struct nb_convolution *c = &t->blocks[BLOCKS - 1].c;
    (void)text; /* images are drawn */
    draw_images(&model->options, t, batch);
    t->last = t->images;
    for (int i = 0; i < BLOCKS; i++)
        t->last = nb_conv_block_forward(&t->blocks[i], model, t->last, training, &t->arenas);
    nb_mean_pool_forward(t->features, t->last, c->batch * c->out, c->height * c->width);
    nb_linear_forward(t->logits, t->features, t->w->value, t->bias->value, c->batch, c->out, NB_TEXTURE_CLASSES);
    nb_model_tell(model, "logits", "", t->logits, c->batch * NB_TEXTURE_CLASSES);
    take_times(model, t);
    return nb_cross_entropy_forward(t->logits, t->logits, t->classes, c->batch, NB_TEXTURE_CLASSES);
}

static void backward(struct nb_model *model, double scale) {
    struct convpool *t = model->inside;
    const struct nb_convolution *c = &t->blocks[BLOCKS - 1].c;
    nb_cross_entropy_backward(t->logits, t->logits, t->classes, c->batch, NB_TEXTURE_CLASSES, scale);
    nb_linear_backward(t->arenas.other, t->w->gradient, t->bias->gradient, t->logits, t->features, t->w->value,
                       c->batch, c->out, NB_TEXTURE_CLASSES);
    nb_mean_pool_backward(t->d, t->arenas.other, c->batch * c->out, c->height * c->width);
    for (int i = BLOCKS - 1; i >= 0; i--) {
        nb_conv_block_backward(&t->blocks[i], model, i > 0 ? t->dnext : NULL, t->d, &t->arenas);
        float *const swapped = t->d;
        t->d = t->dnext;
        t->dnext = swapped;
    }
    take_times(model, t);
}

/* Adam as Salimans & Kingma's code, without decay. */
static struct nb_optimizer optimizer(const void *own, const struct nb_train_options *o) {
    (void)own;
    return (struct nb_optimizer){
        .kind = NB_ADAMW, .learning_rate = o->learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

const struct nb_workload nb_workload_convpool = {
    .name = "convpool",
    .summary = "ConvPool-CNN-C on drawn images of 32 x 32 x 3: nine convolutions of 96 and 192 channels, ten classes",
    .complete = complete,
    .create = create,
    .forward = forward,
    .backward = backward,
    .optimizer = optimizer,
    .release = release,
    .flops = flops,
    .own = &full};
const struct nb_workload nb_workload_tiny_convpool = {
    .name = "tiny-convpool",
    .summary = "The same net with 8 and 16 channels on images of 16 x 16 x 3",
    .complete = complete,
    .create = create,
    .forward = forward,
    .backward = backward,
    .optimizer = optimizer,
    .release = release,
    .flops = flops,
    .own = &tiny};
