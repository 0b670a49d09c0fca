// SPDX-License-Identifier: Apache-2.0
/* Figures as text, for people (few digits, units) and for programs (all digits). */
#include "reports/text/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The decimal exponent of the value once it is rounded to so many digits: 9.996 has 1 with three of them. */
static int rounded_exponent(double value, int digits) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, value);
    return value == 0 ? 0 : atoi(strchr(text, 'e') + 1);
}

void nb_format_digits(struct nb_strbuf *out, double value, int digits) {
    if (!isfinite(value)) return;
    int exponent = rounded_exponent(value, digits), decimals = digits - 1 - exponent;
    if (exponent < -3 || exponent >= 6)
        nb_strbuf_addf(out, "%.*e", digits - 1, value);
    else
        nb_strbuf_addf(out, "%.*f", decimals > 0 ? decimals : 0, value);
}

void nb_format_exact(struct nb_strbuf *out, double value) {
    char text[40];
    if (!isfinite(value)) return;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    nb_strbuf_add(out, text);
}

void nb_format_time(struct nb_strbuf *out, double time_ns) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    if (!isfinite(time_ns)) return;
    int unit = 0;
    /* 999.95 would print as 1000 in its own unit. */
    for (; unit < 3 && fabs(time_ns) >= 999.95; unit++) time_ns /= 1000;
    nb_format_digits(out, time_ns, 4);
    nb_strbuf_addf(out, " %s", units[unit]);
}

void nb_format_percent(struct nb_strbuf *out, double share) {
    const double percent = 100 * share;
    int decimals = 1;
    if (!isfinite(share)) return;
    if (percent != 0 && fabs(percent) < 0.05) decimals = -(int)floor(log10(fabs(percent)) + 1e-9);
    if (percent < 100 && percent >= 99.95) decimals = -(int)floor(log10(100 - percent) + 1e-9);
    nb_strbuf_addf(out, "%.*f%%", decimals, percent);
}

void nb_format_bytes(struct nb_strbuf *out, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (!isfinite(bytes)) return;
    int unit = 0;
    for (; unit < 4 && bytes >= 1024; unit++) bytes /= 1024;
    nb_strbuf_addf(out, bytes < 10 && bytes != floor(bytes) ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

bool nb_interval_known(const struct nb_interval *i) {
    return isfinite(i->value) && isfinite(i->low) && isfinite(i->high) && i->low <= i->high;
}

void nb_format_half_width(struct nb_strbuf *out, const struct nb_interval *i, bool utf8) {
    if (!nb_interval_known(i) || i->value == 0) return;
    double percent = 50 * (i->high - i->low) / fabs(i->value);
    nb_strbuf_add(out, utf8 ? " ±" : " +-");
    nb_strbuf_addf(out, percent < 9.95 ? "%.1f%%" : "%.0f%%", percent);
}

void nb_format_interval(struct nb_strbuf *out, const struct nb_interval *i) {
    if (!isfinite(i->value)) return;
    nb_strbuf_addf(out, "%.3f", i->value);
    if (nb_interval_known(i)) nb_strbuf_addf(out, " [%.3f, %.3f]", i->low, i->high);
}
