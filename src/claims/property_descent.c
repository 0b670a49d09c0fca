// SPDX-License-Identifier: Apache-2.0
/* Worked examples of gradient descent and of gradients in linear models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* descent. Gradient descent on y = w x + b with the mean squared error, the worked example of tutorials: does it converge at the given rate,
 * and up to which rate would it? For a quadratic loss descent converges if and only if rate < 2 / (largest eigenvalue of its
 * Hessian), here of (2/N) [[sum x^2, sum x], [sum x, N]]. */

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
    nb_property_add(call, "limit_ratio", "", measured_limit(&m) / limit_of_theory(&m));
    double last = 0;
    int turns = 0;
    for (int i = 0; i < steps && isfinite(loss(&m)); i++) {
        const double g = step(&m, rate);
        turns += i > 0 && g * last < 0;
        last = g;
    }
    nb_property_add(call, "turns", "", turns); /* of the gradient's sign: oscillation */
}

/* divide. Inputs divided by a constant: what becomes of the mean squared error depends on what else is divided. Predictions y = w x with w = 1,
 * each off by the same error. */

/* The mean squared error, and relative: over the variance of the targets. */
static void add_errors(const struct nb_property_call *call, const char *divided, const struct model *m) {
    double mean = 0, variance = 0;
    for (int i = 0; i < m->n; i++) mean += m->target[i] / m->n;
    for (int i = 0; i < m->n; i++) variance += pow(m->target[i] - mean, 2) / m->n;
    nb_finding_tag(nb_property_add(call, "mse", "", loss(m)), "divided", divided);
    nb_finding_tag(nb_property_add(call, "relative", "", loss(m) / variance), "divided", divided);
}

/* With the best w. */
static struct model fitted(struct model m) {
    double xt = 0, xx = 0;
    for (int i = 0; i < m.n; i++) {
        xt += m.x[i] * m.target[i];
        xx += m.x[i] * m.x[i];
    }
    m.w = xt / xx;
    return m;
}

static void divide_run(const struct nb_property_call *call) {
    const double by = nb_param_number(call, "by"), error = nb_param_number(call, "error");
    struct model raw = {.w = 1}, inputs, both;
    for (; raw.n < nb_param_count(call, "x") && raw.n < MOST; raw.n++) {
        raw.x[raw.n] = nb_param_number_at(call, "x", raw.n);
        raw.target[raw.n] = raw.x[raw.n] - error;
    }
    inputs = both = raw;
    for (int i = 0; i < raw.n; i++) {
        inputs.x[i] = both.x[i] = raw.x[i] / by;
        both.target[i] = raw.target[i] / by;
    }
    const struct model fitted_raw = fitted(raw), fitted_inputs = fitted(inputs);
    add_errors(call, "nothing", &raw);
    add_errors(call, "inputs and targets", &both);
    add_errors(call, "inputs", &inputs);
    add_errors(call, "nothing, fitted", &fitted_raw);
    add_errors(call, "inputs, fitted", &fitted_inputs);
}

/* gradient_balance. Two features of different size in one linear model: how far do the gradients of their weights lie apart? Rows are samples; the
 * gradient of weight j is the root mean square over samples of error x_j, with errors of N(0,1). */

static double ratio_of(const double *y, int64_t rows, int64_t cols) {
    const struct nb_random random = nb_random_stream(2, 0);
    double most = 0, least = INFINITY;
    for (int64_t c = 0; c < cols; c++) {
        double squares = 0;
        for (int64_t r = 0; r < rows; r++) squares += pow(nb_random_normal(random, (uint64_t)r) * y[r * cols + c], 2);
        most = fmax(most, sqrt(squares));
        least = fmin(least, sqrt(squares));
    }
    return most / least;
}

/* How many different rows are left, by sign alone: of two features LayerNorm keeps only which is the larger. */
static double kept(const double *y, int64_t rows, int64_t cols) {
    double n = 0;
    for (int64_t r = 1; r < rows; r++) n += nb_largest_difference(y, y + r * cols, cols) > 1e-3;
    return n / (double)(rows - 1);
}

