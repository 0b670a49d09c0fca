// SPDX-License-Identifier: Apache-2.0
/* The last state of the reader that runs backwards is the one of the first step. */
#include "src/train/reader_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/train/embedding.h"
#include "src/train/halves.h"
#include "src/train/precision.h"

enum { FORWARDS = 0, BACKWARDS = 1 };
static const char *const directions[2] = {"forwards", "backwards"};

static int64_t all_rows(const struct nb_reader_pair *p) { return p->shape.n_steps * p->shape.batch; }

int nb_reader_pair_init(struct nb_reader_pair *p, struct nb_model *model, struct nb_model_arenas *arenas,
                        const char *name, const struct nb_lstm_shape *shape, struct nb_parameter *table) {
    *p = (struct nb_reader_pair){.shape = *shape, .model = model, .name = name, .table = table};
    const int64_t rows = all_rows(p), n_states = (rows + shape->batch) * shape->hidden;
    p->tokens = nb_alloc((unsigned long long)rows, sizeof *p->tokens);
    p->words = nb_arena_take(&arenas->kept, rows * shape->in);
    p->dwords = nb_arena_take(&arenas->passing, rows * shape->in);
    for (int d = 0; d < 2; d++) {
        struct nb_lstm_shape one = *shape;
        char full[64];
        one.backwards = d == BACKWARDS;
        p->states[d] = nb_arena_take(&arenas->kept, n_states);
        p->dstates[d] = nb_arena_take(&arenas->passing, n_states);
        snprintf(full, sizeof full, "%s.%s", name, directions[d]);
        if (nb_lstm_init(&p->lstm[d], model, arenas, full, &one) != 0) return -1;
    }
    return 0;
}

void nb_reader_pair_release(struct nb_reader_pair *p) {
    nb_lstm_release(&p->lstm[FORWARDS]);
    nb_lstm_release(&p->lstm[BACKWARDS]);
    free(p->tokens);
    *p = (struct nb_reader_pair){0};
}

double nb_reader_pair_flops(const struct nb_lstm_shape *shape) { return 2 * nb_lstm_flops(shape); }

/* Outputs of all steps, and the last one to be said, in an array of states. */
static float *outputs(const struct nb_reader_pair *p, int d, float *states) {
    return nb_lstm_outputs(&p->lstm[d], states);
}
static float *end(const struct nb_reader_pair *p, int d, float *states) {
    const int64_t step = d == BACKWARDS ? 0 : p->shape.n_steps - 1;
    return outputs(p, d, states) + step * p->shape.batch * p->shape.hidden;
}

void nb_reader_pair_forward(struct nb_reader_pair *p, float *joined, float *ends) {
    const int64_t rows = all_rows(p), hidden = p->shape.hidden;
    nb_embedding_forward(p->words, nb_parameter_used(p->table), p->tokens, rows, p->shape.in, 1);
    for (int d = 0; d < 2; d++) {
        nb_lstm_forward(&p->lstm[d], p->states[d], p->words);
        if (p->model->observer) nb_lstm_tell(&p->lstm[d]);
    }
    if (joined) {
        nb_halves_join(joined, outputs(p, FORWARDS, p->states[FORWARDS]), outputs(p, BACKWARDS, p->states[BACKWARDS]),
                       rows, hidden);
        nb_model_tell(p->model, p->name, "", joined, rows * 2 * hidden);
    }
    if (!ends) return;
    nb_halves_join(ends, end(p, FORWARDS, p->states[FORWARDS]), end(p, BACKWARDS, p->states[BACKWARDS]), p->shape.batch,
                   hidden);
    nb_model_tell(p->model, p->name, joined ? "ends" : "", ends, p->shape.batch * 2 * hidden);
}

static void spread(struct nb_reader_pair *p, const float *djoined, const float *dends) {
    const int64_t rows = all_rows(p), batch = p->shape.batch, hidden = p->shape.hidden;
    for (int d = 0; d < 2; d++) memset(p->dstates[d], 0, (size_t)((rows + batch) * hidden) * sizeof(float));
    if (djoined)
        nb_halves_split(outputs(p, FORWARDS, p->dstates[FORWARDS]), outputs(p, BACKWARDS, p->dstates[BACKWARDS]),
                        djoined, rows, hidden);
    float *forwards = end(p, FORWARDS, p->dstates[FORWARDS]), *backwards = end(p, BACKWARDS, p->dstates[BACKWARDS]);
    for (int64_t b = 0; dends && b < batch; b++)
        for (int64_t i = 0; i < hidden; i++) {
            forwards[b * hidden + i] += dends[2 * b * hidden + i];
            backwards[b * hidden + i] += dends[(2 * b + 1) * hidden + i];
        }
}

void nb_reader_pair_backward(struct nb_reader_pair *p, const float *djoined, const float *dends) {
    const int64_t rows = all_rows(p);
    if (djoined) nb_model_tell_gradient(p->model, p->name, "", djoined, rows * 2 * p->shape.hidden);
    if (dends)
        nb_model_tell_gradient(p->model, p->name, djoined ? "ends" : "", dends, p->shape.batch * 2 * p->shape.hidden);
    spread(p, djoined, dends);
    for (int d = 0; d < 2; d++) {
        nb_lstm_backward(&p->lstm[d], p->dwords, p->dstates[d], p->states[d], p->words);
        nb_embedding_backward(p->table->gradient, p->dwords, p->tokens, rows, p->shape.in, 1);
        if (p->model->observer) nb_lstm_tell_gradients(&p->lstm[d]);
    }
}
