// SPDX-License-Identifier: Apache-2.0
/* The lowest line above points at x = X is the edge of their upper convex hull over X. */
#include "src/lab/tolerance/tolerance_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/log.h"

enum { PER_OCTAVE = 256, LEAST_EXPONENT = -160, OCTAVES = 320, BINS = PER_OCTAVE * OCTAVES };

void nb_cloud_init(struct nb_cloud *c) { *c = (struct nb_cloud){.largest = nb_alloc(BINS + 1, sizeof *c->largest)}; }
void nb_cloud_release(struct nb_cloud *c) { free(c->largest); }

/* Bin 0 is y = 0 and what is below all bins. */
static int bin_of(double y) {
    if (!(y >= ldexp(1, LEAST_EXPONENT))) return 0;
    int e;
    const double share = frexp(y, &e); /* [1/2, 1) */
    const int bin = 1 + (e - 1 - LEAST_EXPONENT) * PER_OCTAVE + (int)((share - 0.5) * 2 * PER_OCTAVE);
    return bin < BINS ? bin : BINS;
}
static double least_of(int bin) {
    if (bin == 0) return 0;
    const int octave = (bin - 1) / PER_OCTAVE, part = (bin - 1) % PER_OCTAVE;
    return ldexp(1 + (double)part / PER_OCTAVE, octave + LEAST_EXPONENT);
}

void nb_cloud_add(struct nb_cloud *c, double y, double error) {
    const int bin = bin_of(fabs(y));
    if (error > c->largest[bin]) c->largest[bin] = error;
    c->sum_squares += y * y;
    c->n++;
}

double nb_cloud_rms(const struct nb_cloud *c) { return c->n > 0 ? sqrt(c->sum_squares / (double)c->n) : 0; }

double nb_round_up(double v) {
    if (!(v > 0) || isinf(v)) return v;
    char text[32];
    snprintf(text, sizeof text, "%.2e", v);
    double rounded = strtod(text, NULL);
    if (rounded >= v) return rounded;
    const double step = pow(10, floor(log10(v)) - 2);
    snprintf(text, sizeof text, "%.2e", rounded + step);
    return strtod(text, NULL);
}

struct point {
    double x, y;
};

static double cross(struct point o, struct point a, struct point b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

void nb_cloud_line(const struct nb_cloud *c, double *rtol, double *atol) {
    struct point *hull = nb_alloc(BINS + 2, sizeof *hull);
    const double at = nb_cloud_rms(c);
    int n = 0;
    hull[n++] = (struct point){0, c->largest[0]};
    for (int bin = 1; bin <= BINS; bin++) {
        if (c->largest[bin] <= 0) continue;
        const struct point p = {least_of(bin), c->largest[bin]};
        while (n >= 2 && cross(hull[n - 2], hull[n - 1], p) >= 0) n--;
        hull[n++] = p;
    }
    int i = 1;
    while (i < n - 1 && hull[i].x < at) i++;
    double slope = n > 1 ? (hull[i].y - hull[i - 1].y) / (hull[i].x - hull[i - 1].x) : 0;
    if (slope < 0) slope = 0;
    *rtol = nb_round_up(slope);
    double above = 0; /* with the slope as printed */
    for (int k = 0; k < n; k++) above = fmax(above, hull[k].y - *rtol * hull[k].x);
    *atol = nb_round_up(above);
    free(hull);
}
