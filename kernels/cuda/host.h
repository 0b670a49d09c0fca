// SPDX-License-Identifier: Apache-2.0
/* What the host parts of the kernels share. A host part is compiled once for each dtype, for the GPU's library and for the emulation's; it
 * fills the arguments of device functions and launches them, on whatever pointers the call has. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "kernels/cuda/launch.h"
#include "kernels/shared/vec.h"

static inline const char *cuda_applicable(const struct nb_call *call) { return nb_launch_refused(); }
static inline const char *prefix_row_applicable(const struct nb_call *call) {
    const char *const reason = cuda_applicable(call);
    return reason ? reason : prefix_applicable(call);
}
static inline int64_t one_unit(const struct nb_call *call, int phase) { return 1; }
#define CUDA_KERNEL .applicable = cuda_applicable

enum { VECTOR = 16 / sizeof(elem) }; /* elements of 16 bytes */

/* May a tensor be accessed 16 bytes at a time? One that is null may. */
static inline bool is_wide(const void *p, int64_t stride) {
    return !p || ((uintptr_t)p % 16 == 0 && stride * (int64_t)sizeof(elem) % 16 == 0);
}
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int log2_of(uint32_t n) { return 31 - __builtin_clz(n); }
static inline int64_t padded_to(int64_t n, int64_t of) { return divided(n, of) * of; }

static inline struct formula_args formula_args_of(const struct nb_call *call, bool centre) {
    const struct nb_formula *f = &call->formula;
    const bool narrow = sizeof(elem) < sizeof(float);
    return (struct formula_args){.root = f->root,
                                 .eps_place = f->eps_place,
                                 .affine = f->affine,
                                 .offset = f->weight_offset,
                                 .cast_before = narrow && f->cast == NB_CAST_BEFORE,
                                 .narrow_params = narrow && f->param == NB_PARAM_X,
                                 .centre = centre,
                                 .eps = (float)call->eps};
}

/* On grid blocks; a launch of none is none. */
static inline int launch_going_on(const struct nb_call *call, const char *function, int64_t grid, uint32_t block,
                                  uint32_t cluster, size_t shared, const void *args, bool goes_on) {
    if (grid == 0) return 0;
    if (grid > INT32_MAX) return NB_LAUNCH_FAILED;
    return nb_launch(&(struct nb_launch){.function = function,
                                         .grid = (uint32_t)grid,
                                         .block = block,
                                         .cluster = cluster,
                                         .shared = shared,
                                         .args = args,
                                         .stream = call->stream,
                                         .goes_on = goes_on});
}
static inline int launch_function(const struct nb_call *call, const char *function, int64_t grid, uint32_t block,
                                  uint32_t cluster, size_t shared, const void *args) {
    return launch_going_on(call, function, grid, block, cluster, shared, args, false);
}
/* FAMILY_DTYPE_wide_PART or narrow. */
static inline int launch_part(const struct nb_call *call, const char *family, bool wide, const char *part, int64_t grid,
                              uint32_t block, uint32_t cluster, size_t shared, const void *args) {
    char function[64];
    snprintf(function, sizeof function, "%s_" NB_TEXT(NB_DTYPE_NAME) "_%s%s", family, wide ? "wide" : "narrow", part);
    return launch_function(call, function, grid, block, cluster, shared, args);
}

/* ---- rows over threads ---------------------------------------------------------------------------------------------------- */

/* How many threads share a row: as few as can keep it in registers. tile: elements of a thread, 0 where the row is too long for that. */
struct layout {
    struct team_args team;
    uint32_t block;
    int tile;
};

/* Rows of up to 32 * 8 columns take part of a warp, then a warp, up to a block, up to a cluster with `large` elements a thread. */
static inline struct layout layout_of(int64_t cols, int large, bool clusters) {
    uint32_t group = 4, cluster = 1;
    while (group < WARP && group * 8 < cols) group *= 2;
    if (group * 8 >= cols) return (struct layout){{group, 1}, 128, 8};
    while (group < BLOCK && group * large < cols) group *= 2;
    while (clusters && cluster < CLUSTER && (int64_t)group * cluster * large < cols) cluster *= 2;
    const bool fits = (int64_t)group * cluster * large >= cols;
    return (struct layout){{group, fits ? cluster : 1}, group > WARP ? group : 128, fits ? large : 0};
}
/* Shared memory of a block that keeps its part of a long row: as many vectors for each thread. */
static inline size_t kept_bytes(struct team_args team, int64_t cols) {
    const int64_t at_once = (int64_t)team.group * VECTOR;
    return (size_t)(TEAM_FLOATS + divided(cols, at_once * team.cluster) * at_once) * sizeof(float);
}
/* A long row in shared memory: that of a block, or of a cluster, or, when it does not fit either, none. */
static inline bool spread_long_row(struct layout *l, int64_t cols, const struct nb_device *device) {
    if (kept_bytes(l->team, cols) <= device->shared_bytes) return true;
    if (device->has_clusters) l->team.cluster = CLUSTER;
    return kept_bytes(l->team, cols) <= device->shared_bytes;
}
/* The longest chain of a sum over the elements of a row: those of a thread in four accumulators, the tree over
 * these, then lanes and warps, then blocks one by one. */
static inline int64_t layout_chain(struct layout l, int64_t cols) {
    const int64_t threads = (int64_t)l.team.group * l.team.cluster;
    const int64_t own = divided(divided(cols, VECTOR), threads) * VECTOR;
    return divided(own, 4) + 2 + log2_of(l.team.group) + (l.team.cluster - 1);
}
/* Whatever the device. */
static inline int64_t team_chain(int64_t cols, int large) {
    struct layout l = layout_of(cols, large, true), alone = layout_of(cols, large, false);
    if (!l.tile) l.team.cluster = CLUSTER;
    return larger(layout_chain(l, cols), layout_chain(alone, cols));
}
