// SPDX-License-Identifier: Apache-2.0
/* A model that can be trained: what the measurement of steps, the curves and the claims know of it. One file defines one
 * workload and is listed in workloads.c. */
#ifndef NB_TRAIN_WORKLOAD_H
#define NB_TRAIN_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/measure/pool.h"
#include "src/train/loss_scale.h"
#include "src/train/options.h"
#include "src/train/parameters.h"

struct nb_text; /* text.h: bytes to train on */

/* Told by a model, while it works, of tensors at named places: "layer3.attention.input". */
struct nb_observer {
    void (*activation)(void *context, const char *place, const float *values, int64_t n);
    void (*gradient)(void *context, const char *place, const float *values,
                     int64_t n); /* of the loss by the activation there */
    void *context;
};

struct nb_model {
    const struct nb_workload *workload;
    struct nb_train_options options;
    struct nb_parameters parameters;
    const struct nb_observer *observer;       /* null: nobody looks */
    double forward_seconds, backward_seconds; /* of whole passes, since they were last set to 0 */
    double norm_seconds;                      /* in normalizations, forward and backward, since it was last set to 0 */
    int64_t norm_calls;
    size_t activation_bytes;         /* kept from forward to backward */
    struct nb_pool *pool;            /* threads of the normalizations; they sleep between calls */
    struct nb_loss_scale loss_scale; /* f16 */
    double gradient_norm;            /* of the last step, before clipping, without the loss scale */
    void *inside;                    /* the workload's own */
};

struct nb_workload {
    const char *name;    /* "minimind2-small" */
    const char *summary; /* one line: which model of which source, its widths */
    const void
        *own; /* what tells workloads of one family apart, such as widths; given to the functions without a model */
    /* Fills what options leave to the workload (0), and refuses what it cannot do: null or the reason. */
    const char *(*complete)(const void *own, struct nb_train_options *options);
    int (*create)(
        struct nb_model *model); /* options are complete, pool is there; -1 after nb_error, and release() is called */
    /* Mean loss of batch number `batch` (the same for every arm): forward alone. Training decides about BatchNorm's statistics. */
    double (*forward)(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training);
    /* After a forward in training: gradients into parameters (added to what is there). The loss is multiplied by scale first. */
    void (*backward)(struct nb_model *model, double scale);
    struct nb_optimizer (*optimizer)(const void *own, const struct nb_train_options *options);
    void (*release)(struct nb_model *model);
    /* Of a step, forward and backward: for budgets. */
    double (*flops)(const void *own, const struct nb_train_options *options);
};

extern const struct nb_workload *const nb_workloads[];
extern const size_t nb_n_workloads;
const struct nb_workload *nb_workload_find(const char *name); /* null */

/* Completes the options, loads the matrix library, makes the pool and the model. -1 after nb_error; release is safe then, not needed. */
int nb_model_init(struct nb_model *model, const struct nb_workload *workload, const struct nb_train_options *options);
/* The workload's own, with the weights rounded for use before and their gradients after. */
double nb_model_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training);
void nb_model_backward(struct nb_model *model, double scale);
/* Tells the observer, if there is one: place is "layer3" and what "attention.input" make "layer3.attention.input". */
void nb_model_tell(const struct nb_model *model, const char *place, const char *what, const float *values, int64_t n);
void nb_model_tell_gradient(const struct nb_model *model, const char *place, const char *what, const float *values,
                            int64_t n);
/* One step: zero gradients, forward, backward, clip, update. Returns the loss; NaN is a result. With f16 the loss scale is the model's
 * business (loss_scale.h): a step whose gradients overflow is skipped and the scale halved. */
double nb_model_step(struct nb_model *model, const struct nb_text *text, int64_t batch);
void nb_model_release(struct nb_model *model);

#endif
