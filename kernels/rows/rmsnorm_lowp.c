// SPDX-License-Identifier: Apache-2.0
/* RMSNorm as an eager framework evaluates it without a cast to f32: the accumulator and every intermediate rounded to x's
 * dtype. It is here to be wrong in the way that such code is: f16 squares overflow from |x| = 256, an eps under 2^-25 is 0,
 * and a lane's sum stops growing once n u / lanes passes 1 (u = 2^-11 for f16, 2^-8 for bf16).
 * Relative error of the mean square: at most (ceil(n / lanes) + log2(lanes) + 3) u. Each + * / sqrt of f32 values rounded
 * to the dtype is the dtype's own operation, since 24 >= 2 p + 2. */
#include "kernels/rows/row.h"

NB_INLINE vec step_square_rounded(vec acc, vec x, vec shift) { return vec_round(acc + vec_round(x * x)); }

/* As vec_sum, each addition rounded to the dtype: halves of the lanes, and halves of these. */
static float sum_rounded(vec v) {
    float lanes[NB_LANES];
    vec_store_f32(lanes, v);
    for (int half = NB_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] = elem_round(lanes[i] + lanes[i + half]);
    return lanes[0];
}

static float scale_rounded(float mean_square, const struct nb_call *call) {
    const struct nb_formula *f = &call->formula;
    const float eps = elem_round((float)call->eps);
    float v = mean_square;
    if (f->eps_place == NB_EPS_INSIDE) v = elem_round(v + eps);
    if (f->root == NB_ROOT_RSQRT_NR || f->root == NB_ROOT_RSQRT_RAW) {
        struct nb_call zero_eps = *call;
        zero_eps.eps = f->eps_place == NB_EPS_INSIDE ? 0.0 : eps;
        return elem_round(row_scale(v, &zero_eps));
    }
    float s = elem_round(__builtin_sqrtf(v));
    if (f->eps_place == NB_EPS_OUTSIDE) s = elem_round(s + eps);
    if (f->eps_place == NB_EPS_CLAMP && s < eps) s = eps;
    return f->root == NB_ROOT_DIV_SQRT ? s : elem_round(1.0f / s);
}

static __attribute__((noinline)) struct row_stats stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    float sum = sum_rounded(reduce_lanes(plain_source(x), call->cols, 0.0f, step_square_rounded, 1));
    return (struct row_stats){.scale = scale_rounded(elem_round(sum / (float)call->cols), call)};
}

static int rmsnorm_lowp_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return rows_of_form(call, begin, end, stats, (struct row_form){.cast_before = true, .affine = NB_AFFINE_GAMMA},
                        plain_rows);
}

/* Each square is rounded before it is added. */
static int64_t rmsnorm_lowp_chain(const struct nb_call *call) { return reduction_chain(call->cols, 1) + 1; }

/* The cast order means nothing where all is in the dtype. */
NB_KERNEL(rmsnorm_lowp, .summary = "RMSNorm, every intermediate rounded to x's dtype", .op = NB_OP_RMSNORM,
          .stats_dtype = NB_STATS_X,
          .formulas = {.roots = NB_ALL(NB_N_ROOTS), .eps_places = NB_ALL(NB_N_EPS_PLACES), NB_EVERY_AFFINE}, .loads = 2,
          .stores = 1, .flops = 4, .run = rmsnorm_lowp_run, .row_local = always_row_local, .chain = rmsnorm_lowp_chain);
