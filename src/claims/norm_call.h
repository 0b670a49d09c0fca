// SPDX-License-Identifier: Apache-2.0
/* A kernel of the registry called on plain numbers, for experiments about the values of a norm, not about its speed. */
#ifndef NB_NORM_CALL_H
#define NB_NORM_CALL_H

#include <stdint.h>

#include "src/claims/property.h"
#include "src/core/case.h"
#include "src/core/registry.h"

struct nb_norm {
    const char *kernel; /* "rmsnorm_twopass"; at its widest width here */
    enum nb_dtype dtype;
    double eps;
    struct nb_formula formula; /* affine follows from gamma and beta */
    enum nb_mode mode;         /* BatchNorm */
    double momentum;           /* 0: the usual 0.1 */
    const char *k;             /* pRMSNorm: "6.25%"; null: that */
    const char *shape;         /* null: ROWSxCOLS, for BatchNorm positions x channels */
};

struct nb_matrix_view { /* rows x cols numbers, packed */
    int64_t rows, cols;
    const double *x;
    const double *gamma, *beta;        /* null: 1, 0 */
    float *running_mean, *running_var; /* BatchNorm: in and out; null: 0 and 1 */
};

/* y: rows x cols, exact values of what the kernel stored. On failure adds a finding called `figure` without a value, and returns -1. */
int nb_norm_found(const struct nb_property_call *call, const struct nb_norm *n, const struct nb_matrix_view *v,
                  double *y, const char *figure);
/* The same of rows of f32 without parameters; the kernel "none" copies. */
int nb_norm_plain(const struct nb_property_call *call, const char *kernel, double eps, const double *x, int64_t rows,
                  int64_t cols, double *y, const char *figure);
/* A call that is ready to be made, again and again, such as under a counter. */
struct nb_norm_buffers {
    unsigned char *block;
    void *x, *y, *scratch;
    float *gamma, *beta, *mean_in, *var_in, *mean_out, *var_out;
};
struct nb_norm_prepared {
    const struct nb_entry *entry;
    struct nb_call call;
    struct nb_norm_buffers buffers;
    int64_t n_params;
};
/* -1 with the reason written; nothing to release then. */
int nb_norm_prepare(struct nb_norm_prepared *p, const struct nb_norm *n, const struct nb_matrix_view *v, char *reason,
                    size_t reason_n);
int nb_norm_call(const struct nb_norm_prepared *p); /* what the kernel returned */
void nb_norm_prepared_release(struct nb_norm_prepared *p);

/* The rows that a case with this data and seed 1 has, in f32; owned. Null after a finding without a value. */
double *nb_norm_rows(const struct nb_property_call *call, const char *data, int64_t rows, int64_t cols,
                     const char *figure);
/* n numbers of N(0,1), always the same, and room for so many as `all` in all; owned. */
double *nb_norm_normal(int64_t n, int64_t all);

/* Of n numbers. */
double nb_mean_of(const double *v, int64_t n);
double nb_variance_of(const double *v, int64_t n); /* biased: over n */
double nb_rms_of(const double *v, int64_t n);
double nb_largest_difference(const double *a, const double *b, int64_t n);

#endif
