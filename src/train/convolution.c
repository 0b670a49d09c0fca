// SPDX-License-Identifier: Apache-2.0
/* im2col, a product, and its inverse: col2im adds what positions share. */
#include "src/train/convolution.h"

#include <assert.h>
#include <string.h>

#include "src/train/matrix.h"

static int64_t pixels(const struct nb_convolution *c) { return c->height * c->width; }
static int64_t patch(const struct nb_convolution *c) { return c->in * c->side * c->side; }

int64_t nb_convolution_columns(const struct nb_convolution *c) { return patch(c) * pixels(c); }

/* One row of an image under one element of the kernel: columns [first, end) of the output see columns shift further on. */
struct strip {
    int64_t row, shift, first, end; /* row outside the image: first == end */
};

static struct strip strip_of(const struct nb_convolution *c, int64_t row, int64_t k_row, int64_t k_col) {
    struct strip s = {.row = row + k_row - c->side / 2, .shift = k_col - c->side / 2};
    if (s.row < 0 || s.row >= c->height) return s;
    s.first = s.shift < 0 ? -s.shift : 0;
    s.end = s.shift > 0 ? c->width - s.shift : c->width;
    if (s.end < s.first) s.first = s.end = 0;
    return s;
}

static void take(const struct nb_convolution *c, float *to, const float *plane, const struct strip *s) {
    memset(to, 0, (size_t)c->width * sizeof *to);
    if (s->end > s->first)
        memcpy(to + s->first, plane + s->row * c->width + s->first + s->shift,
               (size_t)(s->end - s->first) * sizeof *to);
}

static void give_back(const struct nb_convolution *c, float *plane, const float *from, const struct strip *s) {
    if (s->end <= s->first) return;
    float *to = plane + s->row * c->width + s->shift;
    for (int64_t i = s->first; i < s->end; i++) to[i] += from[i];
}

/* To the columns where x is given, else from them to dx. */
static void walk(const struct nb_convolution *c, float *columns, const float *x, float *dx) {
    for (int64_t channel = 0; channel < c->in; channel++)
        for (int64_t k = 0; k < c->side * c->side; k++)
            for (int64_t row = 0; row < c->height; row++) {
                const struct strip s = strip_of(c, row, k / c->side, k % c->side);
                float *at = columns + ((channel * c->side * c->side + k) * c->height + row) * c->width;
                if (x)
                    take(c, at, x + channel * pixels(c), &s);
                else if (dx)
                    give_back(c, dx + channel * pixels(c), at, &s);
            }
}

void nb_convolution_forward(const struct nb_convolution *c, float *y, const float *x, const float *w, float *columns) {
    assert(c->side % 2 == 1);
    for (int64_t image = 0; image < c->batch; image++) {
        const float *from = x + image * c->in * pixels(c);
        if (c->side > 1) walk(c, columns, from, NULL);
        nb_matrix_multiply(NB_AS_STORED, y + image * c->out * pixels(c), w, c->side > 1 ? columns : from, c->out,
                           pixels(c), patch(c), 0);
    }
}

void nb_convolution_backward(const struct nb_convolution *c, float *dx, float *dw, const float *dy, const float *x,
                             const float *w, float *columns) {
    for (int64_t image = 0; image < c->batch; image++) {
        const float *from = x + image * c->in * pixels(c), *d = dy + image * c->out * pixels(c);
        if (c->side > 1) walk(c, columns, from, NULL);
        nb_matrix_multiply(NB_B_TRANSPOSED, dw, d, c->side > 1 ? columns : from, c->out, patch(c), pixels(c), 1);
        if (!dx) continue;
        float *to = dx + image * c->in * pixels(c);
        nb_matrix_multiply(NB_A_TRANSPOSED, c->side > 1 ? columns : to, w, d, patch(c), pixels(c), c->out, 0);
        if (c->side == 1) continue;
        memset(to, 0, (size_t)(c->in * pixels(c)) * sizeof *to);
        walk(c, columns, NULL, to);
    }
}

/* ---- pooling; of equal values the first counts ---- */

void nb_max_pool_forward(float *y, int32_t *from, const float *x, int64_t planes, int64_t height, int64_t width) {
    assert(height % 2 == 0 && width % 2 == 0);
    for (int64_t plane = 0; plane < planes; plane++, x += height * width)
        for (int64_t row = 0; row < height; row += 2)
            for (int64_t col = 0; col < width; col += 2) {
                const int64_t at = row * width + col, others[] = {at + 1, at + width, at + width + 1};
                int64_t best = at;
                for (int i = 0; i < 3; i++)
                    if (x[others[i]] > x[best]) best = others[i];
                *y++ = x[best];
                *from++ = (int32_t)best;
            }
}

void nb_max_pool_backward(float *dx, const float *dy, const int32_t *from, int64_t planes, int64_t height,
                          int64_t width) {
    const int64_t pooled = height * width / 4;
    memset(dx, 0, (size_t)(planes * height * width) * sizeof *dx);
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < pooled; i++)
            dx[plane * height * width + from[plane * pooled + i]] += dy[plane * pooled + i];
}

void nb_mean_pool_forward(float *y, const float *x, int64_t planes, int64_t pixels) {
    for (int64_t plane = 0; plane < planes; plane++) {
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++) sum += (double)x[plane * pixels + i];
        y[plane] = (float)(sum / (double)pixels);
    }
}

void nb_mean_pool_backward(float *dx, const float *dy, int64_t planes, int64_t pixels) {
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t i = 0; i < pixels; i++) dx[plane * pixels + i] = dy[plane] / (float)pixels;
}
