// SPDX-License-Identifier: Apache-2.0
/* Norms with one mistake each, and correct ones that compute in other ways. mistakes.h says which kernel has which: a mistake is a
 * small deviation from one plain implementation, by its name, so that whoever reads a report knows what was missed. */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "kernel.h"
#include "mistakes.h"

/* ---- what may be done wrong, and what may be done otherwise ---------------------------------------------------------- */

#define NAMED(way, ...) way,
enum way { WAYS(NAMED) N_WAYS };

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

static const struct format {
    int precision, emin;
    double max;
} formats[] = {[NB_F32] = {24, -126, 0x1.fffffep127}, [NB_F16] = {11, -14, 65504}, [NB_BF16] = {8, -126, 0x1.fep127}};

/* How a number becomes whole: rint() to the nearest; or */
typedef double (*rounding_fn)(double v);
static double half_up(double v) { return floor(v + 0.5); }
static double by_its_bits(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return floor(v + (double)(bits * 0x9e3779b97f4a7c15u >> 11) * 0x1p-53);
}

static double to_precision(double v, int precision, int emin, rounding_fn whole) {
    int exponent;
    if (v == 0 || !isfinite(v)) return v;
    frexp(v, &exponent);
    const int step = (exponent - 1 > emin ? exponent - 1 : emin) - precision + 1;
    return ldexp(whole(ldexp(v, -step)), step);
}
static double to_format(double v, uint32_t dtype, rounding_fn whole) {
    const struct format *f = &formats[dtype];
    const double r = to_precision(v, f->precision, f->emin, whole);
    return fabs(r) > f->max ? copysign(whole == trunc ? f->max : INFINITY, r) : r;
}
static float narrow(float v, uint32_t dtype) { return (float)to_format(v, dtype, rint); }

