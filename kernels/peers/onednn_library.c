// SPDX-License-Identifier: Apache-2.0
/* Loading, engine, threads. With OpenMP the number of threads is the calling thread's setting; the team is formed at once, since a
 * thread inherits the CPUs of its maker. TBB counts the CPUs that the process may use, SYCL's CPU device the variable below. */
#include "kernels/peers/onednn_library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRONG_THREADS = 101 }; /* beyond the library's own status codes */

struct onednn *onednn(void) {
    static struct onednn library;
    return &library;
}

/* The SYCL build finds its CPU device through the OpenCL driver that lies beside it. */
static void name_driver(const char *path) {
    char driver[4096];
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    int length = snprintf(driver, sizeof driver, "%.*slibintelocl.so", folder, path);
    if (length < (int)sizeof driver && access(driver, R_OK) == 0) setenv("OCL_ICD_FILENAMES", driver, 0);
}

static const char *runtime_name(unsigned runtime) {
    switch (runtime) {
    case DNNL_RUNTIME_SEQ:
        return "sequential";
    case DNNL_RUNTIME_OMP:
        return "OpenMP";
    case DNNL_RUNTIME_TBB:
        return "TBB";
    case DNNL_RUNTIME_SYCL:
        return "SYCL";
    default:
        return "another runtime";
    }
}

int onednn_load(const char *path, char *reason, size_t n) {
    struct onednn *d = onednn();
    name_driver(path);
    d->handle = peer_library_open(path, reason, n);
    if (!d->handle) return -1;
#define FIND(function)                                                                                                 \
    d->function = (__typeof__(function) *)(uintptr_t)peer_library_symbol(d->handle, path, #function, reason, n);       \
    if (!d->function) return -1;
    ONEDNN_FUNCTIONS(FIND)
#undef FIND
    const dnnl_version_t *v = d->dnnl_version();
    if (v->major != 3) {
        snprintf(reason, n, "%s is oneDNN %d.%d; the adapter speaks to 3.x", path, v->major, v->minor);
        return -1;
    }
    snprintf(d->version, sizeof d->version, "oneDNN %d.%d.%d (%.12s), %s", v->major, v->minor, v->patch,
             v->hash ? v->hash : "", runtime_name(v->cpu_runtime));
    return 0;
}

static void nothing(void *data) { (void)data; }

/* 0, or WRONG_THREADS when the runtime does not say the number it was told. */
static int set_openmp_threads(struct onednn *d, int n_threads) {
    typedef void (*set_fn)(int);
    typedef int (*get_fn)(void);
    typedef void (*parallel_fn)(void (*)(void *), void *, unsigned, unsigned);
    set_fn set = (set_fn)(uintptr_t)dlsym(d->handle, "omp_set_num_threads");
    get_fn get = (get_fn)(uintptr_t)dlsym(d->handle, "omp_get_max_threads");
    parallel_fn parallel = (parallel_fn)(uintptr_t)dlsym(d->handle, "GOMP_parallel");
    if (!set || !get) return WRONG_THREADS;
    set(n_threads);
    if (get() != n_threads) return WRONG_THREADS;
    if (parallel && n_threads > 1) parallel(nothing, NULL, 0, 0);
    d->n_threads = n_threads;
    return 0;
}

int onednn_start(int n_threads) {
    struct onednn *d = onednn();
    if (d->dnnl_version()->cpu_runtime == DNNL_RUNTIME_OMP && d->n_threads != n_threads) {
        int code = set_openmp_threads(d, n_threads);
        if (code != 0) return code;
    }
    if (d->engine) return 0;
    char count[16];
    snprintf(count, sizeof count, "%d", n_threads);
    setenv("DPCPP_CPU_NUM_CUS", count, 1);
    dnnl_status_t status = d->dnnl_engine_create(&d->engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = d->dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags);
    return (int)status;
}

void onednn_stop(void) {
    struct onednn *d = onednn();
    if (d->stream) d->dnnl_stream_destroy(d->stream);
    if (d->engine) d->dnnl_engine_destroy(d->engine);
    d->stream = NULL;
    d->engine = NULL;
}
