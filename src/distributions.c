// SPDX-License-Identifier: Apache-2.0
/* One function a distribution, and their table. */
#include "src/distributions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t position(const struct nb_draw *d, int64_t row, int64_t col) {
    return (uint64_t)row * (uint64_t)d->cols + (uint64_t)col;
}

static double normal(const struct nb_draw *d, int64_t row, int64_t col) {
    return nb_random_normal(d->random, position(d, row, col));
}

static double uniform(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->parameter * (2 * nb_random_open(d->random, position(d, row, col)) - 1);
}

static double scale(const struct nb_draw *d, int64_t row, int64_t col) { return d->parameter * normal(d, row, col); }

static double offset(const struct nb_draw *d, int64_t row, int64_t col) { return d->parameter + normal(d, row, col); }

static double constant(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)row, (void)col;
    return d->parameter;
}

static double zeros(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)d, (void)row, (void)col;
    return 0;
}

/* Multiples of 1/256 below 1 are exact in every dtype, so that the statistics have a closed form. */
static double ramp(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)row;
    return d->parameter + (double)(col % 256) / 256;
}

static double alternating(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)row;
    return col % 2 ? -d->parameter : d->parameter;
}

/* A column for each row: neighbours differ, so that a kernel's lanes and tails all meet it. */
static int64_t marked_column(const struct nb_draw *d, int64_t row) { return row * 7919 % d->cols; }

static double one(const struct nb_draw *d, int64_t row, int64_t col) {
    return col == marked_column(d, row) ? d->parameter : 0;
}

static double swamp(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)row;
    return col == 0 ? d->parameter : 1;
}

/* Sun et al. 2024 (Massive Activations in Large Language Models): LLaMA2-7B has them in features 1415 and 2533 of 4096, of
 * about 2622, 1547 and 802 over a median near 0.2. The third column is this file's choice. */
static double massive(const struct nb_draw *d, int64_t row, int64_t col) {
    static const struct {
        int64_t column_of_4096;
        double share;
    } spikes[] = {{1415, 1}, {2533, -1547.0 / 2622}, {512, 802.0 / 2622}};
    for (size_t i = 0; i < sizeof spikes / sizeof spikes[0]; i++)
        if (col == d->cols / 4096 * spikes[i].column_of_4096 + d->cols % 4096 * spikes[i].column_of_4096 / 4096)
            return d->parameter * spikes[i].share;
    return 0.3 * normal(d, row, col);
}

/* The quantile of Student's t with two degrees of freedom. */
static double heavy_tail(const struct nb_draw *d, int64_t row, int64_t col) {
    double p = nb_random_open(d->random, position(d, row, col));
    return (2 * p - 1) / sqrt(2 * p * (1 - p));
}

static double lognormal(const struct nb_draw *d, int64_t row, int64_t col) {
    return nb_portable_exp(d->parameter * normal(d, row, col));
}

/* The mix of the position's bits decides whether there is a value, so that it is independent of what the value is. */
static double sparse(const struct nb_draw *d, int64_t row, int64_t col) {
    uint64_t bits = nb_random_mix(~nb_random_bits(d->random, position(d, row, col)));
    return (double)(bits >> 11) * 0x1p-53 < d->parameter ? normal(d, row, col) : 0;
}

static double big(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->format->max_finite * (d->parameter * normal(d, row, col));
}

static double small(const struct nb_draw *d, int64_t row, int64_t col) {
    double exponent = isnan(d->parameter) ? -0.5 * d->format->emin : d->parameter;
    return ldexp(normal(d, row, col), -(int)exponent);
}

/* Evenly from all subnormal numbers of the dtype but 0. */
static double subnormal(const struct nb_draw *d, int64_t row, int64_t col) {
    uint64_t bits = nb_random_bits(d->random, position(d, row, col));
    uint64_t n = ((uint64_t)1 << (d->format->precision - 1)) - 1;
    double magnitude = (double)(1 + (bits >> 1) % n) * d->format->min_subnormal;
    return bits & 1 ? -magnitude : magnitude;
}

static double inf(const struct nb_draw *d, int64_t row, int64_t col) {
    return col == marked_column(d, row) ? (double)INFINITY : normal(d, row, col);
}

static double nan_value(const struct nb_draw *d, int64_t row, int64_t col) {
    return col == marked_column(d, row) ? (double)NAN : normal(d, row, col);
}

