// SPDX-License-Identifier: Apache-2.0
/* A normalization inside a model: forward and backward by the kernels that normbench measures, composed or fused, found in the
 * registry and called through their own ABI; centring and scaling alone, for which no kernel exists, are written here. */
#ifndef NB_TRAIN_NORM_LAYER_H
#define NB_TRAIN_NORM_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/kernel_entry.h"
#include "src/train/parameters.h"
#include "src/train/workload.h"

struct nb_norm_layer { /* zero-initialised it is none */
    struct nb_norm_choice choice;
    struct nb_model *model;                    /* borrowed; its norm_seconds and norm_calls grow here */
    const struct nb_entry *forward, *backward; /* null for none, centre, scale */
    struct nb_parameter *gamma, *beta;         /* null where there is none */
    int64_t rows, cols;
    float *mean, *rstd;                /* of each row, from forward to backward; BatchNorm per column */
    float *running_mean, *running_var; /* BatchNorm */
    float *next_mean, *next_var;       /* where a call writes the moved ones, since outputs never alias inputs */
    float *dgamma, *dbeta;             /* of one call */
    int64_t first;                     /* row that the call under way begins with */
    int64_t set_at;                    /* BatchNorm in sets of rows: where the columns of the one under way begin */
    int64_t *which;                    /* its rows, */
    float *packed[3];                  /* and what they hold: x, dy, and y or dx */
    float *scratch;                    /* for the kernel that needs most */
    size_t scratch_bytes;
};

/* What the model's options say: finds the kernels for f32 at the widest width of this machine; adds gamma and beta to the parameters as
 * "NAME.gamma", "NAME.beta" (centre and scale have a gamma alone). At most `rows` rows; their statistics are kept for the backward pass.
 * The model has failed, after nb_error, when a kernel is not there. */
void nb_norm_layer_init(struct nb_norm_layer *n, struct nb_model *model, const char *name, int64_t rows, int64_t cols);
/* Rows first to first + rows - 1 of the layer, such as those of some steps of time; y and x are theirs, packed, rows x cols, apart.
 * Returns y, rounded to the model's dtype; x itself where there is no norm. training: BatchNorm uses the batch's statistics and moves
 * the running ones. */
const float *nb_norm_forward(struct nb_norm_layer *n, float *y, const float *x, int64_t first, int64_t rows,
                             bool training);
/* x as the forward call got it. Adds to the gradients of gamma and beta, overwrites dx. Returns dx, or dy where there is no norm. */
const float *nb_norm_backward(struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t first,
                              int64_t rows);

/* Which rows of a batch of sequences BatchNorm takes together: all, or those of one position; with the rows behind the end of a
 * sequence, which hold padding, or without them. */

struct nb_row_sets { /* rows: sequence after sequence */
    int64_t batch, sequence;
    const int32_t *lengths; /* of the sequences of the batch under way; borrowed */
    bool masked;            /* padding belongs to no set */
    bool by_position;
};

#endif
