// SPDX-License-Identifier: Apache-2.0
/* BatchNorm in inference with statistics and parameters folded into one multiply-add: y = a * x + b, a = gamma * rstd,
 * b = beta - mean * a. One fma an element, but a * x and b cancel where the mean is large beside the standard deviation:
 * error up to 2^-23 * |mean * a| on top of that of y. */
#include "kernels/batchnorm/batchnorm.h"

#define STRIP 1024 /* channels whose a and b are formed at a time in NHWC */

static const char *batchnorm_folded_applicable(const struct nb_call *call) {
    if (is_training(call)) return "folding needs statistics that are known beforehand: inference only";
    return batchnorm_applicable(call);
}

struct line {
    float a, b;
};

static struct line line_of(const struct nb_call *call, int64_t channel, bool first) {
    const float mean = call->running_mean_in[channel], scale = row_scale(call->running_var_in[channel], call);
    if (first && call->mean) call->mean[channel] = mean;
    if (first && call->rstd) call->rstd[channel] = scale_to_rstd(scale, &call->formula);
    const float gamma = gamma_of(call, channel);
    const float a = root_divides(&call->formula) ? gamma / scale : gamma * scale;
    return (struct line){a, __builtin_fmaf(-mean, a, beta_of(call, channel))};
}

static __attribute__((noinline)) void line_row(const elem *x, elem *y, struct line l, int64_t n) {
    const vec a = vec_set1(l.a), b = vec_set1(l.b);
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) vec_store(y + i, vec_fma(vec_load(x + i), a, b));
    if (i < n) vec_store_tail(y + i, vec_fma(vec_load_tail(x + i, n - i), a, b), n - i);
}
static __attribute__((noinline)) void lines_row(const elem *x, elem *y, const float *a, const float *b, int64_t n) {
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES)
        vec_store(y + i, vec_fma(vec_load(x + i), vec_load_f32(a + i), vec_load_f32(b + i)));
    if (i < n) {
        const vec v =
            vec_fma(vec_load_tail(x + i, n - i), vec_load_f32_tail(a + i, n - i), vec_load_f32_tail(b + i, n - i));
        vec_store_tail(y + i, v, n - i);
    }
}

static void fold_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    float a[STRIP], b[STRIP];
    for (int64_t first = 0; first < call->c; first += STRIP) {
        const int64_t n = call->c - first < STRIP ? call->c - first : STRIP;
        for (int64_t i = 0; i < n; i++) {
            const struct line l = line_of(call, first + i, begin == 0);
            a[i] = l.a;
            b[i] = l.b;
        }
        for (int64_t r = begin; r < end; r++)
            lines_row(row_in(call->x, call->x_stride, r) + first, row_out(call->y, call->y_stride, r) + first, a, b, n);
    }
}

static int batchnorm_folded_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (!is_nchw(call)) {
        fold_rows(call, begin, end);
        return 0;
    }
    for (int64_t r = begin; r < end; r++)
        line_row(row_in(call->x, call->x_stride, r), row_out(call->y, call->y_stride, r),
                 line_of(call, r % call->c, r < call->c), call->cols);
    return 0;
}

/* The cast comes after the weight: the weight is in a. */
NB_KERNEL(batchnorm_folded, .summary = "BatchNorm in inference as one multiply-add: cancels when the mean is large",
          .op = NB_OP_BATCHNORM, .flags = NB_FLAG_FOLDED, .range = one_pass_range,
          .formulas = {.roots = NB_ALL(NB_N_ROOTS), .eps_places = NB_ALL(NB_N_EPS_PLACES), NB_EVERY_AFFINE}, .loads = 1,
          .stores = 1, .flops = 2, .run = batchnorm_folded_run, .applicable = batchnorm_folded_applicable,
          .row_local = always_row_local, .chain = no_chain);
