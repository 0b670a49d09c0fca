// SPDX-License-Identifier: Apache-2.0
/* Sizes: what options may change, and what they cost. */
#include "src/train/transformer_shape.h"

#include <math.h>

static const double PARTIAL = 0.0625; /* Zhang & Sennrich 2019: 6.25 % of the elements */
enum { LAYERS_MOST = 256, WIDTH_MOST = 16384, BATCH_MOST = 65536, SEQUENCE_MOST = 32768 };

static void fill(const struct nb_transformer_shape *shape, struct nb_train_options *o) {
    if (o->layers == 0) o->layers = shape->layers;
    if (o->batch == 0) o->batch = shape->batch;
    if (o->sequence == 0) o->sequence = shape->sequence;
    if (o->hidden == 0) o->hidden = shape->hidden;
    if (o->learning_rate == 0) o->learning_rate = shape->learning_rate;
    if (o->norm.eps == 0) o->norm.eps = shape->eps;
    if (o->norm.partial == 0) o->norm.partial = PARTIAL;
}

/* Not within: also where it is NaN. */
static bool outside(double v, double least, double most) { return !(v >= least && v <= most); }

/* A causal mask keeps real tokens from the padding behind them, so that a norm is the only way from one to the other. */
static const char *padding_wrong(const struct nb_transformer_shape *shape, const struct nb_train_options *o) {
    const bool in_sets = o->norm.by_position || o->padding == NB_MASKED;
    if (in_sets && o->norm.kind != NB_NORM_BATCHNORM)
        return "masked and by_position are said of BatchNorm's statistics";
    if (in_sets && shape->qk_norm) return "masked and by_position are of models without QK-norm";
    if (o->padding != NB_NOT_PADDED && !o->causal) return "padded sequences need a causal mask";
    if ((in_sets || o->padding != NB_NOT_PADDED) && o->batch < 2) return "padded sequences need a batch of 2 or more";
    return NULL;
}

const char *nb_transformer_complete(const void *own, struct nb_train_options *o) {
    const struct nb_transformer_shape *shape = own;
    fill(shape, o);
    if (outside(o->layers, 1, LAYERS_MOST)) return "layers must be 1 to 256";
    if (outside(o->batch, 1, BATCH_MOST)) return "batch must be 1 to 65536";
    if (outside(o->sequence, 1, SEQUENCE_MOST)) return "sequence must be 1 to 32768";
    if (outside((double)o->batch * o->sequence, 2, 1 << 20)) return "batch times sequence must be 2 to 1048576 tokens";
    if (outside(o->hidden, 1, WIDTH_MOST) || o->hidden % (2 * shape->heads) != 0)
        return "hidden must be at most 16384 and a multiple of twice the heads";
    if (outside(o->norm.partial, 0x1p-30, 1)) return "partial must be above 0 and at most 1";
    if (outside(o->norm.eps, 0, 1)) return "eps must be 0 to 1";
    if (outside(o->learning_rate, 0, 1e3)) return "learning_rate must be 0 to 1000";
    return padding_wrong(shape, o);
}

struct nb_transformer_shape nb_transformer_resolve(const struct nb_transformer_shape *shape,
                                                   const struct nb_train_options *o) {
    struct nb_transformer_shape s = *shape;
    s.hidden = o->hidden;
    s.layers = o->layers;
    s.batch = o->batch;
    s.sequence = o->sequence;
    if (s.hidden != shape->hidden) s.ffn = (int)((int64_t)shape->ffn * s.hidden / shape->hidden + 7) / 8 * 8;
    return s;
}

double nb_transformer_flops(const void *shape, const struct nb_train_options *options) {
    const struct nb_transformer_shape s = nb_transformer_resolve(shape, options);
    const double rows = (double)s.batch * s.sequence, hidden = s.hidden, kv = hidden * s.kv_heads / s.heads;
    const double projections = 2 * hidden * hidden + 2 * hidden * kv;
    const double feed_forward = (s.swiglu ? 3.0 : 2.0) * hidden * s.ffn;
    const double attention = 2 * s.sequence * hidden; /* scores and mixture; masked products are made, too */
    return 3 * 2 * rows * (s.layers * (projections + feed_forward + attention) + hidden * s.vocabulary);
}
