// SPDX-License-Identifier: Apache-2.0
/* Kernels of the backend cuda for the mock driver (mock_cuda.c): RMSNorm of f32 rows that is right, that writes or reads behind
 * its last row, that is wrong, that leaves a row out, and that leaves its
 * work out from the fortieth call on; a copy beside them; one of nothing,
 * their floor; and one of bf16 that no test calls. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "kernels/peers/peer.h"

#include "rows.h"
#include "table.h"

typedef int (*enqueue_fn)(void *stream, void (*fn)(const void *args), const void *args, size_t size);

static void rows_there(const void *args) {
    const struct nb_call *call = args;
    correct_rows(call, 0, call->rows);
}
static void overrun_there(const void *args) {
    const struct nb_call *call = args;
    rows_there(call);
    row_y(call, call->rows - 1)[call->cols] = 0;
}
static void reader_there(const void *args) {
    const struct nb_call *call = args;
    const volatile float *last = row_x(call, call->rows - 1);
    rows_there(call);
    (void)last[call->cols];
}
static void wrong_there(const void *args) {
    const struct nb_call *call = args;
    rows_there(call);
    for (int64_t row = 0; row < call->rows; row++) row_y(call, row)[0] += 1;
}
static void hole_there(const void *args) {
    const struct nb_call *call = args;
    correct_rows(call, 0, call->rows - 2);
    correct_row(call, call->rows - 1);
}
static void copy_there(const void *args) {
    const struct nb_call *call = args;
    for (int64_t row = 0; row < call->rows; row++)
        for (int64_t i = 0; i < call->cols; i++) row_y(call, row)[i] = row_x(call, row)[i];
}

static void nothing_there(const void *args) { (void)args; }

static int enqueue(const struct nb_call *call, void (*fn)(const void *args)) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = driver ? dlsym(driver, "mock_cuda_enqueue") : NULL;
    return symbol ? ((enqueue_fn)(uintptr_t)symbol)(call->stream, fn, call, sizeof *call) : -1;
}

static int run_right(ROWS) { return enqueue(call, rows_there); }
static int run_overrun(ROWS) { return enqueue(call, overrun_there); }
static int run_reader(ROWS) { return enqueue(call, reader_there); }
static int run_wrong(ROWS) { return enqueue(call, wrong_there); }
static int run_hole(ROWS) { return enqueue(call, hole_there); }
static int run_lazy(ROWS) {
    static int n;
    return ++n < 20 ? enqueue(call, rows_there) : 0;
}
static int run_copy(ROWS) { return enqueue(call, copy_there); }
static int run_nothing(ROWS) { return enqueue(call, nothing_there); }
static int64_t one_unit(const struct nb_call *call, int phase) { return 1; }

#define KERNEL(name_, op_, tensors, run_, ...)                                                                         \
    {                                                                                                                  \
        .struct_size = sizeof(struct nb_kernel), .op = op_, .width = NB_NATIVE, .name = name_,                         \
        .summary = "for the mock driver",                                                                              \
        .formulas = {.roots = 1 << NB_ROOT_MUL_RECIP, .affines = 1 << NB_AFFINE_NONE | 1 << NB_AFFINE_GAMMA},          \
        .loads = tensors, .stores = tensors, .flops = 4, .run = run_, .n_units = one_unit, .backend = NB_BACKEND_CUDA, \
        __VA_ARGS__                                                                                                    \
    }
static const struct nb_kernel kernels[] = {
    KERNEL("rmsnorm_right", NB_OP_RMSNORM, 1, run_right, .variant = "rmsnorm_right_cuda_f32"),
    KERNEL("rmsnorm_overrun", NB_OP_RMSNORM, 1, run_overrun, .variant = "rmsnorm_overrun_cuda_f32"),
    KERNEL("rmsnorm_wrong", NB_OP_RMSNORM, 1, run_wrong, .variant = "rmsnorm_wrong_cuda_f32"),
    KERNEL("rmsnorm_hole", NB_OP_RMSNORM, 1, run_hole, .variant = "rmsnorm_hole_cuda_f32"),
    KERNEL("rmsnorm_lazy", NB_OP_RMSNORM, 1, run_lazy, .variant = "rmsnorm_lazy_cuda_f32"),
    KERNEL("rmsnorm_reader", NB_OP_RMSNORM, 1, run_reader, .variant = "rmsnorm_reader_cuda_f32"),
    KERNEL("copy", NB_OP_COPY, 1, run_copy, .variant = "copy_cuda_f32"),
    KERNEL("copy_null", NB_OP_COPY, 0, run_nothing, .variant = "copy_null_cuda_f32"),
    KERNEL("rmsnorm_narrow", NB_OP_RMSNORM, 1, run_right, .dtype = NB_BF16, .variant = "rmsnorm_narrow_cuda_bf16"),
};
TABLE(kernels)

/* As a library whose thread keeps cases in one process (tests/cli/device.sh). */
static void *sleeper(void *unused) {
    pause();
    return unused;
}

static int use(const char *path, char *reason, size_t n) {
    pthread_t thread;
    return pthread_create(&thread, NULL, sleeper, NULL);
}
const struct nb_peer *normbench_peer(void) {
    static const struct nb_peer peer = {.struct_size = sizeof peer, .library = "/nowhere/device.so", .use = use};
    return &peer;
}
