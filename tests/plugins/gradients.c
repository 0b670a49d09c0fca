// SPDX-License-Identifier: Apache-2.0
/* Backward kernels of f32 rows and channels: four correct ones, and each other with one fault. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernel.h"

static const float *in_row(const void *tensor, int64_t stride, int64_t row) {
    return (const float *)tensor + row * stride;
}
/* Where dx is not wanted, a row that nobody reads. */
static float *dx_row(const struct nb_call *call, int64_t row) {
    static float unwanted[1 << 16];
    return call->dx ? (float *)call->dx + row * call->dx_stride : unwanted;
}

static double weight(const struct nb_call *call, int64_t i) {
    return call->gamma ? ((const float *)call->gamma)[i] + (double)call->formula.weight_offset : 1;
}

/* What a fault changes. */
struct gradient {
    double mean_share, pull_share, residual_share; /* of the terms of dx: 1 */
    int64_t last_row;                              /* rows that dgamma and dbeta see: all */
    int truncates, rounds_up;
};
static const struct gradient whole = {1, 1, 1, INT64_MAX, 0, 0};

static float rounded(const struct gradient *f, double exact) {
    const float near = (float)exact;
    if (f->truncates && fabsf(near) > fabs(exact)) return nextafterf(near, 0);
    if (f->rounds_up && near < exact) return nextafterf(near, INFINITY);
    return near;
}

static double xhat(const struct nb_call *call, int64_t row, int64_t i) {
    const double mean = call->mean ? call->mean[row] : 0;
    return (in_row(call->x, call->x_stride, row)[i] - mean) * call->rstd[row];
}

static void row_of_dx(const struct nb_call *call, int64_t row, const struct gradient *f) {
    const float *dy = in_row(call->dy, call->dy_stride, row);
    const float *past = call->dresidual_out ? in_row(call->dresidual_out, call->dresidual_out_stride, row) : NULL;
    double mean = 0, pull = 0;
    for (int64_t i = 0; i < call->cols; i++) {
        const double g = dy[i] * weight(call, i);
        if (call->mean) mean += g / (double)call->cols;
        pull += g * xhat(call, row, i) / (double)call->cols;
    }
    for (int64_t i = 0; i < call->cols; i++) {
        const double own = dy[i] * weight(call, i) - f->mean_share * mean - f->pull_share * pull * xhat(call, row, i);
        const double beside = past ? f->residual_share * past[i] : 0;
        dx_row(call, row)[i] = rounded(f, call->rstd[row] * own + beside);
    }
}

static void parameters(const struct nb_call *call, const struct gradient *f) {
    for (int64_t i = 0; i < call->cols; i++) {
        double dgamma = 0, dbeta = 0;
        for (int64_t row = 0; row < call->rows && row < f->last_row; row++) {
            const double dy = in_row(call->dy, call->dy_stride, row)[i];
            dgamma += dy * xhat(call, row, i);
            dbeta += dy;
        }
        if (call->dgamma) call->dgamma[i] = (float)dgamma;
        if (call->dbeta) call->dbeta[i] = (float)dbeta;
    }
}

/* Rows in the first phase, the parameters at once in the second. */
static int with(const struct nb_call *call, int phase, int64_t begin, int64_t end, const struct gradient *f) {
    if (phase == 1) parameters(call, f);
    for (int64_t row = begin; phase == 0 && row < end; row++) row_of_dx(call, row, f);
    return 0;
}
static int n_phases(const struct nb_call *call) {
    (void)call;
    return 2;
}
static int64_t n_units(const struct nb_call *call, int phase) { return phase == 0 ? call->rows : 1; }

/* ---- dx -------------------------------------------------------------------------------------------------------------- */

static int correct(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return with(call, phase, begin, end, &whole);
}
static int no_mean(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.mean_share = 0;
    return with(call, phase, begin, end, &f);
}
static int no_pull(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.pull_share = 0;
    return with(call, phase, begin, end, &f);
}
/* A mean over n - 1. */
static int unbiased(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.pull_share = (double)call->cols / ((double)call->cols - 1);
    return with(call, phase, begin, end, &f);
}
static int no_residual(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.residual_share = 0;
    return with(call, phase, begin, end, &f);
}
static int truncates(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.truncates = 1;
    return with(call, phase, begin, end, &f);
}
static int rounds_up(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.rounds_up = 1;
    return with(call, phase, begin, end, &f);
}
static int changes_dy(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    if (phase == 1) ((float *)(uintptr_t)call->dy)[0] += 1;
    return 0;
}
static int reads_dy_behind(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    for (int64_t row = begin; phase == 0 && row < end; row++)
        dx_row(call, row)[0] += 0x1p-100f * in_row(call->dy, call->dy_stride, row)[call->cols];
    return 0;
}

static int writes_dx_unwanted(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    if (phase == 0) *(volatile float *)call->dx += 0;
    return 0;
}

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

