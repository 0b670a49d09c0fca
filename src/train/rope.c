// SPDX-License-Identifier: Apache-2.0
/* Rotations of pairs by a table of angles. */
#include "src/train/rope.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"

void nb_rope_init(struct nb_rope *r, int64_t positions, int64_t head_width, double theta) {
    assert(head_width % 2 == 0);
    const int64_t half = head_width / 2;
    *r = (struct nb_rope){.positions = positions,
                          .half = half,
                          .cosine = nb_alloc((unsigned long long)(positions * half), sizeof(float)),
                          .sine = nb_alloc((unsigned long long)(positions * half), sizeof(float))};
    for (int64_t t = 0; t < positions; t++)
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)t * pow(theta, -(double)i / (double)half);
            r->cosine[t * half + i] = (float)cos(angle);
            r->sine[t * half + i] = (float)sin(angle);
        }
}

static void turn(const struct nb_rope *r, float *x, int64_t rows, int64_t heads, float direction) {
    for (int64_t row = 0; row < rows; row++) {
        const float *cosine = r->cosine + row % r->positions * r->half;
        const float *sine = r->sine + row % r->positions * r->half;
        for (int64_t head = 0; head < heads; head++, x += 2 * r->half)
            for (int64_t i = 0; i < r->half; i++) {
                const float a = x[i], b = x[i + r->half], s = direction * sine[i];
                x[i] = a * cosine[i] - b * s;
                x[i + r->half] = b * cosine[i] + a * s;
            }
    }
}

void nb_rope_forward(const struct nb_rope *r, float *x, int64_t rows, int64_t heads) { turn(r, x, rows, heads, 1); }
void nb_rope_backward(const struct nb_rope *r, float *dx, int64_t rows, int64_t heads) { turn(r, dx, rows, heads, -1); }

void nb_rope_release(struct nb_rope *r) {
    free(r->cosine);
    free(r->sine);
    *r = (struct nb_rope){0};
}
