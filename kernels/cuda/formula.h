// SPDX-License-Identifier: Apache-2.0
/* The formulas of kernels/README.md, an element at a time, by branches that are the same for a whole launch. */
#pragma once

#include "kernels/cuda/device.h"

/* As row_scale() of kernels/shared/root.h; rsqrt_nr is the correctly rounded 1 / sqrt(v), rsqrt_raw the device's estimate. */
DEVICE float row_scale(float v, const struct formula_args &f) {
    if (f.eps_place == NB_EPS_INSIDE) v += f.eps;
    if (f.root == NB_ROOT_DIV_SQRT || f.root == NB_ROOT_MUL_RECIP) {
        float s = sqrtf(v);
        if (f.eps_place == NB_EPS_OUTSIDE) s += f.eps;
        if (f.eps_place == NB_EPS_CLAMP && s < f.eps) s = f.eps;
        return f.root == NB_ROOT_DIV_SQRT ? s : 1.0f / s;
    }
    const float r = f.root == NB_ROOT_RSQRT_NR ? rsqrt_rounded(v) : rsqrt_estimate(v);
    return f.eps_place == NB_EPS_CLAMP && r * f.eps > 1.0f ? 1.0f / f.eps : r;
}
DEVICE float scale_to_rstd(float scale, const struct formula_args &f) {
    return f.root == NB_ROOT_DIV_SQRT ? 1.0f / scale : scale;
}
DEVICE float normalized(float x, float mean, float scale, const struct formula_args &f) {
    if (f.centre) x -= mean;
    return f.root == NB_ROOT_DIV_SQRT ? x / scale : x * scale;
}

/* Gamma as it is multiplied by: 1 + gamma is a tensor of the dtype where the weight is applied in it. */
template <class E> DEVICE float weight_of(float gamma, const struct formula_args &f) {
    if (!f.offset) return gamma;
    return f.cast_before ? rounded<E>(gamma + 1.0f) : gamma + 1.0f;
}
template <class E> DEVICE float with_affine(float v, float gamma, float beta, const struct formula_args &f) {
    if (f.affine == NB_AFFINE_NONE) return v;
    const float w = weight_of<E>(gamma, f);
    if (f.cast_before) {
        v = rounded<E>(v) * w;
        return f.affine == NB_AFFINE_GAMMA_BETA ? rounded<E>(v) + beta : v;
    }
    return f.affine == NB_AFFINE_GAMMA_BETA ? fmaf(v, w, beta) : v * w;
}

/* dx of an element: training sees the means of g and of g xhat over the channel. */
template <class E>
DEVICE float batchnorm_gradient(float x, float dy, float mean, float rstd, float gamma, float mean_g,
                                float mean_product, bool training, const struct formula_args &f) {
    const float g = f.affine == NB_AFFINE_NONE ? dy : dy * weight_of<E>(gamma, f);
    return training ? (g - mean_g - (x - mean) * rstd * mean_product) * rstd : g * rstd;
}
