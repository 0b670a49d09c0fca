// SPDX-License-Identifier: Apache-2.0
/* Bytes of a case with one row and with two give those of any number. */
#include "src/core/level_shape.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/core/shape.h"

static const double most_bytes = 1 << 30;

struct window {
    double low, high, wanted; /* bytes of the working set */
};

/* Of a last cache that a whole socket shares, a core that others leave alone may have all, and one among busy neighbours a few times its
 * own L2. So a set for L3 is that small, and one for DRAM is larger than all of L3, though not by much where that is large. */
static const double l2_in_l3_share = 4.5, beyond_l3_bytes = 64 << 20;

/* Wanted is the middle of the window on a scale of logarithms, or less where a little is enough. */
static struct window window_of(enum nb_level level, const struct nb_level_caches *c) {
    const double l1 = (double)c->l1_bytes, l2 = (double)c->l2_bytes, l3 = (double)c->l3_bytes;
    switch (level) {
    case NB_L1:
        return (struct window){0, 0.9 * l1, 0.6 * l1};
    case NB_L2:
        return (struct window){1.25 * l1, 0.8 * l2, sqrt(2.5 * l1 * 0.8 * l2)};
    case NB_L3:
        return (struct window){1.25 * l2, 0.5 * l3, fmin(sqrt(2.5 * l2 * 0.5 * l3), l2_in_l3_share * l2)};
    default:
        return (struct window){1.5 * l3, most_bytes, 1.5 * l3 + fmin(1.5 * l3, beyond_l3_bytes)};
    }
}

static bool is_known(enum nb_level level, const struct nb_level_caches *c) {
    if (level == NB_L1) return c->l1_bytes > 0;
    if (level == NB_L2) return c->l1_bytes > 0 && c->l2_bytes > 0;
    return c->l2_bytes > 0 && c->l3_bytes > 0;
}

/* The shape with so many in the level's place. */
static int with_count(const char *plain, int64_t count, char *out, size_t n) {
    const char *colon = strchr(plain, ':');
    const int prefix = colon ? (int)(colon - plain) + 1 : 0;
    const int written = snprintf(out, n, "%.*s%lld%s", prefix, plain, (long long)count, plain + prefix + 1);
    return written > 0 && (size_t)written < n ? 0 : -1;
}

static double bytes_of(const struct nb_case *c, const char *plain, int64_t count) {
    struct nb_case sized = *c;
    char shape[128], reason[200];
    if (with_count(plain, count, shape, sizeof shape) != 0) return NAN;
    if (nb_shape_parse(&sized.shape, shape, reason, sizeof reason) != 0) return NAN;
    nb_case_normalize(&sized);
    return nb_case_bytes(&sized);
}

int nb_level_shape(const struct nb_case *c, const char *text, const struct nb_level_caches *caches, char *plain,
                   size_t n, char *reason, size_t reason_size) {
    enum nb_level level = NB_L1;
    char one[128];
    if (nb_shape_level(text, &level, one, sizeof one) != 0 || !is_known(level, caches))
        return nb_reason(reason, reason_size, "shape %.60s: this machine does not say how large its caches are", text);
    const struct window w = window_of(level, caches);
    const double first = bytes_of(c, one, 1), each = bytes_of(c, one, 2) - first;
    int64_t count = (int64_t)((w.wanted - first) / each) + 1;
    if (count < 1) count = 1;
    const double bytes = first + each * (double)(count - 1);
    if (isfinite(bytes) && bytes > w.low && bytes <= w.high) return with_count(one, count, plain, n);
    const bool too_large = isfinite(bytes) && bytes > w.high;
    return nb_reason(reason, reason_size, "shape %.60s: %s", text,
                     !too_large         ? "no number of rows makes its working set that large here"
                     : level == NB_DRAM ? "beyond this machine's caches it would take more than a gigabyte"
                                        : "the working set of a single row is larger than that here");
}
