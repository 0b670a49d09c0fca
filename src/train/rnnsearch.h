// SPDX-License-Identifier: Apache-2.0
/* RNNSearch (Bahdanau et al. 2015) as in tables 2, 3 and 5 of Zhang & Sennrich 2019: a bidirectional gated recurrent unit reads a piece of
 * text, a decoder with attention says the piece that follows, byte by byte. Without masks: all pieces are equally long. The 256 bytes
 * stand for the paper's 32000 word pieces, so that the last product is 125 times narrower.
 *
 * Observers are told of "encoder.forwards.*", "encoder.backwards.*", "decoder.first.*", "decoder.second.*" (x_gates, x_candidate, h_gates,
 * h_candidate: product and result; the results of decoder.first.h_gates and .h_candidate are what table 5 is about), "decoder.states",
 * "decoder.readout", "logits"; of gradients at the same places. */
#ifndef NB_TRAIN_RNNSEARCH_H
#define NB_TRAIN_RNNSEARCH_H

#include "src/train/workload.h"

extern const struct nb_workload nb_workload_rnnsearch, nb_workload_tiny_rnnsearch;

#endif
