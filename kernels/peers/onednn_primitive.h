// SPDX-License-Identifier: Apache-2.0
/* oneDNN primitives by what they compute, made once and kept. Everything that decides a primitive is in its key, and the tensors'
 * addresses are set at each call, so that a call never meets another's primitive. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/peers/adapter.h"
#include "kernels/peers/onednn_library.h"

enum { ONEDNN_MAX_ARGS = 9 };

/* Where an argument's memory is: a tensor of the call, or where it has none, memory of the primitive's own. */
struct argument {
    size_t field;  /* 0: no tensor of the call's */
    void *own;     /* null: the call's or none */
    void *address; /* that the memory object has */
};

struct onednn_primitive {
    struct peer_key key;
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

bool onednn_is_batchnorm(const struct peer_key *key);
bool onednn_is_inference(const struct peer_key *key);
/* The primitive for a call, described but perhaps not made yet, or refused; null: out of memory. */
struct onednn_primitive *onednn_find(const struct peer_variant *v, const struct nb_call *call);
/* Makes it: its arguments' memory objects, and its code. */
dnnl_status_t onednn_make(struct onednn_primitive *p);
void onednn_forget_all(void);
