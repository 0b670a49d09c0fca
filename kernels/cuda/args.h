// SPDX-License-Identifier: Apache-2.0
/* What the host gives to a device function: one block of plain data, passed by value. C for the host, C++ for the device. Strides count
 * elements of the dtype; what is null is not wanted. */
#pragma once

#include <stdint.h>

enum {
    WARP = 32,
    BLOCK = 256,      /* threads of a block, at most */
    CLUSTER = 8,      /* blocks of a cluster, at most; what every device with clusters has */
    TEAM_FLOATS = 64, /* of shared memory before a kernel's own: what the reductions of a block pass on */
    /* Blocks that add columns: two for each of 132 processors. Constant, so that the order of sums, and with it every bit, is the same on
     * every device that has clusters, and in emulation. */
    GRID = 264,
    COLUMN_LANES = 8, /* threads that share a column where rows of sums are added */
    SUMS_ALIGN = 16,  /* floats */
    /* Words of 16 bytes that a thread has in the ring of a gradient: as many stages as fit, the rows that are on their way. */
    RING = 24,
    RING_BOXES = 4,            /* floats, of the two boxes of a cluster */
    RING_STATS = 2 * WARP * 4, /* bytes of a warp's stage beside them: rstd and mean for each thread */
};

#define SHORT_ROWS_OF(centre) ((centre) ? 2 : 4) /* that a thread of kept.cu has at once */
/* The next rows of a block of kept.cu, in shared memory, and the blocks that a processor has room for by the ranks of a block and the bytes of an
 * element: at least 96 kB are on their way. */
#define RING_ROWS 3
#define RING_ROOM(ranks, bytes) ((ranks) == 1 ? ((bytes) == 2 ? 3 : 2) : (bytes) == 2 ? 2 : 1)

struct formula_args {
    uint32_t root, eps_place, affine; /* enums of kernel.h */
    uint32_t offset, cast_before, narrow_params, centre;
    float eps;
};

/* How rows are laid over threads: `group` threads of a block share a row (a power of two), `cluster` blocks. */
struct team_args {
    uint32_t group, cluster;
};

struct row_args {
    struct team_args team;
    struct formula_args formula;
    const void *x, *residual, *gamma, *beta;
    void *y, *residual_out;
    float *mean, *rstd;
    float *scale, *scale_mean;     /* stored for a later launch */
    float *full_mean, *full_scale; /* the same, one value for each element */
    int64_t x_stride, residual_stride, y_stride, residual_out_stride, full_stride;
    int64_t rows, cols, seen; /* seen: elements that the statistics see */
    uint32_t round_sum, kept; /* kept: a row that does not fit the registers is kept in shared memory */
};

struct gradient_args {
    struct team_args team;
    struct formula_args formula;
    const void *x, *dy, *dresidual_out, *gamma;
    void *dx;
    const float *mean, *rstd;
    float *partial; /* of each block: padded columns of dgamma, then of dbeta */
    int64_t x_stride, dy_stride, dresidual_out_stride, dx_stride, padded;
    int64_t rows, cols, seen;
    uint32_t sums; /* 0: none, 1: dgamma, 2: and dbeta */
};

/* Sums over columns, in two launches. The first: of blocks of rows, to partial. */
struct column_args {
    struct formula_args formula;
    const void *x, *dy; /* dy: sums of dy and dy * xhat; else of x, or of (x - shift)^2 */
    const float *shift, *mean, *rstd;
    float *partial;
    int64_t x_stride, dy_stride, padded, rows, cols, rows_per_block;
    uint32_t x_is_f32;
};
/* The second: sum i of column j is the sum over blocks of partial[(block * n + i) * padded + j], over the divisor. */
struct add_args {
    const float *partial;
    float *out[2];
    int64_t padded, cols, blocks, n;
    float divisor[2];
};

/* y = (x - mean) * scale * gamma + beta, or the gradient of BatchNorm, with what is stored already. The value of element (row, col) is
 * at (row % period) * by_row + col * by_col. */
struct place {
    int64_t period, by_row, by_col;
};
struct apply_args {
    struct formula_args formula;
    struct place stats, params;
    const void *x, *dy, *gamma, *beta;
    void *y;
    const float *mean, *scale, *mean_g, *mean_product;
    int64_t x_stride, dy_stride, y_stride, rows, cols;
};

/* BatchNorm: a channel's planes, and the values of a channel from its variance. */
struct channel_args {
    struct team_args team;
    struct formula_args formula;
    const void *x, *dy, *gamma, *beta;
    void *y; /* dx */
    float *mean, *rstd, *dgamma, *dbeta;
    const float *given_mean, *var; /* of all channels, where they are known already */
    float *scale, *mean_g, *mean_product;
    const float *running_mean_in, *running_var_in;
    float *running_mean_out, *running_var_out;
    int64_t x_stride, dy_stride, y_stride, n, c, hw;
    double momentum;
    uint32_t training;
};

/* One elementary operation on whole tensors. */
enum device_operation {
    DEVICE_COPY,
    DEVICE_SQUARE,
    DEVICE_SQRT,
    DEVICE_RECIPROCAL,
    DEVICE_ADD,
    DEVICE_SUB,
    DEVICE_MUL,
    DEVICE_DIV,
    DEVICE_MAX,
    DEVICE_ROOT,
};
struct element_args {
    struct formula_args formula;
    void *dst;
    const void *a, *b;
    struct place at_b;
    int64_t dst_stride, a_stride, rows, cols, first_row; /* first_row: of b, where it is placed by rows */
    uint32_t operation, dst_narrow, a_narrow, b_narrow;
    float scalar;
};
/* dst[i] = the sum of planes i, i + apart, ... of `planes` rows of a, over the divisor. */
struct sum_args {
    struct team_args team;
    float *dst;
    const float *a;
    int64_t stride, cols, planes, apart;
    float divisor;
};

struct copy_args {
    const void *in[3];
    void *out[2];
    int64_t in_stride[3], out_stride[2]; /* bytes */
    int64_t rows, bytes;                 /* of a row */
};
