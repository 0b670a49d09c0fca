// SPDX-License-Identifier: Apache-2.0
/* The loader says by name which library it misses. One that is loaded already serves every later request for its name. */
#include "kernels/peers/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_NEEDS = 32 };

/* "libsycl.so.9: cannot open shared object file: ..": the name, when it is one without a folder. */
static int missing_name(const char *error, char *name, size_t n) {
    const char *colon = strchr(error, ':');
    size_t length = colon ? (size_t)(colon - error) : 0;
    if (length == 0 || length >= n || !strstr(colon, "cannot open shared object file")) return 0;
    memcpy(name, error, length);
    name[length] = '\0';
    return strchr(name, '/') == NULL;
}

static void *open_with_needs(const char *path, int depth, char *reason, size_t n) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    for (int needs = 0; needs < MAX_NEEDS; needs++) {
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
        char name[NAME_MAX + 1], beside[PATH_MAX];
        const char *error = dlerror();
        snprintf(reason, n, "%s", error);
        if (depth == 0 || !missing_name(error, name, sizeof name)) return NULL;
        int length = snprintf(beside, sizeof beside, "%.*s%s", folder, path, name);
        if (length >= (int)sizeof beside || !open_with_needs(beside, depth - 1, reason, n)) return NULL;
    }
    return NULL;
}

void *peer_library_open(const char *path, char *reason, size_t n) {
    return open_with_needs(path, MAX_DEPTH, reason, n);
}

void *peer_library_symbol(void *handle, const char *path, const char *symbol, char *reason, size_t n) {
    void *address = dlsym(handle, symbol);
    if (!address) snprintf(reason, n, "%s has no function %s", path, symbol);
    return address;
}

_Static_assert(sizeof(struct peer_key) == 8 * sizeof(uint32_t) + 10 * sizeof(int64_t), "no padding");

struct peer_key peer_key_of(const struct nb_kernel *k, const struct nb_call *call) {
    return (struct peer_key){.op = k->op,
                             .pass = k->pass,
                             .dtype = k->dtype,
                             .mode = call->mode,
                             .layout = call->layout,
                             .affine = call->formula.affine,
                             .with_stats = k->pass == NB_FORWARD && call->rstd,
                             .n_threads = call->n_threads,
                             .rows = call->rows,
                             .cols = call->cols,
                             .n = call->n,
                             .c = call->c,
                             .hw = call->hw,
                             .x_stride = call->x_stride,
                             .y_stride = call->y_stride,
                             .dy_stride = call->dy_stride,
                             .dx_stride = call->dx_stride,
                             .eps = call->eps};
}

void *peer_cache_get(struct peer_cache *c, const struct peer_key *key, void *(*make)(const struct peer_key *key)) {
    for (size_t i = 0; i < c->n; i++) {
        const size_t at = (c->last + i) % c->n;
        if (memcmp(c->items[at], key, sizeof *key) != 0) continue;
        c->last = at;
        return c->items[at];
    }
    void **items = realloc(c->items, (c->n + 1) * sizeof *items);
    if (!items) return NULL;
    c->items = items;
    void *item = make(key);
    if (!item) return NULL;
    c->last = c->n;
    c->items[c->n++] = item;
    return item;
}

void peer_cache_clear(struct peer_cache *c, void (*free_item)(void *item)) {
    for (size_t i = 0; i < c->n; i++) free_item(c->items[i]);
    free(c->items);
    *c = (struct peer_cache){0};
}
