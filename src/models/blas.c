// SPDX-License-Identifier: Apache-2.0
#include "src/models/blas.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/log.h"

static const char FILE_NAME[] = "libopenblas.so.0";

/* A thread of the library that has nothing to do spins for 2^value cycles before it sleeps; the default of 2^26 would take the core
 * from the normalizations that run between two products. */
static const char *const SPIN = "12";

/* An OpenBLAS older than its CPU takes its AVX2 products there: 0.3.21 (Debian 12) on AMD's family 26, 1.6 to 1.8 times slower than those
 * for AVX-512, which run on every CPU with these features. The user's own word stands. */
static void choose_core(void) {
    const uint32_t wanted = nb_width_features(NB_512);
    if (wanted && (nb_cpu_light()->features & wanted) == wanted) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
}

static int load(struct nb_blas *out) {
    setenv("OPENBLAS_THREAD_TIMEOUT", SPIN, 0);
    choose_core();
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return nb_error("%s cannot be loaded, and matrix products need it: apt-get install libopenblas0-pthread (%s)",
                        FILE_NAME, dlerror());
    *(void **)&out->sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&out->sgemv = dlsym(handle, "cblas_sgemv");
    *(void **)&out->set_threads = dlsym(handle, "openblas_set_num_threads");
    if (out->sgemm && out->sgemv && out->set_threads) return 0; /* it stays for as long as the process lives */
    nb_error("%s has no %s: apt-get install libopenblas0-pthread", FILE_NAME,
             !out->sgemm   ? "cblas_sgemm"
             : !out->sgemv ? "cblas_sgemv"
                           : "openblas_set_num_threads");
    dlclose(handle);
    *out = (struct nb_blas){0};
    return -1;
}

const struct nb_blas *nb_blas_open(int n_threads) {
    static struct nb_blas library; /* one a process, as the library itself is */
    assert(n_threads >= 1);
    if (!library.sgemm && load(&library) != 0) return NULL;
    library.set_threads(n_threads);
    return &library;
}

const char *nb_blas_lacks(void) {
    /* With one thread the library starts none. */
    const char *before = getenv("OPENBLAS_NUM_THREADS");
    char *kept freed = before ? nb_strdup(before) : NULL;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *handle = dlopen(FILE_NAME, RTLD_LAZY | RTLD_LOCAL);
    if (kept)
        setenv("OPENBLAS_NUM_THREADS", kept, 1);
    else
        unsetenv("OPENBLAS_NUM_THREADS");
    if (!handle) return "libopenblas.so.0 for matrix products: apt-get install libopenblas0-pthread";
    dlclose(handle);
    return NULL;
}
