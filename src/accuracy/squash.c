// SPDX-License-Identifier: Apache-2.0
/* With e = exp(-2 |t|): tanh = (1 - e) / (1 + e), 1 - tanh^2 = 4 e / (1 + e)^2. For small t 1 - e comes from expm1; for large t
 * the rounding error of t itself, which e has 2 |t| times, is put back. */
#include "src/accuracy/squash.h"

#include <math.h>

#include "src/number/twofold.h"

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
