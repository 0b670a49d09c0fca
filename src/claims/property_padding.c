// SPDX-License-Identifier: Apache-2.0
/* Sequences of different length in one batch, cut to a common length or filled with zeros: what that does to the outputs at real
 * tokens, against statistics of all real tokens alone. BatchNorm's statistics are taken per feature over all tokens of the batch, or
 * per feature and position over its sequences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

enum { MOST = 256 };

struct batch {
    int n; /* sequences */
    int64_t length[MOST], width, longest, features;
    double *padded; /* n x width x features, zeros behind the end */
};

static double value(const struct batch *b, int s, int64_t t, int64_t c) {
    const struct nb_random random = nb_random_stream(7, (uint64_t)s), mean = nb_random_stream(8, (uint64_t)c);
    return 0.5 * nb_random_normal(mean, 0) + 1 + nb_random_normal(random, (uint64_t)(t * b->features + c));
}

static void batch_init(struct batch *b, const struct nb_property_call *call) {
    const int64_t cut = (int64_t)nb_param_number(call, "cut");
    *b = (struct batch){.features = (int64_t)nb_param_number(call, "features")};
    b->n = nb_param_count(call, "lengths") < MOST ? nb_param_count(call, "lengths") : MOST;
    for (int s = 0; s < b->n; s++) {
        b->length[s] = (int64_t)nb_param_number_at(call, "lengths", s);
        b->longest = b->length[s] > b->longest ? b->length[s] : b->longest;
    }
    b->width = cut > 0 && cut < b->longest ? cut : b->longest;
    b->padded = nb_alloc((unsigned long long)(b->n * b->width * b->features), sizeof *b->padded);
    for (int s = 0; s < b->n; s++)
        for (int64_t t = 0; t < b->width && t < b->length[s]; t++)
            for (int64_t c = 0; c < b->features; c++)
                b->padded[(s * b->width + t) * b->features + c] = value(b, s, t, c);
}

struct tokens { /* rows that a norm takes together */
    double *x, *y;
    int64_t n;
};

/* Tokens from the padded batch, or the real ones, whole; of one position, or of all (-1). */
static struct tokens gather(const struct batch *b, bool padded, int64_t position) {
    const int64_t width = padded ? b->width : b->longest;
    struct tokens t = {0};
    t.x = nb_alloc(2 * (unsigned long long)(b->n * width * b->features), sizeof *t.x);
    t.y = t.x + b->n * width * b->features;
    for (int s = 0; s < b->n; s++)
        for (int64_t i = 0; i < width; i++) {
            if ((!padded && i >= b->length[s]) || (position >= 0 && i != position)) continue;
            for (int64_t c = 0; c < b->features; c++)
                t.x[t.n * b->features + c] =
                    padded ? b->padded[(s * b->width + i) * b->features + c] : value(b, s, i, c);
            t.n++;
        }
    return t;
}

struct change {
    double squares, whole;
};

/* Adds what changed at the tokens that both have, which are in the same order. */
static int compare(const struct nb_property_call *call, const struct batch *b, int64_t position, struct change *sum) {
    struct tokens with = gather(b, true, position), without = gather(b, false, position);
    const char *norm = nb_param_text(call, "norm");
    int result = nb_norm_plain(call, norm, 1e-5, with.x, with.n, b->features, with.y, "moved");
    if (result == 0) result = nb_norm_plain(call, norm, 1e-5, without.x, without.n, b->features, without.y, "moved");
    int64_t p = 0, q = 0;
    for (int s = 0; s < b->n && result == 0; s++)
        for (int64_t t = 0; t < b->longest; t++) {
            const bool here = position < 0 || t == position, real = t < b->length[s], kept = t < b->width;
            for (int64_t c = 0; c < b->features && here && real && kept; c++) {
                const double y = without.y[q * b->features + c];
                sum->squares += pow(with.y[p * b->features + c] - y, 2);
                sum->whole += y * y;
            }
            p += here && kept;
            q += here && real;
        }
    free(with.x);
    free(without.x);
    return result;
}

/* statistics: of BatchNorm, as the parameter; of other norms "row". */
static void try_one(const struct nb_property_call *call, const char *statistics) {
    const bool by_position = strcmp(statistics, "position") == 0;
    struct batch b;
    struct change sum = {0};
    int result = 0;
    batch_init(&b, call);
    for (int64_t t = 0; t < (by_position ? b.width : 1) && result == 0; t++) {
        int n_real = 0;
        for (int s = 0; s < b.n; s++) n_real += b.length[s] > t;
        if (!by_position || n_real >= 2) result = compare(call, &b, by_position ? t : -1, &sum);
    }
    if (result == 0)
        nb_finding_tag(nb_property_add(call, "moved", "share", sqrt(sum.squares / sum.whole)), "statistics",
                       statistics);
    free(b.padded);
}

static void padding_run(const struct nb_property_call *call) {
    const bool has_choice = strncmp(nb_param_text(call, "norm"), "batchnorm", 9) == 0;
    for (int j = 0; j < (has_choice ? nb_param_count(call, "statistics") : 1); j++)
        try_one(call, has_choice ? nb_param_text_at(call, "statistics", j) : "row");
}

const struct nb_property nb_property_padding = {
    .name = "padding",
    .summary = "what padding and cutting do to real tokens",
    .params = {{"norm", "[\"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false},
               {"statistics", "[\"feature\", \"position\"]",
                "of BatchNorm: over all tokens, or over the sequences at each position", false},
               {"lengths", "[40, 32, 24, 16, 16, 12, 8, 8]", "of the sequences", true},
               {"cut", "0", "longer ones are cut to so many tokens; 0: none", false},
               {"features", "16", "", true}},
    .each = {{"norm", "norm"}},
    .run = padding_run,
};
