// SPDX-License-Identifier: Apache-2.0
/* The distributions, one function each, the table of all, and how a text names one. Each value comes from its place alone: a
 * sorted row is made from ranks, not by sorting. */
#include "src/plan/distributions.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

static uint64_t position(const struct nb_draw *d, int64_t row, int64_t col) {
    return (uint64_t)row * (uint64_t)d->cols + (uint64_t)col;
}

static double normal(const struct nb_draw *d, int64_t row, int64_t col) {
    return nb_random_normal(d->random, position(d, row, col));
}

/* A column for each row: neighbours differ, so that a kernel's lanes and tails all meet it. */
static int64_t marked_column(const struct nb_draw *d, int64_t row) { return row * 7919 % d->cols; }

/* ---- values that the text gives ---- */

static double draw_values(const struct nb_draw *d, int64_t row, int64_t col) { return d->numbers[col % d->n_given]; }

static double draw_linear(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->numbers[0] + d->numbers[1] * (double)col;
}

static double draw_noise(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->numbers[0] + d->numbers[1] * normal(d, row, col);
}

static double draw_columns(const struct nb_draw *d, int64_t row, int64_t col) {
    return (col % 2 ? -d->numbers[0] : d->numbers[0]) + d->numbers[1] * normal(d, row, col);
}

/* ---- outliers ---- */

/* The last of each period, so that the first row of lanes has none and the tail may. */
static double draw_every(const struct nb_draw *d, int64_t row, int64_t col) {
    const int64_t period = (int64_t)d->numbers[0];
    return normal(d, row, col) * (col % period == period - 1 ? d->numbers[1] : 1);
}

/* Sun et al. 2024 (Massive Activations in Large Language Models): LLaMA2-7B has them in features 1415 and 2533 of 4096, of
 * about 2622, 1547 and 802 over a median near 0.2. The third column is this file's choice. One number scales these three; more
 * stand for the three themselves. */
static double draw_massive(const struct nb_draw *d, int64_t row, int64_t col) {
    static const struct {
        int64_t column_of_4096;
        double share;
    } spikes[] = {{1415, 1}, {2533, -1547.0 / 2622}, {512, 802.0 / 2622}};
    const int n = sizeof spikes / sizeof spikes[0];
    for (int i = 0; i < n; i++) {
        const int64_t at = d->cols / 4096 * spikes[i].column_of_4096 + d->cols % 4096 * spikes[i].column_of_4096 / 4096;
        if (col == at) return d->n_given > 1 ? d->numbers[i] : d->numbers[0] * spikes[i].share;
    }
    return d->numbers[n] * normal(d, row, col);
}

/* The ratio of two independent normal values has the Cauchy distribution. */
static double draw_cauchy(const struct nb_draw *d, int64_t row, int64_t col) {
    const uint64_t bits = nb_random_mix(~nb_random_bits(d->random, position(d, row, col)));
    const double below = nb_normal_quantile(((double)(bits >> 12) + 0.5) * 0x1p-52), limit = d->numbers[0];
    const double value = normal(d, row, col) / below;
    return value > limit ? limit : value < -limit ? -limit : value;
}

/* ---- every number of the dtype alike ---- */

/* The finite numbers from 0 up, counted through. */
static double number_at(const struct nb_format *f, uint64_t ordinal) {
    const uint64_t per_binade = (uint64_t)1 << (f->precision - 1);
    const uint64_t binade = ordinal / per_binade, rest = ordinal % per_binade;
    if (binade == 0) return (double)rest * f->min_subnormal;
    return ldexp((double)(per_binade + rest), (int)binade - 1 + f->emin - (f->precision - 1));
}

static uint64_t ordinal_of(const struct nb_format *f, double value) {
    const uint64_t per_binade = (uint64_t)1 << (f->precision - 1);
    if (value >= f->max_finite) return (uint64_t)(f->emax - f->emin + 2) * per_binade - 1;
    if (value < f->min_normal) return (uint64_t)(value / f->min_subnormal);
    const int exponent = ilogb(value);
    return (uint64_t)(exponent - f->emin) * per_binade + (uint64_t)ldexp(value, f->precision - 1 - exponent);
}

/* One stratum a column, in an order that no kernel's lanes follow; the sign is drawn. */
static double draw_stratified(const struct nb_draw *d, int64_t row, int64_t col) {
    const int64_t stratum = d->cols % 7919 ? (col + row) % d->cols * 7919 % d->cols : col;
    const uint64_t low = ordinal_of(d->format, d->numbers[0]), high = ordinal_of(d->format, d->numbers[1]);
    const uint64_t bits = nb_random_bits(d->random, position(d, row, col));
    const double share = ((double)stratum + (double)(bits >> 12) * 0x1p-52) / (double)d->cols;
    uint64_t ordinal = low + (uint64_t)(share * ((double)(high - low) + 1));
    if (ordinal > high) ordinal = high;
    return bits & 1 ? -number_at(d->format, ordinal) : number_at(d->format, ordinal);
}

