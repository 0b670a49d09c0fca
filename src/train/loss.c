// SPDX-License-Identifier: Apache-2.0
/* Cross-entropy with the row's largest logit taken off first, sums in double. */
#include "src/train/loss.h"

#include <math.h>

static double row_forward(float *p, const float *logits, int32_t target, int64_t classes) {
    float most = logits[0];
    for (int64_t c = 1; c < classes; c++) most = logits[c] > most ? logits[c] : most;
    const double at_target = target >= 0 ? (double)logits[target] : 0;
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        p[c] = expf(logits[c] - most);
        sum += p[c];
    }
    const float scale = (float)(1 / sum);
    for (int64_t c = 0; c < classes; c++) p[c] *= scale;
    return target >= 0 ? (double)most + log(sum) - at_target : 0;
}

static int64_t count_targets(const int32_t *targets, int64_t rows) {
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++) n += targets[r] >= 0;
    return n;
}

double nb_cross_entropy_forward(float *probabilities, const float *logits, const int32_t *targets, int64_t rows,
                                int64_t classes) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += row_forward(probabilities + r * classes, logits + r * classes, targets[r], classes);
    const int64_t n = count_targets(targets, rows);
    return n > 0 ? sum / (double)n : 0;
}

void nb_cross_entropy_backward(float *dlogits, const float *probabilities, const int32_t *targets, int64_t rows,
                               int64_t classes, double scale) {
    const int64_t n = count_targets(targets, rows);
    const float weight = n > 0 ? (float)(scale / (double)n) : 0;
    for (int64_t r = 0; r < rows; r++) {
        const float *p = probabilities + r * classes;
        float *d = dlogits + r * classes;
        const float w = targets[r] >= 0 ? weight : 0;
        for (int64_t c = 0; c < classes; c++) d[c] = p[c] * w;
        if (targets[r] >= 0) d[targets[r]] -= w;
    }
}
