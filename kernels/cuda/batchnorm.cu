// SPDX-License-Identifier: Apache-2.0
/* BatchNorm, channel by channel: planes (NCHW) by a block or a cluster each, two sweeps for the statistics and one for the result; and what a
 * channel's values are made of once its sums are known (NHWC, inference). */
#include "kernels/cuda/formula.h"
#include "kernels/cuda/team.h"

enum { ACCUMULATORS = 4 };

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

/* Vectors of a channel, this thread's: its planes are c rows apart. */
struct plane_walk {
    int64_t channel, at, end, step, vectors;
};
template <int N> DEVICE struct plane_walk walk_of(const struct channel_args &a, const struct team &t) {
    const int64_t vectors = (a.hw + N - 1) / N;
    return {(int64_t)(block_index() / t.cluster), first_of(t, 1), a.n * vectors, step_of(t, 1), vectors};
}
DEVICE int64_t row_of(const struct plane_walk &w, const struct channel_args &a, int64_t at) {
    return at / w.vectors * a.c + w.channel;
}
DEVICE float total_of(const float (&acc)[ACCUMULATORS], struct team &t) {
    float sum[1] = {(acc[0] + acc[1]) + (acc[2] + acc[3])};
    add_team(sum, t);
    return sum[0];
}

template <class E, bool WIDE> DEVICE void train_planes(const struct channel_args &a) {
    constexpr int N = VECTOR<E>;
    struct team t = team_of(a.team);
    const struct plane_walk w = walk_of<N>(a, t);
    const E *const x = (const E *)a.x;
    const float n = (float)(a.n * a.hw);
    float v[N], mean = 0.0f, var = 0.0f;
    for (int sweep = 0; sweep < 2; sweep++) {
        float acc[ACCUMULATORS] = {};
        for (int64_t at = w.at; at < w.end; at += w.step) {
            const int64_t i = at % w.vectors * N;
            load<WIDE>(v, x + row_of(w, a, at) * a.x_stride + i, a.hw - i);
#pragma unroll
            for (int j = 0; j < N; j++) {
                float &sum = acc[j % ACCUMULATORS];
                if (i + j < a.hw) sum = sweep ? fmaf(v[j] - mean, v[j] - mean, sum) : sum + v[j];
            }
        }
        const float sum = total_of(acc, t);
        if (sweep)
            var = sum / n;
        else
            mean = sum / n;
    }
    const float scale = row_scale(var, a.formula);
    const float gamma = channel_param<E>(a.gamma, w.channel, a.formula),
                beta = channel_param<E>(a.beta, w.channel, a.formula);
    if (is_first(t)) write_channel(a, w.channel, mean, var, scale);
    for (int64_t at = w.at; at < w.end; at += w.step) {
        const int64_t i = at % w.vectors * N, row = row_of(w, a, at);
        load<WIDE>(v, x + row * a.x_stride + i, a.hw - i);
#pragma unroll
        for (int j = 0; j < N; j++)
            v[j] = with_affine<E>(normalized(v[j], mean, scale, a.formula), gamma, beta, a.formula);
        store<WIDE>((E *)a.y + row * a.y_stride + i, v, a.hw - i);
    }
    leave_team(t);
}

template <class E, bool WIDE> DEVICE void planes_gradient(const struct channel_args &a) {
    constexpr int N = VECTOR<E>;
    struct team t = team_of(a.team);
    const struct plane_walk w = walk_of<N>(a, t);
    const float n = (float)(a.n * a.hw), mean = a.mean[w.channel], rstd = a.rstd[w.channel];
    const float gamma = channel_param<E>(a.gamma, w.channel, a.formula);
    const float weight = a.formula.affine == NB_AFFINE_NONE ? 1.0f : weight_of<E>(gamma, a.formula);
    float x[N], dy[N], sums[2][ACCUMULATORS] = {};
    for (int64_t at = w.at; at < w.end; at += w.step) {
        const int64_t i = at % w.vectors * N, row = row_of(w, a, at);
        load<WIDE>(x, (const E *)a.x + row * a.x_stride + i, a.hw - i);
        load<WIDE>(dy, (const E *)a.dy + row * a.dy_stride + i, a.hw - i);
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (i + j >= a.hw) continue;
            sums[0][j % ACCUMULATORS] += dy[j];
            sums[1][j % ACCUMULATORS] = fmaf(dy[j], (x[j] - mean) * rstd, sums[1][j % ACCUMULATORS]);
        }
    }
    const float dbeta = total_of(sums[0], t), dgamma = total_of(sums[1], t);
    if (is_first(t) && a.dgamma) put(&a.dgamma[w.channel], dgamma);
    if (is_first(t) && a.dbeta) put(&a.dbeta[w.channel], dbeta);
    const float mean_g = weight * dbeta / n, mean_product = weight * dgamma / n;
    for (int64_t at = w.at; a.y && at < w.end; at += w.step) {
        const int64_t i = at % w.vectors * N, row = row_of(w, a, at);
        load<WIDE>(x, (const E *)a.x + row * a.x_stride + i, a.hw - i);
        load<WIDE>(dy, (const E *)a.dy + row * a.dy_stride + i, a.hw - i);
#pragma unroll
        for (int j = 0; j < N; j++)
            x[j] = batchnorm_gradient<E>(x[j], dy[j], mean, rstd, gamma, mean_g, mean_product, a.training, a.formula);
        store<WIDE>((E *)a.y + row * a.y_stride + i, x, a.hw - i);
    }
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
