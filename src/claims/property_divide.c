// SPDX-License-Identifier: Apache-2.0
/* Inputs divided by a constant: what becomes of the mean squared error depends on what else is divided. Predictions y = w x with w = 1,
 * each off by the same error. */
#include <math.h>

#include "src/claims/property.h"

struct sums {
    double mse, relative;
};

/* w x against the targets; relative: over the variance of the targets. */
static struct sums errors_of(const double *x, const double *target, int n, double w) {
    double squares = 0, mean = 0, variance = 0;
    for (int i = 0; i < n; i++) {
        squares += pow(w * x[i] - target[i], 2) / n;
        mean += target[i] / n;
    }
    for (int i = 0; i < n; i++) variance += pow(target[i] - mean, 2) / n;
    return (struct sums){squares, squares / variance};
}

static double best_w(const double *x, const double *target, int n) {
    double xt = 0, xx = 0;
    for (int i = 0; i < n; i++) {
        xt += x[i] * target[i];
        xx += x[i] * x[i];
    }
    return xt / xx;
}

static void add(const struct nb_property_call *call, const char *divided, struct sums s) {
    nb_finding_tag(nb_property_add(call, "mse", "", s.mse), "divided", divided);
    nb_finding_tag(nb_property_add(call, "relative", "", s.relative), "divided", divided);
}

static void divide_run(const struct nb_property_call *call) {
    enum { MOST = 64 };
    double x[MOST] = {0}, target[MOST] = {0}, small[MOST] = {0}, small_target[MOST] = {0};
    const double by = nb_param_number(call, "by"), error = nb_param_number(call, "error");
    const int n = nb_param_count(call, "x") < MOST ? nb_param_count(call, "x") : MOST;
    for (int i = 0; i < n; i++) {
        x[i] = nb_param_number_at(call, "x", i);
        target[i] = x[i] - error;
        small[i] = x[i] / by;
        small_target[i] = target[i] / by;
    }
    add(call, "nothing", errors_of(x, target, n, 1));
    add(call, "inputs and targets", errors_of(small, small_target, n, 1));
    add(call, "inputs", errors_of(small, target, n, 1));
    add(call, "nothing, fitted", errors_of(x, target, n, best_w(x, target, n)));
    add(call, "inputs, fitted", errors_of(small, target, n, best_w(small, target, n)));
}

const struct nb_property nb_property_divide = {
    .name = "divide",
    .summary = "what dividing inputs by a constant does to the loss",
    .params = {{"x", "[100, 200, 300]", "inputs", false},
               {"error", "10", "of each prediction", false},
               {"by", "100", "the constant", false}},
    .run = divide_run,
};
