// SPDX-License-Identifier: Apache-2.0
/* How much a change of the inputs grows, whatever the kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/lab/limits/limits_rules.h"

static int conditioning(const struct nb_limits *l, struct nb_limit *line) {
    const bool centred = nb_op_centres(l->design.op);
    const double rho = centred ? l->rho : 0, u_in = nb_limits_format(l->design.store)->unit_roundoff;
    if (l->n < 3) return nb_limit_says(line, "Rows of one or two elements follow other laws.");
    line->law = line->from = sqrt(1 + rho * rho);
    snprintf(line->tolerance, sizeof line->tolerance, "within 1 %%");
    if (centred)
        nb_limit_says(line,
                      "At rho = %.4g half an ulp in the inputs of %s moves y by up to %.3g of its rms, whatever the "
                      "kernel does.",
                      rho, nb_limits_format(l->design.store)->name, line->law * u_in);
    else
        nb_limit_says(line, "RMSNorm amplifies nothing: errors beyond a few u are the kernel's own.");
    return 0;
}

/* Makes v orthogonal to the ones (where there is a mean) and to z. */
static void take_out(double *v, const double *z, int64_t n, bool centred) {
    double mean = 0, along = 0, length = 0;
    for (int64_t i = 0; i < n && centred; i++) mean += v[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        v[i] -= mean;
        along += v[i] * z[i];
        length += z[i] * z[i];
    }
    for (int64_t i = 0; i < n; i++) v[i] -= along / length * z[i];
}

static double norm(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

/* |dy| / |y| over |dx| / |x| along a direction in which nothing is lost. */
static double amplification(const struct nb_limits *l, double rho) {
    const int64_t n = l->n;
    const bool centred = nb_op_centres(l->design.op);
    double *z = nb_alloc((unsigned long long)n, 6 * sizeof *z), *dx = z + n, *x = dx + n, *moved = x + n,
           *y = moved + n, *y_moved = y + n;
    struct nb_design d = nb_limits_isolated(l);
    d.op = l->design.op;
    d.stat = NB_NUM_F64;
    d.variance = NB_VAR_TWOPASS;
    nb_limits_normal_row(z, n, 0, 1, NB_NUM_F64, l->seed, 0);
    nb_limits_normal_row(dx, n, 0, 1, NB_NUM_F64, l->seed, 1);
    double mean = 0;
    for (int64_t i = 0; i < n && centred; i++) mean += z[i] / (double)n;
    for (int64_t i = 0; i < n; i++) z[i] -= mean;
    const double sd = norm(z, n) / sqrt((double)n);
    take_out(dx, z, n, centred);
    const double step = 1e-6 * norm(z, n) / norm(dx, n);
    for (int64_t i = 0; i < n; i++) {
        x[i] = rho * sd + z[i];
        moved[i] = x[i] + step * dx[i];
    }
    l->hands.row(&d, n, x, NULL, NULL, y, l->seed);
    l->hands.row(&d, n, moved, NULL, NULL, y_moved, l->seed);
    const double size_x = norm(x, n), size_y = norm(y, n), size_dx = step * norm(dx, n);
    for (int64_t i = 0; i < n; i++) y_moved[i] -= y[i];
    const double result = norm(y_moved, n) / size_y / (size_dx / size_x);
    free(z);
    return result;
}
static bool conditioning_holds(const struct nb_limits *l, struct nb_limit *line) {
    const double rho = nb_op_centres(l->design.op) ? l->rho : 0, got = amplification(l, rho);
    snprintf(line->at, sizeof line->at, "a change of the input grew %.5g-fold", got);
    return fabs(got / line->from - 1) < 0.01;
}

const struct nb_limit_rule nb_conditioning_rules[] = {
    {"conditioning", "mean", "condition number", "-fold", conditioning, NULL, conditioning_holds},
};
const size_t nb_n_conditioning_rules = sizeof nb_conditioning_rules / sizeof nb_conditioning_rules[0];
