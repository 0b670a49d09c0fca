// SPDX-License-Identifier: Apache-2.0
/* Gradients of BatchNorm without a trick: sums of dy and of dy * xhat, then dx = (g - mean of g - xhat * mean of g * xhat) * rstd.
 * NCHW: a channel's planes twice; NHWC: partial sums of blocks of rows, their combination by columns, the sweep. */
#include "kernels/batchnorm/batchnorm.h"
#include "kernels/batchnorm/batchnorm_sums.h"

#define GRADIENT_ACCUMULATORS 4

/* Each returned in a register of its own. */
struct plane_sums {
    float dy;
    _Alignas(8) float product; /* of dy * xhat */
};
struct sum_lanes {
    vec dy, product;
};
/* What a channel's elements share; vectors of one value (planes), or of columns. */
struct coefficients {
    vec mean, rstd, weight, mean_g, mean_product;
};

NB_INLINE vec normalized(vec x, vec mean, vec rstd) { return (x - mean) * rstd; }
NB_INLINE vec gradient(vec x, vec dy, struct coefficients k, bool training) {
    const vec g = dy * k.weight;
    if (!training) return g * k.rstd;
    return (g - k.mean_g - normalized(x, k.mean, k.rstd) * k.mean_product) * k.rstd;
}

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

NB_INLINE void add_lanes(struct sum_lanes *a, vec x, vec dy, vec mean, vec rstd) {
    a->dy = a->dy + dy;
    a->product = vec_fma(dy, normalized(x, mean, rstd), a->product);
}
static __attribute__((noinline)) struct plane_sums sum_plane(const elem *x, const elem *dy, int64_t n, float mean,
                                                             float rstd) {
    const vec m = vec_set1(mean), r = vec_set1(rstd), zero = vec_set1(0.0f);
    struct sum_lanes a[GRADIENT_ACCUMULATORS] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
    int64_t i = 0;
    for (; i + GRADIENT_ACCUMULATORS * NB_LANES <= n; i += GRADIENT_ACCUMULATORS * NB_LANES) {
        NB_UNROLL
        for (int k = 0; k < GRADIENT_ACCUMULATORS; k++)
            add_lanes(&a[k], vec_load(x + i + k * NB_LANES), vec_load(dy + i + k * NB_LANES), m, r);
    }
    for (; i + NB_LANES <= n; i += NB_LANES) add_lanes(&a[0], vec_load(x + i), vec_load(dy + i), m, r);
    if (i < n) add_lanes(&a[1], vec_load_tail(x + i, n - i), vec_load_tail(dy + i, n - i), m, r);
    return (struct plane_sums){.dy = vec_sum((a[0].dy + a[1].dy) + (a[2].dy + a[3].dy)),
                               .product = vec_sum((a[0].product + a[1].product) + (a[2].product + a[3].product))};
}
static __attribute__((noinline)) void write_plane(const elem *x, const elem *dy, elem *dx, int64_t n,
                                                  const struct coefficients *k, bool training) {
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES)
        vec_store(dx + i, gradient(vec_load(x + i), vec_load(dy + i), *k, training));
    if (i < n)
        vec_store_tail(dx + i, gradient(vec_load_tail(x + i, n - i), vec_load_tail(dy + i, n - i), *k, training),
                       n - i);
}
static void do_channel(const struct nb_call *call, int64_t channel) {
    const float n = (float)values_per_channel(call), mean = call->mean[channel], rstd = call->rstd[channel];
    struct sum_tree dy = {.n = 0}, product = {.n = 0};
    for (int64_t r = channel; r < call->rows; r += call->c) {
        const struct plane_sums s =
            sum_plane(row_in(call->x, call->x_stride, r), row_in(call->dy, call->dy_stride, r), call->cols, mean, rstd);
        tree_add(&dy, s.dy);
        tree_add(&product, s.product);
    }
    const float dbeta = tree_total(&dy), dgamma = tree_total(&product), weight = gamma_of(call, channel);
    if (call->dgamma) call->dgamma[channel] = dgamma;
    if (call->dbeta) call->dbeta[channel] = dbeta;
    const struct coefficients k = {vec_set1(mean), vec_set1(rstd), vec_set1(weight), vec_set1(weight * dbeta / n),
                                   vec_set1(weight * dgamma / n)};
    for (int64_t r = channel; call->dx && r < call->rows; r += call->c)
        write_plane(row_in(call->x, call->x_stride, r), row_in(call->dy, call->dy_stride, r),
                    row_out(call->dx, call->dx_stride, r), call->cols, &k, is_training(call));
}

/* ---- columns ------------------------------------------------------------------------------------------------------------- */

enum { K_MEAN_G = A_MEAN, K_MEAN_PRODUCT = A_SCALE, K_WEIGHT = A_GAMMA };

