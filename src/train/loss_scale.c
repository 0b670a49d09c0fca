// SPDX-License-Identifier: Apache-2.0
/* The loss scale: down at once, up after a long while. */
#include "src/train/loss_scale.h"

static const double FIRST = 65536, GROWTH = 2, BACKOFF = 0.5;
enum { GROWTH_INTERVAL = 2000 };

void nb_loss_scale_init(struct nb_loss_scale *s, enum nb_dtype dtype) {
    const bool dynamic = dtype == NB_F16;
    *s = (struct nb_loss_scale){.dynamic = dynamic, .scale = dynamic ? FIRST : 1, .growth_interval = GROWTH_INTERVAL};
}

bool nb_loss_scale_update(struct nb_loss_scale *s, bool gradients_are_finite) {
    if (!s->dynamic) return true;
    if (!gradients_are_finite) {
        s->scale *= BACKOFF;
        s->good_steps = 0;
        s->skipped_steps++;
        return false;
    }
    if (++s->good_steps == s->growth_interval) {
        s->scale *= GROWTH;
        s->good_steps = 0;
    }
    return true;
}
