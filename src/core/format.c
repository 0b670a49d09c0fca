// SPDX-License-Identifier: Apache-2.0
/* Figures as text, for people (few digits, units) and for programs (all digits). */
#include "src/core/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"

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
    char text[32];
    if (!isfinite(value)) return;
    nb_exact_text(value, text);
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

/* As many decimals as the width needs, and no more than three digits of the value. */
static int decimals_of(const struct nb_interval *i) {
    const double width = nb_interval_known(i) ? i->high - i->low : 0, size = fabs(i->value);
    const double by_value = size > 0 ? 2 - floor(log10(size)) : 1,
                 by_width = width > 0 ? ceil(1 - log10(width)) : by_value;
    return (int)fmin(6, fmax(0, fmin(by_value, by_width)));
}

/* Rounded, so that no small negative number is printed as "-0". */
static double rounded(double value, int decimals) {
    const double scale = pow(10, decimals);
    return round(value * scale) / scale + 0.0;
}

static void add_interval(struct nb_strbuf *out, const struct nb_interval *i, const char *unit, int n) {
    if (!isfinite(i->value)) return;
    nb_strbuf_addf(out, "%.*f%s", n, rounded(i->value, n), unit);
    if (!nb_interval_known(i) || (i->low == i->high && *unit == '%')) return; /* an exact share */
    nb_strbuf_addf(out, " [%.*f, %.*f]", n, rounded(i->low, n), n, rounded(i->high, n));
}

void nb_format_interval(struct nb_strbuf *out, struct nb_interval i, const char *unit) {
    add_interval(out, &i, unit, decimals_of(&i));
}

void nb_format_ratio(struct nb_strbuf *out, struct nb_interval ratio) { add_interval(out, &ratio, "", 3); }

void nb_format_share(struct nb_strbuf *out, struct nb_interval share) {
    const struct nb_interval percent = nb_interval_times(share, 100);
    const bool fine = nb_interval_known(&percent) && percent.high - percent.low < 0.3;
    add_interval(out, &percent, "%", fine ? (int)fmax(1, decimals_of(&percent)) : 1);
}

void nb_format_saved(struct nb_strbuf *out, struct nb_interval ratio) {
    nb_format_share(out, nb_interval_saved(ratio));
}

void nb_format_time_interval(struct nb_strbuf *out, struct nb_interval ns) {
    static const char *const units[] = {" ns", " us", " ms", " s"};
    int unit = 0;
    for (; unit < 3 && fabs(ns.value) >= 999.5; unit++)
        ns = (struct nb_interval){ns.value / 1000, ns.low / 1000, ns.high / 1000};
    add_interval(out, &ns, units[unit], ns.value > 0 ? (int)fmax(0, 2 - floor(log10(ns.value))) : 0);
}

/* ---- "variant/axis:value/axis:value" taken apart. ---- */

/* The next "axis:value" at or after *at, which goes on behind it; false: there is none. A part without a colon has no axis. */
static bool next_part(const char **at, const char **axis, size_t *n_axis, const char **value, size_t *n_value) {
    while (**at == '/') ++*at;
    if (!**at) return false;
    const size_t n = strcspn(*at, "/");
    const char *colon = memchr(*at, ':', n);
    *axis = *at;
    *n_axis = colon ? (size_t)(colon - *at) : n;
    *value = colon ? colon + 1 : *at + n;
    *n_value = n - *n_axis - (colon != NULL);
    *at += n;
    return true;
}

static struct nb_key_part *find(const struct nb_key_parts *p, const char *axis, size_t n) {
    for (size_t i = 0; i < p->n; i++)
        if (strncmp(p->parts[i].axis, axis, n) == 0 && p->parts[i].axis[n] == '\0') return &p->parts[i];
    return NULL;
}

static void take(struct nb_key_parts *p, const char *key) {
    const char *at = key + strcspn(key, "/"), *axis, *value;
    for (size_t n_axis, n_value; next_part(&at, &axis, &n_axis, &value, &n_value);) {
        struct nb_key_part *part = find(p, axis, n_axis);
        if (part) {
            part->varies |= strncmp(part->value, value, n_value) != 0 || part->value[n_value] != '\0';
            continue;
        }
        *NB_PUSH(p->parts, p->n) =
            (struct nb_key_part){nb_textf("%.*s", (int)n_axis, axis), nb_textf("%.*s", (int)n_value, value), false};
    }
}

void nb_key_parts_init(struct nb_key_parts *p, const char *const *keys, size_t n_keys) {
    *p = (struct nb_key_parts){0};
    for (size_t i = 0; i < n_keys; i++) take(p, keys[i]);
}

void nb_key_parts_release(struct nb_key_parts *p) {
    for (size_t i = 0; i < p->n; i++) nb_free_all(p->parts[i].axis, p->parts[i].value);
    free(p->parts);
    *p = (struct nb_key_parts){0};
}

/* As it was before it became part of a key. */
static void add_value(struct nb_strbuf *out, const char *value, size_t n) {
    char *text freed = nb_textf("%.*s", (int)n, value);
    nb_case_key_unescape(text);
    nb_strbuf_add(out, text);
}

void nb_key_parts_common(const struct nb_key_parts *p, struct nb_strbuf *out) {
    const char *separator = "";
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < p->n; i++) {
        if (p->parts[i].varies) continue;
        nb_strbuf_addf(out, "%s%s ", separator, p->parts[i].axis);
        add_value(out, p->parts[i].value, strlen(p->parts[i].value));
        separator = ", ";
    }
}

void nb_key_parts_short(const struct nb_key_parts *p, const char *key, struct nb_strbuf *out) {
    const char *at = key + strcspn(key, "/"), *axis, *value;
    nb_strbuf_add(out, "");
    nb_strbuf_addn(out, key, (size_t)(at - key));
    for (size_t n_axis, n_value; next_part(&at, &axis, &n_axis, &value, &n_value);) {
        const struct nb_key_part *part = find(p, axis, n_axis);
        if (part && !part->varies) continue;
        nb_strbuf_addf(out, " %.*s:", (int)n_axis, axis);
        add_value(out, value, n_value);
    }
}
