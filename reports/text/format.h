// SPDX-License-Identifier: Apache-2.0
/* Figures as text. A figure that was not measured (NaN) and one that no format can hold (Inf) append nothing, so that
 * an empty cell is the only way to say "no figure". Decimal points are points: nothing here asks the locale. */
#ifndef NB_FORMAT_H
#define NB_FORMAT_H

#include <stdbool.h>

#include "src/core/stats.h"
#include "src/core/text.h"

/* Significant digits without an exponent between 1e-3 and 1e6, with one outside. */
void nb_format_digits(struct nb_strbuf *out, double value, int digits);
/* The shortest text that reads back as the same double. */
void nb_format_exact(struct nb_strbuf *out, double value);
/* "12.34 us": ns, us, ms or s. */
void nb_format_time(struct nb_strbuf *out, double time_ns);
/* "84.1%" from 0.841. Only 0 is "0.0%" and only 1 "100.0%": shares near them have as many digits as they need. */
void nb_format_percent(struct nb_strbuf *out, double share);
/* "64 KiB", "1.5 MiB". */
void nb_format_bytes(struct nb_strbuf *out, double bytes);
/* " ±0.4%": half the width of the interval in parts of the value; nothing where there is no interval. */
void nb_format_half_width(struct nb_strbuf *out, const struct nb_interval *i, bool utf8);
/* "0.873 [0.869, 0.877]", or only the value. */
void nb_format_interval(struct nb_strbuf *out, const struct nb_interval *i);
/* Both bounds finite and in order? */
bool nb_interval_known(const struct nb_interval *i);

#endif
