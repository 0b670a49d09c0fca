// SPDX-License-Identifier: Apache-2.0
/* Re-centring and re-scaling, a row at a time; sums in double. */
#include "src/train/rescale.h"

#include <math.h>
#include <string.h>

static double mean_of(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static double rstd_of(const float *x, double mean, double eps, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return 1 / sqrt(sum / (double)n + eps);
}

void nb_rescale_forward(const struct nb_rescale *r, float *y, const float *x, const float *gamma) {
    for (int64_t row = 0; row < r->rows; row++, x += r->cols, y += r->cols) {
        const double mean = mean_of(x, r->cols);
        const float rstd = r->scales ? (float)rstd_of(x, mean, r->eps, r->cols) : 1;
        const float taken = r->scales ? 0 : (float)mean;
        for (int64_t i = 0; i < r->cols; i++) y[i] = (x[i] - taken) * rstd * gamma[i];
        r->mean[row] = (float)mean;
        r->rstd[row] = rstd;
    }
}

static void row_back(const struct nb_rescale *r, int64_t row, float *dx, const float *dy, const float *x,
                     const float *gamma) {
    const float mean = r->mean[row], rstd = r->rstd[row];
    double sum_g = 0, sum_gx = 0;
    for (int64_t i = 0; i < r->cols; i++) {
        const double g = (double)dy[i] * (double)gamma[i];
        sum_g += g;
        sum_gx += g * x[i];
    }
    const float mean_g = (float)(sum_g / (double)r->cols);
    const float pull = (float)(sum_gx / (double)r->cols * rstd * rstd * rstd);
    for (int64_t i = 0; i < r->cols; i++) {
        const float g = dy[i] * gamma[i];
        dx[i] = r->scales ? rstd * g - (x[i] - mean) * pull : g - mean_g;
    }
}

void nb_rescale_backward(const struct nb_rescale *r, float *dx, float *dgamma, const float *dy, const float *x,
                         const float *gamma) {
    memset(dgamma, 0, (size_t)r->cols * sizeof *dgamma);
    for (int64_t row = 0; row < r->rows; row++) {
        const int64_t at = row * r->cols;
        const float taken = r->scales ? 0 : r->mean[row], rstd = r->rstd[row];
        row_back(r, row, dx + at, dy + at, x + at, gamma);
        for (int64_t i = 0; i < r->cols; i++) dgamma[i] += dy[at + i] * (x[at + i] - taken) * rstd;
    }
}
