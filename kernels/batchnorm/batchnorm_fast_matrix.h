// SPDX-License-Identifier: Apache-2.0
/* The steps of batchnorm_fast on a matrix: sums of channels [begin, end) by columns, from them the coefficients of columns, a
 * vector of channels at a time, and the last sweep. */
#ifndef NB_BATCHNORM_FAST_MATRIX_H
#define NB_BATCHNORM_FAST_MATRIX_H

#include "kernels/batchnorm/batchnorm_fast.h"

/* Arrays over channels. The first four are spread over columns: mean, slope and constant of a line, or those of the sweep. */
enum forward_work { W_MEAN, W_SCALE, W_GAMMA, W_BETA, W_SHIFT, W_OFFSET, W_VAR };
enum { W_SLOPE = W_SCALE, W_CONSTANT = W_GAMMA };

static __attribute__((noinline)) void tile_moments(const struct pages *p, int64_t rows, int64_t cols,
                                                   const struct column_arrays *a) {
    sum_tile(p, rows, cols, a, false, NULL);
}
/* First values of channels [begin, end), by columns. */
static inline void first_values(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end,
                                float *column) {
    const elem *x = call->x;
    if (!is_nchw(call)) {
        for (int64_t channel = begin; channel < end; channel++) column[channel - begin] = elem_get(x + channel);
        return;
    }
    for (int64_t channel = begin; channel < end; channel++) {
        const float value = elem_get(x + channel * call->x_stride);
        spread(&value, column + (channel - begin) * m->group, 1, m->group);
    }
}
/* Sums of a block about the shifts of the channels, which start at the pointer given; null: the channels' first values. */
static inline void sum_channels(const struct nb_call *call, const struct matrix *m, int64_t block, int64_t begin,
                                int64_t end, const float *shift) {
    const struct work w = matrix_work(call, m);
    float *about = block_work(&w, block, B_ABOUT) + begin * m->group;
    if (shift)
        spread(shift, about, end - begin, m->group);
    else
        first_values(call, m, begin, end, about);
    sum_block_of(call, m, forward_pages(call), block, begin, end, about, NULL, tile_moments);
}

/* Offset and variance of the lanes from channel i on, from the sums in their places. Returns how many have a poor shift. */
static inline float moments_of_lanes(const struct nb_call *call, const struct work *w, int64_t i, int64_t lanes,
                                     float *is_poor_) {
    const vec n = vec_set1((float)values_per_channel(call)), one = vec_set1(1.0f), zero = vec_set1(0.0f);
    const vec offset = typed_load_lanes(channel_work(w, W_OFFSET), i, lanes, false) / n;
    const vec square = typed_load_lanes(channel_work(w, W_VAR), i, lanes, false) / n;
    const vec var = vec_fma(zero - offset, offset, square);
    const vec poor = vec_keep(vec_select_less(vec_set1(POOR_SHIFT) * var, offset * offset, one, zero), lanes);
    typed_store_lanes(channel_work(w, W_OFFSET), i, offset, lanes, false);
    typed_store_lanes(channel_work(w, W_VAR), i, var, lanes, false);
    vec_store_f32(is_poor_, poor);
    return vec_sum(poor);
}
/* The sums of all blocks of channels [begin, end), to their places. */
static inline void gather_sums(const struct work *w, const struct matrix *m, int64_t begin, int64_t end) {
    gather_channels(w, m, B_SUM, begin, end, channel_work(w, W_OFFSET) + begin);
    gather_channels(w, m, B_PRODUCT, begin, end, channel_work(w, W_VAR) + begin);
}
/* Channels with a poor shift about their mean; the other lanes come out as they were. */
static __attribute__((noinline)) void look_again(const struct nb_call *call, const struct matrix *m, int64_t i,
                                                 int64_t lanes, const float *poor) {
    const struct work w = matrix_work(call, m);
    float *shift = channel_work(&w, W_SHIFT) + i, *offset = channel_work(&w, W_OFFSET) + i,
          *var = channel_work(&w, W_VAR) + i, kept[3][NB_LANES], still_poor[NB_LANES];
    for (int64_t j = 0; j < lanes; j++) {
        kept[0][j] = shift[j];
        kept[1][j] = offset[j];
        kept[2][j] = var[j];
        if (poor[j] != 0) shift[j] = shift[j] + offset[j];
    }
    for (int64_t block = 0; block < matrix_blocks(m); block++) sum_channels(call, m, block, i, i + lanes, shift);
    gather_sums(&w, m, i, i + lanes);
    moments_of_lanes(call, &w, i, lanes, still_poor);
    for (int64_t j = 0; j < lanes; j++) {
        if (poor[j] != 0) continue;
        shift[j] = kept[0][j];
        offset[j] = kept[1][j];
        var[j] = kept[2][j];
    }
}
static inline void train_moments(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end) {
    const struct work w = matrix_work(call, m);
    const float *about = block_work(&w, 0, B_ABOUT);
    gather_sums(&w, m, begin, end);
    for (int64_t i = begin; i < end; i++) channel_work(&w, W_SHIFT)[i] = about[i * m->group];
    for (int64_t i = begin; i < end; i += NB_LANES) {
        const int64_t lanes = end - i < NB_LANES ? end - i : NB_LANES;
        float poor[NB_LANES];
        if (moments_of_lanes(call, &w, i, lanes, poor) != 0.0f) look_again(call, m, i, lanes, poor);
    }
}
static inline void running_moments(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end) {
    const struct work w = matrix_work(call, m);
    const size_t bytes = (size_t)(end - begin) * sizeof(float);
    memcpy(channel_work(&w, W_SHIFT) + begin, call->running_mean_in + begin, bytes);
    memcpy(channel_work(&w, W_VAR) + begin, call->running_var_in + begin, bytes);
    memset(channel_work(&w, W_OFFSET) + begin, 0, bytes);
}

