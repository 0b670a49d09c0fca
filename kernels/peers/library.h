// SPDX-License-Identifier: Apache-2.0
/* What adapters in C share: loading of the library, and what is made once for a kind of call and kept. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/peers/adapter.h"

/* dlopen(), where libraries that it needs and that the system does not find are taken from its own folder: what a wheel holds side
 * by side is not in the loader's path. Null with the reason written. Nothing is closed again: a library whose threads run cannot be. */
void *peer_library_open(const char *path, char *reason, size_t n);
/* The function's address; null with the reason written. */
void *peer_library_symbol(void *handle, const char *path, const char *symbol, char *reason, size_t n);

/* All that decides what computes a call: everything but addresses. Compared as bytes. */
struct peer_key {
    uint32_t op, pass, dtype, mode, layout, affine;
    uint32_t with_stats; /* forward: rstd is wanted */
    int32_t n_threads;
    int64_t rows, cols, n, c, hw, x_stride, y_stride, dy_stride, dx_stride;
    double eps;
};
struct peer_key peer_key_of(const struct nb_kernel *k, const struct nb_call *call);

/* What was made, each a struct that begins with its key. Zero-initialise. */
struct peer_cache {
    void **items;
    size_t n, last; /* the one used last is looked at first */
};
/* Made where there is none yet; null: no memory, or make() returned null. */
void *peer_cache_get(struct peer_cache *c, const struct peer_key *key, void *(*make)(const struct peer_key *key));
void peer_cache_clear(struct peer_cache *c, void (*free_item)(void *item));

/* A tensor by its place in a call: PEER_FIELD(x). No tensor's is 0. */
#define PEER_FIELD(name) offsetof(struct nb_call, name)
static inline void *peer_tensor(const struct nb_call *call, size_t field) {
    return *(void *const *)((const char *)call + field);
}
