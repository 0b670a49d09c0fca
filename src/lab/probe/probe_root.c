// SPDX-License-Identifier: Apache-2.0
/* Which root, by its bits: on rows of integers v is known, so that every output can be predicted for each way to form x / sqrt(v) that is
 * in use, estimates as this CPU gives them. One output that differs disproves a way. How outputs are rounded is seen first, without any
 * root: x r = y must hold for one r in all columns. */
#include <math.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/lab/probe/probe_integers.h"
#include "src/lab/probe/probe_ways.h"

/* ---- rounding of the output ---- */

/* Is there an r with x r rounded to y in all columns of a row? The slack is that of a product rounded to f32 first. */
static bool is_consistent(const struct nb_box *b, int64_t row, double below, double above) {
    const enum nb_dtype dtype = (enum nb_dtype)b->p->c.dtype;
    const double slack = dtype == NB_F32 ? 0x1p-50 : 0x1p-23;
    double low = 0, high = INFINITY;
    for (int64_t i = 0; i < b->cols; i++) {
        const double x = fabs(b->x[row * b->cols + i]), y = fabs(nb_box_y(b, row, i)), ulp = nb_ulp(y, dtype);
        low = fmax(low, (y - below * ulp) / x * (1 - slack));
        high = fmin(high, (y + above * ulp) / x * (1 + slack));
    }
    return low <= high;
}

/* Rows that each rounding explains. */
struct consistent {
    int64_t nearest, down, up;
};
static struct consistent count_consistent(const struct nb_box *b) {
    struct consistent n = {0};
    for (int64_t r = 0; r < b->rows; r++) {
        n.nearest += is_consistent(b, r, 0.5, 0.5);
        n.down += is_consistent(b, r, 0, 1);
        n.up += is_consistent(b, r, 1, 0);
    }
    return n;
}

static const char *rounding_of(const struct consistent *n, int64_t rows) {
    if (n->nearest == rows && n->down < rows && n->up < rows) return "nearest";
    if (n->down == rows && n->nearest < rows && n->up < rows) return "towards zero";
    if (n->up == rows && n->nearest < rows && n->down < rows) return "away from zero";
    return NULL;
}

/* On numbers of full precision, or, where their mean is missed, on integers. */
static void say_rounding(struct nb_probe *p, const struct consistent *normal, const struct consistent *integers,
                         int64_t rows) {
    const char *value = rounding_of(normal, rows);
    const struct consistent *n = value ? normal : integers;
    nb_probe_say(
        p, "rounding", value ? value : rounding_of(integers, rows), "certain",
        "one factor explains all outputs of a row, rounded to nearest, in %lld of %lld rows; towards zero in %lld",
        (long long)n->nearest, (long long)rows, (long long)n->down);
}

/* ---- the root ---- */

/* The largest distance of y / x from 1 / sqrt(v), relative. */
static double largest_error(const struct nb_box *b) {
    double largest = 0;
    for (int64_t row = 0; row < b->rows; row++) {
        const double root = sqrt((double)nb_integers_variance(b, row));
        for (int64_t i = 0; i < b->cols; i++) {
            const double x = b->x[row * b->cols + i];
            if (x != 0) largest = fmax(largest, fabs(nb_box_y(b, row, i) / x * root - 1));
        }
    }
    return largest;
}

static int n_left(const struct nb_way *ways, int n) {
    int left = 0;
    for (int i = 0; i < n; i++) left += ways[i].n_wrong == 0;
    return left;
}

static void say_root(struct nb_probe *p, const struct nb_way *ways, int n, long long outputs, double error) {
    const char *root = NULL;
    struct nb_strbuf names = {0};
    bool one_class = true;
    const int left = n_left(ways, n);
    for (int i = 0; i < n; i++) {
        if (ways[i].n_wrong) continue;
        one_class = one_class && (!root || strcmp(root, ways[i].root) == 0);
        root = ways[i].root;
        nb_strbuf_addf(&names, "%s%s (%s)", names.len ? " or " : "", ways[i].name, ways[i].formula);
    }
    if (left == 0) {
        nb_probe_say(p, "root", NULL, NULL, "none of %d ways gives all of %lld outputs", n, outputs);
        nb_probe_say(p, "root_instruction", NULL, NULL, "the largest relative error of an output is 2^%.1f",
                     log2(error));
    } else {
        nb_probe_say(p, "root", one_class ? root : NULL, "certain", "of %d ways %s alone give%s all of %lld outputs", n,
                     names.text, left > 1 ? "" : "s", outputs);
        nb_probe_say(p, "root_instruction", left == 1 ? names.text : NULL, "certain",
                     "the largest relative error of an output is 2^%.1f%s", log2(error),
                     left > 1 ? "; more than one way fits" : "");
    }
    nb_strbuf_release(&names);
}

/* Integers have an exact mean of 0 and v in every plain sum; in others v is off by a few spacings, which few bits of y do not betray. */
static bool is_variance_exact(struct nb_probe *p) {
    const bool plain =
        p->variance == NB_VAR_TWOPASS || p->variance == NB_VAR_CORRECTED || p->variance == NB_VAR_ONEPASS;
    if (!p->centres || p->c.dtype == NB_F32 || plain) return true;
    nb_probe_say(p, "root", NULL, NULL, "the variance is not known to be exact on rows of integers");
    nb_probe_say(p, "root_instruction", NULL, NULL, "the variance is not known to be exact on rows of integers");
    return false;
}

void nb_probe_root(struct nb_probe *p) {
    enum { ROWS = 512 };
    struct nb_way ways[NB_MAX_WAYS];
    struct nb_box b;
    double error = 0;
    const int64_t cols = nb_integers[p->c.dtype].cols;
    const int n = nb_ways_list(ways);
    if (nb_box_init(&b, p, ROWS, cols, 0) != 0) goto out;
    nb_box_fill_normal(&b, 0);
    if (nb_box_run(&b) != 0) goto out;
    const struct consistent normal = count_consistent(&b);
    nb_integers_fill(&b);
    if (nb_box_run(&b) != 0) goto out;
    const struct consistent integers = count_consistent(&b);
    say_rounding(p, &normal, &integers, ROWS);
    if (!is_variance_exact(p)) goto out;
    nb_ways_test(ways, n, &b);
    error = largest_error(&b);
    if (n_left(ways, n) > 1 && nb_ways_tell_apart(ways, n, &b) > 0) {
        if (nb_box_run(&b) != 0) goto out;
        nb_ways_test(ways, n, &b);
    }
    say_root(p, ways, n, (long long)(2 * ROWS * cols), error);
out:
    nb_box_release(&b);
}
