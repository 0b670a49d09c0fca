// SPDX-License-Identifier: Apache-2.0
#include "src/lab/limits/limits_rules.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/log.h"

int nb_limit_says(struct nb_limit *line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(line->meaning, sizeof line->meaning, format, args);
    va_end(args);
    return -1;
}

void nb_limit_downwards(struct nb_limit *line, enum nb_number number, bool (*ends)(double v, const void *arg),
                        const void *arg) {
    const double first = nb_first_representable(number, ends, arg);
    if (isfinite(first)) line->safe = first;
    const double last = nb_next_below(first, number);
    if (last > 0) line->from = last;
}

struct nb_design nb_limits_isolated(const struct nb_limits *l) {
    struct nb_design d = l->design;
    d.op = NB_OP_RMSNORM;
    d.store = d.weight = d.square = d.acc = d.root = d.rstd = d.scale = d.offset = NB_NUM_F64;
    d.order = NB_ORDER_SEQUENTIAL;
    d.lanes = 1;
    d.fma = d.folded = false;
    d.root_form = NB_ROOT_MUL_RECIP;
    d.eps_place = NB_EPS_INSIDE;
    d.cast = NB_CAST_AFTER;
    d.weight_offset = 0;
    return d;
}

struct nb_emulated nb_limits_constant_row(const struct nb_limits *l, double v, double *y) {
    double *x = nb_alloc((unsigned long long)l->n, 2 * sizeof *x);
    for (int64_t i = 0; i < l->n; i++) x[i] = v;
    const struct nb_emulated e = l->execute.row(&l->design, l->n, x, NULL, NULL, x + l->n, 1);
    *y = x[l->n];
    free(x);
    return e;
}