/* ---- sorted ---- */

static double quantile_at(const struct nb_draw *d, int64_t row, int64_t rank) {
    const double within = nb_random_open(d->random, (uint64_t)row);
    return nb_normal_quantile(((double)rank + within) / (double)d->cols);
}

/* From the middle of the ranks to both sides by turns. */
static int64_t rank_by_magnitude(int64_t n, int64_t place) {
    const int64_t middle = (n - 1) / 2;
    return place % 2 ? middle + (place + 1) / 2 : middle - place / 2;
}

static double draw_ascending(const struct nb_draw *d, int64_t row, int64_t col) { return quantile_at(d, row, col); }

static double draw_descending(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, d->cols - 1 - col);
}

static double draw_interleaved(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, col % 2 ? d->cols - 1 - col / 2 : col / 2);
}

static double draw_growing(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, rank_by_magnitude(d->cols, col));
}

static double draw_shrinking(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, rank_by_magnitude(d->cols, d->cols - 1 - col));
}

/* ---- no numbers ---- */

/* A column as the text gives it, from the end where it is negative; each row's own where it gives none. */
static bool is_marked(const struct nb_draw *d, int64_t row, int64_t col, int number) {
    if (d->n_given <= number) return col == marked_column(d, row);
    const int64_t at = (int64_t)d->numbers[number];
    return col == (at < 0 ? at % d->cols + d->cols : at % d->cols) % d->cols;
}

static double draw_inf(const struct nb_draw *d, int64_t row, int64_t col) {
    return is_marked(d, row, col, 1) ? copysign((double)INFINITY, d->numbers[0]) : normal(d, row, col);
}

static double draw_nan(const struct nb_draw *d, int64_t row, int64_t col) {
    return is_marked(d, row, col, 0) ? (double)NAN : normal(d, row, col);
}

/* ---- ordinary ---- */

static double uniform(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->numbers[0] * (2 * nb_random_open(d->random, position(d, row, col)) - 1);
}

static double scale(const struct nb_draw *d, int64_t row, int64_t col) { return d->numbers[0] * normal(d, row, col); }

/* 2^e, e evenly from -r to r, from the row's own bits. */
static double scales(const struct nb_draw *d, int64_t row, int64_t col) {
    const uint64_t bits = nb_random_mix(~nb_random_bits(d->random, (uint64_t)row));
    const double e = d->numbers[0] * (2 * (double)(bits >> 11) * 0x1p-53 - 1);
    return nb_portable_exp(e * 0.69314718055994531) * normal(d, row, col);
}

static double offset(const struct nb_draw *d, int64_t row, int64_t col) { return d->numbers[0] + normal(d, row, col); }

static double constant(const struct nb_draw *d, int64_t row, int64_t col) { return d->numbers[0]; }

static double zeros(const struct nb_draw *d, int64_t row, int64_t col) { return 0; }

/* Multiples of 1/256 below 1 are exact in every dtype, so that the statistics have a closed form. */
static double ramp(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->numbers[0] + (double)(col % 256) / 256;
}

static double alternating(const struct nb_draw *d, int64_t row, int64_t col) {
    return col % 2 ? -d->numbers[0] : d->numbers[0];
}

static double one(const struct nb_draw *d, int64_t row, int64_t col) {
    return col == marked_column(d, row) ? d->numbers[0] : 0;
}

static double swamp(const struct nb_draw *d, int64_t row, int64_t col) { return col == 0 ? d->numbers[0] : 1; }

/* The quantile of Student's t with two degrees of freedom. */
static double heavy_tail(const struct nb_draw *d, int64_t row, int64_t col) {
    double p = nb_random_open(d->random, position(d, row, col));
    return (2 * p - 1) / sqrt(2 * p * (1 - p));
}

static double lognormal(const struct nb_draw *d, int64_t row, int64_t col) {
    return nb_portable_exp(d->numbers[0] * normal(d, row, col));
}

/* The mix of the position's bits decides whether there is a value, so that it is independent of what the value is. */
static double sparse(const struct nb_draw *d, int64_t row, int64_t col) {
    uint64_t bits = nb_random_mix(~nb_random_bits(d->random, position(d, row, col)));
    return (double)(bits >> 11) * 0x1p-53 < d->numbers[0] ? normal(d, row, col) : 0;
}

static double big(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->format->max_finite * (d->numbers[0] * normal(d, row, col));
}

static double small(const struct nb_draw *d, int64_t row, int64_t col) {
    double exponent = isnan(d->numbers[0]) ? -0.5 * d->format->emin : d->numbers[0];
    return ldexp(normal(d, row, col), -(int)exponent);
}

