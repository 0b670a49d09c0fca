// SPDX-License-Identifier: Apache-2.0
/* Bisection on the logarithm: what is seen at g is taken to be seen above. */
#include "src/lab/tolerance/tolerance_detect.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/lab/tolerance/tolerance_criteria.h"

struct shifted {
    const struct nb_criterion *c;
    enum nb_number store;
    const struct nb_tolerance_test *t;
    enum nb_fault_kind kind;
    double *rms, *got; /* rms of each row */
};

static bool is_seen(const struct shifted *s, double g) {
    const int64_t cols = s->t->rows.cols;
    for (int64_t i = 0; i < s->t->n; i++) {
        const double y = s->t->exact[i], v = s->kind == NB_FAULT_GAIN ? y * (1 + g) : y + g * s->rms[i / cols];
        s->got[i] = s->t->usable[i] ? nb_number_round(v, 0, s->store, NB_ROUND_NEAREST, 0) : y;
    }
    return nb_criterion_alarms(s->c, s->store, s->t->rows.rows, cols, s->got, s->t->want, s->t->usable);
}

double nb_least_seen(const struct nb_criterion *c, enum nb_number store, const struct nb_tolerance_test *t,
                     enum nb_fault_kind kind) {
    const int64_t rows = t->rows.rows, cols = t->rows.cols;
    struct shifted s = {c, store, t, kind, nb_alloc((unsigned long long)(rows + t->n), sizeof *s.rms), NULL};
    s.got = s.rms + rows;
    for (int64_t i = 0; i < t->n; i++) s.rms[i / cols] += t->usable[i] ? t->exact[i] * t->exact[i] / (double)cols : 0;
    for (int64_t row = 0; row < rows; row++) s.rms[row] = sqrt(s.rms[row]);
    double low = -40, high = 0; /* log2 g */
    double least = (double)INFINITY;
    if (is_seen(&s, 0)) {
        least = 0;
    } else if (is_seen(&s, 1)) {
        while (high - low > 0.07) {
            const double middle = (low + high) / 2;
            if (is_seen(&s, exp2(middle)))
                high = middle;
            else
                low = middle;
        }
        least = exp2(high);
    }
    free(s.rms);
    return least;
}