/* row_scale() of root.h, a vector at a time where the root is no estimate. */
static inline void scales_of(const struct nb_call *call, const float *var, float *scale, int64_t n) {
    const struct nb_formula *f = &call->formula;
    int64_t i = 0;
    if (f->root == NB_ROOT_DIV_SQRT || f->root == NB_ROOT_MUL_RECIP)
        for (; i + NB_LANES <= n; i += NB_LANES) {
            const vec eps = vec_set1((float)call->eps);
            vec v = vec_load_f32(var + i);
            if (f->eps_place == NB_EPS_INSIDE) v = v + eps;
            v = vec_sqrt(v);
            if (f->eps_place == NB_EPS_OUTSIDE) v = v + eps;
            if (f->eps_place == NB_EPS_CLAMP) v = vec_select_less(v, eps, eps, v);
            if (f->root == NB_ROOT_MUL_RECIP) v = vec_set1(1.0f) / v;
            vec_store_f32(scale + i, v);
        }
    for (; i < n; i++) scale[i] = row_scale(var[i], call);
}
/* mean = shift + offset, and in the offset's place what the mean has lost by its rounding (two-sum); a variance that cancelled
 * below 0 is 0, and NaN stays NaN. */
static inline void mean_and_scale(const struct nb_call *call, const struct work *w, int64_t begin, int64_t end) {
    const vec zero = vec_set1(0.0f);
    for (int64_t i = begin; i < end; i += NB_LANES) {
        const int64_t lanes = end - i < NB_LANES ? end - i : NB_LANES;
        const vec var = typed_load_lanes(channel_work(w, W_VAR), i, lanes, false);
        const vec shift = typed_load_lanes(channel_work(w, W_SHIFT), i, lanes, false);
        const vec offset = typed_load_lanes(channel_work(w, W_OFFSET), i, lanes, false);
        const vec mean = shift + offset, back = mean - shift;
        const vec residual = (shift - (mean - back)) + (offset - back);
        typed_store_lanes(channel_work(w, W_VAR), i, vec_select_less(var, zero, zero, var), lanes, false);
        typed_store_lanes(channel_work(w, W_MEAN), i, mean, lanes, false);
        typed_store_lanes(channel_work(w, W_OFFSET), i, residual, lanes, false);
    }
    scales_of(call, channel_work(w, W_VAR) + begin, channel_work(w, W_SCALE) + begin, end - begin);
}
static inline void write_statistics(const struct nb_call *call, const struct work *w, int64_t begin, int64_t end) {
    const float *mean = channel_work(w, W_MEAN), *var = channel_work(w, W_VAR), *scale = channel_work(w, W_SCALE);
    if (call->mean) memcpy(call->mean + begin, mean + begin, (size_t)(end - begin) * sizeof(float));
    if (call->rstd)
        for (int64_t i = begin; i < end; i++) call->rstd[i] = scale_to_rstd(scale[i], &call->formula);
    if (!is_training(call)) return;
    if (wants_running_mean(call))
        for (int64_t i = begin; i < end; i++) call->running_mean_out[i] = running_mean(call, i, mean[i]);
    if (wants_running_var(call))
        for (int64_t i = begin; i < end; i++) call->running_var_out[i] = running_var(call, i, var[i]);
}
/* From scale, gamma, beta and the mean's residual to slope and constant, in their places. */
static inline void lines_of(const struct work *w, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += NB_LANES) {
        const int64_t lanes = end - i < NB_LANES ? end - i : NB_LANES;
        const vec slope = typed_load_lanes(channel_work(w, W_GAMMA), i, lanes, false) *
                          typed_load_lanes(channel_work(w, W_SCALE), i, lanes, false);
        const vec residual = typed_load_lanes(channel_work(w, W_OFFSET), i, lanes, false);
        const vec beta = typed_load_lanes(channel_work(w, W_BETA), i, lanes, false);
        typed_store_lanes(channel_work(w, W_SLOPE), i, slope, lanes, false);
        typed_store_lanes(channel_work(w, W_CONSTANT), i, vec_fma(vec_set1(0.0f) - residual, slope, beta), lanes,
                          false);
    }
}
/* Statistics of channels [begin, end) whose sums are there, all their outputs, and the coefficients by columns. */
static inline void finish_channels(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end) {
    const struct work w = matrix_work(call, m);
    if (is_training(call))
        train_moments(call, m, begin, end);
    else
        running_moments(call, m, begin, end);
    mean_and_scale(call, &w, begin, end);
    write_statistics(call, &w, begin, end);
    store_gamma(call, channel_work(&w, W_GAMMA) + begin, begin, end);
    store_beta(call, channel_work(&w, W_BETA) + begin, begin, end);
    if (is_line(&call->formula)) lines_of(&w, begin, end);
    spread_coefficients(&w, m, N_COEFFICIENTS, begin, end);
}

