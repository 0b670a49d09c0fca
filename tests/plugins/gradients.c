// SPDX-License-Identifier: Apache-2.0
/* Backward kernels of f32 rows and channels: four correct ones, and each other with one fault in what it reads, writes and takes for its own.
 * Those that compute something else are in mistakes.c. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "table.h"

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

#define ROWS const struct nb_call *call, int phase, int64_t begin, int64_t end

static double xhat(const struct nb_call *call, int64_t row, int64_t i) {
    const double mean = call->mean ? call->mean[row] : 0;
    return (in_row(call->x, call->x_stride, row)[i] - mean) * call->rstd[row];
}

static void row_of_dx(const struct nb_call *call, int64_t row) {
    const float *dy = in_row(call->dy, call->dy_stride, row);
    const float *past = call->dresidual_out ? in_row(call->dresidual_out, call->dresidual_out_stride, row) : NULL;
    double mean = 0, pull = 0;
    for (int64_t i = 0; i < call->cols; i++) {
        const double g = dy[i] * weight(call, i);
        if (call->mean) mean += g / (double)call->cols;
        pull += g * xhat(call, row, i) / (double)call->cols;
    }
    for (int64_t i = 0; i < call->cols; i++) {
        const double own = dy[i] * weight(call, i) - mean - pull * xhat(call, row, i);
        dx_row(call, row)[i] = (float)(call->rstd[row] * own + (past ? past[i] : 0));
    }
}

static void parameters(const struct nb_call *call) {
    for (int64_t i = 0; i < call->cols; i++) {
        double dgamma = 0, dbeta = 0;
        for (int64_t row = 0; row < call->rows; row++) {
            const double dy = in_row(call->dy, call->dy_stride, row)[i];
            dgamma += dy * xhat(call, row, i);
            dbeta += dy;
        }
        if (call->dgamma) call->dgamma[i] = (float)dgamma;
        if (call->dbeta) call->dbeta[i] = (float)dbeta;
    }
}

/* Rows in the first phase, the parameters at once in the second. */
static int correct(ROWS) {
    if (phase == 1) parameters(call);
    for (int64_t row = begin; phase == 0 && row < end; row++) row_of_dx(call, row);
    return 0;
}
static int n_phases(const struct nb_call *call) {
    (void)call;
    return 2;
}
static int64_t n_units(const struct nb_call *call, int phase) { return phase == 0 ? call->rows : 1; }
static int64_t no_unit(const struct nb_call *call, int phase) { return (void)call, (void)phase, 0; }

/* ---- dx -------------------------------------------------------------------------------------------------------------- */

static int changes_dy(ROWS) {
    correct(call, phase, begin, end);
    if (phase == 1) ((float *)(uintptr_t)call->dy)[0] += 1;
    return 0;
}
static int reads_dy_behind(ROWS) {
    correct(call, phase, begin, end);
    for (int64_t row = begin; phase == 0 && row < end; row++)
        dx_row(call, row)[0] += 0x1p-100f * in_row(call->dy, call->dy_stride, row)[call->cols];
    return 0;
}

static int writes_dx_unwanted(ROWS) {
    correct(call, phase, begin, end);
    if (phase == 0) *(volatile float *)call->dx += 0;
    return 0;
}

/* ---- statistics of its own ------------------------------------------------------------------------------------------- */

/* As a forward kernel would find rstd, in f32. */
static int of_own_rstd(ROWS, float eps) {
    static float rstd[1 << 13];
    struct nb_call own = *call;
    for (int64_t row = 0; row < call->rows; row++) {
        const float *x = in_row(call->x, call->x_stride, row);
        float sum = 0;
        for (int64_t i = 0; i < call->cols; i++) sum += x[i] * x[i];
        rstd[row] = 1 / sqrtf(sum / (float)call->cols + eps);
    }
    own.rstd = rstd;
    return correct(&own, phase, begin, end);
}
static int own_rstd(ROWS) { return of_own_rstd(call, phase, begin, end, (float)call->eps); }
static int own_rstd_without_eps(ROWS) { return of_own_rstd(call, phase, begin, end, 0); }

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

/* Gradients are added to what stands there. */
static int accumulates(ROWS) {
    const float before = phase == 1 && call->dgamma ? call->dgamma[0] : 0;
    correct(call, phase, begin, end);
    if (phase == 1 && call->dgamma) call->dgamma[0] += before;
    return 0;
}
static int writes_dgamma_behind(ROWS) {
    correct(call, phase, begin, end);
    if (phase == 1 && call->dgamma) call->dgamma[call->cols] = 1;
    return 0;
}
static int leaves_dgamma(ROWS) {
    struct nb_call without = *call;
    without.dgamma = NULL;
    return correct(&without, phase, begin, end);
}
/* Sums in f32 that start anew with every range of rows, and are added as the ranges come. */
static int by_range(ROWS) {
    if (phase == 1) return 0;
    for (int64_t row = begin; row < end; row++) row_of_dx(call, row);
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

static int channels(ROWS) {
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

#define GRADIENT(name_, op_, run_, ...)                                                                                \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = op_, .pass = NB_BACKWARD, .width = NB_NATIVE, .name = name_,    \
        .variant = name_ "_f32", .formulas = {.roots = 1u << NB_ROOT_MUL_RECIP, .affines = 7, .weight_offsets = 3},    \
        .loads = 4, .stores = 1, .flops = 12, .run = run_, __VA_ARGS__                                                 \
    }
#define OF_ROWS(name, op_, run_) GRADIENT(name, op_, run_, .n_phases = n_phases, .n_units = n_units)

static const struct nb_kernel kernels[] = {
    OF_ROWS("correct", NB_OP_RMSNORM, correct),
    OF_ROWS("correct_centred", NB_OP_LAYERNORM, correct),
    OF_ROWS("correct_add", NB_OP_ADD_LAYERNORM, correct),
    GRADIENT("own_rstd", NB_OP_RMSNORM, own_rstd, .n_phases = n_phases, .n_units = n_units,
             .flags = NB_FLAG_RECOMPUTES),
    GRADIENT("own_rstd_without_eps", NB_OP_RMSNORM, own_rstd_without_eps, .n_phases = n_phases, .n_units = n_units,
             .flags = NB_FLAG_RECOMPUTES),
    OF_ROWS("changes_dy", NB_OP_RMSNORM, changes_dy),
    OF_ROWS("reads_dy_behind", NB_OP_RMSNORM, reads_dy_behind),
    OF_ROWS("writes_dx_unwanted", NB_OP_RMSNORM, writes_dx_unwanted),
    OF_ROWS("accumulates", NB_OP_RMSNORM, accumulates),
    OF_ROWS("writes_dgamma_behind", NB_OP_RMSNORM, writes_dgamma_behind),
    OF_ROWS("leaves_dgamma", NB_OP_RMSNORM, leaves_dgamma),
    OF_ROWS("by_range", NB_OP_RMSNORM, by_range),
    GRADIENT("no_unit", NB_OP_RMSNORM, correct, .n_units = no_unit),
    GRADIENT("channels", NB_OP_BATCHNORM, channels, .n_units = n_channels),
};
TABLE(kernels)
