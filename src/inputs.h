// SPDX-License-Identifier: Apache-2.0
/* The numbers a case works on: named distributions with a seed, .npy files, raw files. Values are rounded once to the case's
 * dtype; the oracle and the kernels see the same stored values. */
#ifndef NB_INPUTS_H
#define NB_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "src/case.h"

/* Packed, row after row, rows x cols of the case's shape (no stride, no padding). */
struct nb_inputs {
    enum nb_dtype dtype;
    int64_t rows, cols, n_params; /* n_params: cols, for BatchNorm c */
    void *x, *residual;           /* residual: null unless the op takes one */
    void *dy;                     /* backward only */
    float *gamma_f32, *beta_f32;  /* param: f32 */
    void *gamma_x, *beta_x;       /* param: x's dtype (the f32 values rounded to it) */
    float *running_mean, *running_var;
};

struct nb_data {
    const char *name, *help;
};
extern const struct nb_data nb_distributions[];
extern const size_t nb_n_distributions;

/* Checks that the data named exists and fits the shape, without reading all of it: null, or the reason (owned by caller). */
char *nb_inputs_refuse(const struct nb_case *c);
/* Data sets of real rows found in the data folder (NORMBENCH_DATA, tests/data beside the program, the installed share folder):
 * owned names "minilm_embed", sorted. */
int nb_inputs_list(char ***names);
/* Fills everything the case's op needs. -1 after nb_error. */
int nb_inputs_init(struct nb_inputs *in, const struct nb_case *c);
void nb_inputs_release(struct nb_inputs *in);
/* Is the data generated (so that its error has a predictable bias), or real, or an extreme? */
int nb_inputs_is_random(const struct nb_case *c);

#endif
