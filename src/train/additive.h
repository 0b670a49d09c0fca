// SPDX-License-Identifier: Apache-2.0
/* Additive attention (Bahdanau et al. 2015) of queries, step by step, over a memory that stays:
 *   score_j = v . tanh(norm(query Wq^T) + norm(memory_j Wm^T + b));   context = sum_j softmax(score)_j memory_j
 * Tensors: queries, contexts: steps x batch x width; memory: sources x batch x width. */
#ifndef NB_TRAIN_ADDITIVE_H
#define NB_TRAIN_ADDITIVE_H

#include "src/train/projection.h"

struct nb_additive_shape {
    int64_t n_steps, n_sources, batch;
    int64_t query, memory, width; /* width: of the hidden layer */
    bool normed;
};

struct nb_additive {
    struct nb_additive_shape shape;
    struct nb_model *model; /* borrowed */
    struct nb_projection from_query, from_memory;
    struct nb_parameter *score;
    float *hidden;  /* tanh(.): steps x sources x batch x width */
    float *weights; /* steps x batch x sources */
};

/* Parameters: NAME.query, NAME.memory (as of projections), NAME.score. -1 after nb_error. */
int nb_additive_init(struct nb_additive *a, struct nb_model *model, struct nb_model_arenas *arenas, const char *name,
                     const struct nb_additive_shape *shape);
enum { NB_ADDITIVE_PARAMETERS = 8 }; /* at most */

void nb_additive_memory(struct nb_additive *a, const float *memory);
void nb_additive_step(struct nb_additive *a, int64_t step, float *context, const float *query, const float *memory);
/* Before the first step's backward. */
void nb_additive_start_backward(struct nb_additive *a);
/* Adds to dquery and to dmemory. */
void nb_additive_step_backward(struct nb_additive *a, int64_t step, float *dquery, float *dmemory,
                               const float *dcontext, const float *memory);
/* After the last: adds what came through the scores to dmemory; queries of all steps, packed. */
void nb_additive_finish(struct nb_additive *a, float *dmemory, const float *memory, const float *queries);

double nb_additive_flops(const struct nb_additive_shape *shape); /* forward and backward, the sums over sources too */
void nb_additive_release(struct nb_additive *a);

#endif