static float f16_to_float(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * ldexpf((float)(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
}
/* v is a number of the format. */
static uint16_t float_to_f16(float v) {
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    int exponent;
    if (isnan(v)) return 0x7e00;
    if (isinf(v)) return sign | 0x7c00;
    if (fabsf(v) < 0x1p-14f) return sign | (uint16_t)(fabsf(v) * 0x1p24f);
    const float fraction = frexpf(fabsf(v), &exponent);
    return sign | (uint16_t)((exponent + 14) * 1024 + (int)(fraction * 2048) - 1024);
}
static float get(const void *array, int64_t i, uint32_t dtype) {
    if (dtype == NB_F32) return ((const float *)array)[i];
    const uint16_t bits = ((const uint16_t *)array)[i];
    if (dtype == NB_F16) return f16_to_float(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return v;
}
static void set(void *array, int64_t i, uint32_t dtype, float v) {
    uint32_t wide;
    memcpy(&wide, &v, sizeof wide);
    if (dtype == NB_F32)
        ((float *)array)[i] = v;
    else
        ((uint16_t *)array)[i] = dtype == NB_F16 ? float_to_f16(v) : (uint16_t)(wide >> 16 | (isnan(v) ? 64 : 0));
}

/* The result, exact enough in double, as it is stored. */
static void store(void *array, int64_t i, uint32_t dtype, double v, enum way way) {
    static const rounding_fn roundings[N_WAYS] = {[truncates] = trunc, [floors] = floor,    [rounds_up] = ceil,
                                                  [ties_away] = round, [ties_up] = half_up, [dithers] = by_its_bits};
    const double min_normal = ldexp(1, formats[dtype].emin);
    if (way == rounds_twice) v = to_precision(v, formats[dtype].precision + 2, formats[dtype].emin, rint);
    if (way == through_f16) v = to_format(v, NB_F16, rint);
    if (way == clips_f16) v = fmin(fmax(v, -65504), 65504);
    v = to_format(v, dtype, roundings[way] ? roundings[way] : rint);
    if ((way == flushes_output || way == daz_ftz) && fabs(v) < min_normal) v = 0;
    if (way == nan_to_zero && isnan(v)) v = 0;
    if (way == inf_to_max && isinf(v)) v = copysign(formats[dtype].max, v);
    if (way == zero_sign && v == 0) v = 0;
    set(array, i, dtype, (float)v);
}

/* Is more than the last rounding of the result wrong, or is that all there is? Then the result is computed in double. */
static bool is_rounding(enum way way) { return way >= truncates && way <= dithers; }

/* ---- what a kernel computes ------------------------------------------------------------------------------------------ */

struct base {
    const char *name;
    uint32_t op, pass, dtype;
};

/* A call, a kernel, one row. */
struct at {
    const struct nb_call *call;
    const struct base *base;
    enum way way;
    int64_t row, n; /* n: that the statistics see */
};

static bool centres(const struct at *a) { return a->base->op == NB_OP_LAYERNORM || a->base->op == NB_OP_ADD_LAYERNORM; }
static bool adds(const struct at *a) { return a->base->op == NB_OP_ADD_RMSNORM || a->base->op == NB_OP_ADD_LAYERNORM; }

static float x_of(const struct at *a, int64_t i, bool for_statistics) {
    const struct nb_call *c = a->call;
    const int64_t stride = a->way == stride_ignored ? c->cols : c->x_stride;
    float x = get(c->x, (a->way == row_16_bit ? a->row & INT16_MAX : a->row) * stride + i, a->base->dtype);
    if (a->way == x_clipped) x = fminf(fmaxf(x, -1e4f), 1e4f);
    if (a->way == nan_skipped && for_statistics && isnan(x)) x = 0;
    if ((a->way == flushes_input || a->way == daz_ftz) && fabsf(x) < ldexpf(1, formats[a->base->dtype].emin)) x = 0;
    if (!adds(a) || a->base->pass == NB_BACKWARD || (a->way == residual_not_in_statistics && for_statistics)) return x;
    const int64_t residual_stride = a->way == residual_stride_of_x ? c->x_stride : c->residual_stride;
    const int64_t residual_row = a->way == residual_of_first_row ? 0 : a->row;
    const float residual = get(c->residual, residual_row * residual_stride + i, a->base->dtype);
    const float sum = a->way == residual_subtracted ? x - residual : x + residual;
    const bool rounds = (c->formula.round_sum != 0) != (a->way == residual_sum_bf16 && for_statistics);
    return rounds ? narrow(sum, a->base->dtype == NB_F32 ? NB_BF16 : a->base->dtype) : sum;
}

static float parameter(const struct at *a, const void *array, int64_t i) {
    return get(array, i, a->call->formula.param == NB_PARAM_X ? a->base->dtype : NB_F32);
}

static uint32_t coarse(const struct at *a) { return a->base->dtype == NB_F32 ? NB_BF16 : a->base->dtype; }

static float weight(const struct at *a, int64_t i) {
    const int64_t n = a->call->cols;
    const bool swaps = a->way == gamma_beta_swapped && a->call->beta;
    bool offset = a->call->formula.weight_offset != 0;
    if (!a->call->gamma || a->way == gamma_forgotten || a->way == no_weight) return 1;
    if (a->way == gamma_tail_forgotten && i >= n / 8 * 8) return 1;
    if (a->way == gamma_next) i = (i + 1) % n;
    if (a->way == gamma_first || (a->way == gamma_last_wrong && i == n - 1)) i = 0;
    float w = parameter(a, swaps ? a->call->beta : a->call->gamma, i);
    if (a->way == gamma_narrow) w = narrow(w, coarse(a));
    if (a->way == offset_forgotten) offset = false;
    if (a->way == offset_always) offset = true;
    if (offset) w = a->way == offset_narrow ? narrow(1 + w, coarse(a)) : 1 + w;
    if (a->way == gamma_abs) w = fabsf(w);
    return a->way == gamma_twice ? w * w : w;
}

/* ---- sums ------------------------------------------------------------------------------------------------------------ */

struct term {
    const struct at *at;
    float about;
    bool squares;
    float scale;
};

static float term_of(const struct term *t, int64_t i) {
    if (t->at->way == k_last) i += t->at->call->cols - t->at->n;
    const float d = (x_of(t->at, i, true) - t->about) * t->scale;
    if (!t->squares) return d;
    if (t->at->way == squares_narrow) return narrow(d * d, coarse(t->at));
    if (t->at->way == squares_f16) return narrow(d * d, NB_F16);
    return d * d;
}

static float sum_pairwise(const struct term *t, int64_t from, int64_t to) {
    if (to - from > 8) return sum_pairwise(t, from, (from + to) / 2) + sum_pairwise(t, (from + to) / 2, to);
    float sum = 0;
    for (int64_t i = from; i < to; i++) sum += term_of(t, i);
    return sum;
}
static float sum_kahan(const struct term *t, int64_t n) {
    volatile float sum = 0, lost = 0;
    for (int64_t i = 0; i < n; i++) {
        const volatile float addend = term_of(t, i) - lost, next = sum + addend;
        lost = (next - sum) - addend;
        sum = next;
    }
    return sum;
}
static _Thread_local float left_over; /* lane_not_reset: what the row before left in a lane */
static float sum_lanes(const struct term *t, int64_t n, int n_lanes) {
    const enum way way = t->at->way;
    float lane[64] = {0}, sum = 0;
    if (way == lane_not_reset) lane[7] = left_over;
    for (int64_t i = 0; i < n; i++)
        if (way != sum_loses_lane || i % n_lanes < n_lanes - 1) lane[i % n_lanes] += term_of(t, i);
    left_over = lane[7];
    for (int l = 0; l < n_lanes; l++)
        sum = way == lanes_added_narrow ? narrow(sum + lane[l], coarse(t->at)) : sum + lane[l];
    return sum;
}
static double sum_double(const struct term *t, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = ((double)x_of(t->at, i, true) - t->about) * t->scale;
        sum += t->squares ? d * d : d;
    }
    return sum;
}
static float sum_blocks(const struct term *t, int64_t n) {
    float total = 0;
    for (int64_t from = 0; from < n; from += 64) {
        float sum = 0;
        for (int64_t i = from; i < n && i < from + 64; i++) sum += term_of(t, i);
        total += sum;
    }
    return total;
}

static float sum_of(const struct term *t) {
    const enum way way = t->at->way;
    int64_t n = t->at->n;
    float sum = 0;
    switch (way) {
    case lanes_8:
    case sum_loses_lane:
    case lane_not_reset:
    case lanes_added_narrow:
        return sum_lanes(t, n, 8);
    case lanes_64:
        return sum_lanes(t, n, 64);
    case pairwise:
        return sum_pairwise(t, 0, n);
    case kahan:
        return sum_kahan(t, n);
    case in_double:
        return (float)sum_double(t, n);
    case blocks_of_64:
        return sum_blocks(t, n);
    case backwards:
        for (int64_t i = n - 1; i >= 0; i--) sum += term_of(t, i);
        return sum;
    default:
        break;
    }
    if (way == lanes_from_256_rows && t->at->call->rows >= 256) return sum_lanes(t, n, 8);
    if (way == sum_drops_last || (way == mean_drops_last && !t->squares)) n--;
    if (way == sum_drops_tail && n >= 8) n = n / 8 * 8;
    if (way == sum_stops_at_1024 && n > 1024) n = 1024;
    if (way == sum_first_twice) sum = term_of(t, 0);
    if (way == index_16_bit && n > INT16_MAX) n = INT16_MAX;
    if (way == tail_twice && n > 8)
        for (int64_t i = n - 8; i < n / 8 * 8; i++) sum += term_of(t, i);
    if (way == padding_in_variance && t->squares) sum = (float)(-n & 7) * t->about * t->about;
    const bool narrows = way == sum_f16 || (way == mean_sum_f16 && !t->squares);
    for (int64_t i = 0; i < n; i++) {
        sum += term_of(t, i);
        if (way == sum_bf16) sum = narrow(sum, NB_BF16);
        if (narrows) sum = narrow(sum, NB_F16);
    }
    return sum;
}

/* ---- statistics ------------------------------------------------------------------------------------------------------ */

struct statistics {
    float mean, variance, rstd;
};

static float divisor(const struct at *a) {
    const float n = (float)a->n;
    if (a->way == n_minus_1) return n - 1;
    if (a->way == n_plus_1) return n + 1;
    if (a->way == unbiased_when_long) return a->n >= 1024 ? n - 1 : n;
    if (a->way == n_padded) return (float)((a->n + 7) / 8 * 8);
    if (a->way == n_rows) return (float)a->call->rows;
    if (a->way == k_divides_by_n) return (float)a->call->cols;
    return n;
}

static float estimate(float v) {
#if defined(__x86_64__)
    return _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(v)));
#else
    return (float)to_precision(1 / sqrtf(v), 12, -126, trunc);
#endif
}
static float newton(float v, float r) { return r * (1.5f - 0.5f * v * r * r); }
static float magic(float v) {
    uint32_t bits;
    float r;
    memcpy(&bits, &v, sizeof bits);
    bits = 0x5f3759df - (bits >> 1);
    memcpy(&r, &bits, sizeof r);
    return newton(v, newton(v, r));
}

