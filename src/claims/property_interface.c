// SPDX-License-Identifier: Apache-2.0
/* What code around a norm has to know: dimensions, and kernels that may stand for each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* broadcast. keepdim left out: a tensor [B, S, H] divided by its statistics of shape [B, S] instead of [B, S, 1]. Dimensions are aligned from the
 * right and fit where they are equal or one of them is 1 (NumPy's rule, which PyTorch has); else it is an error. With keepdim the kernel
 * that broadcasts its statistics computes the result. */

enum { MOST_DIMS = 4, LARGEST = 1000 };

struct shape {
    long d[MOST_DIMS];
    int n;
};

static bool read_shape(const char *text, struct shape *s) {
    char *end;
    for (s->n = 0; s->n < MOST_DIMS; text = end + 1) {
        s->d[s->n] = strtol(text, &end, 10);
        if (end == text || s->d[s->n] < 1 || s->d[s->n] > LARGEST) return false;
        s->n++;
        if (*end != 'x') return !*end;
    }
    return false;
}

static long size_of(const struct shape *s) {
    long n = 1;
    for (int i = 0; i < s->n; i++) n *= s->d[i];
    return n;
}

/* The shape of the result; false: an error. */
static bool broadcast(const struct shape *a, const struct shape *b, struct shape *out) {
    out->n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < out->n; i++) { /* from the right */
        const long p = i < a->n ? a->d[a->n - 1 - i] : 1, q = i < b->n ? b->d[b->n - 1 - i] : 1;
        if (p != q && p != 1 && q != 1) return false;
        out->d[out->n - 1 - i] = p == 1 ? q : p;
    }
    return true;
}

static bool same(const struct shape *a, const struct shape *b) {
    return a->n == b->n && memcmp(a->d, b->d, (size_t)a->n * sizeof a->d[0]) == 0;
}

/* Which statistic an element of x meets where the statistics' last dimension was dropped. */
static long statistic_at(const struct shape *x, long element) {
    long index[MOST_DIMS] = {0}, at = 0;
    for (int i = x->n; i-- > 0; element /= x->d[i]) index[i] = element % x->d[i];
    for (int i = 0; i + 1 < x->n; i++) at = at * x->d[i] + (x->d[i] == 1 ? 0 : index[i + 1]);
    return at;
}

/* Tokens of different size, so that a statistic of another token shows; behind them 1 / rms of each token. */
static double *tokens(long rows, long cols, double eps) {
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)(rows * cols + rows), sizeof *x);
    for (long t = 0; t < rows; t++) {
        double squares = 0;
        for (long k = 0; k < cols; k++) {
            const double v = nb_random_normal(random, (uint64_t)(t * cols + k)) * (1 + (double)t);
            x[t * cols + k] = (float)v;
            squares += v * v;
        }
        x[rows * cols + t] = 1 / sqrt(squares / (double)cols + eps);
    }
    return x;
}

static void add(const struct nb_property_call *call, const char *name, double value, const char *keepdim) {
    nb_finding_tag(nb_property_add(call, name, "", value), "keepdim", keepdim);
}

/* The largest difference from each token over its own rms: of a result of x's shape without keepdim, and of the kernel with it. */
static void add_results(const struct nb_property_call *call, const struct shape *x, bool without) {
    const double eps = nb_param_number(call, "eps");
    const long cols = x->d[x->n - 1], rows = size_of(x) / cols;
    double *v freed = tokens(rows, cols, eps), *y freed = nb_alloc((unsigned long long)(rows * cols), sizeof *y);
    const double *scale = v + rows * cols;
    double off = 0, kept = 0;
    const int ran = nb_norm_plain(call, nb_param_text(call, "kernel"), eps, v, rows, cols, y, "wrong");
    for (long i = 0; i < rows * cols; i++) {
        const double due = v[i] * scale[i / cols];
        if (without) off = fmax(off, fabs(v[i] * scale[statistic_at(x, i)] - due));
        kept = fmax(kept, fabs(y[i] - due));
    }
    if (ran == 0) add(call, "wrong", !(kept < 1e-5), "yes");
    if (without) {
        add(call, "wrong", off > 1e-6, "no");
        add(call, "off", off, "no");
    }
}

static bool sizes_are_apart(const struct shape *x) {
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j <= i; j++)
            if (j == i ? x->d[i] == 1 : x->d[i] == x->d[j]) return false;
    return true;
}

static void broadcast_run(const struct nb_property_call *call) {
    struct shape x, result;
    const char *text = nb_param_text(call, "shapes");
    if (!read_shape(text, &x)) {
        nb_findings_add_missing(call->out, "error", "shape '%.40s' is not up to four sizes of 1 to 1000, as BxSxH",
                                text);
        return;
    }
    struct shape kept = x, dropped = x;
    kept.d[x.n - 1] = 1;
    dropped.n = x.n - 1;
    const bool error = !broadcast(&x, &dropped, &result), reshaped = !error && !same(&x, &result);
    add(call, "error", error, "no");
    nb_finding_tag(&call->out->items[call->out->n - 1], "sizes", sizes_are_apart(&x) ? "apart" : "meet");
    if (reshaped) add(call, "wrong", 1, "no");
    add(call, "error", !broadcast(&x, &kept, &result), "yes");
    add(call, "dimensions", result.n, "yes");
    add_results(call, &x, !error && !reshaped);
}

