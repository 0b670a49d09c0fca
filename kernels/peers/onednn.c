// SPDX-License-Identifier: Apache-2.0
/* oneDNN 3.x: layer normalization (RMSNorm by a flag, from 3.9 on) and batch normalization, forward and backward. Its statistics are
 * mean and variance: rstd is turned into the one or the other here, one number for each row or channel. */
#include <dlfcn.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/peers/adapter.h"
#include "kernels/peers/library.h"

/* ---- the library --------------------------------------------------------------------------------------------------- */

/* The functions of any libdnnl.so.3, by name, with its engine and stream. Only what its first version had: one adapter serves 3.0 and
 * every later release, whatever runs their threads. */
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
    dnnl_engine_t engine; /* null before peer_open() */
    dnnl_stream_t stream;
    struct peer_cache primitives;
    int n_threads; /* that OpenMP was told; 0: another runtime, which goes by the CPUs that the process had when it began */
};

/* The process's; its functions are null before peer_use(). */
static struct onednn *onednn(void) {
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

int peer_use(const char *path, char *reason, size_t n) {
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

/* Threads. With OpenMP the number of threads is the calling thread's setting; the team is formed at once, since a thread inherits the CPUs of its
 * maker. TBB counts the CPUs that the process may use, SYCL's CPU device the variable below. */
enum { WRONG_THREADS = 101 }; /* beyond the library's own status codes */

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

/* Engine and stream, with so many threads. 0, or a status of the library. Later calls only change the number of threads. */
int peer_open(int n_threads) {
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

/* ---- primitives ---------------------------------------------------------------------------------------------------- */

/* By what they compute, made once and kept. Everything that decides a primitive is in its key, and the tensors'
 * addresses are set at each call, so that a call never meets another's primitive. */
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

enum { RMS_NORM_FLAG = 0x20 /* dnnl_rms_norm, which older headers do not name */ };

static bool with_dgamma(const struct peer_key *key) {
    return key->pass == NB_BACKWARD && key->affine != NB_AFFINE_NONE;
}
static bool with_dbeta(const struct peer_key *key) {
    return key->pass == NB_BACKWARD && key->affine == NB_AFFINE_GAMMA_BETA;
}
static bool is_batchnorm(const struct peer_key *key) { return key->op == NB_OP_BATCHNORM; }
static bool is_inference(const struct peer_key *key) { return is_batchnorm(key) && key->mode == NB_INFERENCE; }

static dnnl_data_type_t data_type(uint32_t dtype) {
    return dtype == NB_F32 ? dnnl_f32 : dtype == NB_F16 ? dnnl_f16 : dnnl_bf16;
}

/* A tensor of x's size; stride: elements between two rows. */
static dnnl_status_t describe_tensor(const struct peer_key *key, int64_t stride, dnnl_memory_desc_t *out) {
    const dnnl_dims_t rows = {key->rows, key->cols}, row_strides = {stride, 1};
    const dnnl_dims_t images = {key->n, key->c, key->hw, 1};
    const dnnl_dims_t nchw = {key->c * stride, stride, 1, 1}, nhwc = {key->hw * stride, 1, stride, stride};
    const dnnl_data_type_t type = data_type(key->dtype);
    if (!is_batchnorm(key)) return onednn()->dnnl_memory_desc_create_with_strides(out, 2, rows, type, row_strides);
    return onednn()->dnnl_memory_desc_create_with_strides(out, 4, images, type, key->layout == NB_NCHW ? nchw : nhwc);
}

static dnnl_status_t describe_vector(int64_t n, dnnl_memory_desc_t *out) {
    const dnnl_dims_t dims = {n}, strides = {1};
    return onednn()->dnnl_memory_desc_create_with_strides(out, 1, dims, dnnl_f32, strides);
}

static unsigned flags_of(const struct peer_key *key) {
    unsigned flags = key->affine == NB_AFFINE_NONE ? 0 : dnnl_use_scale;
    if (key->affine == NB_AFFINE_GAMMA_BETA) flags |= dnnl_use_shift;
    if (key->op == NB_OP_RMSNORM) flags |= RMS_NORM_FLAG;
    if (is_inference(key)) flags |= dnnl_use_global_stats;
    return flags;
}

/* ---- making a primitive -------------------------------------------------------------------------------------------- */

/* Of x, and y or dy, and dx. */
struct tensors {
    dnnl_memory_desc_t x, y, dx;
};

static dnnl_status_t describe_tensors(const struct peer_key *key, struct tensors *t) {
    const bool back = key->pass == NB_BACKWARD;
    dnnl_status_t status = describe_tensor(key, key->x_stride, &t->x);
    if (status == dnnl_success) status = describe_tensor(key, back ? key->dy_stride : key->y_stride, &t->y);
    if (status == dnnl_success && back) status = describe_tensor(key, key->dx_stride, &t->dx);
    return status;
}

static void release_tensors(struct tensors *t) {
    if (t->x) onednn()->dnnl_memory_desc_destroy(t->x);
    if (t->y) onednn()->dnnl_memory_desc_destroy(t->y);
    if (t->dx) onednn()->dnnl_memory_desc_destroy(t->dx);
}

static dnnl_status_t make_forward(const struct peer_key *key, const struct tensors *t, bool training,
                                  dnnl_primitive_desc_t *out) {
    const struct onednn *d = onednn();
    const dnnl_prop_kind_t kind = training ? dnnl_forward_training : dnnl_forward_inference;
    const unsigned flags = flags_of(key);
    if (is_batchnorm(key))
        return d->dnnl_batch_normalization_forward_primitive_desc_create(out, d->engine, kind, t->x, t->y,
                                                                         (float)key->eps, flags, NULL);
    return d->dnnl_layer_normalization_forward_primitive_desc_create(out, d->engine, kind, t->x, t->y, NULL,
                                                                     (float)key->eps, flags, NULL);
}

static dnnl_status_t make_backward(const struct peer_key *key, const struct tensors *t, dnnl_primitive_desc_t *out) {
    const struct onednn *d = onednn();
    const dnnl_prop_kind_t kind = with_dgamma(key) ? dnnl_backward : dnnl_backward_data;
    const unsigned flags = flags_of(key);
    dnnl_primitive_desc_t forward = NULL;
    dnnl_status_t status = make_forward(key, t, true, &forward);
    if (status != dnnl_success) return status;
    if (is_batchnorm(key))
        status = d->dnnl_batch_normalization_backward_primitive_desc_create(out, d->engine, kind, t->dx, t->y, t->x,
                                                                            (float)key->eps, flags, forward, NULL);
    else
        status = d->dnnl_layer_normalization_backward_primitive_desc_create(
            out, d->engine, kind, t->dx, t->y, t->x, NULL, (float)key->eps, flags, forward, NULL);
    d->dnnl_primitive_desc_destroy(forward);
    return status;
}

static void make_desc(struct onednn_primitive *p) {
    const struct peer_key *key = &p->key;
    struct tensors t = {0};
    p->status = describe_tensors(key, &t);
    const bool training = key->with_stats || (is_batchnorm(key) && !is_inference(key));
    if (p->status == dnnl_success)
        p->status =
            key->pass == NB_BACKWARD ? make_backward(key, &t, &p->desc) : make_forward(key, &t, training, &p->desc);
    release_tensors(&t);
    if (p->status != dnnl_success) {
        p->desc = NULL;
        return;
    }
    onednn()->dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, &p->implementation);
}

/* ---- its arguments ------------------------------------------------------------------------------------------------- */

struct wanted {
    bool is_wanted;
    int id;
    size_t field;
    int64_t stride; /* of a tensor; 0: a vector of n numbers */
    int64_t n;
    void *own;
};

/* A memory object without an address yet. */
static dnnl_status_t add_argument(struct onednn_primitive *p, const struct wanted *w) {
    const struct onednn *d = onednn();
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = w->stride == 0 ? describe_vector(w->n, &desc) : describe_tensor(&p->key, w->stride, &desc);
    if (status != dnnl_success) return status;
    p->arguments[p->n_args] = (struct argument){.field = w->field, .own = w->own};
    p->args[p->n_args].arg = w->id;
    status = d->dnnl_memory_create(&p->args[p->n_args].memory, desc, d->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) p->n_args++;
    d->dnnl_memory_desc_destroy(desc);
    return status;
}

static dnnl_status_t make_arguments(struct onednn_primitive *p) {
    const struct peer_key *key = &p->key;
    const bool back = key->pass == NB_BACKWARD, inference = is_inference(key);
    const bool batch_training = is_batchnorm(key) && !inference, centred = key->op != NB_OP_RMSNORM;
    const bool stats_out = !back && (key->with_stats || batch_training) && !inference;
    const int64_t params = is_batchnorm(key) ? key->c : key->cols, stats = p->n_stats;
    /* Backward layer normalization counts the shift among its inputs in some releases, and reads it in none. */
    int n_inputs = 0;
    onednn()->dnnl_primitive_desc_query(p->desc, dnnl_query_num_of_inputs_s32, 0, &n_inputs);
    const bool counts_shift = back && with_dbeta(key) && n_inputs > 3 + (key->affine != NB_AFFINE_NONE) + centred;
    const struct wanted list[] = {
        {true, DNNL_ARG_SRC, PEER_FIELD(x), .stride = key->x_stride},
        {!back, DNNL_ARG_DST, PEER_FIELD(y), .stride = key->y_stride},
        {back, DNNL_ARG_DIFF_DST, PEER_FIELD(dy), .stride = key->dy_stride},
        {back, DNNL_ARG_DIFF_SRC, PEER_FIELD(dx), .stride = key->dx_stride},
        {key->affine != NB_AFFINE_NONE, DNNL_ARG_SCALE, PEER_FIELD(gamma), .n = params},
        {!back && key->affine == NB_AFFINE_GAMMA_BETA, DNNL_ARG_SHIFT, PEER_FIELD(beta), .n = params},
        {counts_shift, DNNL_ARG_SHIFT, .n = params, .own = p->unread},
        {with_dgamma(key), DNNL_ARG_DIFF_SCALE, PEER_FIELD(dgamma), .n = params},
        {with_dbeta(key), DNNL_ARG_DIFF_SHIFT, PEER_FIELD(dbeta), .n = params},
        {!back && inference, DNNL_ARG_MEAN, PEER_FIELD(running_mean_in), .n = stats},
        {!back && inference, DNNL_ARG_VARIANCE, PEER_FIELD(running_var_in), .n = stats},
        {(stats_out || back) && centred, DNNL_ARG_MEAN, PEER_FIELD(mean), .n = stats, .own = p->mean},
        {stats_out || back, DNNL_ARG_VARIANCE, .n = stats, .own = p->variance},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (!list[i].is_wanted) continue;
        dnnl_status_t status = add_argument(p, &list[i]);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

static dnnl_status_t make_primitive(struct onednn_primitive *p) {
    p->mean = calloc((size_t)p->n_stats, sizeof(float));
    p->variance = calloc((size_t)p->n_stats, sizeof(float));
    p->unread = calloc((size_t)(is_batchnorm(&p->key) ? p->key.c : p->key.cols), sizeof(float));
    if (!p->mean || !p->variance || !p->unread) return dnnl_out_of_memory;
    dnnl_status_t status = make_arguments(p);
    return status == dnnl_success ? onednn()->dnnl_primitive_create(&p->primitive, p->desc) : status;
}

static void free_primitive(void *item) {
    const struct onednn *d = onednn();
    struct onednn_primitive *p = item;
    for (int i = 0; i < p->n_args; i++) d->dnnl_memory_destroy(p->args[i].memory);
    if (p->primitive) d->dnnl_primitive_destroy(p->primitive);
    if (p->desc) d->dnnl_primitive_desc_destroy(p->desc);
    free(p->mean);
    free(p->variance);
    free(p->unread);
    free(p);
}

static void *describe(const struct peer_key *key) {
    struct onednn_primitive *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->key = *key;
    p->n_stats = is_batchnorm(key) ? key->c : key->rows;
    make_desc(p);
    return p;
}

/* The primitive for a call, described but perhaps not made yet, or refused; null: out of memory. */
static struct onednn_primitive *find_primitive(const struct nb_kernel *k, const struct nb_call *call) {
    const struct peer_key key = peer_key_of(k, call);
    return peer_cache_get(&onednn()->primitives, &key, describe);
}

/* ---- a call -------------------------------------------------------------------------------------------------------- */

static dnnl_status_t set_addresses(struct onednn_primitive *p, const struct nb_call *call) {
    for (int i = 0; i < p->n_args; i++) {
        struct argument *a = &p->arguments[i];
        void *address = a->field != 0 ? peer_tensor(call, a->field) : NULL;
        if (!address) address = a->own;
        if (address == a->address) continue;
        dnnl_status_t status = onednn()->dnnl_memory_set_data_handle(p->args[i].memory, address);
        if (status != dnnl_success) return status;
        a->address = address;
    }
    return dnnl_success;
}

/* What PyTorch and the ABI call running statistics: the new value weighs `momentum`, the variance has n/(n-1). */
static void update_running(const struct onednn_primitive *p, const struct nb_call *call) {
    const double n = (double)call->n * (double)call->hw, weight = call->momentum;
    const float *mean = call->mean ? call->mean : p->mean;
    for (int64_t i = 0; i < p->n_stats; i++) {
        const double variance = n > 1 ? p->variance[i] * (n / (n - 1)) : p->variance[i];
        call->running_mean_out[i] = (float)((1 - weight) * call->running_mean_in[i] + weight * mean[i]);
        call->running_var_out[i] = (float)((1 - weight) * call->running_var_in[i] + weight * variance);
    }
}

static void before(struct onednn_primitive *p, const struct nb_call *call) {
    if (p->key.pass != NB_BACKWARD) return;
    const float eps = (float)call->eps;
    for (int64_t i = 0; i < p->n_stats; i++) p->variance[i] = fmaxf(1 / (call->rstd[i] * call->rstd[i]) - eps, 0);
}

static void after(const struct onednn_primitive *p, const struct nb_call *call) {
    if (p->key.pass == NB_BACKWARD || is_inference(&p->key)) return;
    const float eps = (float)call->eps;
    for (int64_t i = 0; call->rstd && i < p->n_stats; i++) call->rstd[i] = 1 / sqrtf(p->variance[i] + eps);
    if (is_batchnorm(&p->key) && call->running_mean_out && call->running_var_out) update_running(p, call);
}

int peer_run(const struct nb_kernel *k, const struct nb_call *call) {
    const struct onednn *d = onednn();
    int code = peer_open(call->n_threads > 0 ? call->n_threads : 1);
    if (code != 0) return code;
    struct onednn_primitive *p = find_primitive(k, call);
    if (!p) return dnnl_out_of_memory;
    if (p->desc && !p->primitive) p->status = make_primitive(p);
    if (p->status == dnnl_success) p->status = set_addresses(p, call);
    if (p->status != dnnl_success) return (int)p->status;
    before(p, call);
    dnnl_status_t status = d->dnnl_primitive_execute(p->primitive, d->stream, p->n_args, p->args);
    if (status == dnnl_success) status = d->dnnl_stream_wait(d->stream);
    if (status == dnnl_success) after(p, call);
    return (int)status;
}

/* ---- what it says of itself ---------------------------------------------------------------------------------------- */

const char *peer_applicable(const struct nb_kernel *k, const struct nb_call *call) {
    static char reason[200];
    if (call->x_stride != call->cols) return "oneDNN's normalization does not heed the stride of rows";
    int code = peer_open(call->n_threads > 0 ? call->n_threads : 1);
    const struct onednn_primitive *p = code == 0 ? find_primitive(k, call) : NULL;
    if (p && p->desc) return NULL;
    if (p && (p->status == dnnl_unimplemented || k->op == NB_OP_RMSNORM))
        snprintf(reason, sizeof reason, "%.100s does not implement it%s", onednn()->version,
                 k->op == NB_OP_RMSNORM ? " (RMSNorm comes with 3.9)" : "");
    else
        snprintf(reason, sizeof reason, "%.100s refuses it with status %d", onednn()->version,
                 p      ? (int)p->status
                 : code ? code
                        : (int)dnnl_out_of_memory);
    return reason;
}

const char *peer_implementation(const struct nb_kernel *k, const struct nb_call *call) {
    const struct onednn_primitive *p = onednn()->engine ? find_primitive(k, call) : NULL;
    return p ? p->implementation : NULL;
}

const char *peer_version(void) { return onednn()->version; }

void peer_close(void) {
    struct onednn *d = onednn();
    peer_cache_clear(&d->primitives, free_primitive);
    if (d->stream) d->dnnl_stream_destroy(d->stream);
    if (d->engine) d->dnnl_engine_destroy(d->engine);
    d->stream = NULL;
    d->engine = NULL;
}

/* Parameters are f32 whatever the dtype. The library's documentation names no order of its sums: taken as sequential. */
void peer_describe(struct nb_kernel *k) {
    const bool back = k->pass == NB_BACKWARD;
    k->summary = back ? "oneDNN primitive, backward" : "oneDNN primitive";
    k->variance = k->op == NB_OP_RMSNORM ? NB_VAR_NONE : NB_VAR_TWOPASS;
    k->flags = NB_FLAG_ALLOCATES | NB_FLAG_OWN_THREADS;
    k->formulas = (struct nb_formulas){
        .roots = 1u << NB_ROOT_MUL_RECIP, .affines = 7, .params = 1u << NB_PARAM_F32 | (k->dtype == NB_F32 ? 2u : 0)};
    k->loads = k->op == NB_OP_BATCHNORM ? 3 : 2;
    k->stores = 1;
    k->flops = back ? 9 : 6;
}