static float eps_of(const struct at *a) {
    const double eps = a->call->eps;
    const double n = (double)a->n;
    if (a->way == eps_times_n) return (float)(eps * n);
    if (a->way == eps_over_n) return (float)(eps / n);
    if (a->way == eps_forgotten || a->way == eps_outside || a->way == eps_clamp || a->way == eps_on_rstd ||
        a->way == own_rstd_without_eps)
        return 0;
    if (a->way == eps_twice) return (float)(2 * eps);
    if (a->way == eps_fixed_1e5) return 1e-5f;
    if (a->way == eps_fixed_1e8) return 1e-8f;
    if (a->way == eps_at_least) return fmaxf((float)eps, 0x1p-23f);
    if (a->way == eps_squared) return (float)(eps * eps);
    if (a->way == eps_root) return (float)sqrt(eps);
    if (a->way == eps_bf16) return narrow((float)eps, NB_BF16);
    if (a->way == eps_f16) return narrow((float)eps, NB_F16);
    if (a->way == eps_minus) return (float)-eps;
    return (float)eps;
}

static float root_of(const struct at *a, float variance) {
    const float eps = (float)a->call->eps, v = variance + eps_of(a);
    if (a->way == eps_outside || a->way == eps_both) return 1 / (sqrtf(v) + eps);
    if (a->way == eps_clamp) return 1 / sqrtf(fmaxf(v, eps));
    if (a->way == eps_on_rstd) return 1 / sqrtf(v) + eps;
    if (a->way == variance_at_most) return 1 / sqrtf(fminf(v, 1e30f));
    if (a->way == rstd_at_most) return fminf(1 / sqrtf(v), 1e4f);
    if (a->way == rstd_by_exp_log) return expf(-0.5f * logf(v));
    if (a->way == root_estimate) return estimate(v);
    if (a->way == root_newton || a->way == rsqrt_declared) return newton(v, estimate(v));
    if (a->way == root_magic) return magic(v);
    if (a->way == rstd_ulp_up) return nextafterf(1 / sqrtf(v), INFINITY);
    if (a->way == rstd_ulp_down) return nextafterf(1 / sqrtf(v), 0);
    if (a->way == rstd_bf16) return narrow(1 / sqrtf(v), NB_BF16);
    if (a->way == rstd_truncated) return (float)to_precision(1 / sqrtf(v), 20, -126, trunc);
    if (a->way == rstd_from_double || a->way == in_double) return (float)(1 / sqrt((double)variance + a->call->eps));
    return 1 / sqrtf(v);
}

static float clamped(float v) { return v < 0 ? 0 : v; }

