// SPDX-License-Identifier: Apache-2.0
/* Hill climbing from the champions: a few elements are drawn again from the normal distribution with the mean
 * and deviation of the row that it all began with.
 * What is worse becomes the champion, and so the start of the next step. Rows with elements near ties need no search of their own:
 * among thousands of elements some are, and in short rows this finds them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/random.h"
#include "src/lab/stress/hunt.h"

static const int quarries[] = {NB_BY_BOUND, NB_BY_NOISE, NB_QUARRY_SUM, NB_BY_SCALED, NB_BY_ULP};
enum { N_CLIMBED = sizeof quarries / sizeof quarries[0], STEPS = 16 };

/* From one element to a quarter of them, small numbers as often as large ones. */
static void vary(const struct nb_hunt *h, const struct nb_champion *c, double *x, uint64_t *state) {
    const double most = fmax((double)h->cols / 4, 1), largest = nb_formats[h->t->in.dtype].max_finite;
    const int64_t n = (int64_t)exp2(nb_hunt_uniform(state) * log2(most + 1));
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = (int64_t)(nb_random_next(state) % (uint64_t)h->cols);
        const double v =
            c->mean + c->deviation * nb_normal_quantile((nb_hunt_uniform(state) + 0x1p-54) * (1 - 0x1p-53));
        x[i] = nb_round_to(fmin(fmax(v, -largest), largest), h->t->in.dtype);
    }
}

static void climb(struct nb_hunt *h, int quarry, uint64_t *state) {
    const struct nb_champion *c = &h->champions[quarry];
    char text[96];
    if (!c->x || c->eps != h->t->c.eps || isinf(c->value)) return;
    for (int step = 0; step < STEPS && !nb_hunt_over(h); step++) {
        snprintf(text, sizeof text, "%s%s", strncmp(c->generator, "climb", 5) == 0 ? "" : "climb from ", c->generator);
        for (int64_t r = 0; r < h->rows; r++) {
            double *x = h->x + r * h->cols;
            memcpy(x, c->x, (size_t)h->cols * sizeof *x);
            vary(h, c, x, state);
        }
        h->climbs_from = c;
        nb_hunt_call(h, h->rows, c->seed, text);
        h->climbs_from = NULL;
    }
}

void nb_hunt_climb(struct nb_hunt *h) {
    uint64_t state = 1;
    int64_t calls = -1;
    for (int i = 0; !nb_hunt_over(h); i++) {
        if (i % N_CLIMBED == 0 && calls == h->t->calls) return; /* no champion to start from */
        if (i % N_CLIMBED == 0) calls = h->t->calls;
        climb(h, quarries[i % N_CLIMBED], &state);
    }
}
