// SPDX-License-Identifier: Apache-2.0
#include "tests/support/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/random.h"
#include "src/train/tensor.h"

static uint64_t state;

/* To f32: the random bits carry into the last place that stays as often as what is cut off asks for. */
static double rounded(double v) {
    const uint64_t cut = (UINT64_C(1) << 29) - 1;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + (nb_random_next(&state) & cut)) & ~cut;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double disturbed(float v) {
    return v * (1 + (double)((int64_t)nb_random_next(&state) >> 11) * 0x1p-52 * 0x1p-22);
}

static void shuffle(int64_t *order, int64_t n) {
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(nb_random_next(&state) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* op(m) as rows x cols. */
static double *factor(const float *m, int64_t stride, bool transposed, int64_t rows, int64_t cols) {
    double *out = malloc((size_t)(rows * cols) * sizeof *out);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            out[r * cols + c] = disturbed(transposed ? m[c * stride + r] : m[r * stride + c]);
    return out;
}

static void drawn_product(const struct nb_product *p) {
    double *a = factor(p->a, p->a_stride, p->a_transposed, p->m, p->k);
    double *b = factor(p->b, p->b_stride, !p->b_transposed, p->n, p->k);
    int64_t *order = malloc((size_t)p->k * sizeof *order);
    shuffle(order, p->k);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float *c = p->c + i * p->c_stride + j;
            double sum = 0;
            for (int64_t l = 0; l < p->k; l++)
                sum = rounded(sum + rounded(a[i * p->k + order[l]] * b[j * p->k + order[l]]));
            sum = rounded(p->factor * sum);
            *c = (float)(p->keep == 0 ? sum : rounded(sum + rounded(p->keep * (double)*c)));
        }
    free(a);
    free(b);
    free(order);
}

void nb_test_products_draw(uint64_t seed) {
    state = seed;
    nb_matrix_form_by(seed ? drawn_product : NULL);
}

static double deviation(const double *drawn, int64_t stride) {
    double mean = 0, square = 0;
    for (int d = 0; d < NB_TEST_DRAWS; d++) mean += drawn[d * stride] / NB_TEST_DRAWS;
    for (int d = 0; d < NB_TEST_DRAWS; d++) square += (drawn[d * stride] - mean) * (drawn[d * stride] - mean);
    return sqrt(square / (NB_TEST_DRAWS - 1));
}

void nb_test_products_deviations(void (*result)(void *context, double *out), void *context, int64_t n,
                                 double *deviations) {
    double *drawn = calloc((size_t)(NB_TEST_DRAWS * n), sizeof *drawn);
    for (int d = 0; d < NB_TEST_DRAWS; d++) {
        nb_test_products_draw((uint64_t)d + 1);
        result(context, drawn + d * n);
    }
    nb_test_products_draw(0);
    for (int64_t i = 0; i < n; i++) deviations[i] = deviation(drawn + i, n);
    free(drawn);
}

struct single {
    double (*value)(void *context);
    void *context;
};
static void write_single(void *context, double *out) {
    const struct single *s = context;
    *out = s->value(s->context);
}
double nb_test_products_noise(double (*value)(void *context), void *context) {
    double noise;
    nb_test_products_deviations(write_single, &(struct single){value, context}, 1, &noise);
    return noise;
}