/* About a mean that is given; L2 does not divide. */
static float variance_about(const struct at *a, float mean) {
    if (a->way == l2_centred) mean = sum_of(&(struct term){a, 0, false, 1}) / (float)a->n;
    const bool divides_sum = a->base->op != NB_OP_L2NORM || a->way == l2_mean;
    struct term t = {a, mean, true, 1};
    if (a->way == scaled) {
        float largest = 0;
        for (int64_t i = 0; i < a->n; i++) largest = fmaxf(largest, fabsf(x_of(a, i, true) - mean));
        if (!(largest > 0x1p-100f && largest < 0x1p100f)) largest = 1;
        t.scale = exp2f(-floorf(log2f(largest)));
    }
    const float sum = sum_of(&t) / t.scale / t.scale;
    return divides_sum ? sum / divisor(a) : sum;
}

static struct statistics centred(const struct at *a) {
    const float n = (float)a->n;
    const struct term t = {a, 0, false, 1};
    struct statistics s = {.mean = sum_of(&t) / (a->way == mean_n_minus_1 ? n - 1
                                                 : a->way == mean_padded  ? (float)((a->n + 7) / 8 * 8)
                                                 : a->way == n_minus_1 || a->way == unbiased_when_long ? n
                                                                                                       : divisor(a))};
    if (a->way == welford) {
        s = (struct statistics){0};
        for (int64_t i = 0; i < a->n; i++) {
            const float x = x_of(a, i, true), d = x - s.mean;
            s.mean += d / (float)(i + 1);
            s.variance += d * (x - s.mean);
        }
        s.variance /= n;
        return s;
    }
    if (a->way == mean_narrow) s.mean = narrow(s.mean, coarse(a));
    if (a->way == mean_of_previous_row && a->row > 0) {
        const struct at before = {a->call, a->base, correct, a->row - 1, a->n};
        s.mean = centred(&before).mean;
    }
    s.variance = variance_about(a, a->way == mean_not_in_variance ? 0 : s.mean);
    if (a->way == one_pass || a->way == one_pass_unclamped) {
        const float v = variance_about(a, 0) - s.mean * s.mean;
        s.variance = a->way == one_pass ? clamped(v) : v;
    }
    if (a->way == variance_about_last) {
        const float last = x_of(a, a->n - 1, true);
        const float off = sum_of(&(struct term){a, last, false, 1}) / n;
        s = (struct statistics){.mean = last + off,
                                .variance = sum_of(&(struct term){a, last, true, 1}) / n - off * off};
    }
    if (a->way == variance_about_first) s.variance = variance_about(a, x_of(a, 0, true));
    if (a->way == one_pass_double) {
        const struct term squares = {a, 0, true, 1};
        const double mean = sum_double(&t, a->n) / n, v = sum_double(&squares, a->n) / n - mean * mean;
        s = (struct statistics){.mean = (float)mean, .variance = clamped((float)v)};
    }
    if (a->way == corrected) {
        const struct term left = {a, s.mean, false, 1};
        const float off = sum_of(&left) / n;
        s.variance = clamped(s.variance - off * off);
    }
    return s;
}

static struct statistics statistics_of(struct at a) {
    if (a.way == row_of_before && a.row > 0) a.row--;
    if (a.way == row_first_statistics) a.row = 0;
    struct statistics s = {0};
    if (centres(&a))
        s = centred(&a);
    else
        s.variance = variance_about(&a, 0);
    s.rstd = root_of(&a, s.variance);
    return s;
}

static void put_statistics(const struct at *a, const struct statistics *s) {
    float rstd = s->rstd;
    if (a->way == rstd_is_variance) rstd = s->variance;
    if (a->way == rstd_without_eps) rstd = 1 / sqrtf(s->variance);
    if (a->way == rstd_out_bf16) rstd = narrow(rstd, NB_BF16);
    if (a->call->rstd) a->call->rstd[a->row] = rstd;
    if (a->call->mean && centres(a)) a->call->mean[a->row] = a->way == mean_out_zero ? 0 : s->mean;
}

/* ---- forward --------------------------------------------------------------------------------------------------------- */

static float beta_of(const struct at *a, int64_t i) {
    if (!a->call->beta || a->way == beta_forgotten) return 0;
    const void *from = a->way == gamma_beta_swapped && a->call->gamma ? a->call->gamma : a->call->beta;
    float beta = parameter(a, from, a->way == beta_next ? (i + 1) % a->call->cols : i);
    if (a->way == beta_narrow) beta = narrow(beta, coarse(a));
    return a->way == beta_subtracted ? -beta : beta;
}

static double element(const struct at *a, const struct statistics *s, int64_t i) {
    const float x = x_of(a, i, false), w = weight(a, i), beta = beta_of(a, i);
    const float mean = a->way == mean_kept ? 0 : s->mean;
    const uint32_t dtype = a->base->dtype;
    if (is_rounding(a->way)) return ((double)x - mean) * s->rstd * w + beta;
    if (a->way == divides) return (x - mean) / sqrtf(s->variance + eps_of(a)) * w + beta;
    if (a->way == rstd_times_gamma) return (x - mean) * (s->rstd * w) + beta;
    if (a->way == folded) {
        const float scale = s->rstd * w;
        return x * scale + (beta - mean * scale);
    }
    const float xhat = (x - mean) * s->rstd;
    if (a->way == truncates_before) return to_format(to_format(xhat, dtype, trunc) * w + beta, dtype, trunc);
    if (a->way == gamma_cast_before) return narrow(xhat, dtype) * w + beta;
    if (a->way == beta_before_gamma) return (xhat + beta) * w;
    if (a->way == beta_after_cast) return narrow(xhat * w, dtype) + beta;
    return a->call->beta ? xhat * w + beta : xhat * w;
}

