// SPDX-License-Identifier: Apache-2.0
/* With e = exp(-2 |t|): tanh = (1 - e) / (1 + e), 1 - tanh^2 = 4 e / (1 + e)^2. For small t 1 - e comes from expm1; for large t
 * the rounding error of t itself, which e has 2 |t| times, is put back. */
#include "src/accuracy/squash.h"

#include <math.h>

#include "src/accuracy/truth.h"
#include "src/core/log.h"
#include "src/core/twofold.h"

struct nb_squash nb_squash(double alpha, double x) {
    const struct nb_twofold t = nb_two_product(alpha, x);
    const double size = fabs(t.hi);
    double e, complement; /* 1 - e */
    if (size < 1) {
        complement = -expm1(-2 * size);
        e = 1 - complement;
    } else {
        const double rest = !isfinite(t.lo) ? 0 : signbit(t.hi) ? -t.lo : t.lo; /* of |t| */
        e = exp(-2 * size) * (1 - 2 * rest);
        complement = 1 - e;
    }
    return (struct nb_squash){.tanh = copysign(complement / (1 + e), t.hi), .slope = 4 * e / ((1 + e) * (1 + e))};
}

enum { CHUNK = 256 }; /* elements widened at once: 2 KB of stack */

struct nb_squashed_row *nb_squashed_row_new(int64_t cols) {
    struct nb_squashed_row *kept = nb_alloc(1, sizeof *kept + (size_t)cols * sizeof kept->of[0]);
    kept->row = -1;
    return kept;
}

const struct nb_squash *nb_squashed_row(struct nb_squashed_row *kept, double alpha, const struct nb_inputs *in,
                                        int64_t row) {
    double x[CHUNK];
    for (int64_t col = 0; kept->row != row && col < in->cols; col += CHUNK) {
        const int64_t n = in->cols - col < CHUNK ? in->cols - col : CHUNK;
        nb_truth_widen(in->x, row * in->cols + col, n, in->dtype, x);
        for (int64_t i = 0; i < n; i++) kept->of[col + i] = nb_squash(alpha, x[i]);
    }
    kept->row = row;
    return kept->of;
}
