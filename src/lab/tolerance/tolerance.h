// SPDX-License-Identifier: Apache-2.0
/* Which difference between a kernel's output and a reference is no mistake. The a-priori bound (bound.h) gives what each element of
 * a correct kernel may be off; the line atol + rtol |want| above all of them is the tolerance. Then it is tried: correct kernels in several
 * orders must pass, planted mistakes should not, beside tolerances in common use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/core/kernel_fields.h"
#include "src/lab/emulate/emulate.h"

/* What the output is compared with. */
enum nb_reference_kind {
    NB_REFERENCE_EXACT,   /* the exact result, in f64 */
    NB_REFERENCE_ROUNDED, /* that, rounded to the dtype */
    NB_REFERENCE_PEER,    /* another correct kernel */
    NB_N_REFERENCE_KINDS
};
extern const char *const nb_reference_kind_names[]; /* null-terminated */

struct nb_tolerance_request {
    struct nb_design design;
    const struct nb_entry *kernel; /* or null; then the bound is that of the kernel's chain */
    const char *data;
    int64_t rows, cols; /* of one test; rows 0: 16 */
    uint64_t seed;
    enum nb_affine affine; /* NB_N_AFFINES: the op's usual one */
    int64_t trials;        /* tests of each correct kernel; 0: as many as take a few seconds */
    double alarm;          /* how often a correct kernel may fail the calibrated tolerance */
    enum nb_reference_kind reference;
};

enum nb_criterion_kind {
    NB_CRITERION_ALLCLOSE,   /* |got - want| <= atol + rtol |want| */
    NB_CRITERION_ULP,        /* |got - want| <= limit ulp(want) */
    NB_CRITERION_NMSE,       /* sum (got - want)^2 <= limit sum want^2 */
    NB_CRITERION_MEAN_ERROR, /* |mean of (|got| - |want|) / |want|| <= limit, over |want| > rms(want) / 4 */
};
struct nb_criterion {
    const char *name;
    enum nb_criterion_kind kind;
    double rtol, atol, limit;
};
/* The first four are this program's; NaN as limit: there is none. */
enum { NB_DERIVED, NB_CALIBRATED, NB_ULPS, NB_MEAN_ERROR_TEST, NB_N_OWN_CRITERIA };
/* Fewer tests of a correct kernel calibrate nothing. */
enum { NB_FEWEST_TESTS = 16 };
enum { NB_MAX_CRITERIA = 12, NB_MAX_SUBJECTS = 40, NB_MAX_BUGS = 32 };

/* How often something was seen in n tests, with exact one-sided 95 % bounds. */
struct nb_rate {
    int64_t seen, n;
    double low, high;
};

struct nb_subject {
    char name[96];
    bool under_test; /* the request's own kernel, which has no part in the calibration */
    double worst;    /* largest |error| / derived tolerance; where: */
    int64_t worst_row, worst_col;
    uint64_t worst_seed; /* of the rows of that test */
    struct nb_rate alarms[NB_MAX_CRITERIA];
    char reason[128]; /* why it was not run; "" where it was */
};

struct nb_bug_result {
    const char *name, *help;
    struct nb_rate changed; /* tests in which any output is another than without the mistake */
    struct nb_rate caught[NB_MAX_CRITERIA];
};

struct nb_tolerance {
    struct nb_criterion criteria[NB_MAX_CRITERIA];
    int n_criteria;
    int64_t chain;                   /* of roundings that the bound allows */
    int64_t rows, trials;            /* of a test; tests of each correct kernel that were counted */
    double rms;                      /* of the outputs */
    double max_ulp;                  /* of the derived tolerance, over elements, as the bound has it */
    double calibrated_share;         /* of derived; NaN: there are too few tests of correct kernels */
    double calibrated_alarm;         /* and the alarm rate that the trials can vouch for */
    int64_t n_lost, n_elements;      /* elements for which the bound predicts a loss, of those looked at */
    int64_t n_uncovered, n_held_out; /* of other rows: elements whose bound the derived line does not cover */
    struct nb_subject subjects[NB_MAX_SUBJECTS];
    int n_subjects;
    struct nb_bug_result bugs[NB_MAX_BUGS];
    int n_bugs;
    int64_t bug_trials;
};

/* ---- Derives a tolerance and tries it ---- */

/* Do all kernels keep the derived tolerance, and has the one under test no bias that correct ones have not? */
bool nb_tolerance_is_kept(const struct nb_tolerance *t);

/* -1 after nb_error. 128 + signal: interrupted; t holds what was counted until then, if trials > 0. */
int nb_tolerance_run(struct nb_tolerance *t, const struct nb_tolerance_request *request);
/* The rates of what was counted, where that was ended before it returned. */
void nb_tolerance_finish(struct nb_tolerance *t);