/* normalized_shape. normalized_shape of one and of several dimensions: a kernel, which takes its statistics over all of them as nn.RMSNorm does,
 * against a hand-written class that takes the mean over the last dimension alone. */

/* The last dimension of "[2x3]", and the product of all. */
static int dimensions(const char *text, int64_t *all, int64_t *last, int *n) {
    *all = 1;
    *n = 0;
    for (const char *p = text + (*text == '['); *p && *p != ']'; (*n)++) {
        char *end;
        *last = strtol(p, &end, 10);
        if (end == p || *last < 1 || *last > 4096) return -1;
        *all *= *last;
        p = *end == 'x' ? end + 1 : end;
    }
    return *n > 0 ? 0 : -1;
}

static void normalized_shape_run(const struct nb_property_call *call) {
    const char *shape = nb_param_text(call, "shape"), *kernel = nb_param_text(call, "kernel");
    const int64_t rows = nb_param_whole(call, "rows");
    int64_t all, last;
    char whole[96];
    int n_dims;
    if (dimensions(shape, &all, &last, &n_dims) != 0) {
        nb_findings_add_missing(call->out, "apart", "shape '%.40s' is not of the form [2x3]", shape);
        return;
    }
    snprintf(whole, sizeof whole, "%lldx%.60s", (long long)rows, shape);
    double *x freed = nb_norm_normal(rows * all, 3 * rows * all), *y = x + rows * all, *z = y + rows * all;
    const struct nb_norm module = {.kernel = kernel, .eps = 1e-5, .shape = whole, .rows = rows, .cols = all, .x = x};
    if (nb_norm_found(call, &module, y, "apart") == 0 &&
        nb_norm_plain(call, kernel, 1e-5, x, rows * all / last, last, z, "apart") == 0)
        nb_finding_tag_number(nb_property_add(call, "apart", "", nb_largest_difference(y, z, rows * all)), "dimensions",
                              n_dims);
}

/* same_result. Two kernels on the same rows: how far do their results lie apart? With "centred" the rows lie on a grid and have a mean of
 * exactly 0. */

/* On multiples of 2^-12, so that f32 holds each sum exactly; what the rounding of the mean leaves goes over the first elements. */
static void centre_rows(double *row, int64_t n) {
    const double grid = 0x1p-12, mean = nb_mean_of(row, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        row[i] = rint((row[i] - mean) / grid) * grid;
        sum += row[i];
    }
    for (int64_t i = 0; sum != 0; i = (i + 1) % n) {
        const double step = copysign(fmin(grid, fabs(sum)), sum);
        row[i] -= step;
        sum -= step;
    }
}

static void add_apart(const struct nb_property_call *call, const char *name, const char *unit, double value) {
    const bool centred = nb_param_number(call, "centred") != 0;
    nb_finding_tag(nb_property_add(call, name, unit, value), "centred", centred ? "yes" : "no");
}

static void same_result_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols"), n = rows * cols;
    const double eps = nb_param_number(call, "eps");
    double *x freed = nb_norm_rows(call, nb_param_text(call, "data"), rows, cols, "apart"), ulps = 0;
    if (!x) return;
    for (int64_t r = 0; r < rows && nb_param_number(call, "centred") != 0; r++) centre_rows(x + r * cols, cols);
    double *y freed = nb_alloc(2 * (unsigned long long)n, sizeof *y), *z = y + n;
    if (nb_norm_plain(call, nb_param_text(call, "of"), eps, x, rows, cols, y, "apart") == 0 &&
        nb_norm_plain(call, nb_param_text(call, "against"), eps, x, rows, cols, z, "apart") == 0) {
        const double rms = nb_rms_of(z, n);
        for (int64_t i = 0; i < n; i++) ulps = fmax(ulps, fabs(y[i] - z[i]) / nb_ulp(fmax(fabs(z[i]), rms), NB_F32));
        add_apart(call, "apart_ulp", "ulp", ulps);
        add_apart(call, "apart", "", nb_largest_difference(y, z, n) / rms);
    }
}

const struct nb_property nb_property_interface[] = {
    {"broadcast",
     "statistics with and without keepdim: error, wrong result, or neither",
     broadcast_run,
     {{"shapes", "[\"2x4x8\"]", "sizes, the features last: BxSxH", false, "shape"},
      {"eps", "1e-5", "inside the root", false, NULL},
      {"kernel", "\"rmsnorm_keepdim\"", "computes the result with keepdim", false, NULL}}},
    {"normalized_shape",
     "statistics over all dimensions or the last one",
     normalized_shape_run,
     {{"kernel", "\"rmsnorm_twopass\"", "", false, NULL},
      {"rows", "4", "", true, NULL},
      {"shape", "[\"[6]\", \"[2x3]\"]", "normalized_shape, as shapes have it", false, "shape"}}},
    {"same_result",
     "two kernels on the same rows",
     same_result_run,
     {{"of", "\"rmsnorm_twopass\"", "", false, NULL},
      {"against", "\"layernorm_twopass\"", "", false, NULL},
      {"data", "[\"normal\"]", "", false, "data"},
      {"centred", "[0, 1]", "1: the mean of each row is taken away, exactly", false, ""},
      {"rows", "32", "", true, NULL},
      {"cols", "512", "", true, NULL},
      {"eps", "1e-5", "", false, NULL}}},
    {.name = NULL}};
