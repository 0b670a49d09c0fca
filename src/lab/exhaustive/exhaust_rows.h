// SPDX-License-Identifier: Apache-2.0
/* Short rows of a 16-bit dtype through a kernel or a design: for row1 and row2. */
#ifndef NB_EXHAUST_ROWS_H
#define NB_EXHAUST_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/lab/emulate/design.h"
#include "src/lab/exhaustive/exhaust.h"

/* What computes the rows: a kernel with a formula, or a design. */
struct nb_row_source {
    const struct nb_entry *entry; /* null: the design */
    struct nb_formula formula;
    struct nb_design design;
    char text[256]; /* as the user would write it */
    double gamma;   /* of all elements, representable in the dtype */
    double weight;  /* that the exact result has: gamma, 1 + gamma, or 1 without */
    uint32_t op;    /* enum nb_op */
};

/* The sources that the options name, each formula of a kernel that matters for short rows by itself: root, cast order with a weight.
 * -1 after nb_error. *sources is the caller's. */
int nb_row_sources(const struct nb_exhaust_options *o, struct nb_row_source **sources, int *n);

/* Memory for so many rows of cols elements, of one thread. */
struct nb_row_buffers {
    int64_t rows, cols;
    uint16_t *x, *y, *zero, *residual_out, gamma_x[8];
    float gamma_f32[8];
    void *scratch;
    size_t scratch_bytes;
};
void nb_row_buffers_init(struct nb_row_buffers *b, int64_t rows, int64_t cols);
void nb_row_buffers_release(struct nb_row_buffers *b);

/* x -> y, n <= rows of b->x. Kernels are called as they are, in this process: only built-in ones are. */
void nb_row_source_run(const struct nb_row_source *s, struct nb_row_buffers *b, enum nb_dtype dtype, int64_t n,
                       double eps);

#endif
