// SPDX-License-Identifier: Apache-2.0
/* A backward kernel in plain C, in f32 step by step (or, for low-precision statistics, with every result rounded to the dtype), in one of
 * several orders of evaluation, right or with one fault: what the bound of gradients must let pass, and what it must catch. */
#ifndef NB_TEST_SUPPORT_SOFTGRADIENT_H
#define NB_TEST_SUPPORT_SOFTGRADIENT_H

#include "tests/support/backward.h"

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

enum gradient_fault {
    GRADIENT_RIGHT,
    GRADIENT_DIVISOR,      /* means by n - 1 */
    GRADIENT_NO_MEAN,      /* mean(g) left out */
    GRADIENT_NO_PULL,      /* xhat * mean(gx) left out */
    GRADIENT_NO_OFFSET,    /* gamma in place of 1 + gamma */
    GRADIENT_NO_WEIGHT,    /* dy in place of g in the sums */
    GRADIENT_TRUNCATES,    /* the store truncates */
    GRADIENT_NARROW_RSTD,  /* rstd rounded to x's dtype */
    GRADIENT_NARROW_SUMS,  /* dgamma and dbeta are summed in x's dtype */
    GRADIENT_DROPS_LAST,   /* the last element is left out of the sums */
    GRADIENT_NO_PAST,      /* the gradient past the norm is not added */
    GRADIENT_ROUNDS_TWICE, /* the norm's own is rounded to the dtype before that is added */
    GRADIENT_ALL_COUPLED,  /* prmsnorm: xhat * mean(gx) beyond k too */
    GRADIENT_OVERWRITES,   /* dgamma and dbeta of the second half of the rows alone */
    N_GRADIENT_FAULTS
};
extern const char *const gradient_fault_names[N_GRADIENT_FAULTS];

struct soft_gradient {
    int lanes; /* of the sums along a row, and of those over the rows */
    enum order order;
    enum gradient_fault fault;
};

int64_t soft_gradient_chain(const struct soft_gradient *k, int64_t n);
/* All but DyT. dx: elements of the dtype, packed; dgamma, dbeta: n_params. */
void soft_gradient_run(const struct soft_gradient *k, const struct backward *b, void *dx, float *dgamma, float *dbeta);

#endif
