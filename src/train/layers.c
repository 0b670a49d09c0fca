// SPDX-License-Identifier: Apache-2.0
/* Layers without parameters of their own, and losses. */
#include "src/train/layers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void nb_embedding_forward(float *y, const float *table, const int32_t *tokens, int64_t rows, int64_t width,
                          float factor) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) y[r * width + i] = factor * table[tokens[r] * width + i];
}

void nb_embedding_backward(float *dtable, const float *dy, const int32_t *tokens, int64_t rows, int64_t width,
                           float factor) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) dtable[tokens[r] * width + i] += factor * dy[r * width + i];
}

void nb_positions_add(float *y, int64_t rows, int64_t sequence, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        const double turn = pow(10000, -(double)(i / 2 * 2) / (double)width);
        for (int64_t t = 0; t < sequence && t < rows; t++) {
            const float value = (float)(i % 2 ? cos((double)t * turn) : sin((double)t * turn));
            for (int64_t r = t; r < rows; r += sequence) y[r * width + i] += value;
        }
    }
}

/* ---- rotary positions: rotations of pairs by a table of angles ---- */

void nb_rope_init(struct nb_rope *r, struct nb_arena *arena, int64_t positions, int64_t head_width, double theta) {
    assert(head_width % 2 == 0);
    const int64_t half = head_width / 2;
    *r = (struct nb_rope){.positions = positions,
                          .half = half,
                          .cosine = nb_arena_take(arena, positions * half),
                          .sine = nb_arena_take(arena, positions * half)};
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

/* ---- halves ---- */

void nb_halves_join(float *y, const float *left, const float *right, int64_t rows, int64_t width) {
    const size_t bytes = (size_t)width * sizeof *y;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(y + 2 * r * width, left + r * width, bytes);
        memcpy(y + (2 * r + 1) * width, right + r * width, bytes);
    }
}

void nb_halves_split(float *left, float *right, const float *y, int64_t rows, int64_t width) {
    const size_t bytes = (size_t)width * sizeof *y;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(left + r * width, y + 2 * r * width, bytes);
        memcpy(right + r * width, y + (2 * r + 1) * width, bytes);
    }
}

/* ---- cross-entropy: the row's largest logit is taken off first, sums in double ---- */

static double row_forward(float *p, const float *logits, int32_t target, int64_t classes) {
    float most = logits[0];
    for (int64_t c = 1; c < classes; c++) most = logits[c] > most ? logits[c] : most;
    const double at_target = target >= 0 ? (double)logits[target] : 0;
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        p[c] = expf(logits[c] - most);
        sum += p[c];
    }
    const float scale = (float)(1 / sum);
    for (int64_t c = 0; c < classes; c++) p[c] *= scale;
    return target >= 0 ? (double)most + log(sum) - at_target : 0;
}

static int64_t count_targets(const int32_t *targets, int64_t rows) {
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++) n += targets[r] >= 0;
    return n;
}

double nb_cross_entropy_forward(float *probabilities, const float *logits, const int32_t *targets, int64_t rows,
                                int64_t classes) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += row_forward(probabilities + r * classes, logits + r * classes, targets[r], classes);
    const int64_t n = count_targets(targets, rows);
    return n > 0 ? sum / (double)n : 0;
}

void nb_cross_entropy_backward(float *dlogits, const float *probabilities, const int32_t *targets, int64_t rows,
                               int64_t classes, double scale) {
    const int64_t n = count_targets(targets, rows);
    const float weight = n > 0 ? (float)(scale / (double)n) : 0;
    for (int64_t r = 0; r < rows; r++) {
        const float *p = probabilities + r * classes;
        float *d = dlogits + r * classes;
        const float w = targets[r] >= 0 ? weight : 0;
        for (int64_t c = 0; c < classes; c++) d[c] = p[c] * w;
        if (targets[r] >= 0) d[targets[r]] -= w;
    }
}

/* ---- order violation: all pairs by plain loops, 2 n^2 width of them, a small share of a step ---- */

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
