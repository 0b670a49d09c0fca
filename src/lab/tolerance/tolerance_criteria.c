// SPDX-License-Identifier: Apache-2.0
/* The comparison functions that tests are written with. */
#include "src/lab/tolerance/tolerance_criteria.h"

#include <math.h>

#include "src/core/stats.h"

/* torch.testing.assert_close and numpy.testing.assert_allclose without rtol and atol; numpy.allclose; ggml's test-backend-ops;
 * the atol and rtol of vLLM's layernorm test. */
void nb_criteria_in_use(struct nb_tolerance *t, enum nb_number store) {
    const double torch_rtol = store == NB_NUM_F32 ? 1.3e-6 : store == NB_NUM_F16 ? 1e-3 : 1.6e-2;
    const struct nb_criterion in_use[] = {
        {"torch assert_close", NB_CRITERION_ALLCLOSE, torch_rtol, 1e-5, NAN},
        {"numpy assert_allclose", NB_CRITERION_ALLCLOSE, 1e-7, 0, NAN},
        {"numpy allclose", NB_CRITERION_ALLCLOSE, 1e-5, 1e-8, NAN},
        {"ggml NMSE 1e-7", NB_CRITERION_NMSE, NAN, NAN, 1e-7},
        {"vLLM 1e-2", NB_CRITERION_ALLCLOSE, 1e-2, 1e-2, NAN},
    };
    for (size_t i = 0; i < sizeof in_use / sizeof in_use[0]; i++) t->criteria[t->n_criteria++] = in_use[i];
}

static bool is_usable(const bool *usable, int64_t i) { return !usable || usable[i]; }

static bool element_fails(const struct nb_criterion *c, enum nb_number store, double got, double want) {
    const double error = fabs(got - want);
    if (got == want) return false;
    if (c->kind == NB_CRITERION_ULP) return !(error <= c->limit * nb_number_ulp(want, store));
    return !(error <= c->atol + c->rtol * fabs(want));
}

static bool nmse_fails(const struct nb_criterion *c, int64_t n, const double *got, const double *want,
                       const bool *usable) {
    double errors = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!is_usable(usable, i)) continue;
        errors += (got[i] - want[i]) * (got[i] - want[i]);
        squares += want[i] * want[i];
    }
    return !(errors <= c->limit * squares);
}

double nb_mean_error(int64_t rows, int64_t cols, const double *got, const double *want, const bool *usable) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t first = row * cols;
        double squares = 0;
        for (int64_t i = first; i < first + cols; i++) squares += is_usable(usable, i) ? want[i] * want[i] : 0;
        const double least = sqrt(squares / (double)cols) / 4;
        for (int64_t i = first; i < first + cols; i++) {
            if (!is_usable(usable, i) || !(fabs(want[i]) > least)) continue;
            sum += (fabs(got[i]) - fabs(want[i])) / fabs(want[i]);
            n++;
        }
    }
    return n > 0 ? sum / (double)n : NAN;
}

bool nb_criterion_alarms(const struct nb_criterion *c, enum nb_number store, int64_t rows, int64_t cols,
                         const double *got, const double *want, const bool *usable) {
    const int64_t n = rows * cols;
    if (c->kind == NB_CRITERION_MEAN_ERROR)
        return !isnan(c->limit) && fabs(nb_mean_error(rows, cols, got, want, usable)) > c->limit;
    if (c->kind == NB_CRITERION_NMSE) return nmse_fails(c, n, got, want, usable);
    for (int64_t i = 0; i < n; i++)
        if (is_usable(usable, i) && element_fails(c, store, got[i], want[i])) return true;
    return false;
}

void nb_rate_count(struct nb_rate *rate, bool seen) {
    rate->n++;
    rate->seen += seen;
}

void nb_rate_finish(struct nb_rate *rate) {
    rate->low = nb_proportion_lower(rate->seen, rate->n, 0.95);
    rate->high = nb_proportion_upper(rate->seen, rate->n, 0.95);
}
