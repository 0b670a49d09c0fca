// SPDX-License-Identifier: Apache-2.0
/* BatchNorm as fast as memory allows: statistics in one pass about the channel's first value, a second pass only where that value
 * was a poor choice, and the output from the cache that the first pass filled. Error of the variance: (1 + rho'^2) (3 h + 8) u,
 * h = chain, rho' at most 4 after the second pass; errors do not grow with the mean of the data. In inference the running
 * statistics, with the same sweep. */
#include "kernels/batchnorm/slab_work.h"

/* From the sums of batchnorm_fast's channels to the coefficients of its last sweep. With d = x - shift, shift the channel's first
 * value, mean = shift + E[d] and var = E[d^2] - E[d]^2, which loses log2(1 + rho'^2) bits, rho' = |E[d]| / sqrt(var). Where
 * rho'^2 is above POOR_SHIFT the sums are taken again about the mean just found. Then y = slope * (x - mean) + constant,
 * slope = gamma * scale, constant = beta - slope * what was rounded off the mean: an offset of all values costs nothing.
 * Formulas that divide, or round before the weight, take the sweep of normalize.h. */
#define POOR_SHIFT                                                                                                     \
    16.0f /* rho'^2: one shift in 16,000 of normal data, and at most 4 bits of what sums of 2 to 3 u have lost */

static inline struct pages forward_pages(const struct nb_call *call) {
    return (struct pages){.x = call->x,
                          .out = call->y,
                          .x_stride = call->x_stride,
                          .out_stride = call->y_stride,
                          .prefetch = prefetches_planes(call, 2),
                          .stream = call_streams(call, 2)};
}

static inline bool is_line(const struct nb_formula *f) {
    if (root_divides(f)) return false;
#ifndef NB_DTYPE_IS_F32
    if (f->cast == NB_CAST_BEFORE && f->affine != NB_AFFINE_NONE) return false;
#endif
    return true;
}

/* ---- planes: one channel ------------------------------------------------------------------------------------------------- */

/* offset: E[d]. */
struct channel_moments {
    double offset, var;
    float shift;
};
static inline struct channel_moments moments_of_totals(const struct nb_call *call, struct slab_totals t, float shift) {
    const double n = (double)values_per_channel(call), offset = t.sum / n;
    const double var = t.product / n - offset * offset;
    return (struct channel_moments){.offset = offset, .var = var, .shift = shift};
}
static inline bool is_poor(const struct channel_moments *m) {
    return m->offset * m->offset > (double)POOR_SHIFT * m->var;
}
static __attribute__((noinline)) struct slab_totals span_moments(const struct pages *p, int64_t plane_step,
                                                                 const struct span *s, float about) {
    return span_totals(p, plane_step, s, about, false);
}
static inline struct slab_totals channel_totals(const struct nb_call *call, const struct pages *p, float about) {
    struct slab_totals sum = {0, 0};
    for (int64_t block = 0; block < plane_blocks(call); block++) {
        const struct span s = plane_block(call, block);
        const struct slab_totals t = span_moments(p, call->c, &s, about);
        sum.sum += t.sum;
        sum.product += t.product;
    }
    return sum;
}
static inline struct channel_moments second_pass(const struct nb_call *call, const struct pages *p,
                                                 struct channel_moments m) {
    if (!is_poor(&m)) return m;
    const float mean = (float)(m.shift + m.offset);
    return moments_of_totals(call, channel_totals(call, p, mean), mean);
}

/* Where the formula is no line, what the sweep of normalize.h takes: mean, scale, beta and gamma. residual: what the mean has lost by its
 * rounding. */
static inline struct line line_of(const struct nb_call *call, int64_t channel, float scale, float mean,
                                  float residual) {
    const float gamma = gamma_of(call, channel), beta = beta_of(call, channel), slope = gamma * scale;
    if (!is_line(&call->formula))
        return (struct line){.about = mean, .slope = scale, .constant = beta, .weight = gamma};
    return (struct line){.about = mean, .slope = slope, .constant = __builtin_fmaf(-residual, slope, beta)};
}
static inline struct line trained_line(const struct nb_call *call, int64_t channel, struct channel_moments m) {
    const double exact_mean = m.shift + m.offset, var = m.var < 0 ? 0 : m.var;
    const float mean = (float)exact_mean, scale = finish_channel(call, channel, mean, (float)var);
    return line_of(call, channel, scale, mean, (float)(exact_mean - mean));
}
static inline struct line running_line(const struct nb_call *call, int64_t channel) {
    const float mean = call->running_mean_in[channel], scale = row_scale(call->running_var_in[channel], call);
    if (call->mean) call->mean[channel] = mean;
    if (call->rstd) call->rstd[channel] = scale_to_rstd(scale, &call->formula);
    return line_of(call, channel, scale, mean, 0.0f);
}