static void put_residual(const struct at *a) {
    const struct nb_call *c = a->call;
    if (!adds(a) || !c->residual_out) return;
    for (int64_t i = 0; i < c->cols; i++) {
        const double sum =
            a->way == residual_out_is_x ? get(c->x, a->row * c->x_stride + i, a->base->dtype) : x_of(a, i, false);
        store(c->residual_out, a->row * c->residual_out_stride + i, a->base->dtype, sum,
              a->way == residual_out_truncated ? truncates : correct);
    }
}

/* An ulp more: in the second row, in a call of one row, in what begins a range, in every other call, in rows beyond 8, as a table of ranges
 * would give; or one less, by the number of the call. */
static double disturbed(const struct at *a, const struct statistics *s, int64_t begin, int turn, int64_t i, double y) {
    const bool more = (a->way == by_place && a->row == 1) || (a->way == by_batch && a->call->rows == 1) ||
                      (a->way == by_range && a->row == begin && begin > 0) ||
                      (a->way == by_turn && a->row == begin && turn % 2 == 0) ||
                      (a->way == by_size && s->variance > 64);
    const bool less = a->way == last_bit_by_turn && (uint64_t)(i + turn) * 0x9e3779b97f4a7c15u >> 63;
    return more ? nextafterf((float)y, copysignf(INFINITY, (float)y)) : less ? nextafterf((float)y, 0) : y;
}

static int rows_forward(const struct nb_call *c, const struct base *base, enum way way, int64_t begin, int64_t end) {
    static int turn;
    turn++;
    const int64_t cols = way == index_16_bit && c->cols > INT16_MAX ? INT16_MAX : c->cols;
    left_over = 0;
    if (way == range_last_lost && begin > 0 && end - begin > 1) end--;
    if (way == range_starts_late && begin > 0) begin++;
    for (int64_t row = begin; row < end; row++) {
        struct at a = {c, base, way, row, c->cols};
        if (base->op == NB_OP_PRMSNORM && way != k_ignored) a.n = c->k;
        if (way == k_multiple_of_8 && a.n > 8) a.n = a.n / 8 * 8;
        if (way == k_plus_1 && a.n < c->cols) a.n++;
        if (way == row_last_if_odd && row == c->rows - 1 && c->rows % 2) continue;
        const struct statistics s = statistics_of(a);
        put_statistics(&a, &s);
        put_residual(&a);
        for (int64_t i = 0; i < cols; i++) {
            double y = disturbed(&a, &s, begin, turn, i, element(&a, &s, i));
            if (way == column_last_if_odd && i == c->cols - 1 && c->cols % 2) y = x_of(&a, i, false);
            store(c->y, row * (way == y_stride_of_x ? c->x_stride : c->y_stride) + i, base->dtype, y, way);
        }
    }
    return 0;
}

/* Subnormal numbers are 0, by the CPU. */
static int rows_flushed(const struct nb_call *c, const struct base *base, enum way way, int64_t begin, int64_t end) {
#if defined(__x86_64__)
    const unsigned state = _mm_getcsr();
    _mm_setcsr(state | 0x8040); /* FTZ, DAZ */
#elif defined(__aarch64__)
    unsigned long state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    __asm__ volatile("msr fpcr, %0" : : "r"(state | 1ul << 24)); /* FZ */
#endif
    rows_forward(c, base, way, begin, end);
#if defined(__x86_64__)
    _mm_setcsr(state);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
#endif
    return 0;
}

/* ---- backward of rows ------------------------------------------------------------------------------------------------ */

static double dy_of(const struct at *a, int64_t i) {
    const int64_t stride = a->way == dy_stride_of_x ? a->call->x_stride : a->call->dy_stride;
    const float dy = get(a->call->dy, a->row * stride + i, a->base->dtype);
    return a->way == dy_nan_skipped && isnan(dy) ? 0 : dy;
}
static double g_of(const struct at *a, int64_t i) {
    const double g = dy_of(a, i) * weight(a, i);
    return a->way == g_narrow ? narrow((float)g, coarse(a)) : g;
}
static double mean_in(const struct at *a) { return centres(a) ? a->call->mean[a->row] : 0; }
static double xhat_of(const struct at *a, int64_t i) {
    const float rstd = a->way == rstd_bf16 ? narrow(a->call->rstd[a->row], NB_BF16) : a->call->rstd[a->row];
    const double xhat = (x_of(a, i, false) - mean_in(a)) * rstd;
    if (a->way == xhat_from_y) return (float)((float)(xhat * weight(a, i)) / weight(a, i));
    return a->way == xhat_narrow ? narrow((float)xhat, coarse(a)) : xhat;
}

