// SPDX-License-Identifier: Apache-2.0
/* The host part of the forward norms of rows: kept.cu, if it has the formula, else rows.cu. */
#pragma once

#include <string.h>

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
/* The usual formulas by the names that kept.cu has for them; null: any other, and what goes beyond y and its statistics. */
static inline const char *usual_formula(const struct row_args *a) {
    const struct formula_args *const f = &a->formula;
    const bool adds = a->residual, gives_y = a->y && !a->scale && !a->full_scale && !a->scale_mean;
    const uint32_t affine = f->centre ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
    const bool part = a->seen < a->cols;
    if (!gives_y || f->root == NB_ROOT_DIV_SQRT || f->offset) return NULL;
    if (f->affine == NB_AFFINE_NONE && !adds && !part) return f->centre ? "ln" : "rms";
    if (f->affine != affine || (f->cast_before && (f->centre || part || !f->narrow_params))) return NULL;
    if (adds && sizeof(elem) < sizeof(float) && a->round_sum != f->narrow_params) return NULL;
    if (part) return f->narrow_params ? "prms_own" : "prms_f32";
    if (!f->narrow_params) return adds ? "add_f32" : f->centre ? "ln_f32" : "rms_f32";
    if (f->cast_before) return adds ? "add_cast" : "rms_cast";
    return adds ? "add_own" : f->centre ? "ln_own" : "rms_own";
}
/* How kept.cu has such rows: null, not at all. A thread's elements of a cluster are 64 or 128 where 32 are too few. */
static inline const char *kept_part(struct layout *l, const struct row_args *a, const struct nb_device *device) {
    const bool few = l->tile || a->cols <= CLUSTER * BLOCK * 64, plain = !a->residual && a->seen == a->cols;
    if (l->tile == 8) return "short";
    if (l->tile && l->team.cluster == 1) return l->team.group == WARP ? "warp" : "block";
    if (l->tile) return a->residual ? "cluster" : l->team.cluster == 2 ? "pair" : "ring";
    if (!plain || !device->has_clusters || (!few && (sizeof(elem) == 4 || a->cols > CLUSTER * BLOCK * 128)))
        return NULL;
    l->team.cluster = CLUSTER;
    l->tile = few ? 64 : 128;
    return few ? "cluster_64" : "cluster_128";
}
/* Blocks of kept.cu, each of so many threads. */
static inline int launch_kept(const struct nb_call *call, struct row_args *a, struct layout l, const char *usual,
                              const char *part) {
    const bool pair = strcmp(part, "pair") == 0, goes_on = pair || strcmp(part, "ring") == 0;
    const uint32_t cluster = pair ? 1 : l.team.cluster, block = pair ? 2 * BLOCK : l.block;
    const int64_t groups = l.tile == 8 ? divided(a->rows, SHORT_ROWS_OF(a->formula.centre)) : a->rows;
    const int64_t blocks = pair ? groups : divided(groups, block / l.team.group) * cluster;
    const size_t ring = goes_on ? RING_ROWS * block * ROW_TILE * sizeof(elem) : 0;
    char function[64];
    snprintf(function, sizeof function, "kept_" NB_TEXT(NB_DTYPE_NAME) "_wide_%s_%s", usual, part);
    return launch_going_on(call, function, blocks, block, cluster, TEAM_FLOATS * sizeof(float) + ring, a, goes_on);
}
static inline int launch_rows(const struct nb_call *call, struct row_args *a) {
    const struct nb_device *device = nb_launch_device();
    const bool wide = rows_are_wide(call);
    struct layout l = layout_of(a->cols, ROW_TILE, device->has_clusters);
    const char *const usual = wide && a->rows <= INT32_MAX ? usual_formula(a) : NULL;
    const char *const part = usual ? kept_part(&l, a, device) : NULL;
    size_t shared = TEAM_FLOATS * sizeof(float);
    if (!l.tile && spread_long_row(&l, a->cols, device)) {
        a->kept = 1;
        shared = kept_bytes(l.team, a->cols);
    }
    a->team = l.team;
    if (part) return launch_kept(call, a, l, usual, part);
    return launch_part(call, "rows", wide, l.tile ? "_32" : "_long",
                       divided(a->rows, l.block / l.team.group) * l.team.cluster, l.block, l.team.cluster, shared, a);
}
static inline int64_t rows_chain(const struct nb_call *call) { return team_chain(call->cols, ROW_TILE); }

#define CUDA_ROWS .row_local = always_row_local, CUDA_KERNEL
