// SPDX-License-Identifier: Apache-2.0
/* Sweeps over every input of a function: cut into chunks, which threads take in order. A chunk's result must be a function of its
 * number alone and be kept apart; put together in order they make a result that does not depend on threads. */
#ifndef NB_EXHAUST_H
#define NB_EXHAUST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

struct nb_sweep {
    const char *label; /* of the progress bar */
    int64_t n_chunks;
    void (*chunk)(int64_t chunk, void *arg); /* called from several threads, each chunk once */
    void *arg;
    int64_t
        done; /* by nb_sweep_run: chunks, from the first on without a gap; fewer than all only after an interruption */
    double seconds; /* and how long it took */
};
/* Seconds the sweep will take, from the time of its middle chunk (which is run once more for that). */
double nb_sweep_estimate(const struct nb_sweep *s, int threads);
/* 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_sweep_run(struct nb_sweep *s, int threads);

/* What the exhaustive modes share. */
struct nb_exhaust_options {
    int threads;
    int64_t stride; /* every so many inputs; 1: all, which alone proves anything */
    enum nb_dtype dtype;
    const double *eps; /* list */
    int n_eps;
    const char *const *names; /* variants, kernels (globs) or designs, as the mode has them; none: all */
    int n_names;
    const char *const *designs;
    int n_designs;
    double gamma;    /* weight that distinguishes the cast orders */
    bool all_inputs; /* rsqrt: all 2^32 */
};
/* Announces a mode (how many inputs, how long, that a stride proves nothing) and frames its answer,
 * {"mode":..,"stride":..,"threads":..,"rows":[]}; returns the rows. */
cJSON *nb_exhaust_begin(cJSON *answer, const char *mode, const char *what, double inputs, double seconds,
                        const struct nb_exhaust_options *o);

/* Each mode fills an answer. 0, -1 after nb_error, or the number of the signal that cut it short: what is there is right, and each
 * row says how far it came. */
int nb_exhaust_rsqrt(const struct nb_exhaust_options *o, cJSON *answer);
int nb_exhaust_row1(const struct nb_exhaust_options *o, cJSON *answer);
int nb_exhaust_row2(const struct nb_exhaust_options *o, cJSON *answer);
int nb_exhaust_convert(const struct nb_exhaust_options *o, cJSON *answer);
int nb_exhaust_stage(const struct nb_exhaust_options *o, cJSON *answer);

#endif
