// SPDX-License-Identifier: Apache-2.0
/* The numbers of a format as a line of points: neighbours, and the point where something begins. Not for f64. */
#ifndef NB_REPRESENTABLE_H
#define NB_REPRESENTABLE_H

#include <stdbool.h>

#include "src/core/formats.h"

/* The neighbours of v >= 0, which the format has: above its largest number Infinity, below 0 is 0. */
double nb_next_above(double v, enum nb_number number);
double nb_next_below(double v, enum nb_number number);
/* The least positive finite number of the format from which on `holds` is true, given that it is false below and true above;
 * Infinity: nowhere. */
double nb_first_representable(enum nb_number number, bool (*holds)(double v, const void *arg), const void *arg);

#endif
