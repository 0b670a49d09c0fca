// SPDX-License-Identifier: Apache-2.0
/* From a row's variance (or mean square) to the number its elements are divided by or multiplied by.
 *
 * The estimate-based roots are as their users write them: a zero or infinite argument keeps what the hardware estimate
 * gives without the Newton step and becomes NaN with it (0 * inf), which is what the accuracy checks are there to show. No
 * comparison here turns a NaN into a number. */
#pragma once

#include <stdbool.h>

#include "kernels/shared/vec.h"

/* One Newton step for 1/sqrt(v) in residual form: r + r/2 * (1 - v*r*r), two roundings fewer than the textbook's. */
static inline float rsqrt_newton(float v, float r) {
    float residual = __builtin_fmaf(-v * r, r, 1.0f);
#ifdef NB_RSQRT_OF_8_BITS /* a step before it */
    r = __builtin_fmaf(0.5f * r, residual, r);
    residual = __builtin_fmaf(-v * r, r, 1.0f);
#endif
    return __builtin_fmaf(0.5f * r, residual, r);
}

static inline int root_divides(const struct nb_formula *f) { return f->root == NB_ROOT_DIV_SQRT; }

/* v: variance or mean square, without eps. Returns s for x / s (NB_ROOT_DIV_SQRT), else r for x * r.
 * Outside the root only the forms that have a square root are defined (the plan sees to it). */
static inline float row_scale(float v, const struct nb_call *call) {
    const struct nb_formula *f = &call->formula;
    const float eps = (float)call->eps;
    if (f->eps_place == NB_EPS_INSIDE) v += eps;
    if (f->root == NB_ROOT_DIV_SQRT || f->root == NB_ROOT_MUL_RECIP) {
        float s = __builtin_sqrtf(v);
        if (f->eps_place == NB_EPS_OUTSIDE) s += eps;
        if (f->eps_place == NB_EPS_CLAMP && s < eps) s = eps;
        return f->root == NB_ROOT_DIV_SQRT ? s : 1.0f / s;
    }
    const bool clamp = f->eps_place == NB_EPS_CLAMP;
    float r = nb_rsqrt_estimate(v);
    if (clamp && r == __builtin_inff()) return 1.0f / eps; /* before Newton makes it NaN */
    if (f->root == NB_ROOT_RSQRT_NR) r = rsqrt_newton(v, r);
    return clamp && r * eps > 1.0f ? 1.0f / eps : r;
}

/* 1/sqrt for the rstd output, whatever the form. */
static inline float scale_to_rstd(float scale, const struct nb_formula *f) {
    return root_divides(f) ? 1.0f / scale : scale;
}
