// SPDX-License-Identifier: Apache-2.0
/* BatchNorm, channel by channel: planes (NCHW) by a block or a cluster each, two sweeps for the statistics and one for the result; and what a
 * channel's values are made of once its sums are known (NHWC, inference). */
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

/* As PyTorch: momentum is the weight of the new value, the variance kept is the unbiased one, both in double. */
DEVICE void write_channel(const struct channel_args &a, int64_t channel, float mean, float var, float scale) {
    const double m = a.momentum, n = (double)(a.n * a.hw);
    if (a.mean) put(&a.mean[channel], mean);
    if (a.rstd) put(&a.rstd[channel], scale_to_rstd(scale, a.formula));
    if (a.scale) put(&a.scale[channel], scale);
    if (a.running_mean_out)
        put(&a.running_mean_out[channel], (float)((1.0 - m) * a.running_mean_in[channel] + m * mean));
    if (a.running_var_out)
        put(&a.running_var_out[channel], (float)((1.0 - m) * a.running_var_in[channel] + m * (var * (n / (n - 1.0)))));
}

template <class E> DEVICE float channel_param(const void *p, int64_t channel, const struct formula_args &f) {
    return p ? get_any<E>(p, channel, f.narrow_params) : 0.0f;
}

/* Vectors of a channel, this thread's, in turn; its planes are c rows apart. */
struct plane_walk {
    uint32_t at, end, step;          /* of all vectors of the channel */
    uint32_t plane, vector, vectors; /* where that is */
    uint32_t planes, rest;           /* of a step */
};
template <int N> DEVICE struct plane_walk walk_of(const struct channel_args &a, const struct team &t) {
    const uint32_t vectors = (uint32_t)((a.hw + N - 1) / N), at = (uint32_t)first_of(t, 1),
                   step = (uint32_t)step_of(t, 1);
    return {at, (uint32_t)a.n * vectors, step, at / vectors, at % vectors, vectors, step / vectors, step % vectors};
}
DEVICE void go_on(struct plane_walk &w) {
    w.at += w.step, w.plane += w.planes, w.vector += w.rest;
    if (w.vector >= w.vectors) w.vector -= w.vectors, w.plane++;
}
/* Loads several vectors of x, and of dy, before it calls use(offset of y, how many elements, x, dy) of the first. */
template <class E, bool WIDE, bool DY, class F>
DEVICE void walk_channel(struct plane_walk w, const struct channel_args &a, const F &use) {
    constexpr int N = VECTOR<E>, AT_ONCE = (WIDE ? 8 : 4) / (DY ? 2 : 1);
    const uint32_t channel = block_index() / a.team.cluster;
    while (w.at < w.end) {
        struct words<E, WIDE> x[AT_ONCE], dy[AT_ONCE];
        int64_t out[AT_ONCE];
        int left[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++, go_on(w)) {
            const uint32_t i = w.vector * N;
            const int64_t row = (int64_t)w.plane * a.c + channel;
            left[k] = w.at >= w.end ? 0 : WIDE || a.hw - i > N ? N : (int)(a.hw - i);
            out[k] = row * a.y_stride + i;
            load_words(x[k], (const E *)a.x + row * a.x_stride + i, left[k]);
            if constexpr (DY) load_words(dy[k], (const E *)a.dy + row * a.dy_stride + i, left[k]);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            float v[N], d[N] = {};
            if (!left[k]) break;
            unpack(x[k], v);
            if constexpr (DY) unpack(dy[k], d);
            use(out[k], WIDE ? N : left[k], v, d);
        }
    }
}

template <class E, bool WIDE> DEVICE void train_planes(const struct channel_args &a) {
    constexpr int N = VECTOR<E>;
    struct team t = team_of(a.team);
    const struct plane_walk w = walk_of<N>(a, t);
    const int64_t channel = block_index() / t.cluster;
    const float n = (float)(a.n * a.hw);
    float sums[ACCUMULATORS] = {}, squares[ACCUMULATORS] = {};
    walk_channel<E, WIDE, false>(w, a, [&](int64_t, int, const float(&v)[N], const float(&)[N]) {
#pragma unroll
        for (int j = 0; j < N; j++) sums[j % ACCUMULATORS] += v[j];
    });
    const float mean = add_accumulators(sums, t) / n;
    walk_channel<E, WIDE, false>(w, a, [&](int64_t, int left, const float(&v)[N], const float(&)[N]) {
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < left) squares[j % ACCUMULATORS] = fmaf(v[j] - mean, v[j] - mean, squares[j % ACCUMULATORS]);
    });
    const float var = add_accumulators(squares, t) / n, scale = row_scale(var, a.formula);
    const float gamma = channel_param<E>(a.gamma, channel, a.formula),
                beta = channel_param<E>(a.beta, channel, a.formula);
    if (is_first(t)) write_channel(a, channel, mean, var, scale);
    /* fmaf(v, w, -0) is v * w, and v where w is 1. */
    const bool usual = a.formula.root != NB_ROOT_DIV_SQRT && !(a.formula.cast_before && a.gamma);
    const float weight = a.gamma ? weight_of<E>(gamma, a.formula) : 1.0f, shift = a.beta ? beta : -0.0f;
    walk_channel<E, WIDE, false>(w, a, [&](int64_t out, int left, const float(&v)[N], const float(&)[N]) {
        float y[N];
#pragma unroll
        for (int j = 0; j < N; j++) y[j] = fmaf((v[j] - mean) * scale, weight, shift);
        if (!usual)
#pragma unroll
            for (int j = 0; j < N; j++)
                y[j] = with_affine<E>(normalized(v[j], mean, scale, a.formula), gamma, beta, a.formula);
        store<WIDE>((E *)a.y + out, y, left);
    });
    leave_team(t);
}

