// SPDX-License-Identifier: Apache-2.0
/* The lists of the sources' models against what follows from their sizes by hand: floating-point operations of a forward pass, norms,
 * parameters. A training step has three times the operations: each product has two in the backward pass. */
#include <criterion/criterion.h>
#include <math.h>

#include "src/core/log.h"
#include "src/models/operations.h"
#include "tests/support/files.h"

TestSuite(models_lists, .init = quiet);

/* Of a GRU, or with 4 gates an LSTM: products of the input and of the state. */
static double cell(double rows, double in, double hidden, double gates) {
    return 2 * rows * (in + hidden) * gates * hidden;
}

static const double RNN_ROWS = 80 * 80, RNN_HIDDEN = 1024, RNN_EMBEDDING = 512, RNN_WORDS = 32000;

/* Encoder, both units of the decoder; attention: keys, queries, scores and contexts of all pairs; first state; readout; logits. */
static double rnnsearch_flops(void) {
    const double r = RNN_ROWS, h = RNN_HIDDEN, e = RNN_EMBEDDING, pairs = r * 80;
    return 2 * cell(r, e, h, 3) + cell(r, e, h, 3) + cell(r, 2 * h, h, 3) + 2 * r * 2 * h * 2 * h + 2 * r * h * 2 * h +
           2 * 2 * pairs * 2 * h + 2 * 80 * 2 * h * h + 2 * r * (h + e + 2 * h) * e + 2 * r * e * RNN_WORDS;
}
/* Behind each product of a GRU, of the attention, the first state and the readout; word by word but where a whole sentence is known. */
static const double RNN_NORMS = 2 * (2 + 2 * 80) + (2 + 2 * 80) + 4 * 80 + (1 + 80) + 1 + 3;

static const double READER_ROWS = 64 * 780, READER_HIDDEN = 240;

static double reader_flops(void) {
    const double r = READER_ROWS, h = READER_HIDDEN, q = 64 * 13;
    return 2 * cell(r, h, h, 4) + 2 * cell(q, h, h, 4) + 2 * r * 2 * h * h + 2 * 64 * 2 * h * h + 2 * r * h +
           2 * r * 2 * h + 2 * 2 * 64 * 2 * h * h + 2 * 64 * h * 409;
}

/* Channels in and out, side of the image, side of the kernel. */
static double convpool_flops(double *weights) {
    static const double layers[9][4] = {{3, 96, 32, 3},   {96, 96, 32, 3},   {96, 96, 32, 3},
                                        {96, 192, 16, 3}, {192, 192, 16, 3}, {192, 192, 16, 3},
                                        {192, 192, 8, 3}, {192, 192, 8, 1},  {192, 192, 8, 1}};
    double flops = 2 * 100 * 192 * 10;
    *weights = 1920 + 10;
    for (int i = 0; i < 9; i++) {
        const double *l = layers[i], kernel = l[0] * l[1] * l[3] * l[3];
        flops += 2 * 100 * l[2] * l[2] * kernel;
        *weights += kernel + 2 * l[1]; /* gain and bias */
    }
    return flops;
}

/* Every weight of a token once, and scores and mixtures of all pairs of positions. */
static double transformer_flops(double tokens, double weights, double attentions, double sequence) {
    return 2 * tokens * weights + 2 * attentions * 2 * tokens * sequence * 512;
}

static const double BASE_WEIGHTS = 18 * 4 * 512. * 512 + 12 * 2 * 512. * 2048 + 512. * 32000,
                    SMALL_WEIGHTS = 8 * (2 * 512. * 512 + 2 * 512. * 128 + 3 * 512. * 1408) + 512. * 6400;

struct sums {
    double flops[NB_N_MODEL_PARTS], norms;
};
static struct sums sums_of(const struct nb_model_step *step) {
    struct sums s = {0};
    for (size_t i = 0; i < step->n_works; i++) {
        const struct nb_step_work *w = &step->works[i];
        if (w->kind == NB_WORK_PRODUCT) s.flops[w->part] += w->count * w->flops;
        if (w->kind == NB_WORK_NORM && w->part == NB_PART_FORWARD) s.norms += w->count;
    }
    return s;
}

