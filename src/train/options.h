// SPDX-License-Identifier: Apache-2.0
/* What is trained, and how: the arms of a training claim differ in these. */
#ifndef NB_TRAIN_OPTIONS_H
#define NB_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/text.h"

/* What stands where the model has a normalization. */
enum nb_norm_kind {
    NB_NORM_NONE,
    NB_NORM_LAYERNORM,
    NB_NORM_RMSNORM,
    NB_NORM_PRMSNORM,
    NB_NORM_BATCHNORM, /* over the rows of the batch (positions are rows); in a CNN over batch and positions */
    NB_NORM_CENTRE,    /* x - mean(x): re-centring alone */
    NB_NORM_SCALE,     /* x / standard deviation, mean kept: re-scaling alone */
    NB_N_NORM_KINDS
};
enum nb_norm_affine {
    NB_NORM_LEARNED, /* gamma, and beta where the kind has one by custom (LayerNorm, BatchNorm) */
    NB_NORM_FROZEN,  /* gamma 1, beta 0, never updated */
    NB_N_NORM_AFFINES
};
enum nb_norm_place { NB_PRE_NORM, NB_POST_NORM, NB_N_NORM_PLACES };

/* What stands behind the ends of sequences. */
enum nb_train_padding {
    NB_NOT_PADDED, /* nothing: all have one length */
    NB_PADDED,     /* zeros up to a common length, which no loss looks at */
    NB_MASKED,     /* the same, and BatchNorm's statistics do not see them */
    NB_N_PADDINGS
};

struct nb_row_sets;
struct nb_norm_choice {
    enum nb_norm_kind kind;
    enum nb_style style; /* fused, or op by op as an eager framework */
    enum nb_norm_affine affine;
    double eps;       /* 0: the workload's own */
    double partial;   /* pRMSNorm: the share of the elements that the statistics see; 0: the workload's own */
    bool by_position; /* BatchNorm of sequences: statistics and parameters for each position apart */
    const struct nb_row_sets *sets; /* the model's: which rows BatchNorm takes together; null: all */
};

struct nb_train_options {
    struct nb_norm_choice norm;
    enum nb_norm_place place;
    bool residual; /* paths past the sublayers */
    bool causal;   /* attention sees the past alone */
    enum nb_train_padding padding;
    enum nb_dtype dtype; /* precision of activations and gradients (tensor.h) */
    int layers, batch, sequence;
    int hidden;           /* 0: the workload's own */
    double learning_rate; /* 0: the workload's own */
    double clip;          /* largest norm of all gradients together; 0: none */
    uint64_t seed;
    int n_threads; /* 0: 1 */
};

/* By value, null-terminated. */
extern const char
    *const nb_norm_kind_names[]; /* "none", "layernorm", "rmsnorm", "prmsnorm", "batchnorm", "centre", "scale" */
extern const char *const nb_norm_place_names[]; /* "pre", "post" */
extern const char *const nb_padding_names[];    /* "unpadded", "padded", "masked" */
/* Numbers that are 0 become those of `usual`. */
void nb_train_options_fill(struct nb_train_options *options, const struct nb_train_options *usual);
/* What no workload can do, and where it cannot pad, padding: null or the reason. */
const char *nb_train_options_refused(const struct nb_train_options *options, bool can_pad);

/* An arm of a training experiment as words, in claim files, jobs and reports: "layernorm composed post layers=4 bf16".
 *
 *   none layernorm rmsnorm prmsnorm batchnorm centre scale      the norm; must be there
 *   fused composed    learned frozen    by_feature by_position    pre post    residual no_residual    causal bidirectional
 *   unpadded padded masked    f32 f16 bf16
 *   layers= batch= sequence= hidden= threads= rate= clip= eps= partial=  0: the workload's own */

/* Without a word: no norm, pre, residual paths, causal, no padding, f32, gradients clipped at 1; what is the workload's own is 0. The
 * words of `common`, which may be null, hold unless `text` overrides them; the norm must be named. Null, or why not. */
const char *nb_arm_parse(struct nb_train_options *o, const char *common, const char *text, char *reason, size_t n);
/* What differs from the default, the norm first; arms that are alike have one text. The seed is not part of it. */
void nb_arm_print(const struct nb_train_options *o, struct nb_strbuf *out);
/* Does the style of its kernels matter? Not where no kernel runs. */
bool nb_arm_has_kernel(const struct nb_train_options *o);

#endif