/* Evenly from all subnormal numbers of the dtype but 0. */
static double subnormal(const struct nb_draw *d, int64_t row, int64_t col) {
    uint64_t bits = nb_random_bits(d->random, position(d, row, col));
    uint64_t n = ((uint64_t)1 << (d->format->precision - 1)) - 1;
    double magnitude = (double)(1 + (bits >> 1) % n) * d->format->min_subnormal;
    return bits & 1 ? -magnitude : magnitude;
}

#define LARGEST 3.4e38 /* what f32 can hold, about */
#define ANY(fallback_)                                                                                                 \
    { (fallback_), -LARGEST, LARGEST }
#define ONE_NUMBER(fallback_, low_, high_) .most = 1, .numbers = {{(fallback_), (low_), (high_)}}

const struct nb_data nb_distributions[] = {
    {"normal", "normal distribution, mean 0, standard deviation 1", .random = true, .value = normal},
    {"uniform", "evenly from -1 to 1; uniform(a): from -a to a", ONE_NUMBER(1, 1e-30, 1e30), .random = true,
     .value = uniform},
    {"scale", "normal times 1000; scale(s): times s", ONE_NUMBER(1000, 1e-45, LARGEST), .random = true, .value = scale},
    {"scales", "normal, each row times a number of its own from 1/16 to 16; scales(r): from 2^-r to 2^r",
     ONE_NUMBER(4, 0, 60), .value = scales},
    {"offset", "normal plus 100; offset(m): plus m. Far from 0, a variance loses its digits",
     ONE_NUMBER(100, -LARGEST, LARGEST), .value = offset},
    {"noise", "100 plus 0.01 times normal; noise(m,s): m plus s times normal", .most = 2,
     .numbers = {ANY(100), {0.01, 0, LARGEST}}, .value = draw_noise},
    {"columns", "noise about 5 and -5 in alternate columns, times 0.1; columns(m,s): about m and -m, times s",
     .most = 2, .numbers = {ANY(5), {0.1, 0, LARGEST}}, .value = draw_columns},
    {"values", "values(a,b,..): these numbers, cycled over the columns", .least = 1, .most = NB_MAX_NUMBERS,
     .numbers = {ANY(0), ANY(0), ANY(0), ANY(0)}, .value = draw_values},
    {"constant", "1234.5 everywhere; constant(c): c, -0 too. LayerNorm's exact result is beta",
     ONE_NUMBER(1234.5, -LARGEST, LARGEST), .value = constant},
    {"ramp", "0, 1/256 ... 255/256 and again; ramp(m): plus m", ONE_NUMBER(0, -LARGEST, LARGEST), .value = ramp},
    {"linear", "0, 1, 2, ...; linear(a,s): a, a + s, a + 2 s, ...", .most = 2, .numbers = {ANY(0), ANY(1)},
     .value = draw_linear},
    {"alternating", "1, -1, 1, ...; alternating(c): c, -c", ONE_NUMBER(1, -LARGEST, LARGEST), .value = alternating},
    {"zeros", "0 everywhere: only eps keeps the root from dividing by 0", .value = zeros},
    {"one", "one 1 in each row, else 0; one(c): c. Gives the largest output there is, sqrt(cols)",
     ONE_NUMBER(1, -LARGEST, LARGEST), .value = one},
    {"swamp", "4096, then ones; swamp(c): c. A running sum of squares loses the ones",
     ONE_NUMBER(4096, -LARGEST, LARGEST), .value = swamp},
    {"massive",
     "normal times 0.3, and in three fixed columns 2622, -1547, 802, as large language models have; massive(m): the "
     "largest is m; massive(a,b,c,s): a, b, c over normal times s",
     .most = 4, .numbers = {{2622, 1, LARGEST}, ANY(-1547), ANY(802), {0.3, 0, LARGEST}}, .value = draw_massive},
    {"every", "normal, every 512th column times 40; every(n,f): every n-th times f", .most = 2,
     .numbers = {{512, 1, 1e9}, ANY(40)}, .value = draw_every},
    {"heavy_tail", "Student's t with 2 degrees of freedom: no finite variance", .value = heavy_tail},
    {"cauchy", "Cauchy distribution, cut at 1000; cauchy(m): at m. No mean", ONE_NUMBER(1000, 1e-3, LARGEST),
     .value = draw_cauchy},
    {"lognormal", "exp(normal); lognormal(s): exp(s * normal)", ONE_NUMBER(1, 0.01, 10), .value = lognormal},
    {"sparse", "normal in 1 % of the places, else 0; sparse(p): in a share p", ONE_NUMBER(0.01, 0, 1), .value = sparse},
    {"ascending", "normal quantiles, from the least to the largest", .value = draw_ascending},
    {"descending", "the same numbers from the largest to the least", .value = draw_descending},
    {"interleaved", "the same numbers: least, largest, second least, second largest ...", .value = draw_interleaved},
    {"growing", "the same numbers by magnitude, smallest first", .value = draw_growing},
    {"shrinking", "the same numbers by magnitude, largest first, the worst order for a running sum",
     .value = draw_shrinking},
    {"stratified",
     "all finite numbers of the dtype alike, a column from each stretch; stratified(a,b): magnitudes from a to b",
     .most = 2, .numbers = {{0, 0, LARGEST}, {3.5e38, 0, 3.5e38}}, .value = draw_stratified},
    {"big", "normal times 1/8 of the dtype's largest number; big(s): times s. Squares overflow",
     ONE_NUMBER(0.125, 1e-6, 1), .value = big},
    {"small", "normal times 2^-k, k half of the dtype's exponent range; small(k): k. Squares underflow",
     ONE_NUMBER((double)NAN, 0, 149), .value = small},
    {"subnormal", "subnormal numbers of the dtype", .value = subnormal},
    {"inf", "normal, and one Inf in each row; inf(-1): -Inf; inf(s,i): in column i, from the end below 0", .most = 2,
     .numbers = {{1, -1, 1}, {0, -1e9, 1e9}}, .value = draw_inf},
    {"nan", "normal, and one NaN in each row; nan(i): in column i, from the end below 0", ONE_NUMBER(0, -1e9, 1e9),
     .value = draw_nan},
};
const size_t nb_n_distributions = sizeof nb_distributions / sizeof nb_distributions[0];

