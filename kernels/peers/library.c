// SPDX-License-Identifier: Apache-2.0
/* The loader says by name which library it misses. One that is loaded already serves every later request for its name. */
#include "kernels/peers/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
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
