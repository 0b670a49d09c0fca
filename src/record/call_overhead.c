// SPDX-License-Identifier: Apache-2.0
/* The line through a ladder of calls. Weights are 1 / sigma^2, sigma from each time's interval: small calls are known to a
 * fraction of a nanosecond and large ones are not. */
#include "src/record/call_overhead.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/stats.h"

enum { MIN_POINTS = 4 };
static const double MAX_RESIDUAL = 0.25, LEAST_SIGMA = 0.005, UNKNOWN_SIGMA = 0.05;

static void unknown(struct nb_overhead *out, const char *reason) {
    out->ns = NB_NO_INTERVAL;
    out->ns_per_byte = NAN;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

/* Half a 95 % interval is 1.96 sigma; nothing here is known better than to half a percent. */
static double sigma_of(const struct nb_overhead_point *p) {
    const double half = (p->ns.high - p->ns.low) / 2;
    const double sigma = isfinite(half) ? half / 1.96 : UNKNOWN_SIGMA * p->ns.value;
    return fmax(sigma, LEAST_SIGMA * p->ns.value);
}

/* Student's t for 95 %, two-sided. */
static double student_t(size_t degrees) {
    static const double table[] = {NAN, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    return degrees < sizeof table / sizeof table[0] ? table[degrees] : 1.96 + 2.6 / (double)degrees;
}

static size_t count_sizes(const struct nb_overhead_point *points, size_t n) {
    size_t sizes = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i && is_new; j++) is_new = points[j].bytes != points[i].bytes;
        sizes += is_new;
    }
    return sizes;
}

static void median_of(const struct nb_overhead_point *points, size_t n, struct nb_overhead *out) {
    double *ns freed = nb_alloc(n, sizeof *ns);
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        ns[i] = points[i].ns.value;
        low = fmin(low, ns[i]);
        high = fmax(high, ns[i]);
    }
    out->ns = (struct nb_interval){nb_median(ns, n), low, high};
    out->ns_per_byte = 0;
}

/* Sums of the weighted normal equations. */
struct sums {
    double w, x, y, xx, xy;
};

static void lay_line(const struct nb_overhead_point *points, size_t n, struct nb_overhead *out) {
    struct sums s = {0};
    for (size_t i = 0; i < n; i++) {
        const double sigma = sigma_of(&points[i]), w = 1 / (sigma * sigma), x = points[i].bytes, y = points[i].ns.value;
        s = (struct sums){s.w + w, s.x + w * x, s.y + w * y, s.xx + w * x * x, s.xy + w * x * y};
    }
    const double determinant = s.w * s.xx - s.x * s.x;
    const double a = (s.xx * s.y - s.x * s.xy) / determinant, b = (s.w * s.xy - s.x * s.y) / determinant;
    double chi_squared = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = points[i].ns.value - (a + b * points[i].bytes), sigma = sigma_of(&points[i]);
        chi_squared += off * off / (sigma * sigma);
        out->worst_residual = fmax(out->worst_residual, fabs(off) / points[i].ns.value);
    }
    /* Where the points scatter more than their intervals say, the scatter counts. */
    const double scale = fmax(1, chi_squared / (double)(n - 2));
    const double half = student_t(n - 2) * sqrt(scale * s.xx / determinant);
    out->ns = (struct nb_interval){a, a - half, a + half};
    out->ns_per_byte = b;
}

/* Weighted least squares. Unknown with fewer than 4 points, with fewer than 4 sizes (of different sizes at all: where all are equal,
 * as copy_null's are, a is their median), or where a point lies 25 % off the line. */
static void overhead_fit(const struct nb_overhead_point *points, size_t n, struct nb_overhead *out) {
    *out = (struct nb_overhead){.reason = ""};
    const size_t sizes = count_sizes(points, n);
    bool positive = true;
    for (size_t i = 0; i < n; i++) positive = positive && points[i].ns.value > 0 && isfinite(points[i].ns.value);
    if (n < MIN_POINTS || (sizes > 1 && sizes < MIN_POINTS) || !positive) {
        unknown(out, "fewer than 4 sizes were timed");
    } else if (sizes == 1) {
        median_of(points, n, out);
    } else {
        lay_line(points, n, out);
        if (out->worst_residual > MAX_RESIDUAL) unknown(out, "the times do not lie on a line");
    }
}

/* ---- ladders among records ------------------------------------------------------------------------------------------ */

static bool counts(const struct nb_record *r) {
    return r->key && r->has_timing && r->c.cache == NB_HOT && r->c.shape.layout == NB_ROWS &&
           r->c.op != NB_OP_BATCHNORM && !r->timing.chunked && r->bytes <= NB_OVERHEAD_MAX_BYTES;
}

/* The key without its shape, then the length of the rows. */
static void ladder_name(const struct nb_record *r, struct nb_strbuf *out) {
    const char *from = strstr(r->key, "/shape:"), *to = from ? strchr(from + 1, '/') : NULL;
    nb_strbuf_addn(out, r->key, from ? (size_t)(from - r->key) : strlen(r->key));
    nb_strbuf_addf(out, "%s|%lld|%d", to ? to : "", (long long)r->c.shape.cols, r->machine);
}

struct rung {
    char *ladder;
    const struct nb_record *record;
};

static int by_ladder(const void *a, const void *b) {
    const struct rung *p = a, *q = b;
    const int order = strcmp(p->ladder, q->ladder);
    return order ? order : p->record->c.shape.rows < q->record->c.shape.rows ? -1 : 1;
}

static void fit_ladder(const struct rung *rungs, size_t n, struct nb_kernel_overhead *out) {
    struct nb_overhead_point *points freed = nb_alloc(n, sizeof *points);
    for (size_t i = 0; i < n; i++)
        points[i] = (struct nb_overhead_point){rungs[i].record->bytes, rungs[i].record->timing.time_ns};
    out->record = rungs[0].record;
    overhead_fit(points, n, &out->overhead);
}

size_t nb_overheads(const struct nb_record *records, size_t n, struct nb_kernel_overhead **out) {
    struct rung *rungs freed = nb_alloc(n, sizeof *rungs);
    size_t n_rungs = 0, n_found = 0;
    for (size_t i = 0; i < n; i++) {
        struct nb_strbuf name = {0};
        if (!counts(&records[i])) continue;
        ladder_name(&records[i], &name);
        rungs[n_rungs++] = (struct rung){name.text, &records[i]};
    }
    if (n_rungs > 1) qsort(rungs, n_rungs, sizeof *rungs, by_ladder);
    *out = nb_alloc(n_rungs, sizeof **out);
    for (size_t i = 0, end; i < n_rungs; i = end) {
        for (end = i + 1; end < n_rungs && strcmp(rungs[end].ladder, rungs[i].ladder) == 0;) end++;
        if (end - i >= MIN_POINTS) fit_ladder(&rungs[i], end - i, &(*out)[n_found++]);
    }
    for (size_t i = 0; i < n_rungs; i++) free(rungs[i].ladder);
    return n_found;
}