/* ---- texts ---- */

static const struct nb_data *find(const char *name, size_t n) {
    for (size_t i = 0; i < nb_n_distributions; i++)
        if (strlen(nb_distributions[i].name) == n && memcmp(nb_distributions[i].name, name, n) == 0)
            return &nb_distributions[i];
    return NULL;
}

static const struct nb_data_number *number_of(const struct nb_data *d, int i) {
    const int last = sizeof d->numbers / sizeof d->numbers[0] - 1;
    return &d->numbers[i < last ? i : last];
}

/* "1,-0,0x1p-24)" */
static int parse_numbers(const char *text, const char *p, struct nb_recipe *recipe, char *reason, size_t n) {
    const struct nb_data *d = recipe->data;
    for (;;) {
        char *end;
        const double value = strtod(p, &end);
        if (end == p || (*end != ',' && strcmp(end, ")") != 0))
            return nb_reason(reason, n, "data %.80s: write a number in the brackets, as in %s(2)", text, d->name);
        if (recipe->n_given == d->most)
            return nb_reason(reason, n, "data %.80s: %s takes no more than %d number%s", text, d->name, d->most,
                             d->most == 1 ? "" : "s");
        const struct nb_data_number *number = number_of(d, recipe->n_given);
        if (!(value >= number->low && value <= number->high)) {
            char which[32] = "the number";
            if (d->most > 1) snprintf(which, sizeof which, "number %d", recipe->n_given + 1);
            return nb_reason(reason, n, "data %.80s: %s must be from %g to %g", text, which, number->low, number->high);
        }
        recipe->numbers[recipe->n_given++] = value;
        if (*end == ')') return 0;
        p = end + 1;
    }
}

int nb_distribution_parse(const char *text, struct nb_recipe *recipe, char *reason, size_t n) {
    const size_t name_n = strcspn(text, "(");
    const struct nb_data *d = find(text, name_n);
    *recipe = (struct nb_recipe){.data = d};
    if (!d) return 0;
    for (int i = 0; i < d->most; i++) recipe->numbers[i] = number_of(d, i)->fallback;
    if (text[name_n] == '\0') {
        if (d->least == 0) return 0;
        return nb_reason(reason, n, "data %s: it needs numbers in brackets, as in %s(1,2)", d->name, d->name);
    }
    if (d->most > 0) return parse_numbers(text, text + name_n + 1, recipe, reason, n);
    return nb_reason(reason, n, "data %s takes no number in brackets", d->name);
}

/* ---- values ---- */

struct nb_draw nb_draw_of(const struct nb_recipe *recipe, const struct nb_format *format, int64_t cols,
                          struct nb_random random) {
    assert(recipe && format && cols > 0); /* no distribution where the rows are given */
    struct nb_draw d = {.n_given = recipe->n_given, .format = format, .cols = cols, .random = random};
    memcpy(d.numbers, recipe->numbers, sizeof d.numbers);
    return d;
}

double nb_draw_value(const struct nb_data *data, const struct nb_draw *d, int64_t row, int64_t col) {
    double value = data->value(d, row, col), largest = d->format->max_finite;
    if (isinf(value) || isnan(value)) return value;
    return value > largest ? largest : value < -largest ? -largest : value;
}
