// SPDX-License-Identifier: Apache-2.0
/* Truth and bound of generated rows, as for a design's report. */
#include "src/lab/tolerance/tolerance_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/bound.h"
#include "src/core/log.h"
#include "src/lab/emulate/design_case.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/emulate/exact_row.h"
#include "src/plan/inputs.h"

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
