// SPDX-License-Identifier: Apache-2.0
/* LayerNorm, two-pass with the residual mean (Chan, Golub & LeVeque 1983): the second sweep also sums d = x - mean, whose mean
 * would be 0 if the first were exact. It is taken off the variance, squared, and off every element by itself, since
 * mean + residual is no f32 number. The mean's error then is u sigma instead of h u |mean|: a few ulp of y up to
 * rho = |mean| / sigma of about 1 / (h u), where two-pass has lost log2(h rho) bits. A constant row gives exactly 0. Rows whose sum or
 * squares overflow are summed again in double, which costs them alone. */
#include "kernels/rows/row.h"
#include "kernels/shared/moments.h"

/* Through memory, element by element, since three floats do not fit two registers unpacked. */
struct corrected {
    float mean, residual, scale;
    float unused[2]; /* beyond 16 bytes a struct is returned in memory */
};

static __attribute__((noinline)) struct corrected stats_in_double(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    const struct nb_formula *f = &call->formula;
    const double n = (double)call->cols;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < call->cols; i++) sum += (double)elem_get(x + i);
    const double exact = sum / n;
    for (int64_t i = 0; i < call->cols; i++)
        squares += ((double)elem_get(x + i) - exact) * ((double)elem_get(x + i) - exact);
    double s = __builtin_sqrt(squares / n + (f->eps_place == NB_EPS_INSIDE ? call->eps : 0));
    if (f->eps_place == NB_EPS_OUTSIDE) s += call->eps;
    if (f->eps_place == NB_EPS_CLAMP && s < call->eps) s = call->eps;
    const float mean = (float)exact;
    return (struct corrected){
        .mean = mean, .residual = (float)(exact - (double)mean), .scale = (float)(root_divides(f) ? s : 1 / s)};
}
static __attribute__((noinline)) struct corrected stats(const struct nb_call *call, int64_t row) {
    const elem *x = row_in(call->x, call->x_stride, row);
    const float n = (float)call->cols;
    float mean = sum_elements(x, call->cols) / n;
    struct moments d = moments_about(x, call->cols, mean);
    float residual = d.sum / n;
    float variance = __builtin_fmaf(-residual, d.sum, d.squares) / n;
    if (__builtin_expect(!(variance < __builtin_inff()), 0)) return stats_in_double(call, row);
    return (struct corrected){.mean = mean, .residual = residual, .scale = row_scale(variance, call)};
}

NB_INLINE int corrected_rows(const struct nb_call *call, int64_t begin, int64_t end, row_stats_fn unused,
                             struct row_form f) {
    for (int64_t r = begin; r < end; r++) {
        const elem *x = row_in(call->x, call->x_stride, r);
        const struct corrected c = stats(call, r);
        const struct row_stats s = {.mean = c.mean, .scale = c.scale};
        store_stats(call, r, (struct row_stats){.mean = c.mean + c.residual, .scale = c.scale});
        finish_row(call, plain_source(x), row_out(call->y, call->y_stride, r), s, c.residual, f);
    }
    return 0;
}

static int layernorm_corrected_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return rows_of_form(call, begin, end, NULL,
                        (struct row_form){.centre = true, .correct = true, .affine = NB_AFFINE_GAMMA_BETA},
                        corrected_rows);
}

NB_KERNEL(layernorm_corrected, .summary = "LayerNorm, two-pass, with the residual mean subtracted",
          .op = NB_OP_LAYERNORM, .variance = NB_VAR_CORRECTED, .loads = 3, .stores = 1, .flops = 10,
          .run = layernorm_corrected_run, .chain = moments_chain, .range = corrected_range, ROW_KERNEL);
