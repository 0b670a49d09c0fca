// SPDX-License-Identifier: Apache-2.0
/* oneDNN primitives by what they compute, made once and kept. Everything that decides a primitive is in its key, and the tensors'
 * addresses are set at each call, so that a call never meets another's primitive. */
#ifndef NB_PEER_ONEDNN_PRIMITIVE_H
#define NB_PEER_ONEDNN_PRIMITIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/peers/adapter.h"
#include "kernels/peers/onednn_library.h"

enum { ONEDNN_MAX_ARGS = 9 };

/* All that decides which primitive serves a call. */
struct onednn_key {
    uint32_t op, pass, dtype, mode, layout, affine;
    uint32_t with_stats, with_dgamma, with_dbeta;
    int32_t n_threads;
    int64_t rows, cols, n, c, hw, strides[4];
    double eps;
};

/* Where the argument's memory comes from in a call. */
enum onednn_source {
    FROM_X,
    FROM_Y,
    FROM_DY,
    FROM_DX,
    FROM_GAMMA,
    FROM_BETA,
    FROM_DGAMMA,
    FROM_DBETA,
    FROM_MEAN_IN,
    FROM_MEAN_OUT,
    FROM_RUNNING_MEAN,
    FROM_RUNNING_VAR,
    FROM_VARIANCE,
    FROM_NOWHERE /* asked for, but not read */
};

struct argument {
    enum onednn_source source;
    void *address; /* that the memory object has */
};

struct onednn_primitive {
    struct onednn_key key;
    dnnl_primitive_desc_t desc; /* null: the library refused, with this status */
    dnnl_status_t status;
    dnnl_primitive_t primitive; /* null before the first run */
    struct argument arguments[ONEDNN_MAX_ARGS];
    dnnl_exec_arg_t args[ONEDNN_MAX_ARGS];
    int n_args;
    int64_t n_stats;
    float *unread;          /* as many as parameters */
    float *mean, *variance; /* n_stats each: what a call does not ask for or gives in another form */
    const char *implementation;
};

bool onednn_is_batchnorm(const struct onednn_key *key);
bool onednn_is_inference(const struct onednn_key *key);
/* The primitive for a call, described but perhaps not made yet, or refused; null: out of memory. */
struct onednn_primitive *onednn_find(const struct peer_variant *v, const struct nb_call *call);
/* Makes it: its arguments' memory objects, and its code. */
dnnl_status_t onednn_make(struct onednn_primitive *p);
void onednn_forget_all(void);

#endif
