// SPDX-License-Identifier: Apache-2.0
/* A normalization inside a model: forward and backward by the kernels that normbench measures, composed or fused, found in the
 * registry and called through their own ABI; centring and scaling alone, for which no kernel exists, are written here. */
#ifndef NB_TRAIN_NORM_LAYER_H
#define NB_TRAIN_NORM_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/registry.h"
#include "src/measure/pool.h"
#include "src/train/options.h"
#include "src/train/parameters.h"
#include "src/train/tensor.h"

struct nb_norm_layer {
    struct nb_norm_choice choice;
    const struct nb_entry *forward, *backward; /* null for none, centre, scale */
    struct nb_parameter *gamma, *beta;         /* null where there is none */
    int64_t rows, cols;
    float *mean, *rstd;                /* of the last forward; BatchNorm per column */
    float *running_mean, *running_var; /* BatchNorm */
    float *next_mean, *next_var;       /* where a call writes the moved ones, since outputs never alias inputs */
    float *dgamma, *dbeta;             /* of one call */
    int64_t set_at;                    /* BatchNorm in sets of rows: where the columns of the one under way begin */
    int64_t *which;                    /* its rows, */
    float *packed[3];                  /* and what they hold: x, dy, and y or dx */
    struct nb_arena scratch;           /* of the kernel that needs most */
    float *scratch_start;
    struct nb_pool *pool; /* borrowed; null: the caller alone */
    double seconds;       /* spent in forward and backward since it was last set to 0, without waking the pool */
    int64_t calls;        /* likewise */
};

/* Finds the kernels for f32 at the widest width of this machine; adds gamma and beta to the parameters as "NAME.gamma", "NAME.beta"
 * (two parameters at most; centre and scale have a gamma alone). At most rows rows in a call. -1 after nb_error, when a kernel is not
 * there. */
int nb_norm_layer_init(struct nb_norm_layer *n, const char *name, const struct nb_norm_choice *choice, int64_t rows,
                       int64_t cols, struct nb_parameters *parameters, struct nb_pool *pool);
/* rows of this call, at most the layer's; y and x packed, rows x cols, apart. NB_NORM_NONE copies. training: BatchNorm uses the batch's
 * statistics and moves the running ones. */
void nb_norm_forward(struct nb_norm_layer *n, float *y, const float *x, int64_t rows, bool training);
/* x as the forward call got it. Adds to the gradients of gamma and beta, overwrites dx. */
void nb_norm_backward(struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t rows);
/* The same where no copy is wanted: what is returned is x itself for NB_NORM_NONE, else buffer, which has been written. */
const float *nb_norm_pass(struct nb_norm_layer *n, float *buffer, const float *x, int64_t rows, bool training);
const float *nb_norm_pass_back(struct nb_norm_layer *n, float *buffer, const float *dy, const float *x, int64_t rows);
/* Bytes that stay from forward to backward besides x: the statistics. */
size_t nb_norm_kept_bytes(const struct nb_norm_layer *n);
void nb_norm_layer_release(struct nb_norm_layer *n);

/* Which rows of a batch of sequences BatchNorm takes together: all, or those of one position; with the rows behind the end of a
 * sequence, which hold padding, or without them. */

struct nb_row_sets { /* rows: sequence after sequence */
    int64_t batch, sequence;
    const int32_t *lengths; /* of the sequences of the batch under way; borrowed */
    bool masked;            /* padding belongs to no set */
    bool by_position;
};

/* The kernel of the registry that a normalization of a model is. */

#endif
