// SPDX-License-Identifier: Apache-2.0
/* The functions of any libdnnl.so.3, by name, with its engine and stream. Only what its first version had: one adapter serves 3.0 and
 * every later release, whatever runs their threads. */
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <stddef.h>

#include "kernels/peers/library.h"

#define ONEDNN_FUNCTIONS(F)                                                                                            \
    F(dnnl_version)                                                                                                    \
    F(dnnl_engine_create)                                                                                              \
    F(dnnl_engine_destroy)                                                                                             \
    F(dnnl_stream_create)                                                                                              \
    F(dnnl_stream_wait)                                                                                                \
    F(dnnl_stream_destroy)                                                                                             \
    F(dnnl_memory_desc_create_with_strides)                                                                            \
    F(dnnl_memory_desc_destroy)                                                                                        \
    F(dnnl_memory_create)                                                                                              \
    F(dnnl_memory_set_data_handle)                                                                                     \
    F(dnnl_memory_destroy)                                                                                             \
    F(dnnl_primitive_desc_query)                                                                                       \
    F(dnnl_primitive_desc_destroy)                                                                                     \
    F(dnnl_primitive_create)                                                                                           \
    F(dnnl_primitive_execute)                                                                                          \
    F(dnnl_primitive_destroy)                                                                                          \
    F(dnnl_layer_normalization_forward_primitive_desc_create)                                                          \
    F(dnnl_layer_normalization_backward_primitive_desc_create)                                                         \
    F(dnnl_batch_normalization_forward_primitive_desc_create)                                                          \
    F(dnnl_batch_normalization_backward_primitive_desc_create)

struct onednn {
#define MEMBER(function) __typeof__(function) *function;
    ONEDNN_FUNCTIONS(MEMBER)
#undef MEMBER
    void *handle;
    char version[128];
    dnnl_engine_t engine; /* null before onednn_start() */
    dnnl_stream_t stream;
    struct peer_cache primitives;
    int n_threads; /* that OpenMP was told; 0: another runtime, which goes by the CPUs that the process had when it began */
};

/* The process's library; its functions are null before onednn_load(). */
struct onednn *onednn(void);
int onednn_load(const char *path, char *reason, size_t n);
/* Engine and stream, with so many threads. 0, or a status of the library. Later calls only change the number of threads. */
int onednn_start(int n_threads);
void onednn_stop(void);
