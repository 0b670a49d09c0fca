// SPDX-License-Identifier: Apache-2.0
/* The same numbers in other orders: ascending is kind to a running sum, descending swamps what comes late, an outlier decides by
 * its place; interleaved and lane by lane the same is done to sums in lanes. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/lab/stress/hunt.h"
#include "src/plan/distributions.h"

enum order { AS_DRAWN, ASCENDING, DESCENDING, SIGNED, OUTLIER_FIRST, OUTLIER_LAST, INTERLEAVED, N_ORDERS };
static const char *const order_names[N_ORDERS] = {"as drawn",      "ascending",    "descending", "by sign",
                                                  "outlier first", "outlier last", "interleaved"};
static const char *const recipes[] = {"normal", "heavy_tail", "lognormal(2)", "massive", "sparse(0.05)", "uniform"};
enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };

static int by_magnitude(const void *a, const void *b) {
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}
static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void reverse(double *x, int64_t n) {
    for (int64_t i = 0; i < n / 2; i++) {
        const double kept = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = kept;
    }
}

/* Smallest, largest, second smallest, second largest ... of a sorted row. */
static void interleave(double *x, int64_t n) {
    double *sorted = nb_alloc((unsigned long long)n, sizeof *sorted);
    memcpy(sorted, x, (size_t)n * sizeof *sorted);
    for (int64_t i = 0; i < n; i++) x[i] = i % 2 ? sorted[n - 1 - i / 2] : sorted[i / 2];
    free(sorted);
}

static void swap_outlier(double *x, int64_t n, int64_t to) {
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (fabs(x[i]) > fabs(x[at])) at = i;
    const double outlier = x[at];
    x[at] = x[to];
    x[to] = outlier;
}

static void arrange(double *x, int64_t n, enum order order) {
    if (order == OUTLIER_FIRST) swap_outlier(x, n, 0);
    if (order == OUTLIER_LAST) swap_outlier(x, n, n - 1);
    if (order == SIGNED) qsort(x, (size_t)n, sizeof *x, by_value);
    if (order == ASCENDING || order == DESCENDING || order == INTERLEAVED) qsort(x, (size_t)n, sizeof *x, by_magnitude);
    if (order == DESCENDING) reverse(x, n);
    if (order == INTERLEAVED) interleave(x, n);
}

static void draw(const struct nb_hunt *h, const char *text, uint64_t seed, double *x) {
    struct nb_recipe recipe;
    char reason[128];
    const int parsed = nb_distribution_parse(text, &recipe, reason, sizeof reason);
    assert(parsed == 0 && recipe.data);
    (void)parsed;
    const struct nb_draw d = nb_draw_of(&recipe, &nb_formats[h->t->in.dtype], h->cols, nb_random_stream(seed, 0));
    for (int64_t i = 0; i < h->cols; i++) x[i] = nb_round_to(nb_draw_value(recipe.data, &d, 0, i), h->t->in.dtype);
}

void nb_hunt_orders(struct nb_hunt *h) {
    for (uint64_t seed = 1; !nb_hunt_over(h); seed += (uint64_t)h->rows)
        for (int i = 0; i < N_RECIPES * N_ORDERS && !nb_hunt_over(h); i++) {
            const char *recipe = recipes[i / N_ORDERS];
            const enum order order = (enum order)(i % N_ORDERS);
            char text[96];
            snprintf(text, sizeof text, "%s, %s", recipe, order_names[order]);
            for (int64_t r = 0; r < h->rows; r++) {
                draw(h, recipe, seed + (uint64_t)r, h->x + r * h->cols);
                arrange(h->x + r * h->cols, h->cols, order);
            }
            nb_hunt_call(h, h->rows, seed, text);
        }
}