Test(models_lists, sizes_follow_from_what_was_published) {
    double convpool_weights;
    const double convpool = convpool_flops(&convpool_weights);
    const struct {
        const char *name;
        double flops, norms, parameters; /* NaN: as the list says */
    } cases[] = {
        {"rnnsearch", rnnsearch_flops(), RNN_NORMS, NAN},
        {"attentive-reader", reader_flops(), 3 * 2 * (780 + 13), NAN},
        {"order-embedding", cell(1280, 300, 1024, 3) + 2 * 128 * 4096. * 1024, 4 * 10, NAN},
        {"convpool", convpool, 9, convpool_weights},
        {"transformer-base", transformer_flops(24960, BASE_WEIGHTS, 18, 64), 30,
         BASE_WEIGHTS + 12 * (2048 + 512) + 30 * 512},
        {"minimind2-small", transformer_flops(16384, SMALL_WEIGHTS, 8, 512), 17, 25829888},
        {"minimind2-small-inference", transformer_flops(512, SMALL_WEIGHTS, 8, 512), 17, 25829888},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_model_step step released_by(nb_model_step_release);
        cr_assert_eq(nb_model_step_read(&step, cases[i].name, 0), 0, "%s", cases[i].name);
        const struct sums s = sums_of(&step);
        cr_expect_float_eq(s.flops[NB_PART_FORWARD] / cases[i].flops, 1, 1e-12, "%s: %.6g of %.6g", step.name,
                           s.flops[NB_PART_FORWARD], cases[i].flops);
        cr_expect_float_eq(s.flops[NB_PART_BACKWARD], step.training ? 2 * s.flops[NB_PART_FORWARD] : 0, 1e-3, "%s",
                           step.name);
        cr_expect_eq(s.norms, cases[i].norms, "%s: %g norms", step.name, s.norms);
        if (!isnan(cases[i].parameters))
            cr_expect_eq(step.parameters, cases[i].parameters, "%s: %.0f parameters", step.name, step.parameters);
        cr_expect(step.source && step.title, "%s", step.name);
    }
}

/* Of all but the embedding and the head, which have no norm, a norm's parameters are its width: gains of rnnsearch by hand. */
Test(models_lists, recurrent_models_have_their_matrices_and_gains) {
    const double h = RNN_HIDDEN, e = RNN_EMBEDDING, v = RNN_WORDS;
    const double gru_e = 3 * h * (e + h) + 3 * h, gru_m = 3 * h * (2 * h + h) + 3 * h;
    const double rnnsearch = 2 * v * e + 3 * gru_e + gru_m + (2 * h * h + h) + (4 * h * h + 2 * h + 2 * h * h + 2 * h) +
                             (h + e + 2 * h) * e + 3 * e + e * v + v + /* gains */ 10 * 2 * h + 9 * h + 3 * e;
    const double reader = 49145 * 240. + 4 * (240 * 960. * 2 + 960 + 2 * 960 + 240) + 2 * 480 * 240. + 2 * 240 +
                          2 * 480 * 240. + 240 + 240 * 409. + 409;
    const double order = 8192 * 300. + 3 * 1024 * (300 + 1024.) + 3 * 1024 + 4096 * 1024. + 1024 + 6 * 1024;
    const struct {
        const char *name;
        double parameters;
    } cases[] = {{"rnnsearch", rnnsearch}, {"attentive-reader", reader}, {"order-embedding", order}};
    for (size_t i = 0; i < 3; i++) {
        struct nb_model_step step released_by(nb_model_step_release);
        cr_assert_eq(nb_model_step_read(&step, cases[i].name, 0), 0);
        cr_expect_eq(step.parameters, cases[i].parameters, "%s: %.0f of %.0f parameters", step.name, step.parameters,
                     cases[i].parameters);
    }
}