static __attribute__((noinline)) void line_planes(const struct pages *p, int64_t plane_step, const struct span *s,
                                                  const struct plane_lines *l) {
    line_span(p, plane_step, s, l, (struct line_form){.slope = true});
}
/* has_next: a channel follows, whose planes are prefetched meanwhile; then the last plane comes first. */
static __attribute__((noinline)) void stream_planes(const struct pages *p, int64_t plane_step, const struct span *s,
                                                    const struct plane_lines *l, bool has_next) {
    if (has_next)
        line_span(p, plane_step, s, l, (struct line_form){.slope = true, .stream = true, .ahead = true});
    else
        line_span(p, plane_step, s, l, (struct line_form){.slope = true, .stream = true});
}
static __attribute__((noinline)) void sweep_span(const struct nb_call *call, const struct pages *p, int64_t plane_step,
                                                 const struct span *s, const struct plane_lines *l) {
    for (int64_t k = 0, channel = l->first; k < s->n_planes; k++) {
        const int64_t row = (s->plane + k) * plane_step;
        const struct sweep sweep = {.x = p->x + row * p->x_stride + s->begin,
                                    .y = p->out + row * p->out_stride + s->begin,
                                    .n_rows = 1,
                                    .n_cols = s->end - s->begin,
                                    .mean = &l->of[channel].about,
                                    .scale = &l->of[channel].slope,
                                    .gamma = &l->of[channel].weight,
                                    .beta = &l->of[channel].constant};
        sweep_planes(&sweep, &call->formula);
        if (++channel == l->n) channel = 0;
    }
}
static inline void write_span(const struct nb_call *call, const struct pages *p, int64_t plane_step,
                              const struct span *s, const struct plane_lines *l, bool has_next) {
    if (!is_line(&call->formula))
        sweep_span(call, p, plane_step, s, l);
    else if (p->stream)
        stream_planes(p, plane_step, s, l, has_next);
    else
        line_planes(p, plane_step, s, l);
}

/* The steps of batchnorm_fast on a matrix: sums of channels [begin, end) by columns, from them the coefficients of columns, a
 * vector of channels at a time, and the last sweep. */
/* Arrays over channels. The first four are spread over columns: mean, slope and constant of a line, or those of the sweep. */
enum forward_work { W_MEAN, W_SCALE, W_GAMMA, W_BETA, W_SHIFT, W_OFFSET, W_VAR };
enum { W_SLOPE = W_SCALE, W_CONSTANT = W_GAMMA };

