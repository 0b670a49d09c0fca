// SPDX-License-Identifier: Apache-2.0
/* Functions of one float, checked on every input there is: the ways to form 1/sqrt(x), and conversions to narrow formats.
 *
 * A sweep is cut into chunks, which threads take in order. A chunk's result is a function of its number alone and is kept apart; put together
 * in order they make a result that does not depend on threads. */
#ifndef NB_EXHAUST_H
#define NB_EXHAUST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct nb_exhaust_options {
    int threads;
    int64_t stride;           /* every so many inputs; 1: all, which alone proves anything */
    const char *const *names; /* roots: variants; none: all */
    int n_names;
    bool all_inputs; /* roots: all 2^32, not one period */
};

/* Each fills an answer {"mode":..,"stride":..,"exhaustive":..,"rows":[]}. 0, -1 after nb_error, or the number of the signal that cut it short:
 * what is there is right, and each row says how far it came. */
int nb_exhaust_roots(const struct nb_exhaust_options *o, cJSON *answer);
int nb_exhaust_convert(const struct nb_exhaust_options *o, cJSON *answer);

/* ---- what both are made of ---- */

struct nb_sweep {
    const char *label; /* of the progress bar */
    int64_t n_chunks;
    void (*chunk)(int64_t chunk, void *arg); /* called from several threads, each chunk once */
    void *arg;
    int64_t done;   /* by nb_sweep_run: chunks without a gap; fewer than all only after an interruption */
    double seconds; /* and how long it took */
};
/* 0, -1 after nb_error, or the number of the signal that ended it. */
int nb_sweep_run(struct nb_sweep *s, int threads);

/* Says how many inputs there are, and that a stride proves nothing; frames the answer and returns its rows. */
cJSON *nb_exhaust_begin(cJSON *answer, const char *mode, const char *what, double inputs,
                        const struct nb_exhaust_options *o);

/* ---- from f32 to a narrow format ---- */

struct nb_narrow {
    const char *name;
    int exponent_bits, fraction_bits;
    bool has_inf;
    uint32_t nan; /* the quiet one */
};
extern const struct nb_narrow nb_narrow_f16, nb_narrow_bf16, nb_narrow_e5m2, nb_narrow_e4m3;

/* The code of a float, to nearest even; beyond the range Inf, or NaN in a format without it. */
uint32_t nb_convert_by_integers(uint32_t f32_bits, const struct nb_narrow *to);

#endif
