// SPDX-License-Identifier: Apache-2.0
/* The updates of parameters.h: plain descent, and AdamW as Loshchilov & Hutter 2019 and PyTorch have it. */
#include <math.h>

#include "src/core/log.h"
#include "src/train/parameters.h"

static void descend(const struct nb_optimizer *o, struct nb_parameter *p, float decay) {
    const float rate = (float)o->learning_rate;
    for (int64_t i = 0; i < p->rows * p->cols; i++) p->value[i] -= rate * (p->gradient[i] + decay * p->value[i]);
}

/* What is the same for all elements of a step. */
struct adam {
    float keep, beta1, beta2, take1, take2, rate, root,
        eps; /* take: 1 - beta; rate and root hold the corrections of the bias */
};

static void adapt(struct nb_parameter *p, struct adam a) {
    float *restrict value = p->value, *restrict first = p->first, *restrict second = p->second;
    const float *restrict gradient = p->gradient;
    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        const float g = gradient[i];
        first[i] = a.beta1 * first[i] + a.take1 * g;
        second[i] = a.beta2 * second[i] + a.take2 * g * g;
        value[i] = a.keep * value[i] - a.rate * first[i] / (sqrtf(second[i]) * a.root + a.eps);
    }
}

static struct adam step_of(const struct nb_optimizer *o, int64_t step, double decay) {
    const double rate = o->learning_rate / (1 - pow(o->beta1, (double)step));
    return (struct adam){.keep = (float)(1 - o->learning_rate * decay),
                         .beta1 = (float)o->beta1,
                         .beta2 = (float)o->beta2,
                         .take1 = (float)(1 - o->beta1),
                         .take2 = (float)(1 - o->beta2),
                         .rate = (float)rate,
                         .root = (float)(1 / sqrt(1 - pow(o->beta2, (double)step))),
                         .eps = (float)o->eps};
}

void nb_optimizer_update(const struct nb_optimizer *o, struct nb_parameters *p) {
    p->step++;
    for (int i = 0; i < p->n; i++) {
        struct nb_parameter *item = &p->items[i];
        if (item->frozen) continue;
        const double decay = item->decays ? o->decay : 0;
        const unsigned long long n = (unsigned long long)(item->rows * item->cols);
        if (o->kind == NB_SGD) {
            descend(o, item, (float)decay);
            continue;
        }
        if (!item->first) {
            item->first = nb_alloc(n, sizeof(float));
            item->second = nb_alloc(n, sizeof(float));
        }
        adapt(item, step_of(o, p->step, decay));
    }
}
