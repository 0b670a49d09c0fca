// SPDX-License-Identifier: Apache-2.0
/* One point of a sweep or a map: rows of one scale and one offset go through a kernel, and how far is the output off? Rows are
 * x = scale * (rho + z), z independent standard normal, the same z at every point, so that points differ by nothing else;
 * gamma is 1 and beta 0. */
#ifndef NB_SCAN_H
#define NB_SCAN_H

#include "src/lab/stress/trial.h"

struct nb_scan {
    struct nb_trial trial;
    int64_t rows, cols;
    double *z, *x; /* what was drawn, what is sent; owned */
    double z_max;  /* largest |z| */
    int64_t chain; /* as the kernel declares it for this shape */
};

enum nb_point_state {
    NB_POINT_OK,
    NB_POINT_NAN,        /* NaN where a number belongs */
    NB_POINT_INF,        /* Inf where a number belongs */
    NB_POINT_ZERO,       /* most elements are 0 where a number belongs */
    NB_POINT_UNSTORABLE, /* inputs beyond the dtype's range: the kernel was not called */
    NB_POINT_UNDEFINED,  /* the exact result is no number */
    NB_POINT_FAILED,     /* the call failed; trial.reason says why */
    NB_N_POINT_STATES
};
extern const char *const nb_point_state_names[]; /* "ok", "nan" ...; null-terminated */

/* Errors in units of u rms(y), u = 2^-p of the output; where the spacing of subnormal numbers is wider than 2 u rms(y), in half of
 * it. A row whose exact result is 0 throughout counts as one with rms(y) = 1. NaN: not known. */
struct nb_scan_point {
    enum nb_point_state state;
    double scaled_u;        /* largest |error| of the finite elements */
    double bound_u;         /* largest error that the declared formula allows; NaN where it predicts a loss */
    double noise_u;         /* largest change of the exact result under half an ulp of input noise */
    double max_ulp, bias_u; /* as struct nb_accuracy has them */
    double gain_u;          /* relative error that a row shares, of its worst row, signed, in u */
    double gain_rms_u;      /* root mean square of it over rows */
    double eps_effect_u;    /* effect of eps on y, relative, in u */
    int64_t nan, inf, zero; /* elements */
};

/* Rows and columns as the op wants them (BatchNorm: channels and positions). -1 with trial.reason when the kernel or the op cannot
 * be scanned so; s is to be released all the same. */
int nb_scan_init(struct nb_scan *s, const struct nb_trial *like, int64_t rows, int64_t cols, uint64_t seed);
/* Calls the kernel at a point. quick: only state and scaled_u are found, at a quarter of the time. */
void nb_scan_measure(struct nb_scan *s, double scale, double rho, bool quick, struct nb_scan_point *out);
void nb_scan_release(struct nb_scan *s);

#endif
