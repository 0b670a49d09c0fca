// SPDX-License-Identifier: Apache-2.0
/* Which rows of a batch of sequences BatchNorm takes together: all, or those of one position; with the rows behind the end of a
 * sequence, which hold padding, or without them. */
#ifndef NB_TRAIN_ROW_SETS_H
#define NB_TRAIN_ROW_SETS_H

#include <stdbool.h>
#include <stdint.h>

struct nb_row_sets { /* rows: sequence after sequence */
    int64_t batch, sequence;
    const int32_t *lengths; /* of the sequences of the batch under way; borrowed */
    bool masked;            /* padding belongs to no set */
    bool by_position;
};
int64_t nb_row_sets_count(const struct nb_row_sets *s);
/* The rows of set number i, ascending, into which (arena for all). Returns how many. */
int64_t nb_row_sets_rows(const struct nb_row_sets *s, int64_t i, int64_t *which);

void nb_rows_gather(float *packed, const float *x, const int64_t *which, int64_t n, int64_t cols);
void nb_rows_scatter(float *y, const float *packed, const int64_t *which, int64_t n, int64_t cols);

#endif
