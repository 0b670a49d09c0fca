// SPDX-License-Identifier: Apache-2.0
/* Layers without parameters of their own, and losses. */
#include "src/train/layers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void nb_embedding_forward(float *y, const float *table, const int32_t *tokens, int64_t rows, int64_t width,
                          float factor) {
    nb_op(1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) y[r * width + i] = factor * table[tokens[r] * width + i];
}

void nb_embedding_backward(float *dtable, const float *dy, const int32_t *tokens, int64_t rows, int64_t width,
                           float factor) {
    nb_op(1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) dtable[tokens[r] * width + i] += factor * dy[r * width + i];
}

void nb_positions_add(float *y, int64_t rows, int64_t sequence, int64_t width) {
    nb_op(1);
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

/* Two products, the halves changed round with one negated, a sum. */
static void turn(const struct nb_rope *r, float *x, int64_t rows, int64_t heads, float direction) {
    nb_op(5);
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
    nb_op(1);
    for (int64_t r = 0; r < rows; r++) {
        memcpy(y + 2 * r * width, left + r * width, bytes);
        memcpy(y + (2 * r + 1) * width, right + r * width, bytes);
    }
}

void nb_halves_split(float *left, float *right, const float *y, int64_t rows, int64_t width) {
    const size_t bytes = (size_t)width * sizeof *y;
    nb_op(2);
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
    nb_op(2); /* log of softmax, mean of what the targets pick */
    for (int64_t r = 0; r < rows; r++)
        sum += row_forward(probabilities + r * classes, logits + r * classes, targets[r], classes);
    const int64_t n = count_targets(targets, rows);
    return n > 0 ? sum / (double)n : 0;
}

void nb_cross_entropy_backward(float *dlogits, const float *probabilities, const int32_t *targets, int64_t rows,
                               int64_t classes, double scale) {
    const int64_t n = count_targets(targets, rows);
    const float weight = n > 0 ? (float)(scale / (double)n) : 0;
    nb_op(2);
    for (int64_t r = 0; r < rows; r++) {
        const float *p = probabilities + r * classes;
        float *d = dlogits + r * classes;
        const float w = targets[r] >= 0 ? weight : 0;
        for (int64_t c = 0; c < classes; c++) d[c] = p[c] * w;
        if (targets[r] >= 0) d[targets[r]] -= w;
    }
}
