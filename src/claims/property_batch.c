// SPDX-License-Identifier: Apache-2.0
/* What the statistics of a batch do: BatchNorm against norms of rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/log.h"
#include "src/core/random.h"

/* coupling. Does one sample's output depend on the others of its batch? One sample stays, its companions are redrawn again and again; what moves is
 * its output, and the gradient that reaches it (BatchNorm's from kernels/kernel.h, in double; a norm of rows has none to look at). */

struct trial {
    int64_t batch, features;
};

/* Sample 0 from a stream of its own, the others from the draw's. */
static void fill_trial(const struct trial *t, int draw, double *x) {
    const struct nb_random own = nb_random_stream(1, 0), others = nb_random_stream(2, (uint64_t)draw);
    for (int64_t i = 0; i < t->batch * t->features; i++)
        x[i] = nb_random_normal(i < t->features ? own : others, (uint64_t)i);
}

/* dx of sample 0 with dy = N(0,1), the same for it in every draw, by BatchNorm's formula with eps 1e-5. */
static void gradient_of_first(const struct trial *t, const double *x, int draw, double *dx) {
    const struct nb_random own = nb_random_stream(3, 0), others = nb_random_stream(4, (uint64_t)draw);
    for (int64_t c = 0; c < t->features; c++) {
        double mean = 0, var = 0, mean_g = 0, mean_gx = 0;
        for (int64_t b = 0; b < t->batch; b++) mean += x[b * t->features + c] / (double)t->batch;
        for (int64_t b = 0; b < t->batch; b++) var += pow(x[b * t->features + c] - mean, 2) / (double)t->batch;
        const double rstd = 1 / sqrt(var + 1e-5);
        for (int64_t b = 0; b < t->batch; b++) {
            const double g = nb_random_normal(b ? others : own, (uint64_t)(b * t->features + c));
            mean_g += g / (double)t->batch;
            mean_gx += g * (x[b * t->features + c] - mean) * rstd / (double)t->batch;
        }
        const double g0 = nb_random_normal(own, (uint64_t)c);
        dx[c] = rstd * (g0 - mean_g - (x[c] - mean) * rstd * mean_gx);
    }
}

struct spread { /* over draws, by feature */
    double *sum, *squares;
    int64_t n_features;
    int n;
};

static void spread_add(struct spread *s, const double *v) {
    for (int64_t i = 0; i < s->n_features; i++) {
        s->sum[i] += v[i];
        s->squares[i] += v[i] * v[i];
    }
    s->n++;
}

/* Root mean square deviation from the mean over draws, over the root mean square. */
static double spread_of(const struct spread *s) {
    double deviation = 0, whole = 0;
    for (int64_t i = 0; i < s->n_features; i++) {
        const double mean = s->sum[i] / s->n, square = s->squares[i] / s->n;
        deviation += fmax(0, square - mean * mean);
        whole += square;
    }
    return sqrt(deviation / whole);
}

static void coupling_run(const struct nb_property_call *call) {
    const struct trial t = {nb_param_whole(call, "batch"), nb_param_whole(call, "features")};
    const char *kernel = nb_param_text(call, "kernel");
    const int64_t n = t.batch * t.features;
    double *x freed = nb_alloc(2 * (unsigned long long)n, sizeof *x), *y = x + n;
    double *sums freed = nb_alloc(5 * (unsigned long long)t.features, sizeof *sums), *dx = sums + 4 * t.features;
    struct spread output = {sums, sums + t.features, t.features, 0},
                  gradient = {sums + 2 * t.features, sums + 3 * t.features, t.features, 0};
    const bool couples = strncmp(kernel, "batchnorm", 9) == 0;
    int result = 0;
    for (int draw = 0; draw < nb_param_whole(call, "draws") && result == 0; draw++) {
        fill_trial(&t, draw, x);
        result = nb_norm_plain(call, kernel, 1e-5, x, t.batch, t.features, y, "moved");
        if (result == 0) spread_add(&output, y);
        if (couples) gradient_of_first(&t, x, draw, dx);
        if (couples) spread_add(&gradient, dx);
    }
    if (result == 0) nb_property_add(call, "moved", "share", spread_of(&output));
    if (result == 0 && couples) nb_property_add(call, "gradient_moved", "share", spread_of(&gradient));
}

/* running. BatchNorm in training and in inference on the same batch, after so many batches of training: root mean square of the difference over
 * that of the result. The running averages start from 0 and 1 and see other batches of the same distribution. */

static void fill_batch(double *x, int64_t batch, int64_t features, uint64_t draw) {
    const struct nb_random random = nb_random_stream(2, draw), place = nb_random_stream(1, 0);
    for (int64_t i = 0; i < batch * features; i++) {
        const uint64_t c = (uint64_t)(i % features);
        x[i] = nb_random_normal(place, 2 * c) +
               (0.5 + nb_random_open(place, 2 * c + 1)) * nb_random_normal(random, (uint64_t)i);
    }
}

