// SPDX-License-Identifier: Apache-2.0
/* DyT backward: with t = tanh(alpha x), dx = alpha g (1 - t^2), dgamma = sum dy t, dbeta = sum dy, dalpha = sum of g x (1 - t^2) over all
 * elements. One sweep. Where t is near 1, 1 - t^2 keeps the absolute error of t: some 2^-22. */
#include "kernels/backward/backward_plain.h"
#include "kernels/shared/tanh.h"

/* Of a row. */
struct dyt_row {
    const elem *x, *dy;
    elem *dx; /* null: not wanted */
    const void *gamma;
    vec alpha;
};

/* Returns g x (1 - t^2). */
NB_INLINE vec element(const struct dyt_row *r, float *sums, int64_t padded, int64_t i, int64_t lanes,
                      struct backward_form f) {
    const vec x = typed_load_lanes(r->x, i, lanes, true), dy = typed_load_lanes(r->dy, i, lanes, true),
              t = vec_tanh(r->alpha * x);
    const vec slope = vec_fma(vec_set1(0.0f) - t, t, vec_set1(1.0f));
    const vec g = weighted(dy, r->gamma, i, lanes, f) * slope;
    if (r->dx) typed_store_lanes(r->dx, i, r->alpha * g, lanes, true);
    add_to_column_sums(sums, padded, dy, t, i, f);
    return g * x;
}

NB_INLINE float row_of(const struct nb_call *call, int64_t row, float *sums, struct backward_form f) {
    const int64_t n = call->cols, padded = padded_cols(call);
    const struct dyt_row r = {.x = row_in(call->x, call->x_stride, row),
                              .dy = row_in(call->dy, call->dy_stride, row),
                              .dx = call->dx ? row_out(call->dx, call->dx_stride, row) : NULL,
                              .gamma = call->gamma,
                              .alpha = vec_set1((float)call->alpha)};
    vec sum = vec_set1(0.0f);
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) sum = sum + element(&r, sums, padded, i, NB_LANES, f);
    if (i < n) sum = sum + element(&r, sums, padded, i, n - i, f);
    return vec_sum(sum);
}

/* Behind the blocks' column sums, a sum of dalpha for each block. */
static inline float *alpha_sums(const struct nb_call *call) { return block_sums(call, backward_blocks(call)); }

NB_INLINE int blocks(const struct nb_call *call, int64_t begin, int64_t end, struct backward_form f) {
    for (int64_t b = begin; b < end; b++) {
        float *sums = block_sums(call, b), alpha = 0.0f;
        const int64_t last = block_begin(call, b + 1);
        clear_sums(sums, block_floats(call));
        for (int64_t row = block_begin(call, b); row < last; row++) alpha = alpha + row_of(call, row, sums, f);
        alpha_sums(call)[b] = alpha;
    }
    return 0;
}

/* The unit behind the columns adds the blocks of dalpha. */
static int finish(const struct nb_call *call, int64_t begin, int64_t end) {
    const int64_t columns = backward_n_units(call, 1);
    if (sums_columns(call)) finish_parameter_sums(call, begin, end < columns ? end : columns);
    if (!call->dalpha || end <= columns) return 0;
    float sum = 0.0f;
    for (int64_t b = 0; b < backward_blocks(call); b++) sum = sum + alpha_sums(call)[b];
    *call->dalpha = sum;
    return 0;
}

static int dyt_backward_plain_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (phase == 1) return finish(call, begin, end);
    return backward_of_form(call, begin, end, (struct backward_form){.affine = NB_AFFINE_GAMMA_BETA}, blocks);
}

static size_t dyt_backward_plain_scratch_bytes(const struct nb_call *call) {
    return backward_scratch_bytes(call) + BACKWARD_BLOCKS * sizeof(float);
}
static int dyt_backward_plain_n_phases(const struct nb_call *call) { return 2; }
static int64_t dyt_backward_plain_n_units(const struct nb_call *call, int phase) {
    return phase == 1 ? backward_n_units(call, 1) + 1 : backward_blocks(call);
}
/* Of the sum of dalpha along a row. */
static int64_t dyt_backward_plain_chain(const struct nb_call *call) { return reduction_chain(call->cols, 1); }

NB_KERNEL(dyt_backward_plain, .summary = "DyT backward, one sweep, column sums by row blocks", .op = NB_OP_DYT,
          .pass = NB_BACKWARD, .formulas = {NB_EVERY_GRADIENT}, .loads = 2, .stores = 1, .flops = 36,
          .run = dyt_backward_plain_run, .row_local = always_row_local, .chain = dyt_backward_plain_chain,
          .scratch_bytes = dyt_backward_plain_scratch_bytes, .n_phases = dyt_backward_plain_n_phases,
          .n_units = dyt_backward_plain_n_units, .column_chain = backward_column_chain);
