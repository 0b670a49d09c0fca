// SPDX-License-Identifier: Apache-2.0
/* The host part of apply.cu. */
#pragma once

#include "kernels/cuda/host.h"

/* Of f32 in scratch or the caller's: are n of them, from every row on, wide? */
static inline bool is_wide_f32(const float *p, struct place at) {
    return !at.by_col || (uintptr_t)p % 16 == 0 ? at.by_row % 4 == 0 || !at.by_col : false;
}
static inline bool apply_is_wide(const struct apply_args *a) {
    const bool params = !a->params.by_col || ((uintptr_t)a->gamma % 16 == 0 && (uintptr_t)a->beta % 16 == 0);
    return a->cols % VECTOR == 0 && is_wide(a->x, a->x_stride) && is_wide(a->dy, a->dy_stride) &&
           is_wide(a->y, a->y_stride) && is_wide_f32(a->mean, a->stats) && is_wide_f32(a->scale, a->stats) && params;
}
/* part: "_stats" or "_gradient". */
static inline int launch_apply(const struct nb_call *call, const struct apply_args *a, const char *part) {
    const int64_t vectors = a->rows * divided(a->cols, VECTOR);
    return launch_part(call, "apply", apply_is_wide(a), part, divided(vectors, BLOCK), BLOCK, 1, 0, a);
}
