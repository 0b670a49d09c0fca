// SPDX-License-Identifier: Apache-2.0
/* The host part of the gradients of the norms of rows (gradient.cu): two launches, rows and then columns. */
#pragma once

#include "kernels/cuda/columns.h"
#include "kernels/shared/reduce.h"

enum { GRADIENT_TILE = 16 };

static inline int64_t gradient_groups(struct layout l) { return l.block / l.team.group; }
/* Blocks, or clusters of them, that add columns; few where their sums are long. */
static inline int64_t gradient_blocks(struct layout l, int64_t rows) {
    const int64_t most = GRID / (l.tile ? l.team.cluster : CLUSTER), wanted = divided(rows, gradient_groups(l));
    return wanted < most ? wanted : most;
}
static inline struct layout gradient_layout(const struct nb_call *call, bool clusters) {
    struct layout l = layout_of(call->cols, GRADIENT_TILE, clusters);
    if (!l.tile && clusters) l.team.cluster = CLUSTER;
    return l;
}

static inline uint32_t sums_wanted(const struct nb_call *call) {
    const uint32_t affine = call->formula.affine;
    if (affine == NB_AFFINE_GAMMA_BETA && call->dbeta) return 2;
    return affine != NB_AFFINE_NONE && call->dgamma ? 1 : 0;
}
static inline bool gradient_is_wide(const struct nb_call *call) {
    return call->cols % VECTOR == 0 && is_wide(call->x, call->x_stride) && is_wide(call->dy, call->dy_stride) &&
           is_wide(call->dx, call->dx_stride) && is_wide(call->dresidual_out, call->dresidual_out_stride) &&
           is_wide(call->gamma, 0);
}

/* What the ring takes (gradient.cu): its bytes, or 0 where the call is for a generic function. */
static inline size_t ring_bytes(const struct nb_call *call, struct layout l, bool centre, int64_t seen) {
    const int64_t strides =
        call->x_stride | call->dy_stride | call->dx_stride | call->dresidual_out_stride | call->rows;
    const size_t words = (size_t)(l.tile / VECTOR * (call->dresidual_out ? 3 : 2));
    if (!l.tile || !gradient_is_wide(call) || !call->dx || strides >> 31 || seen % VECTOR ||
        sums_wanted(call) > (centre ? 2 : 1) || (centre && call->dresidual_out))
        return 0;
    const size_t bytes = (TEAM_FLOATS + RING_BOXES) * sizeof(float) +
                         l.block / WARP * ((size_t)RING / words) * (words * WARP * 16 + RING_STATS);
    return bytes <= nb_launch_device()->shared_bytes ? bytes : 0;
}
static inline int launch_gradient(const struct nb_call *call, const struct gradient_args *a, struct layout l,
                                  int64_t blocks) {
    const size_t ring = ring_bytes(call, l, a->formula.centre, a->seen),
                 generic = (TEAM_FLOATS + RING_BOXES + (gradient_groups(l) > 1 ? l.block * GRADIENT_TILE : 0)) *
                           sizeof(float);
    char part[16] = "_long";
    if (l.tile)
        snprintf(part, sizeof part, "%s_%d",
                 !ring               ? ""
                 : a->formula.centre ? "_centred"
                 : a->dresidual_out  ? "_past"
                                     : "",
                 l.tile);
    return launch_part(call, "gradient", l.tile ? ring > 0 : gradient_is_wide(call), part, blocks * l.team.cluster,
                       l.block, l.team.cluster, ring ? ring : generic, a);
}

static inline int gradient_run(const struct nb_call *call, bool centre, int64_t seen) {
    const struct layout l = gradient_layout(call, nb_launch_device()->has_clusters);
    const int64_t blocks = gradient_blocks(l, call->rows);
    const struct gradient_args a = {
        .team = l.team,
        .formula = formula_args_of(call, centre),
        .x = call->x,
        .dy = call->dy,
        .dresidual_out = call->dresidual_out,
        .gamma = call->gamma,
        .dx = call->dx,
        .mean = call->mean,
        .rstd = call->rstd,
        .partial = call->scratch,
        .x_stride = call->x_stride,
        .dy_stride = call->dy_stride,
        .dresidual_out_stride = call->dresidual_out_stride,
        .dx_stride = call->dx_stride,
        .padded = padded_columns(call->cols),
        .rows = call->rows,
        .cols = call->cols,
        .seen = seen,
        .sums = sums_wanted(call),
    };
    const struct add_args add = {.partial = a.partial,
                                 .out = {call->dgamma, call->dbeta},
                                 .padded = a.padded,
                                 .cols = a.cols,
                                 .blocks = blocks,
                                 .n = a.sums,
                                 .divisor = {1.0f, 1.0f}};
    if (!a.dx && !a.sums) return 0;
    const int code = launch_gradient(call, &a, l, blocks);
    return code || !a.sums ? code : launch_add_columns(call, &add);
}

/* Called before the tensors are known, and without the device. */
static inline size_t gradient_scratch(const struct nb_call *call) {
    const int64_t alone = gradient_blocks(gradient_layout(call, false), call->rows),
                  in_clusters = gradient_blocks(gradient_layout(call, true), call->rows);
    return (size_t)(2 * larger(alone, in_clusters) * padded_columns(call->cols)) * sizeof(float);
}
static inline int64_t gradient_chain(const struct nb_call *call) { return team_chain(call->cols, GRADIENT_TILE); }
/* Rows of a group, the groups of a block, then the blocks. */
static inline int64_t column_chain_of(struct layout l, int64_t rows) {
    const int64_t groups = gradient_groups(l), blocks = gradient_blocks(l, rows);
    return divided(rows, blocks * groups) + groups - 1 + lanes_chain(blocks);
}
static inline int64_t gradient_column_chain(const struct nb_call *call) {
    return larger(column_chain_of(gradient_layout(call, false), call->rows),
                  column_chain_of(gradient_layout(call, true), call->rows));
}

/* centred: of a norm that takes its mean off; n: elements that the statistics see. */
#define GRADIENT_KERNEL(kernel, centred, n, ...)                                                                       \
    static int kernel##_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {                       \
        return gradient_run(call, centred, n);                                                                         \
    }                                                                                                                  \
    NB_KERNEL(kernel, .run = kernel##_run, .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .loads = 2,           \
              .stores = 1, .row_local = always_row_local, .chain = gradient_chain,                                     \
              .column_chain = gradient_column_chain, .scratch_bytes = gradient_scratch, .n_units = one_unit,           \
              __VA_ARGS__)
