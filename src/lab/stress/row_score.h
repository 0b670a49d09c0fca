// SPDX-License-Identifier: Apache-2.0
/* How far each row of a trial's last call is off, measured in four ways at once, so that a search can follow any of them. Row
 * kernels, forward: rmsnorm, prmsnorm, layernorm, l2norm, dyt and the add_ ones. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/bound.h"
#include "src/lab/stress/trial.h"

enum nb_measure {
    NB_BY_BOUND,  /* |error| / a-priori bound of the declared formula; NaN where it predicts a loss */
    NB_BY_NOISE,  /* |error| / effect of input noise (src/accuracy/yardstick.h), no less than half an ulp */
    NB_BY_ULP,    /* |error| / ulp(exact) */
    NB_BY_SCALED, /* |error| / ulp(magnitude): the exact value's, or the terms' that cancel in it (nb_row_magnitude) */
    NB_N_MEASURES
};
extern const char *const nb_measure_names[NB_N_MEASURES]; /* "bound", "noise", "ulp", "scaled_ulp" */

/* What "the oracle's answer" leaves room for, whatever the kernel: this many ulp(magnitude) (f32: about what torch.testing grants by
 * default, 1.3e-6; narrow outputs hide the statistics' error, so 4), or this multiple of the input noise. */
static inline double nb_granted_ulp(enum nb_dtype dtype) { return dtype == NB_F32 ? 16 : 4; }
#define NB_GRANTED_NOISE 4.0

struct nb_row_worst {
    double value; /* NaN: nothing to measure */
    int64_t col;  /* -1: none */
    double got, want;
};

struct nb_row_score {
    struct nb_row_worst worst[NB_N_MEASURES];
    int64_t n_nan, n_inf,
        n_zero; /* where the exact result is an ordinary number; zeros only where that is too far off */
    struct nb_row_worst strange; /* the first of those; without a value */
    double accurate;             /* largest |error| / what is granted */
    double gain_u;               /* error = gain y + rest by least squares, in u of the dtype */
    double sum_error_u; /* -2 gain / w, w = var / (var + eps): how far the sum of squares is off, root and last rounding
                           included; NaN where eps outweighs it, or statistics are finer than the output shows */
    enum nb_loss loss;
    bool claimed; /* does the kernel claim its accuracy for such a row (struct nb_range)? */
};

/* Can rows of this case be scored at all? Null, or why not. */
const char *nb_row_score_refuses(const struct nb_case *c);
/* Scores all rows of the last call: t->c.shape.rows of them. -1 with t->reason. */
int nb_row_score(struct nb_trial *t, struct nb_row_score *scores);
/* Did the row come back without NaN, Inf and lost zeros? */
static inline bool nb_row_is_ordinary(const struct nb_row_score *s) { return s->n_nan + s->n_inf + s->n_zero == 0; }
