// SPDX-License-Identifier: Apache-2.0
/* All pairs by plain loops: 2 n^2 width of them, a small share of a step. */
#include "src/train/order_loss.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t masks __attribute__((vector_size(LANES * sizeof(float))));

void nb_order_loss_init(struct nb_order_loss *l, struct nb_arena *kept, struct nb_arena *passing, int64_t n,
                        int64_t width, double margin) {
    assert(width % (2 * LANES) == 0);
    *l = (struct nb_order_loss){.n = n,
                                .width = width,
                                .margin = margin,
                                .captions = nb_arena_take(kept, n * width),
                                .images = nb_arena_take(kept, n * width),
                                .caption_length = nb_arena_take(kept, n),
                                .image_length = nb_arena_take(kept, n),
                                .violations = nb_arena_take(kept, n * n),
                                .pull = nb_arena_take(passing, n * n),
                                .dcaptions = nb_arena_take(passing, n * width),
                                .dimages = nb_arena_take(passing, n * width)};
}

/* ---- |x| / length ---- */

static void to_unit(float *unit, float *length, const float *x, int64_t n, int64_t width) {
    for (int64_t r = 0; r < n; r++) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++) sum += (double)x[r * width + i] * (double)x[r * width + i];
        length[r] = (float)sqrt(sum) + 1e-8f;
        for (int64_t i = 0; i < width; i++) unit[r * width + i] = fabsf(x[r * width + i]) / length[r];
    }
}

/* dx = sign(x) (d - u (u . d)) / length */
static void to_unit_backward(float *dx, const float *d, const float *unit, const float *length, const float *x,
                             int64_t n, int64_t width) {
    for (int64_t r = 0; r < n; r++) {
        const int64_t at = r * width;
        double along = 0;
        for (int64_t i = at; i < at + width; i++) along += (double)unit[i] * (double)d[i];
        for (int64_t i = at; i < at + width; i++)
            dx[i] = copysignf(1, x[i]) * (d[i] - unit[i] * (float)along) / length[r];
    }
}

/* ---- violations and margins ---- */

static lanes load(const float *p) {
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* max(0, caption - image); NaN stays. */
static lanes over(lanes caption, lanes image) {
    const lanes d = caption - image;
    return (lanes)(~(masks)(d < 0) & (masks)d);
}

/* Two sums of four side by side: additions do not wait for each other. */
static float violation(const float *caption, const float *image, int64_t width) {
    lanes sum[2] = {{0}, {0}};
    for (int64_t i = 0; i < width; i += 2 * LANES)
        for (int k = 0; k < 2; k++) {
            const lanes d = over(load(caption + i + k * LANES), load(image + i + k * LANES));
            sum[k] += d * d;
        }
    const lanes both = sum[0] + sum[1];
    return (both[0] + both[1]) + (both[2] + both[3]);
}

/* Both hinges of a pair (i, j); pull gets their gradients by the three violations. */
static double hinges(struct nb_order_loss *l, int64_t i, int64_t j) {
    const int64_t n = l->n;
    const double other = l->violations[i * n + j];
    const double by_image = l->margin - other + (double)l->violations[i * n + i];
    const double by_caption = l->margin - other + (double)l->violations[j * n + j];
    double sum = 0;
    if (by_image > 0) {
        sum += by_image;
        l->pull[i * n + i] += 1;
        l->pull[i * n + j] -= 1;
    }
    if (by_caption > 0) {
        sum += by_caption;
        l->pull[j * n + j] += 1;
        l->pull[i * n + j] -= 1;
    }
    return sum;
}

double nb_order_loss_forward(struct nb_order_loss *l, const float *captions, const float *images) {
    const int64_t n = l->n, width = l->width;
    to_unit(l->captions, l->caption_length, captions, n, width);
    to_unit(l->images, l->image_length, images, n, width);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            l->violations[i * n + j] = violation(l->captions + i * width, l->images + j * width, width);
    memset(l->pull, 0, (size_t)(n * n) * sizeof *l->pull);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != j) sum += hinges(l, i, j);
    for (int64_t i = 0; i < n * n; i++) /* NaN is greater than nothing: no hinge would say so */
        if (isnan(l->violations[i])) sum = NAN;
    return sum / (double)n;
}

static void violation_backward(float *dcaption, float *dimage, const float *caption, const float *image, int64_t width,
                               float factor) {
    for (int64_t i = 0; i < width; i += LANES) {
        const lanes d = factor * over(load(caption + i), load(image + i));
        const lanes up = load(dcaption + i) + d, down = load(dimage + i) - d;
        memcpy(dcaption + i, &up, sizeof up);
        memcpy(dimage + i, &down, sizeof down);
    }
}

void nb_order_loss_backward(struct nb_order_loss *l, float *dcaptions, float *dimages, const float *captions,
                            const float *images, double scale) {
    const int64_t n = l->n, width = l->width;
    memset(l->dcaptions, 0, (size_t)(n * width) * sizeof *l->dcaptions);
    memset(l->dimages, 0, (size_t)(n * width) * sizeof *l->dimages);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const float factor = (float)(2 * scale / (double)n * (double)l->pull[i * n + j]);
            if (factor == 0) continue;
            violation_backward(l->dcaptions + i * width, l->dimages + j * width, l->captions + i * width,
                               l->images + j * width, width, factor);
        }
    to_unit_backward(dcaptions, l->dcaptions, l->captions, l->caption_length, captions, n, width);
    to_unit_backward(dimages, l->dimages, l->images, l->image_length, images, n, width);
}
