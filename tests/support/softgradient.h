// SPDX-License-Identifier: Apache-2.0
/* A backward kernel in plain C, in f32 step by step (or, for low-precision statistics, with every result rounded to the dtype), in one of
 * several orders of evaluation, right or with one fault: what the bound of gradients must let pass, and what it must catch. */
#pragma once

#include "src/accuracy/accuracy.h"
#include "src/accuracy/bias.h"
#include "src/accuracy/gradient_bound.h"
#include "tests/support/numerics.h"

enum order {
    ORDER_PLAIN,                  /* ((g - mean g) - xhat * mean gx) * rstd */
    ORDER_FOLDED_MEANS,           /* rstd g - (c1 + xhat c2), c1 = rstd mean g, c2 = rstd mean gx, by fma */
    ORDER_BRACKET,                /* (g - (mean g + xhat mean gx)) * rstd */
    ORDER_PRODUCTS,               /* as plain, sums of (dy xhat) w, divided by n */
    N_NARROW_ORDERS,              /* those in which a narrow dtype keeps its range */
    ORDER_OF_X = N_NARROW_ORDERS, /* rstd g - x c, c = rstd rstd mean gx; where the op centres, as plain */
    ORDER_OF_DISTANCE,            /* a g + b (x - mean) + c, from sums of g (x - mean) */
    N_SOUND_ORDERS,
    ORDER_FOLDED_XHAT = N_SOUND_ORDERS, /* NB_FLAG_FOLDED: xhat = fma(x, rstd, -mean rstd) */
    ORDER_AFFINE,                       /* NB_FLAG_FOLDED: a g + b x + c from sums of g and of g x */
    N_ORDERS
};

/* The others that people make are in tests/plugins/mistakes.h. */
enum gradient_fault {
    GRADIENT_RIGHT,
    GRADIENT_DIVISOR,     /* means by n - 1 */
    GRADIENT_NO_MEAN,     /* mean(g) left out */
    GRADIENT_NO_PULL,     /* xhat * mean(gx) left out */
    GRADIENT_ALL_COUPLED, /* prmsnorm: xhat * mean(gx) beyond k too */
};

struct soft_gradient {
    int lanes; /* of the sums along a row, and of those over the rows */
    enum order order;
    enum gradient_fault fault;
};

int64_t soft_gradient_chain(const struct soft_gradient *k, int64_t n);
/* All but DyT. dx: elements of the dtype, packed; dgamma, dbeta: n_params. */
void soft_gradient_run(const struct soft_gradient *k, const struct problem *b, void *dx, float *dgamma, float *dbeta);

/* dx and the bound of the first row, with sums of as long a chain. */
enum nb_loss backward_bound_of_row(const struct problem *b, int64_t chain, double *dx, double *tolerance);
/* |computed - exact| / tolerance; 0 where all is allowed. */
double bound_ratio(double computed, double exact, double tolerance);

/* A correct kernel of a case's formula and properties, by the emulator: in f32 or, for low-precision statistics, with every result rounded to
 * the dtype. What the bound must let pass; and two ways to be wrong, which it must catch. tests/plugins/mistakes.h has the others. */

struct soft_kernel {
    int lanes;     /* of the reductions: element i goes to lane i % lanes */
    bool unbiased; /* the variance over n - 1, where eps stands inside the root */
    bool flushes;  /* subnormal outputs become 0 */
};

/* Of all rows (of all ops but DyT and BatchNorm), by the oracle and the bound. bias may be null. */
struct nb_accuracy soft_accuracy(const struct soft_kernel *k, const struct problem *p, struct nb_bias *bias);
