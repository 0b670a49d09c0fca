// SPDX-License-Identifier: Apache-2.0
/* The lowest line above points at x = X is the edge of their upper convex hull over X. */
#include "src/lab/tolerance/tolerance_test.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/bound.h"
#include "src/core/log.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"
#include "src/plan/inputs.h"

enum { PER_OCTAVE = 256, LEAST_EXPONENT = -160, OCTAVES = 320, BINS = PER_OCTAVE * OCTAVES };

/* Bin 0 is y = 0 and what is below all bins. */
static int bin_of(double y) {
    if (!(y >= ldexp(1, LEAST_EXPONENT))) return 0;
    int e;
    const double share = frexp(y, &e); /* [1/2, 1) */
    const int bin = 1 + (e - 1 - LEAST_EXPONENT) * PER_OCTAVE + (int)((share - 0.5) * 2 * PER_OCTAVE);
    return bin < BINS ? bin : BINS;
}
static double least_of(int bin) {
    if (bin == 0) return 0;
    const int octave = (bin - 1) / PER_OCTAVE, part = (bin - 1) % PER_OCTAVE;
    return ldexp(1 + (double)part / PER_OCTAVE, octave + LEAST_EXPONENT);
}

void nb_cloud_add(struct nb_cloud *c, double y, double error) {
    const int bin = bin_of(fabs(y));
    if (!c->largest) c->largest = nb_alloc(BINS + 1, sizeof *c->largest);
    if (error > c->largest[bin]) c->largest[bin] = error;
    c->sum_squares += y * y;
    c->n++;
}

double nb_cloud_rms(const struct nb_cloud *c) { return c->n > 0 ? sqrt(c->sum_squares / (double)c->n) : 0; }

double nb_round_up(double v) {
    if (!(v > 0) || isinf(v)) return v;
    char text[32];
    snprintf(text, sizeof text, "%.2e", v);
    double rounded = strtod(text, NULL);
    if (rounded >= v) return rounded;
    const double step = pow(10, floor(log10(v)) - 2);
    snprintf(text, sizeof text, "%.2e", rounded + step);
    return strtod(text, NULL);
}

struct point {
    double x, y;
};

