// SPDX-License-Identifier: Apache-2.0
/* Figures as text. A figure that was not measured (NaN) and one that no format can hold (Inf) append nothing, so that
 * an empty cell is the only way to say "no figure". Decimal points are points: nothing here asks the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
/* ---- An estimate and its 95% interval, in one notation wherever a reader meets one: "27.3% [25.7, 28.6]"; without bounds the value alone.
 * As many decimals as the width of the interval needs, and of percents one at least. ---- */

/* unit: behind the value, such as "%" or " GB/s". */
void nb_format_interval(struct nb_strbuf *out, struct nb_interval i, const char *unit);
void nb_format_ratio(struct nb_strbuf *out, struct nb_interval ratio);      /* "0.873 [0.869, 0.877]" */
void nb_format_share(struct nb_strbuf *out, struct nb_interval share);      /* "27.3% [25.7, 28.6]" from 0.273 */
void nb_format_saved(struct nb_strbuf *out, struct nb_interval ratio);      /* "27.3% [25.7, 28.6]" from 0.727 */
void nb_format_time_interval(struct nb_strbuf *out, struct nb_interval ns); /* "1.26 ms [1.20, 1.35]" */
/* Both bounds finite and in order? */
bool nb_interval_known(const struct nb_interval *i);

/* ---- Keys of cases are long and mostly the same: what all share is said once, and the rest names each. ---- */

struct nb_key_parts {
    struct nb_key_part {
        char *axis, *value; /* of the first key that has the axis; owned */
        bool varies;
    } * parts;
    size_t n;
};

void nb_key_parts_init(struct nb_key_parts *p, const char *const *keys, size_t n_keys);
void nb_key_parts_release(struct nb_key_parts *p);
/* "shape 64x1024, data normal": every axis that has one value wherever it is there. */
void nb_key_parts_common(const struct nb_key_parts *p, struct nb_strbuf *out);
/* "rmsnorm_twopass_v256_f32 eps:1e-6": the variant and what is not common. */
void nb_key_parts_short(const struct nb_key_parts *p, const char *key, struct nb_strbuf *out);
