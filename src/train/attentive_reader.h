// SPDX-License-Identifier: Apache-2.0
/* The attentive reader (Hermann et al. 2015) as in table 6 of Zhang & Sennrich 2019: one bidirectional LSTM reads a document, another one a
 * query with a word left out; attention by the query's vector u over the document's y(t), which of the entities is missing:
 *   s(t) = softmax(v . tanh(y(t) Wy + u Wu));  r = sum s(t) y(t);  g = tanh(r Wr + u Wg);  logits = g Wa + b
 * Normalizations stand inside the LSTM alone. Questions are made of the text (cloze.h). A quarter as many words are in the query as in
 * the document.
 *
 * Observers are told of "document.forwards.*", "document.backwards.*", "query.forwards.*", "query.backwards.*" (x, h: product and result;
 * cell), "document", "query" (the states side by side), "logits"; of gradients at the same places. */
#ifndef NB_TRAIN_ATTENTIVE_READER_H
#define NB_TRAIN_ATTENTIVE_READER_H

#include "src/train/workload.h"

extern const struct nb_workload nb_workload_attentive_reader, nb_workload_tiny_attentive_reader;

#endif
