// SPDX-License-Identifier: Apache-2.0
/* The stored bits of positive numbers are in the order of their values. */
#include "src/core/representable.h"

#include <assert.h>
#include <math.h>

/* tf32 has bits to spare behind its significand. */
static uint32_t step_of(enum nb_number number) { return nb_number_encode(nb_numbers[number].min_subnormal, number); }

static uint32_t position(double v, enum nb_number number) { return nb_number_encode(v, number) / step_of(number); }

static double at(uint32_t i, enum nb_number number) { return nb_number_decode(i * step_of(number), number); }

double nb_next_above(double v, enum nb_number number) {
    assert(v >= 0);
    return v < nb_numbers[number].max_finite ? at(position(v, number) + 1, number) : (double)INFINITY;
}

double nb_next_below(double v, enum nb_number number) {
    if (isinf(v)) return nb_numbers[number].max_finite;
    return v > 0 ? at(position(v, number) - 1, number) : 0;
}

double nb_first_representable(enum nb_number number, bool (*holds)(double v, const void *arg), const void *arg) {
    uint32_t below = 0, from = position(nb_numbers[number].max_finite, number);
    if (!holds(at(from, number), arg)) return (double)INFINITY;
    while (from - below > 1) {
        const uint32_t middle = below + (from - below) / 2;
        if (holds(at(middle, number), arg))
            from = middle;
        else
            below = middle;
    }
    return at(from, number);
}