static void row_backward(const struct at *a) {
    const struct nb_call *c = a->call;
    const struct at before = {c, a->base, a->way, a->row - 1, a->n};
    const struct at *pulled = a->way == pull_of_previous_row && a->row > 0 ? &before : a;
    const double n = a->way == n_minus_1 ? (double)c->cols - 1 : (double)c->cols;
    const int64_t seen = a->way == pull_drops_last ? c->cols - 1 : c->cols;
    double mean = 0, pull = 0;
    for (int64_t j = 0; j < seen; j++) {
        const int64_t i = a->way == backwards ? seen - 1 - j : j;
        const double g = a->way == no_weight_in_sums ? dy_of(a, i) : g_of(a, i);
        mean += g;
        pull += (pulled == a ? g : g_of(pulled, i)) * xhat_of(pulled, i);
        if (a->way == pull_bf16) pull = narrow((float)pull, NB_BF16);
        if (a->way == correct) pull = (float)pull;
        if (a->way == correct) mean = (float)mean;
    }
    mean = centres(a) && a->way != no_mean_term ? mean / n : 0;
    pull = a->way != no_pull_term ? pull / n : 0;
    if (a->way == pull_without_rstd) pull /= c->rstd[a->row];
    for (int64_t i = 0; i < c->cols; i++) {
        double dx = c->rstd[a->row] * (g_of(a, i) - mean - xhat_of(a, i) * pull);
        if (adds(a) && c->dresidual_out && a->way != no_residual) {
            if (a->way == residual_rounds_twice) dx = to_format(dx, a->base->dtype, rint);
            dx += get(c->dresidual_out, a->row * c->dresidual_out_stride + i, a->base->dtype);
        }
        if (a->way == reads_dy_behind && i == 0) dx += 0x1p-100 * dy_of(a, c->cols);
        if (a->way == column_last_zero && i == c->cols - 1 && c->cols % 2) dx = 0;
        if (c->dx) store(c->dx, a->row * c->dx_stride + i, a->base->dtype, dx, a->way);
    }
}

/* Of a range of rows: added to what those before have given. */
static void parameters_backward(const struct nb_call *c, const struct base *base, enum way way, int64_t begin,
                                int64_t end) {
    const int64_t step = way == dgamma_even_rows ? 2 : 1;
    for (int64_t i = 0; i < c->cols; i++) {
        double dgamma = begin && c->dgamma ? c->dgamma[i] : 0, dbeta = begin && c->dbeta ? c->dbeta[i] : 0;
        for (int64_t row = begin; row < end; row++) {
            const struct at a = {c, base, way, row, c->cols};
            const double dy = dy_of(&a, i), w = weight(&a, i);
            double factor = xhat_of(&a, i);
            if (way == dgamma_of_x) factor = x_of(&a, i, false) * (double)c->rstd[row];
            if (way == dgamma_without_rstd) factor = x_of(&a, i, false) - mean_in(&a);
            if (way == dgamma_weighted) factor *= w;
            if (way == dgamma_16_rows && row >= 16) factor = 0;
            if ((way != dgamma_drops_row || row < c->rows - 1) && row % step == 0) dgamma += dy * factor;
            dbeta += way == dbeta_weighted ? dy * w : way == dbeta_first_twice && row == 0 ? 2 * dy : dy;
            if (way == dgamma_bf16) dgamma = narrow((float)dgamma, NB_BF16);
            if (way == dbeta_bf16) dbeta = narrow((float)dbeta, NB_BF16);
            if (way == dbeta_f16) dbeta = narrow((float)dbeta, NB_F16);
            if (way == correct) dgamma = (float)dgamma;
            if (way == correct) dbeta = (float)dbeta;
        }
        if (way == dgamma_mean) dgamma /= (double)c->rows;
        if (way == dgamma_truncated) dgamma = to_precision(dgamma, 16, -126, trunc);
        if (c->dgamma) c->dgamma[i] = (float)(way == dgamma_adds ? dgamma + c->dgamma[i] : dgamma);
        if (c->dbeta) c->dbeta[i] = (float)dbeta;
    }
}

/* rstd as a forward kernel would find it. */
static void find_own_rstd(struct nb_call *c, const struct base *base, enum way way) {
    static float rstd[1 << 17]; /* stress has 65537 rows */
    assert(c->rows <= 1 << 17);
    for (int64_t row = 0; row < c->rows; row++) {
        const struct at a = {c, base, way, row, c->cols};
        rstd[row] = root_of(&a, variance_about(&a, 0));
    }
    c->rstd = rstd;
}