static double cross(struct point o, struct point a, struct point b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

void nb_cloud_line(const struct nb_cloud *c, double *rtol, double *atol) {
    assert(c->largest);
    struct point *hull = nb_alloc(BINS + 2, sizeof *hull);
    const double at = nb_cloud_rms(c);
    int n = 0;
    hull[n++] = (struct point){0, c->largest[0]};
    for (int bin = 1; bin <= BINS; bin++) {
        if (c->largest[bin] <= 0) continue;
        const struct point p = {least_of(bin), c->largest[bin]};
        while (n >= 2 && cross(hull[n - 2], hull[n - 1], p) >= 0) n--;
        hull[n++] = p;
    }
    int i = 1;
    while (i < n - 1 && hull[i].x < at) i++;
    double slope = n > 1 ? (hull[i].y - hull[i - 1].y) / (hull[i].x - hull[i - 1].x) : 0;
    if (slope < 0) slope = 0;
    *rtol = nb_round_up(slope);
    double above = 0; /* with the slope as printed */
    for (int k = 0; k < n; k++) above = fmax(above, hull[k].y - *rtol * hull[k].x);
    *atol = nb_round_up(above);
    free(hull);
}

/* ---- Truth and bound of generated rows, as for a design's report ---- */

const char *const nb_reference_kind_names[] = {"exact", "rounded", "peer", NULL};

static int64_t rows_of_file(const struct nb_tolerance_request *request) {
    int64_t rows, cols;
    char reason[1024];
    if (nb_source_size(request->data, &rows, &cols, reason, sizeof reason) != 0) return nb_error("%s", reason);
    return rows > 0 ? rows : 0;
}

int64_t nb_tolerance_tests(const struct nb_tolerance_request *request) {
    const int64_t rows = rows_of_file(request);
    return rows == 0 ? INT64_MAX : rows < 0 ? -1 : rows / request->rows;
}

/* A file's rows are cut into tests. */
static int load(struct nb_tolerance_test *t, const struct nb_tolerance_request *q, int64_t index) {
    const int64_t in_file = rows_of_file(q);
    struct nb_design_data data = {.data = q->data,
                                  .rows = in_file > 0 ? (index + 1) * q->rows : q->rows,
                                  .cols = q->cols,
                                  .seed = q->seed + (in_file > 0 ? 0 : (uint64_t)index),
                                  .affine = q->affine};
    if (in_file < 0 || nb_design_data_resolve(&data) != 0 || nb_design_rows_init(&t->rows, &q->design, &data) != 0)
        return -1;
    const int64_t skipped = t->rows.rows - q->rows, n = q->rows * t->rows.cols;
    if (skipped > 0) memmove(t->rows.x, t->rows.x + skipped * t->rows.cols, (size_t)n * sizeof *t->rows.x);
    t->rows.rows = q->rows;
    t->n = n;
    return 0;
}

/* |want - exact| comes on top of what the kernel may be off. */
static void set_reference(struct nb_tolerance_test *t, const struct nb_tolerance_request *q) {
    const enum nb_number store = q->design.store;
    const int64_t cols = t->rows.cols;
    for (int64_t i = 0; i < t->n; i++) t->want[i] = t->exact[i];
    if (q->reference == NB_REFERENCE_ROUNDED)
        for (int64_t i = 0; i < t->n; i++) {
            t->want[i] = nb_number_round(t->exact[i], 0, store, NB_ROUND_NEAREST, 0);
            t->allowed[i] += nb_number_ulp(t->exact[i], store) / 2;
        }
    if (q->reference == NB_REFERENCE_PEER) {
        for (int64_t row = 0; row < t->rows.rows; row++)
            nb_emulate_row(&q->design, cols, t->rows.x + row * cols, t->gamma, t->beta, t->want + row * cols, 1);
        for (int64_t i = 0; i < t->n; i++) t->allowed[i] *= 2;
    }
}

static void judge_rows(struct nb_tolerance_test *t, const struct nb_design *d, int64_t chain) {
    const int64_t rows = t->rows.rows, cols = t->rows.cols;
    struct nb_inputs sizes = {.dtype = (enum nb_dtype)t->c.dtype, .rows = rows, .cols = cols, .n_params = cols};
    struct nb_oracle oracle = {.c = &t->c,
                               .in = &sizes,
                               .truth = t->truth,
                               .n_truth = rows,
                               .gamma = t->gamma,
                               .beta = t->beta,
                               .n_params = cols,
                               .n_stats = nb_design_elements(d, cols)};
    struct nb_bound bound;
    nb_bound_init(&bound, &t->c, &oracle, chain);
    for (int64_t row = 0; row < rows; row++) {
        double *y = t->exact + row * cols, *allowed = t->allowed + row * cols;
        nb_exact_row(&t->c, t->rows.x + row * cols, t->gamma, t->beta, &t->truth[row], y, NULL);
        nb_bound_row(&bound, row, y, allowed);
        for (int64_t i = 0; i < cols; i++) {
            t->usable[row * cols + i] = isfinite(allowed[i]);
            t->n_lost += !isfinite(allowed[i]);
        }
    }
    nb_bound_release(&bound);
}

int nb_tolerance_test_init(struct nb_tolerance_test *t, const struct nb_tolerance_request *q, int64_t chain,
                           int64_t index) {
    *t = (struct nb_tolerance_test){0};
    if (load(t, q, index) != 0) return -1;
    t->gamma = t->rows.gamma;
    t->beta = t->rows.beta;
    nb_design_case(&t->c, &q->design, q->rows, t->rows.cols, t->rows.affine);
    t->exact = nb_alloc((unsigned long long)t->n, 3 * sizeof *t->exact);
    t->want = t->exact + t->n;
    t->allowed = t->want + t->n;
    t->usable = nb_alloc((unsigned long long)t->n, sizeof *t->usable);
    t->truth = nb_alloc((unsigned long long)q->rows, sizeof *t->truth);
    judge_rows(t, &q->design, chain);
    set_reference(t, q);
    return 0;
}

void nb_tolerance_test_release(struct nb_tolerance_test *t) {
    nb_design_rows_release(&t->rows);
    free(t->exact);
    free(t->usable);
    free(t->truth);
    *t = (struct nb_tolerance_test){0};
}

/* ---- The comparison functions that tests are written with ---- */

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

/* ---- Bisection on the logarithm: what is seen at g is taken to be seen above ---- */

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
