// SPDX-License-Identifier: Apache-2.0
/* Loading of shared objects: RTLD_LOCAL, so that equal names in two builds stay apart, and by the resolved path, since
 * a name without a slash would be searched for in the system's folders. */
#include "src/shared_object.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/log.h"

void *nb_object_open(const char *path) {
    struct stat st;
    char *resolved = realpath(path, NULL);
    void *handle = NULL;
    if (!resolved || stat(resolved, &st) != 0)
        nb_error("%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        nb_error("%s: not a file", path);
    else if (!(handle = dlopen(resolved, RTLD_NOW | RTLD_LOCAL)))
        nb_error("%s: cannot be loaded as a shared object: %s", path, dlerror());
    free(resolved);
    return handle;
}

static bool is_same_file(const char *path, const char *other) {
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void *nb_object_symbol(void *handle, const char *path, const char *symbol) {
    const char *where = NULL;
    void *address = dlsym(handle, symbol);
    return address && nb_object_of(address, &where) && is_same_file(where, path) ? address : NULL;
}

const void *nb_object_of(const void *address, const char **name) {
    Dl_info info;
    if (!dladdr(address, &info)) return NULL;
    if (name) *name = info.dli_fname;
    return info.dli_fbase;
}
