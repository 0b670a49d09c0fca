// SPDX-License-Identifier: Apache-2.0
/* The decoder of RNNSearch (Bahdanau et al. 2015) as Nematus has it: two gated recurrent units a step with the attention between them,
 * then a readout of state, previous word and context:
 *   s'_t = gru1(word_t, s_t);  c_t = attention(s'_t, memory);  s_{t+1} = gru2(c_t, s'_t)
 *   o_t  = tanh(norm(s_{t+1} Ws) + norm(word_t We) + norm(c_t Wc));  logits = o_t Wo + b;   s_0 = tanh(norm(mean(memory) Wi)) */
#ifndef NB_TRAIN_RNNSEARCH_DECODER_H
#define NB_TRAIN_RNNSEARCH_DECODER_H

#include "src/train/additive.h"
#include "src/train/gru.h"

struct nb_decoder_shape {
    int64_t n_steps, n_sources, batch;
    int64_t embedding, hidden, memory, vocabulary;
};

struct nb_decoder {
    struct nb_decoder_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_projection start;
    struct nb_gru first, second;
    struct nb_additive attention;
    struct nb_projection of_state, of_word, of_context, output;
    float *mean, *states, *middles, *contexts, *readout;
    float *dmean, *dstates, *dmiddles, *dcontexts, *dreadout;
};

/* Parameters NAME.start, NAME.first, NAME.second, NAME.attention, NAME.of_state, ... -1 after nb_error. */
int nb_decoder_init(struct nb_decoder *d, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                    const struct nb_decoder_shape *shape);
enum { NB_DECODER_PARAMETERS = 2 * NB_GRU_PARAMETERS + NB_ADDITIVE_PARAMETERS + 4 * 4 + 2 }; /* at most */

/* words: steps x batch x embedding; memory: sources x batch x width. Returns the logits, steps x batch x vocabulary. */
const float *nb_decoder_forward(struct nb_decoder *d, const float *words, const float *memory);
/* Where the gradient by the logits is written before backward. */
float *nb_decoder_dlogits(const struct nb_decoder *d);
/* Overwrites dwords and dmemory. */
void nb_decoder_backward(struct nb_decoder *d, float *dwords, float *dmemory, const float *words, const float *memory);

void nb_decoder_tell(const struct nb_decoder *d);
void nb_decoder_tell_gradients(const struct nb_decoder *d);
double nb_decoder_flops(const struct nb_decoder_shape *shape);
void nb_decoder_release(struct nb_decoder *d);

#endif
