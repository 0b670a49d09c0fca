// SPDX-License-Identifier: Apache-2.0
/* Activations, element by element. */
#include "src/train/swiglu.h"

#include <math.h>

static float sigmoid(float v) { return 1 / (1 + expf(-v)); }

void nb_swiglu_forward(float *y, const float *gate, const float *up, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

/* silu' = s + v s (1 - s), s the sigmoid. */
void nb_swiglu_backward(float *dgate, float *dup, const float *dy, const float *gate, const float *up, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float v = gate[i], s = sigmoid(v);
        dgate[i] = dy[i] * up[i] * (s + v * s * (1 - s));
        dup[i] = dy[i] * v * s;
    }
}

void nb_relu_forward(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

void nb_relu_backward(float *dx, const float *dy, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) dx[i] = x[i] > 0 ? dy[i] : 0;
}
