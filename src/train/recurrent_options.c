// SPDX-License-Identifier: Apache-2.0
/* eps and the share of pRMSNorm are those of the paper's recurrent code. */
#include "src/train/recurrent_options.h"

static const double EPS = 1e-5, PARTIAL = 0.0625;
enum {
    UNIT = 16,
    LEAST_SEQUENCE = 4,
    MOST_HIDDEN = 1 << 13,
    MOST_BATCH = 1 << 12,
    MOST_SEQUENCE = 1 << 12,
    MOST_TOKENS = 1 << 17
};

static void fill(const struct nb_recurrent_defaults *defaults, struct nb_train_options *o) {
    if (o->layers == 0) o->layers = 1;
    if (o->hidden == 0) o->hidden = defaults->hidden;
    if (o->batch == 0) o->batch = defaults->batch;
    if (o->sequence == 0) o->sequence = defaults->sequence;
    if (o->learning_rate == 0) o->learning_rate = defaults->learning_rate;
    if (o->norm.eps == 0) o->norm.eps = EPS;
    if (o->norm.partial == 0) o->norm.partial = PARTIAL;
}

static bool within(double v, double least, double most) { return v >= least && v <= most; } /* NaN is not */

const char *nb_recurrent_complete(const void *defaults, struct nb_train_options *o) {
    fill(defaults, o);
    if (o->norm.kind == NB_NORM_BATCHNORM)
        return "BatchNorm would need running statistics of each step of time: choose another norm";
    if (o->layers != 1) return "it has one layer: leave layers out, or 1";
    if (!within(o->hidden, UNIT, MOST_HIDDEN) || o->hidden % UNIT != 0)
        return "hidden must be a multiple of 16, at most 8192";
    if (!within(o->batch, 2, MOST_BATCH)) return "batch must be 2 to 4096";
    if (!within(o->sequence, LEAST_SEQUENCE, MOST_SEQUENCE)) return "sequence must be 4 to 4096";
    if ((int64_t)o->batch * o->sequence > MOST_TOKENS) return "batch times sequence must be at most 131072";
    if (!within(o->norm.partial, 0x1p-30, 1)) return "partial must be above 0 and at most 1";
    if (!within(o->norm.eps, 0, 1)) return "eps must be 0 to 1";
    if (!within(o->learning_rate, 0, 1e3)) return "learning_rate must be 0 to 1000";
    return nb_padding_refused(o);
}

struct nb_optimizer nb_recurrent_optimizer(const void *defaults, const struct nb_train_options *options) {
    (void)defaults;
    return (struct nb_optimizer){
        .kind = NB_ADAMW, .learning_rate = options->learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}
