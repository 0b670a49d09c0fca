// SPDX-License-Identifier: Apache-2.0
/* Configurations as published; batch and sequence are cut to what two cores do in a second or two.
 *
 * MiniMind (jingyaogong/minimind: model configurations of 2025-04-26 and 2026-04-01): AdamW with PyTorch's beta and decay, rate 5e-4;
 * first values of deviation 0.02 (GPT-2, and initializer_range of the transformers library). Its byte pair vocabulary of 6400 is
 * kept as the width of the head, the bytes of the text are its first 256 tokens.
 * Transformer base (Vaswani et al. 2017, the RMSNorm paper's table 4): encoder and decoder, post-norm, with the shared
 * vocabulary of 32000 of that experiment; Adam with beta2 0.98 and eps 1e-9. */
#include "src/train/transformer.h"

static const struct nb_transformer_shape minimind2_small = {.hidden = 512,
                                                            .layers = 8,
                                                            .heads = 8,
                                                            .kv_heads = 2,
                                                            .ffn = 1408,
                                                            .vocabulary = 6400,
                                                            .batch = 4,
                                                            .sequence = 128,
                                                            .swiglu = true,
                                                            .rope_theta = 1e6,
                                                            .eps = 1e-5,
                                                            .deviation = 0.02,
                                                            .learning_rate = 5e-4,
                                                            .beta2 = 0.999,
                                                            .adam_eps = 1e-8,
                                                            .decay = 0.01};
static const struct nb_transformer_shape minimind_3 = {.hidden = 768,
                                                       .layers = 8,
                                                       .heads = 8,
                                                       .kv_heads = 4,
                                                       .ffn = 2432,
                                                       .vocabulary = 6400,
                                                       .batch = 2,
                                                       .sequence = 128,
                                                       .swiglu = true,
                                                       .qk_norm = true,
                                                       .rope_theta = 1e6,
                                                       .eps = 1e-6,
                                                       .deviation = 0.02,
                                                       .learning_rate = 5e-4,
                                                       .beta2 = 0.999,
                                                       .adam_eps = 1e-8,
                                                       .decay = 0.01};
static const struct nb_transformer_shape transformer_base = {.hidden = 512,
                                                             .layers = 6,
                                                             .heads = 8,
                                                             .kv_heads = 8,
                                                             .ffn = 2048,
                                                             .vocabulary = 32000,
                                                             .batch = 4,
                                                             .sequence = 64,
                                                             .decoder = true,
                                                             .eps = 1e-8,
                                                             .learning_rate = 1e-4,
                                                             .beta2 = 0.98,
                                                             .adam_eps = 1e-9};
static const struct nb_transformer_shape tiny = {.hidden = 64,
                                                 .layers = 4,
                                                 .heads = 4,
                                                 .kv_heads = 2,
                                                 .ffn = 176,
                                                 .vocabulary = 256,
                                                 .batch = 4,
                                                 .sequence = 64,
                                                 .swiglu = true,
                                                 .rope_theta = 1e6,
                                                 .eps = 1e-5,
                                                 .deviation = 0.02,
                                                 .learning_rate = 1e-3,
                                                 .beta2 = 0.999,
                                                 .adam_eps = 1e-8,
                                                 .decay = 0.01};

const struct nb_workload nb_workload_minimind2_small = {
    .name = "minimind2-small",
    .summary =
        "MiniMind2-Small: 8 layers of 512, 8 query heads on 2 of keys and values, SwiGLU of 1408, vocabulary 6400",
    .family = &nb_transformer_family,
    .own = &minimind2_small};
const struct nb_workload nb_workload_minimind_3 = {
    .name = "minimind-3",
    .summary = "minimind-3: 8 layers of 768, 8 query heads on 4, QK-norm over 96, SwiGLU of 2432, vocabulary 6400",
    .family = &nb_transformer_family,
    .own = &minimind_3};
const struct nb_workload nb_workload_transformer_base = {
    .name = "transformer-base",
    .summary = "Transformer base: encoder and decoder of 6 layers of 512, 8 heads, ReLU of 2048, vocabulary 32000",
    .family = &nb_transformer_family,
    .own = &transformer_base};
const struct nb_workload nb_workload_tiny_transformer = {
    .name = "tiny-transformer",
    .summary = "MiniMind's layers at a width of 64: 4 layers, 4 query heads on 2, SwiGLU of 176, vocabulary 256",
    .family = &nb_transformer_family,
    .own = &tiny};
