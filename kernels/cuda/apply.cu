// SPDX-License-Identifier: Apache-2.0
/* What is left when the statistics are in memory: y = (x - mean) * scale * gamma + beta, or the gradient of BatchNorm. Each vector by a
 * thread. Statistics and parameters come by rows, by columns, or one for each element. */
#include "kernels/cuda/formula.h"

DEVICE int64_t place_of(const struct place &p, int64_t row, int64_t col) {
    return row % p.period * p.by_row + col * p.by_col;
}
/* N values of f32, or of elements where they are narrow, from column i on: one for all of them, or one each. */
template <bool WIDE, class E, int N>
DEVICE void load_placed(float (&v)[N], const void *p, const struct place &at, int64_t row, int64_t i, int64_t left,
                        bool narrow) {
    if (!p) return;
    if (at.by_col) {
        load_any<WIDE, E>(v, p, place_of(at, row, i), left, narrow);
        return;
    }
    const float same = get_any<E>(p, place_of(at, row, i), narrow);
#pragma unroll
    for (int j = 0; j < N; j++) v[j] = same;
}
/* The first column of this thread's vector, and its row; false behind the last. */
template <int N> DEVICE bool vector_of(int64_t &row, int64_t &i, int64_t rows, int64_t cols) {
    const int64_t vectors = (cols + N - 1) / N, at = (int64_t)block_index() * block_size() + thread_index();
    row = at / vectors;
    i = at % vectors * N;
    return row < rows;
}

template <class E, bool WIDE> DEVICE void apply_stats(const struct apply_args &a) {
    constexpr int N = VECTOR<E>;
    int64_t row, i;
    if (!vector_of<N>(row, i, a.rows, a.cols)) return;
    float x[N], mean[N] = {}, scale[N] = {}, gamma[N] = {}, beta[N] = {};
    const int64_t left = a.cols - i;
    load<WIDE>(x, (const E *)a.x + row * a.x_stride + i, left);
    load_placed<WIDE, E>(mean, a.mean, a.stats, row, i, left, false);
    load_placed<WIDE, E>(scale, a.scale, a.stats, row, i, left, false);
    load_placed<WIDE, E>(gamma, a.gamma, a.params, row, i, left, a.formula.narrow_params);
    load_placed<WIDE, E>(beta, a.beta, a.params, row, i, left, a.formula.narrow_params);
#pragma unroll
    for (int j = 0; j < N; j++)
        x[j] = with_affine<E>(normalized(x[j], mean[j], scale[j], a.formula), gamma[j], beta[j], a.formula);
    store<WIDE>((E *)a.y + row * a.y_stride + i, x, left);
}

/* scale is rstd; mean_g and mean_product are null in inference. */
template <class E, bool WIDE> DEVICE void apply_gradient(const struct apply_args &a) {
    constexpr int N = VECTOR<E>;
    int64_t row, i;
    if (!vector_of<N>(row, i, a.rows, a.cols)) return;
    float x[N], dy[N], mean[N] = {}, rstd[N] = {}, gamma[N] = {}, mean_g[N] = {}, mean_product[N] = {};
    const int64_t left = a.cols - i;
    load<WIDE>(x, (const E *)a.x + row * a.x_stride + i, left);
    load<WIDE>(dy, (const E *)a.dy + row * a.dy_stride + i, left);
    load_placed<WIDE, E>(mean, a.mean, a.stats, row, i, left, false);
    load_placed<WIDE, E>(rstd, a.scale, a.stats, row, i, left, false);
    load_placed<WIDE, E>(gamma, a.gamma, a.params, row, i, left, a.formula.narrow_params);
    load_placed<WIDE, E>(mean_g, a.mean_g, a.stats, row, i, left, false);
    load_placed<WIDE, E>(mean_product, a.mean_product, a.stats, row, i, left, false);
#pragma unroll
    for (int j = 0; j < N; j++)
        x[j] = batchnorm_gradient<E>(x[j], dy[j], mean[j], rstd[j], gamma[j], mean_g[j], mean_product[j], a.mean_g,
                                     a.formula);
    store<WIDE>((E *)a.y + row * a.y_stride + i, x, left);
}

#define APPLY(name, E, WIDE)                                                                                           \
    ENTRY(apply_##name##_stats, apply_args, apply_stats<E, WIDE>)                                                      \
    ENTRY(apply_##name##_gradient, apply_args, apply_gradient<E, WIDE>)
EACH_ACCESS(APPLY)