static __attribute__((noinline)) void tile_moments(const struct pages *p, int64_t rows, int64_t cols,
                                                   const struct column_arrays *a) {
    sum_tile(p, rows, cols, a, false, NULL);
}
/* First values of channels [begin, end), by columns. */
NB_ONCE void first_values(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end,
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
NB_ONCE void sum_channels(const struct nb_call *call, const struct matrix *m, int64_t block, int64_t begin, int64_t end,
                          const float *shift) {
    const struct work w = matrix_work(call, m);
    float *about = block_work(&w, block, B_ABOUT) + begin * m->group;
    if (shift)
        spread(shift, about, end - begin, m->group);
    else
        first_values(call, m, begin, end, about);
    sum_block_of(call, m, forward_pages(call), block, begin, end, about, NULL, tile_moments);
}

/* Offset and variance of the lanes from channel i on, from the sums in their places. Returns how many have a poor shift. */
NB_ONCE float moments_of_lanes(const struct nb_call *call, const struct work *w, int64_t i, int64_t lanes,
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
NB_ONCE void gather_sums(const struct work *w, const struct matrix *m, int64_t begin, int64_t end) {
    gather_channels(w, m, B_SUM, begin, end, channel_work(w, W_OFFSET) + begin);
    gather_channels(w, m, B_PRODUCT, begin, end, channel_work(w, W_VAR) + begin);
}
/* Channels with a poor shift about their mean; the other lanes come out as they were. */
static __attribute__((noinline)) void sum_again(const struct nb_call *call, const struct matrix *m, int64_t i,
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
        if (moments_of_lanes(call, &w, i, lanes, poor) != 0.0f) sum_again(call, m, i, lanes, poor);
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
NB_ONCE void scales_of(const struct nb_call *call, const float *var, float *scale, int64_t n) {
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
NB_ONCE void write_statistics(const struct nb_call *call, const struct work *w, int64_t begin, int64_t end) {
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
NB_ONCE void lines_of(const struct work *w, int64_t begin, int64_t end) {
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
NB_ONCE void finish_channels(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end) {
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

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

static void slab_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    const struct pages all = forward_pages(call);
    for (int64_t channel = begin; channel < end; channel++) {
        const struct pages p = page_at(all, channel, 0);
        const float shift = elem_get(p.x);
        struct channel_moments m = moments_of_totals(call, channel_totals(call, &p, shift), shift);
        m = second_pass(call, &p, m);
        const struct line line = trained_line(call, channel, m);
        write_span(call, &p, call->c, &(struct span){0, call->n, 0, call->hw}, &(struct plane_lines){&line, 1, 0},
                   channel + 1 < end);
    }
}
static void sum_plane_blocks(const struct nb_call *call, int64_t begin, int64_t end) {
    struct slab_totals *totals = block_totals(call);
    for (int64_t unit = begin; unit < end; unit++) {
        const struct pages p = page_at(forward_pages(call), unit / plane_blocks(call), 0);
        const struct span s = plane_block(call, unit % plane_blocks(call));
        totals[unit] = span_moments(&p, call->c, &s, elem_get(p.x));
    }
}
static struct line combined_line(const struct nb_call *call, int64_t channel) {
    const struct pages p = page_at(forward_pages(call), channel, 0);
    const struct slab_totals *t = block_totals(call) + channel * plane_blocks(call);
    struct slab_totals sum = {0, 0};
    for (int64_t block = 0; block < plane_blocks(call); block++) {
        sum.sum += t[block].sum;
        sum.product += t[block].product;
    }
    return trained_line(call, channel, second_pass(call, &p, moments_of_totals(call, sum, elem_get(p.x))));
}
static void finish_plane_channels(const struct nb_call *call, int64_t begin, int64_t end) {
    struct line *lines = call->scratch;
    for (int64_t channel = begin; channel < end; channel++)
        lines[channel] = is_training(call) ? combined_line(call, channel) : running_line(call, channel);
}
static void write_planes(const struct nb_call *call, int64_t begin, int64_t end) {
    const struct pages p = forward_pages(call);
    for (int64_t unit = begin, step = plane_parts(call) > 1 ? 1 : end - begin; unit < end; unit += step) {
        const struct span s = output_span(call, unit, end);
        write_span(call, &p, 1, &s, &(struct plane_lines){call->scratch, call->c, s.plane % call->c}, false);
    }
}
static void run_planes(const struct nb_call *call, enum slab_step step, int64_t begin, int64_t end) {
    if (step == STEP_SLABS) slab_planes(call, begin, end);
    if (step == STEP_SUMS) sum_plane_blocks(call, begin, end);
    if (step == STEP_CHANNELS) finish_plane_channels(call, begin, end);
    if (step == STEP_OUTPUT) write_planes(call, begin, end);
}

/* ---- matrix -------------------------------------------------------------------------------------------------------------- */

static void write_columns(const struct nb_call *call, const struct matrix *m, int64_t begin, int64_t end, int64_t first,
                          int64_t last) {
    const struct pages p = forward_pages(call);
    each_run(call, m, &p, begin, end, first, last, write_run);
}
static void slab_strip(const struct nb_call *call, const struct matrix *m, int64_t first, int64_t last) {
    sum_channels(call, m, 0, first, last, NULL);
    finish_channels(call, m, first, last);
    write_columns(call, m, 0, m->rows, first, last);
}
static void run_matrix(const struct nb_call *call, enum slab_step step, int64_t begin, int64_t end) {
    const struct matrix m = matrix_of(call);
    if (step == STEP_SLABS) each_strip(call, &m, begin, end, slab_strip);
    if (step == STEP_SUMS)
        for (int64_t block = begin; block < end; block++) sum_channels(call, &m, block, 0, call->c, NULL);
    if (step == STEP_CHANNELS) finish_channels(call, &m, begin, end);
    if (step == STEP_OUTPUT) write_columns(call, &m, begin, end, 0, call->c);
}

/* ---- contract ------------------------------------------------------------------------------------------------------------ */

static int batchnorm_fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const enum slab_step step = slab_step(call, is_training(call), phase);
    if (begin >= end) return 0;
    if (is_matrix(call))
        run_matrix(call, step, begin, end);
    else
        run_planes(call, step, begin, end);
    if (call_streams(call, 2)) raw_stream_end();
    return 0;
}
static int batchnorm_fast_n_phases(const struct nb_call *call) { return slab_phases(call, is_training(call)); }
static int64_t batchnorm_fast_n_units(const struct nb_call *call, int phase) {
    return slab_units(call, slab_step(call, is_training(call), phase));
}
static size_t batchnorm_fast_scratch_bytes(const struct nb_call *call) { return slab_scratch(call, is_training(call)); }
static int64_t batchnorm_fast_chain(const struct nb_call *call) { return is_training(call) ? slab_chain(call) : 0; }

/* In training by slabs; inference takes 3 flops. */
NB_KERNEL(batchnorm_fast, .summary = "BatchNorm, one pass about the first value, output from the cache",
          .op = NB_OP_BATCHNORM, .flags = NB_FLAG_STREAMS_BEYOND, .variance = NB_VAR_SHIFTED,
          .formulas = {NB_EVERY_FORMULA}, .loads = 1, .stores = 1, .flops = 7, .run = batchnorm_fast_run,
          .applicable = batchnorm_applicable, .chain = batchnorm_fast_chain,
          .scratch_bytes = batchnorm_fast_scratch_bytes, .n_phases = batchnorm_fast_n_phases,
          .n_units = batchnorm_fast_n_units, .range = corrected_range);