/* The rows of the last block of 16 are forgotten. */
static int forgets_block(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct gradient f = whole;
    f.last_row = call->rows * 15 / 16;
    return with(call, phase, begin, end, &f);
}
/* dbeta sums g. */
static int dbeta_of_g(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    for (int64_t i = 0; phase == 1 && call->dbeta && i < call->cols; i++) call->dbeta[i] *= (float)weight(call, i);
    return 0;
}
/* Gradients are added to what stands there. */
static int accumulates(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const float before = phase == 1 && call->dgamma ? call->dgamma[0] : 0;
    correct(call, phase, begin, end);
    if (phase == 1 && call->dgamma) call->dgamma[0] += before;
    return 0;
}
static int writes_dgamma_behind(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    correct(call, phase, begin, end);
    if (phase == 1 && call->dgamma) call->dgamma[call->cols] = 1;
    return 0;
}
static int leaves_dgamma(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct nb_call without = *call;
    without.dgamma = NULL;
    return correct(&without, phase, begin, end);
}
/* Sums in f32 that start anew with every range of rows, and are added as the ranges come. */
static int by_range(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (phase == 1) return 0;
    for (int64_t row = begin; row < end; row++) row_of_dx(call, row, &whole);
    for (int64_t i = 0; call->dgamma && i < call->cols; i++) {
        float dgamma = 0, dbeta = 0;
        for (int64_t row = begin; row < end; row++) {
            const float dy = in_row(call->dy, call->dy_stride, row)[i];
            dgamma += dy * (float)xhat(call, row, i);
            dbeta += dy;
        }
        call->dgamma[i] = (begin == 0 ? 0 : call->dgamma[i]) + dgamma;
        if (call->dbeta) call->dbeta[i] = (begin == 0 ? 0 : call->dbeta[i]) + dbeta;
    }
    return 0;
}

/* ---- BatchNorm ------------------------------------------------------------------------------------------------------- */

/* What a channel has of an element. */
struct channel {
    double g, gx, dy, dyx;
};
static int64_t channel_of(const struct nb_call *call, int64_t row, int64_t i) {
    return call->layout == NB_NCHW ? row % call->c : i;
}
static double channel_xhat(const struct nb_call *call, int64_t row, int64_t i, int64_t channel) {
    return (in_row(call->x, call->x_stride, row)[i] - (double)call->mean[channel]) * call->rstd[channel];
}

static struct channel sums_of(const struct nb_call *call, int64_t channel) {
    const double w = weight(call, channel), n = (double)(call->n * call->hw);
    struct channel s = {0};
    for (int64_t row = 0; row < call->rows; row++)
        for (int64_t i = 0; i < call->cols; i++) {
            if (channel_of(call, row, i) != channel) continue;
            const double dy = in_row(call->dy, call->dy_stride, row)[i];
            s.dy += dy;
            s.dyx += dy * channel_xhat(call, row, i, channel);
        }
    s.g = call->mode == NB_TRAINING ? s.dy * w / n : 0;
    s.gx = call->mode == NB_TRAINING ? s.dyx * w / n : 0;
    return s;
}

static int channels(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t channel = begin; channel < end; channel++) {
        const struct channel s = sums_of(call, channel);
        if (call->dgamma) call->dgamma[channel] = (float)s.dyx;
        if (call->dbeta) call->dbeta[channel] = (float)s.dy;
        for (int64_t row = 0; row < call->rows; row++)
            for (int64_t i = 0; i < call->cols; i++) {
                if (channel_of(call, row, i) != channel) continue;
                const double g = in_row(call->dy, call->dy_stride, row)[i] * weight(call, channel);
                dx_row(call, row)[i] =
                    (float)(call->rstd[channel] * (g - s.g - channel_xhat(call, row, i, channel) * s.gx));
            }
    }
    return 0;
}
static int64_t n_channels(const struct nb_call *call, int phase) {
    (void)phase;
    return call->c;
}

#define GRADIENT(name_, op_, run_)                                                                                     \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = op_, .pass = NB_BACKWARD, .width = NB_NATIVE, .name = name_,    \
        .variant = name_ "_f32", .formulas = {.roots = 1u << NB_ROOT_MUL_RECIP, .affines = 7, .weight_offsets = 3},    \
        .loads = 4, .stores = 1, .flops = 12, .run = run_, .n_phases = n_phases, .n_units = n_units                    \
    }

static const struct nb_kernel kernels[] = {
    GRADIENT("correct", NB_OP_RMSNORM, correct),
    GRADIENT("correct_centred", NB_OP_LAYERNORM, correct),
    GRADIENT("correct_add", NB_OP_ADD_LAYERNORM, correct),
    GRADIENT("no_mean", NB_OP_LAYERNORM, no_mean),
    GRADIENT("no_pull", NB_OP_RMSNORM, no_pull),
    GRADIENT("unbiased", NB_OP_RMSNORM, unbiased),
    GRADIENT("no_residual", NB_OP_ADD_LAYERNORM, no_residual),
    GRADIENT("truncates", NB_OP_RMSNORM, truncates),
    GRADIENT("rounds_up", NB_OP_RMSNORM, rounds_up),
    GRADIENT("changes_dy", NB_OP_RMSNORM, changes_dy),
    GRADIENT("reads_dy_behind", NB_OP_RMSNORM, reads_dy_behind),
    GRADIENT("writes_dx_unwanted", NB_OP_RMSNORM, writes_dx_unwanted),
    GRADIENT("forgets_block", NB_OP_RMSNORM, forgets_block),
    GRADIENT("dbeta_of_g", NB_OP_LAYERNORM, dbeta_of_g),
    GRADIENT("accumulates", NB_OP_RMSNORM, accumulates),
    GRADIENT("writes_dgamma_behind", NB_OP_RMSNORM, writes_dgamma_behind),
    GRADIENT("leaves_dgamma", NB_OP_RMSNORM, leaves_dgamma),
    GRADIENT("by_range", NB_OP_RMSNORM, by_range),
    {.struct_size = sizeof(struct nb_kernel),
     .op = NB_OP_BATCHNORM,
     .pass = NB_BACKWARD,
     .width = NB_NATIVE,
     .name = "channels",
     .variant = "channels_f32",
     .formulas = {.roots = 1u << NB_ROOT_MUL_RECIP, .affines = 7, .weight_offsets = 3},
     .loads = 4,
     .stores = 1,
     .flops = 12,
     .run = channels,
     .n_units = n_channels},
};
enum { N = sizeof kernels / sizeof kernels[0] };

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *table[N];
    for (size_t i = 0; i < N; i++) table[i] = &kernels[i];
    *n = N;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
