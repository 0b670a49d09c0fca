// SPDX-License-Identifier: Apache-2.0
/* From the sums of batchnorm_fast's channels to the coefficients of its last sweep. With d = x - shift, shift the channel's first
 * value, mean = shift + E[d] and var = E[d^2] - E[d]^2, which loses log2(1 + rho'^2) bits, rho' = |E[d]| / sqrt(var). Where
 * rho'^2 is above POOR_SHIFT the sums are taken again about the mean just found. Then y = slope * (x - mean) + constant,
 * slope = gamma * scale, constant = beta - slope * what was rounded off the mean: an offset of all values costs nothing.
 * Formulas that divide, or round before the weight, take the sweep of normalize.h. */
#ifndef NB_BATCHNORM_FAST_H
#define NB_BATCHNORM_FAST_H

#include "kernels/batchnorm/slab_lines.h"
#include "kernels/batchnorm/slab_work.h"

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
/* What the last sweep of a channel needs, whatever the formula. */
struct channel_form {
    struct line line;
    float mean, scale, gamma, beta;
};

static inline struct channel_moments moments_of_totals(const struct nb_call *call, struct totals t, float shift) {
    const double n = (double)values_per_channel(call), offset = t.sum / n;
    const double var = t.product / n - offset * offset;
    return (struct channel_moments){.offset = offset, .var = var, .shift = shift};
}
static inline bool is_poor(const struct channel_moments *m) {
    return m->offset * m->offset > (double)POOR_SHIFT * m->var;
}
static __attribute__((noinline)) struct totals span_moments(const struct pages *p, int64_t plane_step, struct span s,
                                                            float about) {
    return span_totals(p, plane_step, s, about, false);
}
static inline struct totals channel_totals(const struct nb_call *call, const struct pages *p, float about) {
    struct totals sum = {0, 0};
    for (int64_t block = 0; block < plane_blocks(call); block++) {
        const struct totals t = span_moments(p, call->c, plane_block(call, block), about);
        sum.sum += t.sum;
        sum.product += t.product;
    }
    return sum;
}
static inline struct channel_moments second_look(const struct nb_call *call, const struct pages *p,
                                                 struct channel_moments m) {
    if (!is_poor(&m)) return m;
    const float mean = (float)(m.shift + m.offset);
    return moments_of_totals(call, channel_totals(call, p, mean), mean);
}

/* residual: what the mean has lost by its rounding. */
static inline struct channel_form form_of(const struct nb_call *call, int64_t channel, float scale, float mean,
                                          float residual) {
    struct channel_form f = {.mean = mean, .scale = scale};
    f.gamma = gamma_of(call, channel);
    f.beta = beta_of(call, channel);
    const float slope = f.gamma * scale;
    f.line = (struct line){.about = mean, .slope = slope, .constant = __builtin_fmaf(-residual, slope, f.beta)};
    return f;
}
static inline struct channel_form trained_form(const struct nb_call *call, int64_t channel, struct channel_moments m) {
    const double exact_mean = m.shift + m.offset, var = m.var < 0 ? 0 : m.var;
    const float mean = (float)exact_mean, scale = finish_channel(call, channel, mean, (float)var);
    return form_of(call, channel, scale, mean, (float)(exact_mean - mean));
}
static inline struct channel_form running_form(const struct nb_call *call, int64_t channel) {
    const float mean = call->running_mean_in[channel], scale = row_scale(call->running_var_in[channel], call);
    if (call->mean) call->mean[channel] = mean;
    if (call->rstd) call->rstd[channel] = scale_to_rstd(scale, &call->formula);
    return form_of(call, channel, scale, mean, 0.0f);
}

static __attribute__((noinline)) void line_planes(const struct pages *p, int64_t plane_step, struct span s,
                                                  struct line l) {
    line_span(p, plane_step, s, l, (struct line_form){.slope = true});
}
static __attribute__((noinline)) void stream_planes(const struct pages *p, int64_t plane_step, struct span s,
                                                    struct line l) {
    line_span(p, plane_step, s, l, (struct line_form){.slope = true, .stream = true});
}
static inline void write_span(const struct nb_call *call, const struct pages *p, struct span s,
                              const struct channel_form *f) {
    if (is_line(&call->formula)) {
        if (p->stream)
            stream_planes(p, call->c, s, f->line);
        else
            line_planes(p, call->c, s, f->line);
        return;
    }
    const int64_t row = s.plane * call->c;
    const struct sweep sweep = {.x = p->x + row * p->x_stride + s.begin,
                                .y = p->out + row * p->out_stride + s.begin,
                                .x_stride = p->x_stride * call->c,
                                .y_stride = p->out_stride * call->c,
                                .n_rows = s.n_planes,
                                .n_cols = s.end - s.begin,
                                .mean = &f->mean,
                                .scale = &f->scale,
                                .gamma = &f->gamma,
                                .beta = &f->beta};
    sweep_planes(&sweep, &call->formula);
}

#endif
