// SPDX-License-Identifier: Apache-2.0
/* Each value from its place alone: a sorted row is made from ranks, not by sorting. */
#include "src/plan/distributions_special.h"

#include <math.h>
#include <stdbool.h>

/* ---- values that the text gives ---- */

double nb_draw_values(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)row;
    return d->numbers[col % d->n_given];
}

double nb_draw_linear(const struct nb_draw *d, int64_t row, int64_t col) {
    (void)row;
    return d->numbers[0] + d->numbers[1] * (double)col;
}

double nb_draw_noise(const struct nb_draw *d, int64_t row, int64_t col) {
    return d->numbers[0] + d->numbers[1] * nb_draw_normal(d, row, col);
}

double nb_draw_columns(const struct nb_draw *d, int64_t row, int64_t col) {
    return (col % 2 ? -d->numbers[0] : d->numbers[0]) + d->numbers[1] * nb_draw_normal(d, row, col);
}

/* ---- outliers ---- */

/* The last of each period, so that the first row of lanes has none and the tail may. */
double nb_draw_every(const struct nb_draw *d, int64_t row, int64_t col) {
    const int64_t period = (int64_t)d->numbers[0];
    return nb_draw_normal(d, row, col) * (col % period == period - 1 ? d->numbers[1] : 1);
}

/* Sun et al. 2024 (Massive Activations in Large Language Models): LLaMA2-7B has them in features 1415 and 2533 of 4096, of
 * about 2622, 1547 and 802 over a median near 0.2. The third column is this file's choice. One number scales these three; more
 * stand for the three themselves. */
double nb_draw_massive(const struct nb_draw *d, int64_t row, int64_t col) {
    static const struct {
        int64_t column_of_4096;
        double share;
    } spikes[] = {{1415, 1}, {2533, -1547.0 / 2622}, {512, 802.0 / 2622}};
    const int n = sizeof spikes / sizeof spikes[0];
    for (int i = 0; i < n; i++) {
        const int64_t at = d->cols / 4096 * spikes[i].column_of_4096 + d->cols % 4096 * spikes[i].column_of_4096 / 4096;
        if (col == at) return d->n_given > 1 ? d->numbers[i] : d->numbers[0] * spikes[i].share;
    }
    return d->numbers[n] * nb_draw_normal(d, row, col);
}

/* The ratio of two independent normal values has the Cauchy distribution. */
double nb_draw_cauchy(const struct nb_draw *d, int64_t row, int64_t col) {
    const uint64_t bits = nb_random_mix(~nb_random_bits(d->random, nb_draw_position(d, row, col)));
    const double below = nb_normal_quantile(((double)(bits >> 12) + 0.5) * 0x1p-52), limit = d->numbers[0];
    const double value = nb_draw_normal(d, row, col) / below;
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
double nb_draw_stratified(const struct nb_draw *d, int64_t row, int64_t col) {
    const int64_t stratum = d->cols % 7919 ? (col + row) % d->cols * 7919 % d->cols : col;
    const uint64_t low = ordinal_of(d->format, d->numbers[0]), high = ordinal_of(d->format, d->numbers[1]);
    const uint64_t bits = nb_random_bits(d->random, nb_draw_position(d, row, col));
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

double nb_draw_ascending(const struct nb_draw *d, int64_t row, int64_t col) { return quantile_at(d, row, col); }

double nb_draw_descending(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, d->cols - 1 - col);
}

double nb_draw_interleaved(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, col % 2 ? d->cols - 1 - col / 2 : col / 2);
}

double nb_draw_growing(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, rank_by_magnitude(d->cols, col));
}

double nb_draw_shrinking(const struct nb_draw *d, int64_t row, int64_t col) {
    return quantile_at(d, row, rank_by_magnitude(d->cols, d->cols - 1 - col));
}

/* ---- no numbers ---- */

/* A column as the text gives it, from the end where it is negative; each row's own where it gives none. */
static bool is_marked(const struct nb_draw *d, int64_t row, int64_t col, int number) {
    if (d->n_given <= number) return col == nb_draw_marked_column(d, row);
    const int64_t at = (int64_t)d->numbers[number];
    return col == (at < 0 ? at % d->cols + d->cols : at % d->cols) % d->cols;
}

double nb_draw_inf(const struct nb_draw *d, int64_t row, int64_t col) {
    return is_marked(d, row, col, 1) ? copysign((double)INFINITY, d->numbers[0]) : nb_draw_normal(d, row, col);
}

double nb_draw_nan(const struct nb_draw *d, int64_t row, int64_t col) {
    return is_marked(d, row, col, 0) ? (double)NAN : nb_draw_normal(d, row, col);
}
