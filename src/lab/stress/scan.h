// SPDX-License-Identifier: Apache-2.0
/* One point of a sweep or a map: rows of one scale and one offset go through a kernel, and how far is the output off? Rows are
 * x = scale * (rho + z), z independent standard normal, the same z at every point, so that points differ by nothing else;
 * gamma is 1 and beta 0. */
#ifndef NB_SCAN_H
#define NB_SCAN_H

#include <cjson/cJSON.h>

#include "src/accuracy/bound.h"
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
const char *nb_point_state_name(enum nb_point_state state); /* "ok", "nan" ... */

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

/* ---- What theory says of a scan before it is made: laws of rounding-error growth. Errors in u rms(y) of the output, as in scan.h ---- */

struct nb_scan_theory {
    const struct nb_case *c;
    struct nb_arithmetic arithmetic; /* of the statistics */
    double n;                        /* elements that a statistic is taken over */
    double z_max;
    double eps;       /* as the statistics hold it */
    double u;         /* of x and y */
    bool centres;     /* is the mean subtracted? */
    bool squares_raw; /* are x themselves squared, not their distances from the mean? */
};
void nb_scan_theory_init(struct nb_scan_theory *t, const struct nb_scan *s);

/* Relative standard deviation of a sum of n positive terms, and of a few operations with it: chain^2 / (18 n) u_sum^2 + u_op^2 / 2 is
 * its square, since L = n / chain lanes err independently, each by a random walk of uniform roundings. */
double nb_law_sum_sd(const struct nb_scan_theory *t);

/* "predicted" of a sweep, [{"name":.., "points":[[x, y] ..]} ..]: y at the given x. */
cJSON *nb_laws_over_rho(const struct nb_scan_theory *t, const double *rho, int n);
cJSON *nb_laws_over_eps(const struct nb_scan_theory *t, double scale, double rho, const double *eps, int n);
/* Names of the laws of the row's shared error over n, and one law at one n. */
enum nb_law_over_n { NB_LAW_WORST_CASE, NB_LAW_SQRT_N, NB_LAW_SD, NB_LAW_BIAS, NB_N_LAWS_OVER_N };
extern const char *const nb_law_over_n_names[NB_N_LAWS_OVER_N];
double nb_law_over_n(const struct nb_scan_theory *t, enum nb_law_over_n law);

#endif
