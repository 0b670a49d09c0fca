// SPDX-License-Identifier: Apache-2.0
/* Two LSTMs that read the same words in either direction, with the words' vectors in front. */
#ifndef NB_TRAIN_READER_PAIR_H
#define NB_TRAIN_READER_PAIR_H

#include "src/train/lstm.h"

struct nb_reader_pair {
    struct nb_lstm_shape shape; /* of the one that reads forwards */
    struct nb_model *model;     /* borrowed */
    const char *name;           /* borrowed */
    struct nb_parameter *table; /* borrowed: vocabulary x in */
    struct nb_lstm lstm[2];     /* forwards, backwards */
    int32_t *tokens;            /* steps x batch: the caller's to fill */
    float *words;
    float *states[2];
    float *dwords, *dstates[2];
};

int nb_reader_pair_init(struct nb_reader_pair *p, struct nb_model *model, struct nb_model_arenas *arenas,
                        const char *name, const struct nb_lstm_shape *shape, struct nb_parameter *table);
enum { NB_READER_PAIR_PARAMETERS = 2 * NB_LSTM_PARAMETERS };
/* joined: steps x batch x 2 hidden, both directions side by side; ends: batch x 2 hidden, what each said last. Either may be null. */
void nb_reader_pair_forward(struct nb_reader_pair *p, float *joined, float *ends);
/* Gradients by the same two, null for one that is not used. */
void nb_reader_pair_backward(struct nb_reader_pair *p, const float *djoined, const float *dends);
double nb_reader_pair_flops(const struct nb_lstm_shape *shape);
void nb_reader_pair_release(struct nb_reader_pair *p);

#endif