static __attribute__((noinline)) void line_columns(const struct pages *p, int64_t rows, int64_t cols,
                                                   const struct lines *l) {
    line_matrix(p, rows, cols, l, (struct line_form){.slope = true});
}
static __attribute__((noinline)) void stream_columns(const struct pages *p, int64_t rows, int64_t cols,
                                                     const struct lines *l) {
    line_matrix(p, rows, cols, l, (struct line_form){.slope = true, .stream = true});
}
/* Rows [begin, end) of the columns of channels [first, last), which lie next to each other. */
static inline void write_run(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end,
                             int64_t first, int64_t last) {
    const struct work w = matrix_work(call, m);
    const int64_t col = first * m->group, cols = (last - first) * m->group;
    const struct pages p = matrix_page(call, forward_pages(call), begin, first);
    const float *c[N_COEFFICIENTS];
    for (int k = 0; k < N_COEFFICIENTS; k++) c[k] = column_work(&w, m, k) + col;
    if (is_line(&call->formula)) {
        const struct lines l = {.about = c[W_MEAN], .slope = c[W_SLOPE], .constant = c[W_CONSTANT]};
        if (p.stream)
            stream_columns(&p, end - begin, cols, &l);
        else
            line_columns(&p, end - begin, cols, &l);
        return;
    }
    const struct sweep sweep = {.x = p.x,
                                .y = p.out,
                                .x_stride = p.x_stride,
                                .y_stride = p.out_stride,
                                .n_rows = end - begin,
                                .n_cols = cols,
                                .mean = c[W_MEAN],
                                .scale = c[W_SCALE],
                                .gamma = c[W_GAMMA],
                                .beta = c[W_BETA]};
    sweep_channels(&sweep, &call->formula);
}

#endif
