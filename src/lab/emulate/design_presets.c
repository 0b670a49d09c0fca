// SPDX-License-Identifier: Apache-2.0
/* Designs with names. The letters are those of the table of cast orders in README.md. */
#include "src/lab/emulate/design.h"

const struct nb_design_preset nb_design_presets[] = {
    {"ideal", "A", "rmsnorm/store:bf16/weight:bf16", "all in f32, rounded once at the end"},
    {"llama", "B", "rmsnorm/store:bf16/weight:bf16/cast:before",
     "x * rstd rounded to the dtype, then times the weight (Hugging Face Llama)"},
    {"cast_each", "C", "rmsnorm/store:bf16/weight:bf16/rstd:bf16/scale:bf16",
     "rstd rounded to the dtype, each product too"},
    {"eager", "D", "rmsnorm/store:bf16/weight:bf16/stat:bf16/rstd:bf16/scale:bf16",
     "op by op in the dtype, sums in f32 (PyTorch eager without a cast)"},
    {"truncate", "F", "rmsnorm/store:bf16/weight:bf16/store_round:rz", "as ideal, but the last rounding cuts off"},
    {"gemma", NULL, "rmsnorm/store:bf16/weight:bf16/weight_offset:1", "1 + w in f32, rounded once at the end (Gemma)"},
    {"gemma_bf16", "G", "rmsnorm/store:bf16/weight:bf16/weight_offset:1/offset:bf16",
     "1 + w made into a bf16 weight beforehand, rounded once at the end"},
    {"var_bf16", "I", "rmsnorm/store:bf16/weight:bf16/stat:bf16", "variance and eps rounded to the dtype, rest f32"},
    {"rstd_bf16", "J", "rmsnorm/store:bf16/weight:bf16/rstd:bf16", "rstd rounded to the dtype, rest f32"},
    {"autocast", NULL, "rmsnorm/store:bf16", "f32 inside, f32 weights, rounded for the next matmul (torch.autocast)"},
    {"all_bf16", NULL, "rmsnorm/all:bf16", "sums in bf16, too"},
    {"all_f16", NULL, "rmsnorm/all:f16", "sums in f16, too"},
    {"stochastic", NULL, "rmsnorm/all:bf16/round:sr/store_round:sr", "as all_bf16, every rounding stochastic"},
    {"fp8", NULL, "rmsnorm/store:e4m3/weight:bf16", "e4m3 in and out, f32 inside"},
    {"fp64_acc", NULL, "rmsnorm/acc:f64/square:f64", "f32 in and out, squares and sums in f64"},
    {"kahan", NULL, "rmsnorm/order:kahan", "f32, compensated sum"},
    {"pairwise", NULL, "rmsnorm/order:pairwise", "f32, pairwise sum down to 8 elements"},
    {"corrected", NULL, "layernorm/order:pairwise/variance:corrected",
     "LayerNorm in f32, two-pass with the residual mean taken off"},
    {"naive", NULL, "layernorm/variance:onepass", "LayerNorm in f32, E[x^2] - mean^2"},
    {"welford", NULL, "layernorm/variance:welford", "LayerNorm in f32, updating"},
};
const size_t nb_n_design_presets = sizeof nb_design_presets / sizeof nb_design_presets[0];
