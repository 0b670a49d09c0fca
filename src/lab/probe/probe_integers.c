// SPDX-License-Identifier: Apache-2.0
/* By chance, or by taking the largest square that is left away, again and again: sums of squares need few terms. */
#include "src/lab/probe/probe_integers.h"

#include <math.h>

#include "src/core/random.h"

const struct nb_integers nb_integers[NB_N_DTYPES] = {[NB_F32] = {16, 10}, [NB_F16] = {64, 9}, [NB_BF16] = {128, 8}};

void nb_integers_fill(struct nb_box *b) {
    const struct nb_random random = nb_random_stream(11, 0);
    const int most = nb_integers[b->p->c.dtype].bits;
    for (int64_t r = 0; r < b->rows; r++) {
        const uint64_t bits = 2 + nb_random_bits(random, (uint64_t)r) % (uint64_t)(most - 1), mask = (1u << bits) - 1;
        for (int64_t i = 0; i < b->cols; i += 2) {
            const uint64_t at = (uint64_t)(b->rows + r * b->cols + i);
            const double x = (double)((nb_random_bits(random, at) & mask) | 1);
            const double other = (double)((nb_random_bits(random, at + 1) & mask) | 1);
            nb_box_set(b, r, i, x);
            nb_box_set(b, r, i + 1, b->p->centres ? -x : other);
        }
    }
}

int nb_integers_set(struct nb_box *b, int64_t row, int64_t x, int64_t sum) {
    const bool pairs = b->p->centres;
    const int64_t most = ((int64_t)1 << nb_integers[b->p->c.dtype].bits) - 1, step = pairs ? 2 : 1;
    int64_t left = sum / step, next = x;
    for (int64_t i = 0; i < b->cols; i += step) {
        nb_box_set(b, row, i, (double)next);
        if (pairs) nb_box_set(b, row, i + 1, -(double)next);
        left -= next * next;
        next = left > 0 ? (int64_t)sqrt((double)left) : 0;
        if (next > most) next = most;
    }
    return left == 0 ? 0 : -1;
}

float nb_integers_variance(const struct nb_box *b, int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < b->cols; i++) sum += b->x[row * b->cols + i] * b->x[row * b->cols + i];
    return (float)(b->p->of_sum ? sum : sum / (double)b->cols);
}
