// SPDX-License-Identifier: Apache-2.0
/* What is trained, and how: the arms of a training claim differ in these options; and a model: what the measurement of steps, the curves
 * and the claims know of it. One file defines one family of workloads; they are listed in workload.c. */
#ifndef NB_TRAIN_WORKLOAD_H
#define NB_TRAIN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/text.h"
#include "src/measure/pool.h"
#include "src/train/parameters.h"
#include "src/train/tensor.h"

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
    /* Of a model of the workload and seed that made no step yet, or null: first values that are the same there are copied. */
    const struct nb_parameters *drawn;
    int n_threads;   /* 0: 1 */
    bool flushed;    /* subnormal numbers are taken for 0, as fast as others: what GPUs do, or need no time for */
    double dispatch; /* us that an operation costs besides its work */
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
 *   unpadded padded masked    f32 f16 bf16    subnormal flushed
 *   layers= batch= sequence= hidden= threads= rate= clip= eps= partial=  0: the workload's own
 *   dispatch=                                                            us */

/* Without a word: no norm, pre, residual paths, causal, no padding, f32, gradients clipped at 1; what is the workload's own is 0. The
 * words of `common`, which may be null, hold unless `text` overrides them; the norm must be named. Null, or why not. */
const char *nb_arm_parse(struct nb_train_options *o, const char *common, const char *text, char *reason, size_t n);
/* What differs from the default, the norm first; arms that are alike have one text. The seed is not part of it. */
void nb_arm_print(const struct nb_train_options *o, struct nb_strbuf *out);
/* Does the style of its kernels matter? Not where no kernel runs. */
bool nb_arm_has_kernel(const struct nb_train_options *o);

struct nb_text; /* data.h: bytes to train on */

/* Called by a model, while it works, with tensors at named places: "layer3.attention.input". */
enum nb_observed { NB_ACTIVATION, NB_GRADIENT }; /* gradient: of the loss by the activation there */
struct nb_observer {
    void (*see)(void *context, enum nb_observed what, const char *place, const float *values, int64_t n);
    void *context;
};

struct nb_model {
    const struct nb_workload *workload;
    struct nb_train_options options;
    struct nb_parameters parameters;
    const struct nb_observer *observer;       /* null: nobody looks */
    bool failed;                              /* a kernel of its normalizations is not there; nb_error was called */
    double forward_seconds, backward_seconds; /* of whole passes, since they were last set to 0 */
    double norm_seconds[NB_N_PASSES];         /* in normalizations, likewise */
    int64_t norm_calls;                       /* likewise */
    int64_t norm_ops[NB_N_PASSES];            /* likewise: operations of composed kernels; a fused one is one */
    struct nb_train_work forward_work;        /* of the last step: its work up to the end of the forward pass, */
    struct nb_train_work passes_work;         /* and of both */
    struct nb_arena kept, passing;   /* its arrays: what the backward pass reads of the forward pass, and all else */
    size_t activation_bytes;         /* kept from forward to backward */
    struct nb_pool *pool;            /* threads of the normalizations; they sleep between calls */
    struct nb_loss_scale loss_scale; /* f16 */
    double gradient_norm;            /* of the last step, before clipping, without the loss scale */
    void *inside;                    /* the family's own, from an arena */
};

/* The functions that workloads of one family share; own: what distinguishes its workloads, such as widths. */
struct nb_model_family {
    /* Fills what options leave to the workload (0), and refuses what it cannot do: null or the reason. */
    const char *(*complete)(const void *own, struct nb_train_options *options);
    /* Options are complete, the pool is there; all that is made belongs to the model's arenas and parameters. */
    void (*create)(struct nb_model *model);
    /* Mean loss of batch number `batch` (the same for every arm): forward alone. Training decides about BatchNorm's statistics. */
    double (*forward)(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training);
    /* After a forward in training: gradients into parameters (added to what is there). The loss is multiplied by scale first. */
    void (*backward)(struct nb_model *model, double scale);
    /* Null: Adam (Kingma & Ba 2015) with the rate of the options and without decay, as in the RMSNorm paper's experiments. */
    struct nb_optimizer (*optimizer)(const void *own, const struct nb_train_options *options);
    /* Of a step, forward and backward: for budgets. */
    double (*flops)(const void *own, const struct nb_train_options *options);
};

struct nb_workload {
    const char *name;    /* "minimind2-small" */
    const char *summary; /* one line: which model of which source, its widths */
    const void *own;
    const struct nb_model_family *family;
};

extern const struct nb_workload *const nb_workloads[];
extern const size_t nb_n_workloads;
const struct nb_workload *nb_workload_find(const char *name); /* null */

/* Completes the options, loads the matrix library, makes the pool and the model. -1 after nb_error; release is safe then, not needed. */
int nb_model_init(struct nb_model *model, const struct nb_workload *workload, const struct nb_train_options *options);
/* The workload's own, with the weights rounded for use before and their gradients after. */
double nb_model_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training);
void nb_model_backward(struct nb_model *model, double scale);
/* For a family: n floats that the backward pass reads, and n for the gradient by them. */
void nb_model_take(struct nb_model *model, int64_t n, float **values, float **gradient);
/* Calls the observer, if there is one: place "layer3" and part "attention.input" make "layer3.attention.input". */
void nb_model_observe(const struct nb_model *model, enum nb_observed what, const char *place, const char *part,
                      const float *values, int64_t n);
/* One step: zero gradients, forward, backward, clip, update. Returns the loss; NaN is a result. With f16 the loss scale is the model's
 * business (parameters.h): a step whose gradients overflow is skipped and the scale halved. */
double nb_model_step(struct nb_model *model, const struct nb_text *text, int64_t batch);
void nb_model_release(struct nb_model *model);

extern const struct nb_workload nb_workload_minimind2_small, nb_workload_minimind_3, nb_workload_transformer_base,
    nb_workload_tiny_transformer;

extern const struct nb_workload nb_workload_rnnsearch, nb_workload_tiny_rnnsearch;

extern const struct nb_workload nb_workload_order_embedding, nb_workload_tiny_order_embedding;

extern const struct nb_workload nb_workload_attentive_reader, nb_workload_tiny_attentive_reader;

extern const struct nb_workload nb_workload_convpool, nb_workload_tiny_convpool;

#endif