template <class E, bool WIDE> DEVICE void planes_gradient(const struct channel_args &a) {
    constexpr int N = VECTOR<E>;
    struct team t = team_of(a.team);
    const struct plane_walk w = walk_of<N>(a, t);
    const int64_t channel = block_index() / t.cluster;
    const float n = (float)(a.n * a.hw), mean = a.mean[channel], rstd = a.rstd[channel];
    const float gamma = channel_param<E>(a.gamma, channel, a.formula);
    const float weight = a.formula.affine == NB_AFFINE_NONE ? 1.0f : weight_of<E>(gamma, a.formula);
    float sums[2][ACCUMULATORS] = {};
    walk_channel<E, WIDE, true>(w, a, [&](int64_t, int left, const float(&x)[N], const float(&dy)[N]) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (j >= left) continue;
            sums[0][j % ACCUMULATORS] += dy[j];
            sums[1][j % ACCUMULATORS] = fmaf(dy[j], (x[j] - mean) * rstd, sums[1][j % ACCUMULATORS]);
        }
    });
    const float dbeta = add_accumulators(sums[0], t), dgamma = add_accumulators(sums[1], t);
    if (is_first(t) && a.dgamma) put(&a.dgamma[channel], dgamma);
    if (is_first(t) && a.dbeta) put(&a.dbeta[channel], dbeta);
    const float mean_g = weight * dbeta / n, mean_product = weight * dgamma / n;
    if (a.y)
        walk_channel<E, WIDE, true>(w, a, [&](int64_t out, int left, const float(&x)[N], const float(&dy)[N]) {
            float dx[N];
#pragma unroll
            for (int j = 0; j < N; j++) {
                const float g = dy[j] * weight;
                dx[j] = a.training ? (g - mean_g - (x[j] - mean) * rstd * mean_product) * rstd : g * rstd;
            }
            store<WIDE>((E *)a.y + out, dx, left);
        });
    leave_team(t);
}

/* A thread each: outputs and scale of a channel from its mean and variance. */
DEVICE void channel_stats(const struct channel_args &a) {
    const int64_t channel = (int64_t)block_index() * block_size() + thread_index();
    if (channel >= a.c) return;
    const float var = a.var[channel];
    write_channel(a, channel, a.given_mean[channel], var, row_scale(var, a.formula));
}
/* The means that dx takes away, from the sums over the channel. */
template <class E> DEVICE void channel_means(const struct channel_args &a) {
    const int64_t channel = (int64_t)block_index() * block_size() + thread_index();
    if (channel >= a.c) return;
    const float n = (float)(a.n * a.hw), gamma = channel_param<E>(a.gamma, channel, a.formula);
    const float weight = a.formula.affine == NB_AFFINE_NONE ? 1.0f : weight_of<E>(gamma, a.formula);
    put(&a.mean_g[channel], weight * a.dbeta[channel] / n);
    put(&a.mean_product[channel], weight * a.dgamma[channel] / n);
}

#define BATCHNORM(name, E, WIDE)                                                                                       \
    ENTRY(batchnorm_##name##_train, channel_args, train_planes<E, WIDE>)                                               \
    ENTRY(batchnorm_##name##_gradient, channel_args, planes_gradient<E, WIDE>)
EACH_ACCESS(BATCHNORM)
ENTRY(batchnorm_stats, channel_args, channel_stats)
ENTRY(batchnorm_f32_means, channel_args, channel_means<float>)
ENTRY(batchnorm_f16_means, channel_args, channel_means<struct f16>)
ENTRY(batchnorm_bf16_means, channel_args, channel_means<struct bf16>)