static int rows_backward(const struct nb_call *c, const struct base *base, enum way way, int phase, int64_t begin,
                         int64_t end) {
    struct nb_call call = *c;
    if (way == own_rstd || way == own_rstd_without_eps) find_own_rstd(&call, base, way);
    if (way == leaves_dgamma) call.dgamma = NULL;
    if (phase == 0) {
        for (int64_t row = begin; row < end; row++) row_backward(&(struct at){&call, base, way, row, c->cols});
        if (way == dgamma_by_range) parameters_backward(&call, base, way, begin, end);
        if (way == writes_dx_unwanted) *(volatile float *)c->dx += 0;
        return 0;
    }
    if (way != dgamma_by_range) parameters_backward(&call, base, way, 0, c->rows);
    if (way == writes_dgamma_behind && c->dgamma) c->dgamma[c->cols] = 1;
    if (way == changes_dy) ((float *)(uintptr_t)c->dy)[0] += 1;
    return 0;
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

/* Element j of a channel: where it lies. */
static int64_t place(const struct nb_call *c, uint32_t layout, int64_t channel, int64_t j, int64_t stride) {
    const int64_t image = j / c->hw, at = j % c->hw;
    return layout == NB_NCHW ? (image * c->c + channel) * stride + at : (image * c->hw + at) * stride + channel;
}

static int channels_forward(const struct nb_call *c, const struct base *base, enum way way, int64_t begin,
                            int64_t end) {
    const int64_t n = c->n * c->hw;
    const uint32_t layout = way == layout_ignored ? NB_NCHW : c->layout; /* of what the statistics see */
    const struct at none = {c, base, way, 0, n};
    for (int64_t channel = begin; channel < end; channel++) {
        const int64_t of = way == channel_next ? (channel + 1) % c->c : channel;
        const int64_t seen = way == statistics_of_first_image ? c->hw : n;
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < seen; j++)
            mean += get(c->x, place(c, layout, of, j, c->x_stride), base->dtype) / (double)seen;
        for (int64_t j = 0; j < seen; j++) {
            const double d = get(c->x, place(c, layout, of, j, c->x_stride), base->dtype) - mean;
            variance += d * d / (double)(way == n_minus_1 ? seen - 1 : seen);
        }
        const bool given = c->mode == NB_INFERENCE && way != inference_of_batch;
        if (!given && c->running_mean_out) {
            const double m = way == running_momentum_inverted ? 1 - c->momentum : c->momentum;
            const double unbiased = n > 1 && way != running_biased ? variance * (double)n / (double)(n - 1) : variance;
            c->running_mean_out[channel] = way == running_mean_kept
                                               ? c->running_mean_in[channel]
                                               : (float)((1 - m) * c->running_mean_in[channel] + m * mean);
            c->running_var_out[channel] = (float)((1 - m) * c->running_var_in[channel] + m * unbiased);
            if (way == running_bf16) c->running_var_out[channel] = narrow(c->running_var_out[channel], NB_BF16);
        }
        const bool updated = way == training_of_running && !given && c->running_mean_out;
        if (given) mean = c->running_mean_in[of];
        if (given) variance = c->running_var_in[of];
        if (updated) mean = c->running_mean_out[of];
        if (updated) variance = c->running_var_out[of];
        const double rstd = root_of(&none, (float)variance);
        if (c->mean && !given) c->mean[channel] = way == mean_out_zero ? 0 : (float)mean;
        if (c->rstd && !given) c->rstd[channel] = (float)rstd;
        for (int64_t j = 0; j < n; j++) {
            double y = (get(c->x, place(c, c->layout, channel, j, c->x_stride), base->dtype) - mean) * rstd *
                       weight(&none, channel);
            store(c->y, place(c, c->layout, channel, j, c->y_stride), base->dtype, y + beta_of(&none, channel), way);
        }
    }
    return 0;
}