NB_INLINE void add_rows_at(const struct nb_call *call, int64_t row, const int n, int64_t i, int64_t lanes, float *dys,
                           float *products) {
    const vec mean = typed_load_lanes(call->mean, i, lanes, false),
              rstd = typed_load_lanes(call->rstd, i, lanes, false);
    vec dy[2 * ROW_GROUP - 1], product[2 * ROW_GROUP - 1];
    NB_UNROLL
    for (int j = 0; j < n; j++) {
        dy[j] = typed_load_lanes(row_in(call->dy, call->dy_stride, row + j), i, lanes, true);
        product[j] =
            dy[j] * normalized(typed_load_lanes(row_in(call->x, call->x_stride, row + j), i, lanes, true), mean, rstd);
    }
    add_to(dys, i, lanes, tree_sum(dy, n));
    add_to(products, i, lanes, tree_sum(product, n));
}
NB_INLINE void add_row_group(const struct nb_call *call, int64_t row, const int n, float *dys, float *products) {
    int64_t i = 0;
    for (; i + NB_LANES <= call->c; i += NB_LANES) add_rows_at(call, row, n, i, NB_LANES, dys, products);
    if (i < call->c) add_rows_at(call, row, n, i, call->c - i, dys, products);
}
static void sum_of_block(const struct nb_call *call, int64_t block) {
    float *dys = partial_array(call, block, 2, 0), *products = partial_array(call, block, 2, 1);
    int64_t row = block * rows_per_block(call);
    const int64_t end = row + block_rows(call, block);
    memset(dys, 0, (size_t)call->c * sizeof(float));
    memset(products, 0, (size_t)call->c * sizeof(float));
    for (; row + ROW_GROUP <= end; row += ROW_GROUP) add_row_group(call, row, ROW_GROUP, dys, products);
    for (; row < end; row++) add_row_group(call, row, 1, dys, products);
}
static void combine(const struct nb_call *call, int64_t begin, int64_t end) {
    const float n = (float)values_per_channel(call);
    for (int64_t i = begin; i < end; i++) {
        float dbeta = 0, dgamma = 0;
        for (int64_t block = 0; block < n_blocks(call); block++) {
            dbeta += partial_array(call, block, 2, 0)[i];
            dgamma += partial_array(call, block, 2, 1)[i];
        }
        const float weight = gamma_of(call, i);
        if (call->dgamma) call->dgamma[i] = dgamma;
        if (call->dbeta) call->dbeta[i] = dbeta;
        channel_array(call, K_MEAN_G)[i] = weight * dbeta / n;
        channel_array(call, K_MEAN_PRODUCT)[i] = weight * dgamma / n;
        channel_array(call, K_WEIGHT)[i] = weight;
    }
}
NB_INLINE void write_columns(const struct nb_call *call, int64_t row, int64_t i, int64_t lanes) {
    const struct coefficients k = {typed_load_lanes(call->mean, i, lanes, false),
                                   typed_load_lanes(call->rstd, i, lanes, false),
                                   typed_load_lanes(channel_array(call, K_WEIGHT), i, lanes, false),
                                   typed_load_lanes(channel_array(call, K_MEAN_G), i, lanes, false),
                                   typed_load_lanes(channel_array(call, K_MEAN_PRODUCT), i, lanes, false)};
    const vec x = typed_load_lanes(row_in(call->x, call->x_stride, row), i, lanes, true);
    const vec dy = typed_load_lanes(row_in(call->dy, call->dy_stride, row), i, lanes, true);
    typed_store_lanes(row_out(call->dx, call->dx_stride, row), i, gradient(x, dy, k, is_training(call)), lanes, true);
}
static void write_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    for (int64_t row = begin; call->dx && row < end; row++) {
        int64_t i = 0;
        for (; i + NB_LANES <= call->c; i += NB_LANES) write_columns(call, row, i, NB_LANES);
        if (i < call->c) write_columns(call, row, i, call->c - i);
    }
}

/* ---- contract ------------------------------------------------------------------------------------------------------------ */

static int batchnorm_backward_plain_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (is_nchw(call))
        for (int64_t channel = begin; channel < end; channel++) do_channel(call, channel);
    else if (phase == 0)
        for (int64_t block = begin; block < end; block++) sum_of_block(call, block);
    else if (phase == 1)
        combine(call, begin, end);
    else
        write_rows(call, begin, end);
    return 0;
}
static size_t batchnorm_backward_plain_scratch_bytes(const struct nb_call *call) {
    if (is_nchw(call)) return 0;
    return (size_t)((N_CHANNEL_ARRAYS + 2 * n_blocks(call)) * array_length(call)) * sizeof(float);
}
/* Single vectors at the end of a plane add to the first accumulator; a product is rounded before a tree. */
static int64_t batchnorm_backward_plain_chain(const struct nb_call *call) {
    if (!is_nchw(call)) return columns_chain(call);
    return reduction_chain(call->hw, GRADIENT_ACCUMULATORS) + GRADIENT_ACCUMULATORS - 1 + tree_depth(call->n);
}

NB_KERNEL(batchnorm_backward_plain, .summary = "gradients of BatchNorm: two sums, then dx", .op = NB_OP_BATCHNORM,
          .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .loads = 4, .stores = 1, .flops = 13,
          .run = batchnorm_backward_plain_run, .applicable = batchnorm_applicable,
          .chain = batchnorm_backward_plain_chain, .column_chain = batchnorm_backward_plain_chain,
          .scratch_bytes = batchnorm_backward_plain_scratch_bytes, .n_phases = one_pass_phases,
          .n_units = one_pass_units);