/* y: the batch in training, z: in inference. */
static int both_modes(const struct nb_property_call *call, int64_t batch, int64_t features, double *x, double *y,
                      double *z) {
    const int64_t batches = nb_param_whole(call, "batches");
    float *mean freed = nb_alloc(2 * (unsigned long long)features, sizeof *mean), *var = mean + features;
    struct nb_norm n = {.kernel = nb_param_text(call, "kernel"),
                        .eps = 1e-5,
                        .momentum = nb_param_number(call, "momentum"),
                        .rows = batch,
                        .cols = features,
                        .x = x,
                        .running_mean = mean,
                        .running_var = var};
    int result = 0;
    for (int64_t i = 0; i < features; i++) var[i] = 1;
    for (int64_t b = 0; b < batches && result == 0; b++) {
        fill_batch(x, batch, features, (uint64_t)b + 1);
        result = nb_norm_found(call, &n, y, "apart");
    }
    fill_batch(x, batch, features, 0);
    n.mode = NB_INFERENCE;
    if (result == 0) result = nb_norm_found(call, &n, z, "apart");
    n.mode = NB_TRAINING;
    if (result == 0) result = nb_norm_found(call, &n, y, "apart");
    return result;
}

static void running_run(const struct nb_property_call *call) {
    const int64_t batch = nb_param_whole(call, "batch"), features = nb_param_whole(call, "features");
    const int64_t n = batch * features;
    double *x freed = nb_alloc(3 * (unsigned long long)n, sizeof *x), *y = x + n, *z = y + n;
    if (both_modes(call, batch, features, x, y, z) == 0) {
        for (int64_t i = 0; i < n; i++) z[i] -= y[i];
        nb_property_add(call, "apart", "share", nb_rms_of(z, n) / nb_rms_of(y, n));
    }
}

/* tokens. Do tokens share statistics? All rows but one are drawn anew; counted are the bits of the one that stays. */

static void fill_rows(double *x, int64_t rows, int64_t cols, int64_t kept, uint64_t draw) {
    for (int64_t r = 0; r < rows; r++) {
        const struct nb_random random = nb_random_stream(r == kept ? 1 : 2 + draw, (uint64_t)r);
        for (int64_t c = 0; c < cols; c++) x[r * cols + c] = nb_random_normal(random, (uint64_t)c);
    }
}

/* Each row is the one that stays in turn. */
static void tokens_run(const struct nb_property_call *call) {
    const char *kernel = nb_param_text(call, "kernel");
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    double *x freed = nb_alloc(3 * (unsigned long long)(rows * cols), sizeof *x), *y = x + rows * cols,
              *z = y + rows * cols;
    double moved = 0;
    int result = 0;
    for (int64_t kept = 0; kept < rows && result == 0; kept++) {
        fill_rows(x, rows, cols, kept, 0);
        result = nb_norm_plain(call, kernel, 1e-5, x, rows, cols, y, "rows_moved");
        fill_rows(x, rows, cols, kept, 1);
        if (result == 0) result = nb_norm_plain(call, kernel, 1e-5, x, rows, cols, z, "rows_moved");
        if (result == 0) moved += nb_largest_difference(y + kept * cols, z + kept * cols, cols) > 0;
    }
    if (result == 0) nb_property_add(call, "rows_moved", "share", moved / (double)rows);
}

/* depth. The difference between training and inference through many layers, h <- relu(norm(W h)): each BatchNorm has running averages from
 * batches that went through the network before; then one batch goes through in both modes. Norms of rows have but one mode. */

struct net {
    int64_t batch, width;
    int depth;
    float *mean, *var; /* of each layer */
    double *h, *a;     /* batch x width */
};

static void multiply(const struct net *net, int layer) {
    const struct nb_random random = nb_random_stream(5, (uint64_t)layer);
    const double size = sqrt(2 / (double)net->width);
    double *w freed = nb_alloc((unsigned long long)(net->width * net->width), sizeof *w);
    for (int64_t i = 0; i < net->width * net->width; i++) w[i] = size * nb_random_normal(random, (uint64_t)i);
    for (int64_t b = 0; b < net->batch; b++)
        for (int64_t j = 0; j < net->width; j++) {
            double sum = 0;
            for (int64_t k = 0; k < net->width; k++) sum += w[j * net->width + k] * net->h[b * net->width + k];
            net->a[b * net->width + j] = sum;
        }
}

/* One batch through all layers; out: what the last norm returned. */
static int pass(const struct nb_property_call *call, const struct net *net, uint64_t draw, enum nb_mode mode,
                double *y) {
    const struct nb_random random = nb_random_stream(6, draw);
    const int64_t n = net->batch * net->width;
    for (int64_t i = 0; i < n; i++) net->h[i] = nb_random_normal(random, (uint64_t)i);
    for (int layer = 0; layer < net->depth; layer++) {
        const struct nb_norm norm = {.kernel = nb_param_text(call, "kernel"),
                                     .eps = 1e-5,
                                     .mode = mode,
                                     .rows = net->batch,
                                     .cols = net->width,
                                     .x = net->a,
                                     .running_mean = net->mean + layer * net->width,
                                     .running_var = net->var + layer * net->width};
        multiply(net, layer);
        if (nb_norm_found(call, &norm, y, "apart") != 0) return -1;
        for (int64_t i = 0; i < n; i++) net->h[i] = y[i] > 0 ? y[i] : 0;
    }
    return 0;
}

