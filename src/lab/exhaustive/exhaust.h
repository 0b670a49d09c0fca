// SPDX-License-Identifier: Apache-2.0
/* Sweeps over every input of a function: cut into chunks, which threads take in order. A chunk's result must be a function of its
 * number alone and be kept apart; put together in order they make a result that does not depend on threads. */
#ifndef NB_EXHAUST_H
#define NB_EXHAUST_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernel.h"
#include "src/core/dtype.h"
#include "src/core/twofold.h"

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
    double gamma;                /* weight that distinguishes the cast orders */
    bool all_inputs;             /* rsqrt: all 2^32 */
    bool of_plugins;             /* row1, row2: the kernels of plugins, not the built-in ones */
    void (*beat)(void *context); /* row1, row2: a chunk begins, in any of the threads; may be null */
    void *context;
};
/* Announces a mode (how many inputs, how long, that a stride proves nothing) and frames its answer,
 * {"mode":..,"stride":..,"threads":..,"rows":[]}; returns the rows. */
cJSON *nb_exhaust_begin(cJSON *answer, const char *mode, const char *what, double inputs, double seconds,
                        const struct nb_exhaust_options *o);

/* A mode fills an answer. 0, -1 after nb_error, or the number of the signal that cut it short: what is there is right, and each
 * row says how far it came. */
struct nb_exhaust_mode {
    const char *name;
    int (*run)(const struct nb_exhaust_options *o, cJSON *answer);
    bool kernels;    /* names are kernels, which must be loaded */
    const char *eps; /* list where the user gives none; null: the mode has none */
};
extern const struct nb_exhaust_mode nb_exhaust_rsqrt, nb_exhaust_row1, nb_exhaust_row2, nb_exhaust_convert,
    nb_exhaust_stage;

/* ---- Judges computed numbers of a 16-bit dtype, or of f32, against exact values that a double holds to a relative 2^-49.
 *
 * Whether a number is the correctly rounded one is proven for each: an error that is off half an ulp by more than the double's own
 * decides at once; nearer to it both ends of the exact value's interval must round alike (Ziv 1991), else the number counts as
 * undecided until the caller gives the exact value to some 100 bits. Nothing is taken on trust. ---- */

struct nb_judged {
    int64_t n;          /* outputs whose exact value the dtype can hold */
    int64_t misrounded; /* not the correctly rounded one, the non-finite ones included */
    int64_t undecided;
    int64_t non_finite; /* NaN or Inf, whatever the exact value */
    double max_ulp;     /* of |error|, of finite outputs */
    int64_t witness;    /* the first index with it */
};

/* What every judgement of a dtype needs at hand. */
struct nb_judge {
    enum nb_dtype dtype;
    int precision;
    uint64_t least_exponent; /* biased, as a double has it */
    double overflow;
};
struct nb_judge nb_judge_of(enum nb_dtype dtype);

/* For errors near half an ulp: 1 wrong, 0 right, -1 undecided. */
int nb_judge_closely(const struct nb_judge *j, double exact, double got);

/* got: a number of the dtype. Returns whether it was left undecided. */
static inline bool nb_judge_add(const struct nb_judge *j, struct nb_judged *sums, int64_t index, double exact,
                                double got) {
    const double magnitude = fabs(exact);
    const int is_finite = fabs(got) < INFINITY;
    sums->non_finite += !is_finite;
    if (!(magnitude < j->overflow)) return false; /* also where there is no exact value */
    sums->n++;
    if (!is_finite) {
        sums->misrounded++;
        return false;
    }
    uint64_t exponent;
    memcpy(&exponent, &magnitude, sizeof exponent);
    exponent >>= 52;
    if (exponent < j->least_exponent) exponent = j->least_exponent;
    /* 1 / ulp, ulp = 2^(e - p + 1) */
    const uint64_t inverse_bits = (2046 - exponent + (uint64_t)j->precision - 1) << 52;
    const double inverse = nb_double_of(inverse_bits);
    const double error = fabs(got - exact) * inverse;
    if (error > sums->max_ulp) {
        sums->max_ulp = error;
        sums->witness = index;
    }
    const double off = error - 0.5;
    if (off < -0x1p-16) return false;
    if (off > 0x1p-16) {
        sums->misrounded++;
        return false;
    }
    const int wrong = nb_judge_closely(j, exact, got);
    sums->misrounded += wrong > 0;
    sums->undecided += wrong < 0;
    return wrong < 0;
}
/* The same output again, after it was left undecided, with its exact value to a relative 2^-90. Only a tie, or what cannot be distinguished
 * from one by that, stays undecided. */
void nb_judge_resolve(const struct nb_judge *j, struct nb_judged *sums, struct nb_twofold exact, double got);

/* inputs, correct_share, misrounded, max_ulp, non_finite, undecided. */
void nb_judged_to_json(const struct nb_judged *sums, cJSON *row);

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

/* row1 or row2 of the kernels of plugins, in a worker process: the answer, owned, with "result" as these return; or null after nb_error.
 * What a kernel does to its process is the worker's. */
cJSON *nb_exhaust_plugins(const char *mode, const struct nb_exhaust_options *o, const char **plugins, int n_plugins);

#endif
