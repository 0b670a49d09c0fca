// SPDX-License-Identifier: Apache-2.0
/* Draws and files as inputs.c has them, for formats that no case has. */
#include "src/lab/emulate/design_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/lab/emulate/design_case.h"
#include "src/plan/inputs.h"

/* The streams of inputs.c, so that a case and a design with the same seed see the same numbers. */
enum { STREAM_X = 0, STREAM_GAMMA = 3, STREAM_BETA = 4 };

static double to_format(double v, enum nb_number number) { return nb_number_round(v, 0, number, NB_ROUND_NEAREST, 0); }

static void fill_x(struct nb_design_rows *r, const struct nb_design *d, const struct nb_source *s, uint64_t seed) {
    const struct nb_random random = nb_random_stream(seed, STREAM_X);
    const struct nb_draw draw = nb_draw_of(&s->recipe, &nb_numbers[d->store], r->cols, random);
    for (int64_t row = 0; row < r->rows; row++) {
        for (int64_t col = 0; col < r->cols; col++) {
            const double v = s->recipe.data ? nb_draw_value(s->recipe.data, &draw, row, col)
                                            : s->x.values[row % s->x.rows * r->cols + col];
            r->x[row * r->cols + col] = to_format(v, d->store);
        }
    }
}

/* Weights pass through f32, as the parameters of a case do. */
static double *parameters(const struct nb_design_rows *r, const struct nb_design *d, const struct nb_array *file,
                          uint64_t seed, int stream) {
    static const struct nb_params drawn = {.kind = NB_PARAMS_OF_DRAWS};
    const struct nb_random random = nb_random_stream(seed, (uint64_t)stream);
    const bool is_gamma = stream == STREAM_GAMMA;
    double *values = nb_alloc((unsigned long long)r->cols, sizeof *values);
    for (int64_t i = 0; i < r->cols; i++) {
        const double z = nb_random_normal(random, (uint64_t)i);
        const double v = file->rows ? file->values[i]
                         : is_gamma ? nb_params_gamma(&drawn, i, z)
                                    : nb_params_beta(&drawn, i, z);
        values[i] = to_format(to_format(v, NB_NUM_F32) - (is_gamma && d->weight_offset ? 1 : 0), d->weight);
    }
    return values;
}

static enum nb_affine usual_affine(enum nb_op op) {
    return op == NB_OP_LAYERNORM ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA;
}

int nb_design_data_resolve(struct nb_design_data *data) {
    int64_t rows, cols;
    char reason[1024];
    if (strlen(data->data) >= NB_DATA_MAX) return nb_error("data %.60s...: too long", data->data);
    if (nb_source_size(data->data, &rows, &cols, reason, sizeof reason) != 0) return nb_error("%s", reason);
    if (data->cols == 0) data->cols = cols > 0 ? cols : 4096;
    if (data->rows == 0) data->rows = rows > 0 && rows < 256 ? rows : rows > 0 ? 256 : 64;
    return 0;
}

int nb_design_rows_init(struct nb_design_rows *r, const struct nb_design *d, const struct nb_design_data *data) {
    struct nb_case c;
    struct nb_source source;
    char reason[1024];
    *r = (struct nb_design_rows){.rows = data->rows, .cols = data->cols, .affine = data->affine};
    if (r->affine == NB_N_AFFINES) r->affine = usual_affine(d->op);
    nb_design_case(&c, d, data->rows, data->cols, r->affine);
    snprintf(c.data, sizeof c.data, "%s", data->data);
    if (nb_source_open(&source, &c, false, reason, sizeof reason) != 0) return nb_error("%s", reason);
    r->random = nb_inputs_is_random(&c) != 0;
    r->x = calloc((size_t)r->rows * (size_t)r->cols, sizeof *r->x);
    if (!r->x) {
        nb_source_release(&source);
        return nb_error("no memory for %lld x %lld values; fewer --rows or a smaller --n", (long long)r->rows,
                        (long long)r->cols);
    }
    fill_x(r, d, &source, data->seed);
    if (r->affine != NB_AFFINE_NONE) r->gamma = parameters(r, d, &source.gamma, data->seed, STREAM_GAMMA);
    if (r->affine == NB_AFFINE_GAMMA_BETA) r->beta = parameters(r, d, &source.beta, data->seed, STREAM_BETA);
    nb_source_release(&source);
    return 0;
}

void nb_design_rows_release(struct nb_design_rows *r) {
    free(r->x);
    free(r->gamma);
    free(r->beta);
    *r = (struct nb_design_rows){0};
}