static int modes_apart(const struct nb_property_call *call, const struct net *net, double *apart) {
    const int64_t n = net->batch * net->width, params_n = net->depth * net->width;
    double *y freed = nb_alloc(2 * (unsigned long long)n, sizeof *y), *z = y + n;
    int result = 0;
    for (int64_t i = 0; i < params_n; i++) net->var[i] = 1;
    for (int64_t b = 0; b < nb_param_whole(call, "batches") && result == 0; b++)
        result = pass(call, net, (uint64_t)b + 1, NB_TRAINING, y);
    if (result == 0) result = pass(call, net, 0, NB_INFERENCE, z);
    if (result == 0) result = pass(call, net, 0, NB_TRAINING, y);
    for (int64_t i = 0; i < n; i++) z[i] -= y[i];
    *apart = nb_rms_of(z, n) / nb_rms_of(y, n);
    return result;
}

static void depth_run(const struct nb_property_call *call) {
    struct net net = {.batch = nb_param_whole(call, "batch"),
                      .width = nb_param_whole(call, "width"),
                      .depth = (int)nb_param_number(call, "depth")};
    const unsigned long long stats = (unsigned long long)(net.depth * net.width),
                             n = (unsigned long long)(net.batch * net.width);
    double apart;
    net.mean = nb_alloc(2 * stats, sizeof *net.mean);
    net.var = net.mean + stats;
    net.h = nb_alloc(2 * n, sizeof *net.h);
    net.a = net.h + n;
    if (modes_apart(call, &net, &apart) == 0) nb_property_add(call, "apart", "share", apart);
    free(net.mean);
    free(net.h);
}

/* padding. Sequences of different length in one batch, cut to a common length or filled with zeros: what that does to the outputs at real
 * tokens, against statistics of all real tokens alone. BatchNorm's statistics are taken per feature over all tokens of the batch, or
 * per feature and position over its sequences. */

enum { MOST = 256 };

struct batch {
    int n;                                          /* sequences */
    int64_t length[MOST], width, longest, features; /* width: as cut or padded */
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
            for (int64_t c = 0; c < b->features && i < b->length[s]; c++) /* zeros behind the end */
                t.x[t.n * b->features + c] = value(b, s, i, c);
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
}

static void padding_run(const struct nb_property_call *call) {
    const bool has_choice = strncmp(nb_param_text(call, "norm"), "batchnorm", 9) == 0;
    for (int j = 0; j < (has_choice ? nb_param_count(call, "statistics") : 1); j++)
        try_one(call, has_choice ? nb_param_text_at(call, "statistics", j) : "row");
}

const struct nb_property nb_property_batch[] = {
    {"coupling",
     "what companions in a batch do to one sample",
     coupling_run,
     {{"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "norms", false, "norm"},
      {"batch", "[2, 8, 64]", "samples in a batch", true, "batch"},
      {"features", "64", "of a sample", true, NULL},
      {"draws", "32", "of companions", true, NULL}}},
    {"running",
     "training against inference on one batch",
     running_run,
     {{"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "", false, "norm"},
      {"batch", "[8, 32, 256]", "samples", true, "batch"},
      {"batches", "[1, 10, 100]", "of training before", true, "batches"},
      {"features", "32", "of mean and standard deviation of their own", true, NULL},
      {"momentum", "0.1", "weight of the new value", false, NULL}}},
    {"tokens",
     "does a row's result depend on other rows?",
     tokens_run,
     {{"kernel", "[\"rmsnorm_twopass\", \"layernorm_twopass\"]", "", false, "norm"},
      {"rows", "32", "", true, NULL},
      {"cols", "96", "", true, NULL}}},
    {"depth",
     "training against inference through many layers",
     depth_run,
     {{"kernel", "[\"batchnorm_twopass\", \"layernorm_twopass\"]", "", false, "norm"},
      {"depth", "[1, 12, 24]", "layers", true, "depth"},
      {"batch", "32", "", true, NULL},
      {"width", "48", "", true, NULL},
      {"batches", "30", "of training before", true, NULL}}},
    {"padding",
     "what padding and cutting do to real tokens",
     padding_run,
     {{"norm", "[\"batchnorm_twopass\", \"layernorm_twopass\", \"rmsnorm_twopass\"]", "", false, "norm"},
      {"statistics", "[\"feature\", \"position\"]",
       "of BatchNorm: over all tokens, or over the sequences at each position", false, NULL},
      {"lengths", "[40, 32, 24, 16, 16, 12, 8, 8]", "of the sequences", true, NULL},
      {"cut", "0", "longer ones are cut to so many tokens; 0: none", false, NULL},
      {"features", "16", "", true, NULL}}},
    {.name = NULL}};