#define NUMBER(fallback_, low_, high_) .has_parameter = true, .fallback = (fallback_), .low = (low_), .high = (high_)
#define LARGEST 3.4e38 /* what f32 can hold, about */

const struct nb_data nb_distributions[] = {
    {"normal", "normal distribution, mean 0, standard deviation 1", .random = true, .value = normal},
    {"uniform", "evenly from -1 to 1; uniform(a): from -a to a", NUMBER(1, 1e-30, 1e30), .random = true,
     .value = uniform},
    {"scale", "normal times 1000; scale(s): times s", NUMBER(1000, 1e-45, LARGEST), .random = true, .value = scale},
    {"offset", "normal plus 100; offset(m): plus m. Far from 0, a variance loses its digits",
     NUMBER(100, -LARGEST, LARGEST), .value = offset},
    {"constant", "1234.5 everywhere; constant(c): c. LayerNorm's exact result is beta",
     NUMBER(1234.5, -LARGEST, LARGEST), .value = constant},
    {"ramp", "0, 1/256 ... 255/256 and again; ramp(m): plus m", NUMBER(0, -LARGEST, LARGEST), .value = ramp},
    {"alternating", "1, -1, 1, ...; alternating(c): c, -c", NUMBER(1, -LARGEST, LARGEST), .value = alternating},
    {"zeros", "0 everywhere: only eps keeps the root from dividing by 0", .value = zeros},
    {"one", "one 1 in each row, else 0; one(c): c. Gives the largest output there is, sqrt(cols)",
     NUMBER(1, -LARGEST, LARGEST), .value = one},
    {"swamp", "4096, then ones; swamp(c): c. A running sum of squares loses the ones", NUMBER(4096, -LARGEST, LARGEST),
     .value = swamp},
    {"massive",
     "normal times 0.3, and in three fixed columns 2622, -1547, 802, as large language models have; "
     "massive(m): the largest is m",
     NUMBER(2622, 1, LARGEST), .value = massive},
    {"heavy_tail", "Student's t with 2 degrees of freedom: no finite variance", .value = heavy_tail},
    {"lognormal", "exp(normal); lognormal(s): exp(s * normal)", NUMBER(1, 0.01, 10), .value = lognormal},
    {"sparse", "normal in 1 % of the places, else 0; sparse(p): in a share p", NUMBER(0.01, 0, 1), .value = sparse},
    {"big", "normal times 1/8 of the dtype's largest number; big(s): times s. Squares overflow", NUMBER(0.125, 1e-6, 1),
     .value = big},
    {"small", "normal times 2^-k, k half of the dtype's exponent range; small(k): k. Squares underflow",
     NUMBER((double)NAN, 0, 149), .value = small},
    {"subnormal", "subnormal numbers of the dtype", .value = subnormal},
    {"inf", "normal, and one Inf in each row", .value = inf},
    {"nan", "normal, and one NaN in each row", .value = nan_value},
};
const size_t nb_n_distributions = sizeof nb_distributions / sizeof nb_distributions[0];

static const struct nb_data *find(const char *name, size_t n) {
    for (size_t i = 0; i < nb_n_distributions; i++)
        if (strlen(nb_distributions[i].name) == n && memcmp(nb_distributions[i].name, name, n) == 0)
            return &nb_distributions[i];
    return NULL;
}

int nb_distribution_parse(const char *text, const struct nb_data **data, double *parameter, char *reason, size_t n) {
    size_t name_n = strcspn(text, "(");
    const struct nb_data *d = *data = find(text, name_n);
    *parameter = d ? d->fallback : 0;
    if (!d || text[name_n] == '\0') return 0;
    if (!d->has_parameter) {
        snprintf(reason, n, "data %s takes no number in brackets", d->name);
        return -1;
    }
    char *end;
    *parameter = strtod(text + name_n + 1, &end);
    if (end == text + name_n + 1 || strcmp(end, ")") != 0) {
        snprintf(reason, n, "data %.80s: write a number in the brackets, as in %s(2)", text, d->name);
        return -1;
    }
    if (*parameter >= d->low && *parameter <= d->high) return 0;
    snprintf(reason, n, "data %.80s: the number must be from %g to %g", text, d->low, d->high);
    return -1;
}

double nb_draw_value(const struct nb_draw *d, int64_t row, int64_t col) {
    double value = d->data->value(d, row, col), largest = d->format->max_finite;
    if (isinf(value) || isnan(value)) return value;
    return value > largest ? largest : value < -largest ? -largest : value;
}
