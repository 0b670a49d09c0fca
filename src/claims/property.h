// SPDX-License-Identifier: Apache-2.0
/* Small experiments with a known answer, named and with parameters, so that claims can share them: one question each. The file
 * src/claims/property_NAME.c defines `const struct nb_property nb_property_NAME[]`, of one subject; the Makefile finds it, and nothing else is edited:
 * the struct holds its line of documentation and its parameters with their defaults (`normbench claims --explain properties`).
 * Where a kernel of the registry computes what the question is about, it is called (nb_norm_found); what none computes (WeightNorm, min-max,
 * statistics of n - 1, gradient descent) is written out in the experiment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/claims/finding.h"
#include "src/core/kernel_fields.h"
#include "src/lab/stress/trial.h"

struct nb_property_param {
    const char *name;     /* null ends a list */
    const char *fallback; /* as JSON: "1e-5", "[1, 2]", "\"rmsnorm_twopass\"" */
    const char *help;
    bool count; /* a whole number from 1 to NB_PROPERTY_MOST, so that no claim can take all memory */
    /* Not null: its list is gone through. The experiment is run for each combination of such values, the last one's changing fastest, and
     * its findings are tagged with these values; "": they are not. */
    const char *tag;
};
#define NB_PROPERTY_MOST 4096

struct nb_property_call {
    const struct nb_property *property;
    const cJSON *params; /* of the claim, checked; fallbacks are in */
    struct nb_findings *out;
};

struct nb_property {
    const char *name, *summary;
    void (*run)(const struct nb_property_call *call);
    struct nb_property_param params[8]; /* seven at most */
};

/* The i-th of all files, by name; null: there are no more. */
const struct nb_property *nb_property_at(size_t i);

/* Parameters of a run; they exist, since they are checked when the claim is read. A list of one is the same as a single value. */
double nb_param_number(const struct nb_property_call *call, const char *name);
int64_t nb_param_whole(const struct nb_property_call *call, const char *name);
const char *nb_param_text(const struct nb_property_call *call, const char *name); /* "" where it is no text */
int nb_param_count(const struct nb_property_call *call, const char *name);
double nb_param_number_at(const struct nb_property_call *call, const char *name, int i); /* NaN where it is no number */
const char *nb_param_text_at(const struct nb_property_call *call, const char *name, int i);

/* Adds an exact finding with the tags of the run; further ones can be added to it. */
struct nb_finding *nb_property_add(const struct nb_property_call *call, const char *name, const char *unit,
                                   double value);
/* The same, but where the value is NaN, a finding without a value, with the reason. */
struct nb_finding *nb_property_add_or(const struct nb_property_call *call, const char *name, const char *unit,
                                      double value, const char *reason);
/* The same of a value for each of n seeds, which it takes over; more than one have an interval. */
struct nb_finding *nb_property_add_seeds(const struct nb_property_call *call, const char *name, const char *unit,
                                         double *values, size_t n, const char *reason);

/* ---- a kernel of the registry called on plain numbers ---- */

struct nb_norm {
    const char *kernel; /* "rmsnorm_twopass"; at its widest width here */
    enum nb_dtype dtype;
    double eps;
    struct nb_formula formula; /* affine follows from gamma and beta */
    enum nb_mode mode;         /* BatchNorm */
    double momentum;           /* 0: the usual 0.1 */
    const char *shape;         /* null: ROWSxCOLS, for BatchNorm positions x channels */
    int64_t rows, cols;
    const double *x;                   /* rows x cols numbers, packed */
    const double *gamma, *beta;        /* null: 1, 0 */
    float *running_mean, *running_var; /* BatchNorm: in and out; null: 0 and 1 */
};

/* y: rows x cols, exact values of what the kernel stored. On failure adds a finding called `figure` without a value, and returns -1. */
int nb_norm_found(const struct nb_property_call *call, const struct nb_norm *n, double *y, const char *figure);
/* The same of rows of f32 without parameters; the kernel "none" copies. */
int nb_norm_plain(const struct nb_property_call *call, const char *kernel, double eps, const double *x, int64_t rows,
                  int64_t cols, double *y, const char *figure);
/* The same ready to be called, again and again, such as under a counter. -1 with the reason written. */
int nb_norm_prepare(struct nb_trial *t, const struct nb_norm *n, char *reason, size_t reason_n);

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
/* n numbers, so many apart, to [0, 1]. */
void nb_minmax(const double *x, int64_t n, int64_t step, double *y);
