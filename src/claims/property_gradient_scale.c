// SPDX-License-Identifier: Apache-2.0
/* The worked example of a gradient: the mean squared error over N inputs, w x against targets that each prediction misses by `error`,
 * and the gradient of w by a central difference (exact for a quadratic, save rounding). The printed figure is one term of it. */
#include <math.h>

#include "src/claims/property.h"

enum { MOST = 64 };

static double loss(const double *x, const double *target, int n, double w) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += pow(w * x[i] - target[i], 2);
    return sum / n;
}

static double gradient(const double *x, const double *target, int n) {
    const double h = 0x1p-10;
    return (loss(x, target, n, 1 + h) - loss(x, target, n, 1 - h)) / (2 * h);
}

static void add(const struct nb_property_call *call, const char *reading, double g) {
    const double rate = nb_param_number(call, "rate");
    nb_finding_tag(nb_property_add(call, "gradient", "", g), "reading", reading);
    nb_finding_tag(nb_property_add(call, "step", "", rate * g), "reading", reading);
}

static void gradient_scale_run(const struct nb_property_call *call) {
    double x[MOST] = {0}, target[MOST] = {0};
    const double error = nb_param_number(call, "error");
    const int same = (int)nb_param_number(call, "same"), given = nb_param_count(call, "x");
    int n = 0;
    for (int i = 0; i < given; i++)
        for (int j = 0; j < same && n < MOST; j++) x[n++] = nb_param_number_at(call, "x", i);
    for (int i = 0; i < n; i++) target[i] = x[i] - error;
    const double whole = gradient(x, target, n);
    /* One term: all targets but the first are met, so that its part of the mean is all of the gradient. */
    for (int i = 1; i < n; i++) target[i] = x[i];
    add(call, "one term", gradient(x, target, n));
    add(call, "sum", whole);
}

const struct nb_property nb_property_gradient_scale = {
    .name = "gradient_scale",
    .summary = "a worked gradient, as one term and as the sum",
    .params = {{"x", "[100]", "inputs; `same` of each", false},
               {"error", "10", "of each prediction", false},
               {"same", "3", "how often each input occurs in the batch", true},
               {"rate", "0.001", "", false}},
    .run = gradient_scale_run,
};
