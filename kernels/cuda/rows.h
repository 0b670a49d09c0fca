// SPDX-License-Identifier: Apache-2.0
/* The host part of the forward norms of rows (rows.cu). */
#ifndef NB_CUDA_ROWS_H
#define NB_CUDA_ROWS_H

#include "kernels/cuda/host.h"
#include "kernels/shared/reduce.h"

enum { ROW_TILE = 32 };

static inline bool rows_are_wide(const struct nb_call *call) {
    const int64_t cols = call->cols;
    return cols % VECTOR == 0 && is_wide(call->x, call->x_stride) && is_wide(call->residual, call->residual_stride) &&
           is_wide(call->y, call->y_stride) && is_wide(call->residual_out, call->residual_out_stride) &&
           is_wide(call->gamma, cols) && is_wide(call->beta, cols);
}

/* Rows [begin, end) of the call. */
static inline struct row_args row_args_of(const struct nb_call *call, int64_t begin, int64_t end, bool centre) {
    return (struct row_args){
        .formula = formula_args_of(call, centre),
        .x = row_in(call->x, call->x_stride, begin),
        .gamma = call->gamma,
        .beta = call->beta,
        .y = row_out(call->y, call->y_stride, begin),
        .mean = call->mean ? call->mean + begin : NULL,
        .rstd = call->rstd ? call->rstd + begin : NULL,
        .x_stride = call->x_stride,
        .residual_stride = call->residual_stride,
        .y_stride = call->y_stride,
        .residual_out_stride = call->residual_out_stride,
        .rows = end - begin,
        .cols = call->cols,
        .seen = call->cols,
    };
}
static inline int launch_rows(const struct nb_call *call, struct row_args *a) {
    const struct nb_device *device = nb_launch_device();
    const bool wide = rows_are_wide(call);
    struct layout l = layout_of(a->cols, ROW_TILE, device->has_clusters);
    size_t shared = TEAM_FLOATS * sizeof(float);
    if (!l.tile && spread_long_row(&l, a->cols, device)) {
        a->kept = 1;
        shared = kept_bytes(l.team, a->cols);
    }
    const uint32_t block = l.team.group > WARP ? l.team.group : l.block;
    a->team = l.team;
    return launch_part(call, "rows", wide,
                       l.tile == 0   ? "_long"
                       : l.tile == 8 ? "_8"
                                     : "_32",
                       divided(a->rows, block / l.team.group) * l.team.cluster, block, l.team.cluster, shared, a);
}
static inline int64_t rows_chain(const struct nb_call *call) { return team_chain(call->cols, ROW_TILE); }

#define CUDA_ROWS .row_local = always_row_local, CUDA_KERNEL

#endif