static void gradient_balance_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "samples"), cols = nb_param_count(call, "features"), n = rows * cols;
    const char *norm = nb_param_text(call, "norm");
    double *x freed = nb_norm_normal(n, 2 * n), *y = x + n;
    int result = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = nb_param_number_at(call, "features", (int)(i % cols)) * (1 + nb_param_number(call, "spread") * x[i]);
    if (strcmp(norm, "minmax") == 0)
        for (int64_t c = 0; c < cols; c++) nb_minmax(x + c, rows, cols, y + c); /* each feature */
    else
        result = nb_norm_plain(call, norm, 1e-5, x, rows, cols, y, "gradient_ratio");
    if (result == 0) {
        nb_property_add(call, "gradient_ratio", "", ratio_of(y, rows, cols));
        nb_property_add(call, "rows_kept_apart", "share", kept(y, rows, cols));
    }
}

/* gradient_scale. The worked example of a gradient: the mean squared error over N inputs, w x against targets that each prediction misses by `error`,
 * and the gradient of w by a central difference (exact for a quadratic, save rounding). The printed figure is one term of it. */

static double central_difference(struct model m) {
    const double h = 0x1p-10;
    m.w = 1 + h;
    const double above = loss(&m);
    m.w = 1 - h;
    return (above - loss(&m)) / (2 * h);
}

static void add_scale(const struct nb_property_call *call, const char *reading, double g) {
    const double rate = nb_param_number(call, "rate");
    nb_finding_tag(nb_property_add(call, "gradient", "", g), "reading", reading);
    nb_finding_tag(nb_property_add(call, "step", "", rate * g), "reading", reading);
}

static void gradient_scale_run(const struct nb_property_call *call) {
    struct model m = {0};
    const int same = (int)nb_param_number(call, "same"), given = nb_param_count(call, "x");
    for (int i = 0; i < given; i++)
        for (int j = 0; j < same && m.n < MOST; j++) m.x[m.n++] = nb_param_number_at(call, "x", i);
    for (int i = 0; i < m.n; i++) m.target[i] = m.x[i] - nb_param_number(call, "error");
    const double whole = central_difference(m);
    /* One term: all targets but the first are met, so that its part of the mean is all of the gradient. */
    for (int i = 1; i < m.n; i++) m.target[i] = m.x[i];
    add_scale(call, "one term", central_difference(m));
    add_scale(call, "sum", whole);
}

const struct nb_property nb_property_descent[] = {
    {"descent",
     "gradient descent on raw and on divided inputs",
     descent_run,
     {{"x", "[100, 200, 300]", "inputs", false, NULL},
      {"divide", "[1, 100]", "inputs and errors divided by", false, "divide"},
      {"error", "10", "of each prediction at the start", false, NULL},
      {"rate", "0.001", "", false, NULL},
      {"steps", "100", "", true, NULL}}},
    {"divide",
     "what dividing inputs by a constant does to the loss",
     divide_run,
     {{"x", "[100, 200, 300]", "inputs", false, NULL},
      {"error", "10", "of each prediction", false, NULL},
      {"by", "100", "the constant", false, NULL}}},
    {"gradient_balance",
     "gradients of features of different size",
     gradient_balance_run,
     {{"features", "[10000, 30]", "mean of each: income, age", false, NULL},
      {"spread", "0.3", "standard deviation over the mean", false, NULL},
      {"norm", "[\"none\", \"minmax\", \"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false,
       "norm"},
      {"samples", "1000", "", true, NULL}}},
    {"gradient_scale",
     "a worked gradient, as one term and as the sum",
     gradient_scale_run,
     {{"x", "[100]", "inputs; `same` of each", false, NULL},
      {"error", "10", "of each prediction", false, NULL},
      {"same", "3", "how often each input occurs in the batch", true, NULL},
      {"rate", "0.001", "", false, NULL}}},
    {.name = NULL}};
