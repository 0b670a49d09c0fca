// SPDX-License-Identifier: Apache-2.0
/* Gradient descent on y = w x + b with the mean squared error, the worked example of tutorials: does it converge at the given rate,
 * and up to which rate would it? For a quadratic loss descent converges if and only if rate < 2 / (largest eigenvalue of its
 * Hessian), here of (2/N) [[sum x^2, sum x], [sum x, N]]. */
#include <math.h>

#include "src/claims/property.h"

enum { MOST = 64 };

struct model {
    double x[MOST], target[MOST], w, b;
    int n;
};

static void model_init(struct model *m, const struct nb_property_call *call) {
    const double divisor = nb_param_number(call, "divide");
    *m = (struct model){.w = 1};
    m->n = nb_param_count(call, "x") < MOST ? nb_param_count(call, "x") : MOST;
    for (int i = 0; i < m->n; i++) {
        m->x[i] = nb_param_number_at(call, "x", i) / divisor;
        m->target[i] = m->x[i] - nb_param_number(call, "error") / divisor;
    }
}

static double loss(const struct model *m) {
    double sum = 0;
    for (int i = 0; i < m->n; i++) sum += pow(m->w * m->x[i] + m->b - m->target[i], 2);
    return sum / m->n;
}

/* One step; returns the gradient of w. */
static double step(struct model *m, double rate) {
    double dw = 0, db = 0;
    for (int i = 0; i < m->n; i++) {
        const double e = m->w * m->x[i] + m->b - m->target[i];
        dw += 2 * e * m->x[i] / m->n;
        db += 2 * e / m->n;
    }
    m->w -= rate * dw;
    m->b -= rate * db;
    return dw;
}

/* Does the loss grow in the long run? Beyond the stability limit it does without end. */
static bool diverges(struct model m, double rate, int steps) {
    const double before = loss(&m);
    for (int i = 0; i < steps; i++) {
        step(&m, rate);
        if (!(loss(&m) < 1e6 * before)) return true;
    }
    return loss(&m) > before;
}

static double measured_limit(const struct model *m) {
    double low = 0, high = 1;
    while (!diverges(*m, high, 2000) && high < 1e9) high *= 2;
    for (int i = 0; i < 50; i++) {
        const double middle = (low + high) / 2;
        if (diverges(*m, middle, 2000))
            high = middle;
        else
            low = middle;
    }
    return low;
}

static double limit_of_theory(const struct model *m) {
    double xx = 0, x = 0;
    for (int i = 0; i < m->n; i++) {
        xx += m->x[i] * m->x[i];
        x += m->x[i];
    }
    const double n = m->n, half = (xx + n) / 2, eigenvalue = 2 / n * (half + sqrt((xx - n) * (xx - n) / 4 + x * x));
    return 2 / eigenvalue;
}

static void descent_run(const struct nb_property_call *call) {
    struct model m;
    const double rate = nb_param_number(call, "rate");
    const int steps = (int)nb_param_number(call, "steps");
    model_init(&m, call);
    nb_property_add(call, "diverges", "", diverges(m, rate, steps));
    const double limit = measured_limit(&m), theory = limit_of_theory(&m), before = loss(&m);
    nb_property_add(call, "limit", "", limit);
    nb_property_add(call, "limit_of_theory", "", theory);
    nb_property_add(call, "limit_ratio", "", limit / theory);
    double last = 0;
    int turns = 0;
    for (int i = 0; i < steps && isfinite(loss(&m)); i++) {
        const double g = step(&m, rate);
        turns += i > 0 && g * last < 0;
        last = g;
    }
    nb_property_add(call, "turns", "", turns); /* of the gradient's sign: oscillation */
    nb_property_add(call, "loss_ratio", "", isfinite(loss(&m)) ? fmin(loss(&m) / before, 1e300) : 1e300);
}

const struct nb_property nb_property_descent = {
    .name = "descent",
    .summary = "gradient descent on raw and on divided inputs",
    .params = {{"x", "[100, 200, 300]", "inputs", false},
               {"divide", "[1, 100]", "inputs and errors divided by", false},
               {"error", "10", "of each prediction at the start", false},
               {"rate", "0.001", "", false},
               {"steps", "100", "", true}},
    .each = {{"divide", "divide"}},
    .run = descent_run,
};
