// SPDX-License-Identifier: Apache-2.0
/* keepdim left out: a tensor [B, S, H] divided by its statistics of shape [B, S] instead of [B, S, 1]. Dimensions are aligned from the
 * right and fit where they are equal or one of them is 1 (NumPy's rule, which PyTorch has); else it is an error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

enum { B, S, H, N_DIMS };

static bool fits(long a, long b) { return a == b || a == 1 || b == 1; }

/* The size that one dimension of the result gets. */
static long joined(long a, long b) { return a == 1 ? b : a; }

/* statistics[b][s] seen through the shapes that a missing keepdim aligns: index of the result [i][j][k] -> statistic. */
static long statistic_at(const long d[N_DIMS], long j, long k) {
    return (d[B] == 1 ? 0 : j) * d[S] + (d[S] == 1 ? 0 : k);
}

/* The largest difference over the rms, of results that have the shape of x. */
static double wrong_by(const long d[N_DIMS], double eps) {
    const long n = d[B] * d[S] * d[H];
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)n, sizeof *x), most = 0;
    double *scale = nb_alloc((unsigned long long)(d[B] * d[S]), sizeof *scale);
    for (long t = 0; t < d[B] * d[S]; t++) {
        double squares = 0;
        for (long k = 0; k < d[H]; k++) {
            /* tokens of different size, so that a statistic of another token shows */
            x[t * d[H] + k] = nb_random_normal(random, (uint64_t)(t * d[H] + k)) * (1 + (double)t);
            squares += x[t * d[H] + k] * x[t * d[H] + k];
        }
        scale[t] = 1 / sqrt(squares / (double)d[H] + eps);
    }
    for (long i = 0; i < d[B]; i++)
        for (long j = 0; j < d[S]; j++)
            for (long k = 0; k < d[H]; k++) {
                const double v = x[(i * d[S] + j) * d[H] + k];
                most = fmax(most, fabs(v * scale[statistic_at(d, j, k)] - v * scale[i * d[S] + j]));
            }
    free(x);
    free(scale);
    return most;
}

static struct nb_finding *add(const struct nb_property_call *call, const char *name, double value,
                              const char *keepdim) {
    struct nb_finding *f = nb_property_add(call, name, "", value);
    nb_finding_tag(f, "keepdim", keepdim);
    return f;
}

static void broadcast_run(const struct nb_property_call *call) {
    const char *text = nb_param_text(call, "shapes");
    long d[N_DIMS];
    char rest;
    if (sscanf(text, "%ldx%ldx%ld%c", &d[B], &d[S], &d[H], &rest) != 3 || d[B] < 1 || d[S] < 1 || d[H] < 1 ||
        d[B] > 1000 || d[S] > 1000 || d[H] > 1000) {
        nb_findings_add_missing(call->out, "error", "shape '%.40s' is not BxSxH of 1 to 1000 each", text);
        return;
    }
    const bool apart = d[B] != d[S] && d[S] != d[H] && d[B] > 1 && d[S] > 1 && d[H] > 1;
    const bool error = !fits(d[H], d[S]) || !fits(d[S], d[B]);
    nb_finding_tag(add(call, "error", error, "no"), "sizes", apart ? "apart" : "meet");
    add(call, "error", !fits(d[H], 1) || !fits(d[S], d[S]) || !fits(d[B], d[B]), "yes");
    add(call, "dimensions", N_DIMS, "yes"); /* of [B, S, H] and [B, S, 1] */
    if (error) return;
    const bool reshaped = joined(d[H], d[S]) != d[H] || joined(d[S], d[B]) != d[S];
    const double off = reshaped ? (double)NAN : wrong_by(d, nb_param_number(call, "eps"));
    add(call, "wrong", reshaped || off > 1e-6, "no");
    if (!reshaped) add(call, "off", off, "no");
}

const struct nb_property nb_property_broadcast = {
    .name = "broadcast",
    .summary = "statistics without keepdim: error, wrong result, or neither",
    .params = {{"shapes", "[\"2x4x8\"]", "BxSxH: batch, sequence, features", false},
               {"eps", "1e-5", "inside the root", false}},
    .each = {{"shapes", "shape"}},
    .run = broadcast_run,
};
