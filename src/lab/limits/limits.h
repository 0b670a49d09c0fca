// SPDX-License-Identifier: Apache-2.0
/* Where a design's arithmetic ends: thresholds in closed form for one configuration, each tried on a generated row at the threshold and
 * at its neighbour. A prediction that does not hold is a line that says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/dtype.h"
#include "src/lab/emulate/design.h"
#include "src/lab/emulate/emulate.h"

struct nb_limits {
    struct nb_design design; /* op, formats, order and eps in question; rounding to nearest */
    int64_t n;               /* elements of a row */
    double gamma_max;        /* largest |gamma|; NaN: not known */
};

enum nb_limit_state {
    NB_LIMIT_HOLDS,  /* seen at the threshold, and not seen one step away from it */
    NB_LIMIT_BROKEN, /* the row said otherwise */
    NB_LIMIT_ABSENT, /* the line does not apply: meaning says why */
    NB_N_LIMIT_STATES
};

struct nb_limit {
    const char *id, *group, *what, *unit;
    double law; /* the closed form, a real number; NaN: none */
    double
        from; /* the number of the format at which it begins (or, downwards, up to which it lasts); NaN: it never happens */
    double safe;               /* its neighbour, where it does not */
    char at[128], beyond[128]; /* what the rows gave at both */
    char meaning[320];         /* what to take from it */
    enum nb_limit_state state;
};

struct nb_limit_rule {
    const char *id, *group, *what, *unit;
    /* Sets law, from, safe, meaning. -1: does not apply, meaning says why. */
    int (*predict)(const struct nb_limits *l, struct nb_limit *line);
    /* Is it so at v? Writes what was seen. Null: check instead. */
    bool (*happens)(const struct nb_limits *l, double v, char *seen, size_t size);
    /* Sets at, beyond; true: as predicted. */
    bool (*check)(const struct nb_limits *l, struct nb_limit *line);
};
extern const char *const nb_limit_states[NB_N_LIMIT_STATES];

/* Everything done in the dtype, one running sum, two-pass variance: what a kernel without a wider format does. */
void nb_limits_init(struct nb_limits *l, enum nb_op op, enum nb_number dtype, int64_t n, double eps);

void nb_limit_predict(const struct nb_limit_rule *rule, const struct nb_limits *l, struct nb_limit *line);
void nb_limit_verify(const struct nb_limit_rule *rule, const struct nb_limits *l, struct nb_limit *line);

/* In the order of the report; null behind the last. */
const struct nb_limit_rule *nb_limit_rule_at(size_t i);

/* ---- what the files of rules share, and the rules that they have: a list for each group, ended by a null id ---- */

extern const struct nb_limit_rule nb_range_rules[], nb_eps_rules[], nb_sum_rules[];

/* from = the largest number below which `ends` is not yet true, safe = the one above. */
void nb_limit_downwards(struct nb_limit *line, enum nb_number number, bool (*ends)(double v, const void *arg),
                        const void *arg);
/* Writes the meaning; returns -1. */
#define nb_limit_says(line, ...) nb_reason((line)->meaning, sizeof(line)->meaning, __VA_ARGS__)

/* The design with every format but that of the statistics wide, so that one step is seen alone: RMSNorm, eps inside. */
struct nb_design nb_limits_isolated(const struct nb_limits *l);

/* One operation, rounded to nearest. */
static inline double nb_rn(double v, enum nb_number to) { return nb_number_round(v, 0, to, NB_ROUND_NEAREST, 0); }
static inline double nb_rn_add(double a, double b, enum nb_number to) {
    return nb_rounded_add(&(struct nb_rounder){.rounding = NB_ROUND_NEAREST}, a, b, to);
}
static inline double nb_rn_mul(double a, double b, enum nb_number to) {
    return nb_rounded_mul(&(struct nb_rounder){.rounding = NB_ROUND_NEAREST}, a, b, to);
}
static inline double nb_rn_div(double a, double b, enum nb_number to) {
    return nb_rounded_div(&(struct nb_rounder){.rounding = NB_ROUND_NEAREST}, a, b, to);
}
static inline double nb_rn_sqrt(double a, enum nb_number to) {
    return nb_rounded_sqrt(&(struct nb_rounder){.rounding = NB_ROUND_NEAREST}, a, to);
}