static int channels_backward(const struct nb_call *c, const struct base *base, int64_t begin, int64_t end) {
    const int64_t n = c->n * c->hw;
    for (int64_t channel = begin; channel < end; channel++) {
        const double w = weight(&(struct at){c, base, correct, 0, n}, channel), rstd = c->rstd[channel];
        double dgamma = 0, dbeta = 0;
        for (int turn = 0; turn < 2; turn++)
            for (int64_t j = 0; j < n; j++) {
                const double dy = get(c->dy, place(c, c->layout, channel, j, c->dy_stride), base->dtype);
                const double x = get(c->x, place(c, c->layout, channel, j, c->x_stride), base->dtype);
                const double xhat = (x - c->mean[channel]) * rstd;
                if (turn == 0) dbeta += dy, dgamma += dy * xhat;
                const double pull = c->mode == NB_TRAINING ? (dbeta + dgamma * xhat) / (double)n : 0;
                if (turn == 1 && c->dx)
                    set(c->dx, place(c, c->layout, channel, j, c->dx_stride), base->dtype,
                        (float)(rstd * w * (dy - pull)));
            }
        if (c->dgamma) c->dgamma[channel] = (float)dgamma;
        if (c->dbeta) c->dbeta[channel] = (float)dbeta;
    }
    return 0;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */

static int64_t n_channels(const struct nb_call *c, int phase) { return c->c; }
static int n_phases_backward(const struct nb_call *c) { return 2; }
static int64_t n_units_backward(const struct nb_call *c, int phase) { return phase == 0 ? c->rows : 1; }

static int64_t none(const struct nb_call *c, int phase) { return 0; }

// clang-format off
#define BASE(name, op, pass, dtype) static const struct base name[1] = {{#name, NB_OP_##op, NB_##pass, NB_##dtype}};
BASE(rms_f32, RMSNORM, FORWARD, F32) BASE(rms_bf16, RMSNORM, FORWARD, BF16) BASE(rms_f16, RMSNORM, FORWARD, F16)
BASE(ln_f32, LAYERNORM, FORWARD, F32) BASE(ln_bf16, LAYERNORM, FORWARD, BF16) BASE(ln_f16, LAYERNORM, FORWARD, F16)
BASE(add_f32, ADD_RMSNORM, FORWARD, F32) BASE(add_bf16, ADD_RMSNORM, FORWARD, BF16) BASE(addln_bf16, ADD_LAYERNORM, FORWARD, BF16)
BASE(prms_f32, PRMSNORM, FORWARD, F32) BASE(l2_f32, L2NORM, FORWARD, F32)
BASE(bn_f32, BATCHNORM, FORWARD, F32) BASE(bn_bf16, BATCHNORM, FORWARD, BF16) BASE(bnb_f32, BATCHNORM, BACKWARD, F32)
BASE(rmsb_f32, RMSNORM, BACKWARD, F32) BASE(rmsb_bf16, RMSNORM, BACKWARD, BF16)
BASE(lnb_f32, LAYERNORM, BACKWARD, F32) BASE(lnb_bf16, LAYERNORM, BACKWARD, BF16)
BASE(addb_bf16, ADD_RMSNORM, BACKWARD, BF16) BASE(addlnb_f32, ADD_LAYERNORM, BACKWARD, F32)
#define WAY(way, ...) {#way, {__VA_ARGS__}},
static const struct {
    const char *name;
    const struct base *bases[24]; /* null: no more */
} ways[] = {WAYS(WAY)};
// clang-format on

enum { MOST = 400 };
static struct entry {
    const struct base *base;
    enum way way;
    char name[40];
} entries[MOST];

static int call_kernel(const struct entry *e, const struct nb_call *c, int phase, int64_t begin, int64_t end) {
    const struct base *base = e->base;
    const enum way way = e->way;
    const bool forward = base->pass == NB_FORWARD;
    if (base->op == NB_OP_BATCHNORM)
        return forward ? channels_forward(c, base, way, begin, end) : channels_backward(c, base, begin, end);
    if (way == flushes_all) return rows_flushed(c, base, way, begin, end);
    return forward ? rows_forward(c, base, way, begin, end) : rows_backward(c, base, way, phase, begin, end);
}

/* A kernel's function gets nothing that says which kernel it is, so each has its own: run_000() to run_399(). */
#define FUNCTION(i)                                                                                                    \
    static int run_##i(const struct nb_call *c, int phase, int64_t begin, int64_t end) {                               \
        return call_kernel(&entries[1##i - 1000], c, phase, begin, end);                                               \
    }
// clang-format off
#define TEN(F, i) F(i##0) F(i##1) F(i##2) F(i##3) F(i##4) F(i##5) F(i##6) F(i##7) F(i##8) F(i##9)
#define HUNDRED(F, i) \
    TEN(F, i##0) TEN(F, i##1) TEN(F, i##2) TEN(F, i##3) TEN(F, i##4) TEN(F, i##5) TEN(F, i##6) TEN(F, i##7) TEN(F, i##8) TEN(F, i##9)
#define ALL(F) HUNDRED(F, 0) HUNDRED(F, 1) HUNDRED(F, 2) HUNDRED(F, 3)
#define RUN(i) run_##i,
ALL(FUNCTION)
static int (*const runs[MOST])(const struct nb_call *call, int phase, int64_t begin, int64_t end) = {ALL(RUN)};
// clang-format on

static struct nb_kernel kernel_of(const struct entry *e) {
    const bool backward = e->base->pass == NB_BACKWARD, channels = e->base->op == NB_OP_BATCHNORM;
    struct nb_kernel k = {
        .struct_size = sizeof k,
        .op = e->base->op,
        .pass = e->base->pass,
        .dtype = e->base->dtype,
        .width = NB_NATIVE,
        .name = e->name,
        .variant = e->name,
        .summary = ways[e->way].name,
        .formulas = {.roots = 1u << NB_ROOT_DIV_SQRT | 1u << NB_ROOT_MUL_RECIP,
                     .affines = 7,
                     .weight_offsets = channels ? 0 : 3,
                     .params = 3},
        .loads = backward ? 4 : 2,
        .stores = 1,
        .flops = 4,
        .run = runs[e - entries],
        .n_phases = backward && !channels ? n_phases_backward : NULL,
        .n_units = e->way == no_unit ? none
                   : channels        ? n_channels
                   : backward        ? n_units_backward
                                     : NULL,
    };
    if (e->way == truncates_before) k.formulas.affines = 1u << NB_AFFINE_GAMMA, k.formulas.casts = 1u << NB_CAST_BEFORE;
    if (e->way == rsqrt_declared) k.formulas.roots = 1u << NB_ROOT_RSQRT_NR;
    if (e->way == welford) k.variance = NB_VAR_WELFORD;
    if (e->way == corrected) k.variance = NB_VAR_CORRECTED;
    if (e->way == folded) k.flags = NB_FLAG_FOLDED;
    if (e->way == own_rstd || e->way == own_rstd_without_eps) k.flags = NB_FLAG_RECOMPUTES;
    return k;
}

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static struct nb_kernel kernels[MOST];
    static const struct nb_kernel *table[MOST];
    *n = 0;
    for (int way = 0; way < N_WAYS; way++)
        for (const struct base *const *base = ways[way].bases; *base; base++, ++*n) {
            struct entry *e = &entries[*n];
            assert(*n < MOST);
            *e = (struct entry){*base, (enum way)way, ""};
            snprintf(e->name, sizeof e->name, "%s_%s", (*base)->name, ways[way].name);
            kernels[*n] = kernel_of(e);
            table[*n] = &kernels[*n];
        }
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
