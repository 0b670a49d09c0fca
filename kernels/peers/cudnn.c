// SPDX-License-Identifier: Apache-2.0
/* cuDNN 9 on a GPU: layer, RMS and batch normalization, forward and backward, each a graph of one operation, by the C
 * interface of its graphs. Prototypes and numbers are our own (cudnn_graph.h has them), so that this is built where
 * no CUDA is; the library is looked for when it is used.
 *
 * cuDNN 9.28.1 took the descriptors of every operation below on a machine without a GPU. On an H100 (2026-11-26) the backward ones read or wrote
 * outside their tensors; the forward ones were never timed.
 *
 * An operation is planned at the first call of its kind, by the first engine that the library's heuristics propose and that can be
 * finalized. Tensors at addresses that 16 does not divide, which are checked and never timed, are copied to memory of the adapter's own. */
#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/peers/adapter.h"
#include "kernels/peers/library.h"

/* ---- cudnn_graph.h and cuda.h, as far as they are used here ---------------------------------------------------------- */

typedef void *handle; /* of either library */
typedef unsigned long long address;
enum {
    NOT_SUPPORTED = 3000, /* a status */
    FLOAT = 0,            /* types of elements */
    HALF = 2,
    BFLOAT16 = 9,
    TYPE_HANDLE = 0, /* of what an attribute is */
    TYPE_DATA_TYPE = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_POINTER = 6,
    TYPE_HEURISTICS = 8,
    TYPE_DESCRIPTOR = 15,
    TYPE_NORM_MODE = 27,
    TYPE_NORM_PHASE = 28,
    ENGINE_CONFIG = 3, /* descriptors */
    HEURISTICS = 4,
    EXECUTION_PLAN = 5,
    OPERATION_GRAPH = 15,
    VARIANT_PACK = 16,
    TENSOR = 17,
    NORM_FORWARD = 29,
    NORM_BACKWARD = 30,
    HEURISTICS_MODE = 200, /* attributes */
    HEURISTICS_GRAPH = 201,
    HEURISTICS_RESULTS = 202,
    PLAN_HANDLE = 400,
    PLAN_CONFIG = 401,
    PLAN_WORKSPACE = 402,
    GRAPH_HANDLE = 800,
    GRAPH_OPERATIONS = 801,
    TENSOR_ALIGNMENT = 900,
    TENSOR_TYPE = 901,
    TENSOR_DIMENSIONS = 902,
    TENSOR_STRIDES = 903,
    TENSOR_ID = 906,
    TENSOR_BY_VALUE = 908,
    PACK_IDS = 1000,
    PACK_POINTERS = 1001,
    PACK_WORKSPACE = 1003,
    FORWARD_MODE = 2000,
    FORWARD_PHASE = 2001,
    FORWARD_X = 2002,
    FORWARD_MEAN = 2003,
    FORWARD_RSTD = 2004,
    FORWARD_SCALE = 2005,
    FORWARD_BIAS = 2006,
    FORWARD_EPS = 2007,
    FORWARD_MOMENTUM = 2008,
    FORWARD_RUNNING_MEAN_IN = 2009,
    FORWARD_RUNNING_VAR_IN = 2010,
    FORWARD_RUNNING_MEAN_OUT = 2011,
    FORWARD_RUNNING_VAR_OUT = 2012,
    FORWARD_Y = 2013,
    BACKWARD_MODE = 2100,
    BACKWARD_X = 2101,
    BACKWARD_MEAN = 2102,
    BACKWARD_RSTD = 2103,
    BACKWARD_DY = 2104,
    BACKWARD_SCALE = 2105,
    BACKWARD_DSCALE = 2107,
    BACKWARD_DBIAS = 2108,
    BACKWARD_DX = 2109,
};

static struct {
    handle library, driver; /* driver: null before a device is open */
    char version[64];
    handle cudnn;
    size_t (*cudnnGetVersion)(void);
    int (*cudnnCreate)(handle *cudnn);
    int (*cudnnSetStream)(handle cudnn, handle stream);
    int (*cudnnBackendCreateDescriptor)(int type, handle *descriptor);
    int (*cudnnBackendDestroyDescriptor)(handle descriptor);
    int (*cudnnBackendSetAttribute)(handle descriptor, int name, int type, int64_t n, const void *values);
    int (*cudnnBackendGetAttribute)(handle descriptor, int name, int type, int64_t wanted, int64_t *n, void *values);
    int (*cudnnBackendFinalize)(handle descriptor);
    int (*cudnnBackendExecute)(handle cudnn, handle plan, handle pack);
    int (*cuCtxGetCurrent)(handle *context);
    int (*cuMemAlloc_v2)(address *p, size_t bytes);
    int (*cuMemcpyDtoDAsync_v2)(address to, address from, size_t bytes, handle stream);
    struct peer_cache plans;
} lib;

/* ---- tensors --------------------------------------------------------------------------------------------------------- */

enum { MAX_TENSORS = 16, PACKS = 64, CONFIGS = 8, ALIGNMENT = 16 };

/* What a tensor has as many elements as; EPS and MOMENTUM are numbers of the host's, given by value. */
enum extent { LIKE_X, PARAMETERS, STATISTICS, EPS, MOMENTUM };

struct role {
    int attribute;
    size_t field; /* of the call */
    enum extent extent;
    bool written;
};
static const struct role forward_roles[] = {
    {FORWARD_X, PEER_FIELD(x), LIKE_X, false},
    {FORWARD_SCALE, PEER_FIELD(gamma), PARAMETERS, false},
    {FORWARD_BIAS, PEER_FIELD(beta), PARAMETERS, false},
    {FORWARD_EPS, 0, EPS, false},
    {FORWARD_Y, PEER_FIELD(y), LIKE_X, true},
    {FORWARD_MEAN, PEER_FIELD(mean), STATISTICS, true},
    {FORWARD_RSTD, PEER_FIELD(rstd), STATISTICS, true},
    {FORWARD_MOMENTUM, 0, MOMENTUM, false},
    {FORWARD_RUNNING_MEAN_IN, PEER_FIELD(running_mean_in), PARAMETERS, false},
    {FORWARD_RUNNING_VAR_IN, PEER_FIELD(running_var_in), PARAMETERS, false},
    {FORWARD_RUNNING_MEAN_OUT, PEER_FIELD(running_mean_out), PARAMETERS, true},
    {FORWARD_RUNNING_VAR_OUT, PEER_FIELD(running_var_out), PARAMETERS, true},
    {0, 0, LIKE_X, false},
};
static const struct role backward_roles[] = {
    {BACKWARD_X, PEER_FIELD(x), LIKE_X, false},
    {BACKWARD_DY, PEER_FIELD(dy), LIKE_X, false},
    {BACKWARD_SCALE, PEER_FIELD(gamma), PARAMETERS, false},
    {BACKWARD_MEAN, PEER_FIELD(mean), STATISTICS, false},
    {BACKWARD_RSTD, PEER_FIELD(rstd), STATISTICS, false},
    {BACKWARD_DX, PEER_FIELD(dx), LIKE_X, true},
    {BACKWARD_DSCALE, PEER_FIELD(dgamma), PARAMETERS, true},
    {BACKWARD_DBIAS, PEER_FIELD(dbeta), PARAMETERS, true},
    {0, 0, LIKE_X, false},
};

static bool is_batchnorm(const struct peer_key *k) { return k->op == NB_OP_BATCHNORM; }
/* With statistics as outputs; what batch normalization is alone planned for. */
static bool is_training(const struct peer_key *k) { return is_batchnorm(k) || k->with_stats; }

static bool is_wanted(const struct role *r, const struct peer_key *k) {
    switch (r->attribute) {
    case FORWARD_MEAN:
        return is_training(k) && k->op != NB_OP_RMSNORM;
    case FORWARD_RSTD:
        return is_training(k);
    case BACKWARD_MEAN:
        return k->op != NB_OP_RMSNORM;
    case FORWARD_BIAS:
    case BACKWARD_DBIAS:
        return k->affine == NB_AFFINE_GAMMA_BETA;
    case FORWARD_MOMENTUM:
    case FORWARD_RUNNING_MEAN_IN:
    case FORWARD_RUNNING_VAR_IN:
    case FORWARD_RUNNING_MEAN_OUT:
    case FORWARD_RUNNING_VAR_OUT:
        return is_batchnorm(k);
    default:
        return true;
    }
}

struct tensor {
    const struct role *role;
    handle descriptor;
    size_t bytes;
    address own; /* where the call has none, or none that is aligned; 0: not needed yet */
};
struct pack {
    handle descriptor;
    void *at[MAX_TENSORS];
};
struct plan {
    struct peer_key key;
    int status; /* of the library; 0: it can be executed */
    handle plan;
    address workspace;
    float eps, momentum;
    struct tensor tensors[MAX_TENSORS];
    int n;
    struct pack packs[PACKS]; /* by addresses: as many as cold cases have sets of buffers */
    int n_packs, next_pack;
};

/* Four dimensions, as the library wants them: rows and columns, or n, c and what is left. */
static size_t shape_of(enum extent extent, const struct peer_key *k, int64_t dimensions[4], int64_t strides[4]) {
    const int64_t n = is_batchnorm(k) ? k->n : k->rows, c = is_batchnorm(k) ? k->c : k->cols;
    const int64_t hw = is_batchnorm(k) && extent == LIKE_X ? k->hw : 1;
    const bool by_row = extent == LIKE_X || (extent == STATISTICS && !is_batchnorm(k));
    const bool by_column = extent != EPS && extent != MOMENTUM && !(extent == STATISTICS && !is_batchnorm(k));
    dimensions[0] = by_row ? n : 1;
    dimensions[1] = by_column ? c : 1;
    dimensions[2] = hw;
    dimensions[3] = 1;
    const bool planes = k->layout == NB_NCHW && extent == LIKE_X;
    strides[0] = dimensions[1] * hw;
    strides[1] = planes ? hw : 1;
    strides[2] = strides[3] = planes ? 1 : dimensions[1];
    return (size_t)(dimensions[0] * dimensions[1] * hw);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------------- */

static int set(handle d, int name, int type, int64_t n, const void *values) {
    return lib.cudnnBackendSetAttribute(d, name, type, n, values);
}
static int set_descriptor(handle d, int name, handle value) { return set(d, name, TYPE_DESCRIPTOR, 1, &value); }

static int element_type(const struct tensor *t, const struct peer_key *k) {
    if (t->role->extent != LIKE_X || k->dtype == NB_F32) return FLOAT;
    return k->dtype == NB_F16 ? HALF : BFLOAT16;
}

static int make_tensor(struct tensor *t, int64_t id, const struct peer_key *k) {
    const int64_t alignment = ALIGNMENT;
    const int type = element_type(t, k);
    const bool by_value = t->role->field == 0;
    int64_t dimensions[4], strides[4];
    t->bytes = shape_of(t->role->extent, k, dimensions, strides) * (type == FLOAT ? sizeof(float) : sizeof(uint16_t));
    int status = lib.cudnnBackendCreateDescriptor(TENSOR, &t->descriptor);
    if (!status) status = set(t->descriptor, TENSOR_TYPE, TYPE_DATA_TYPE, 1, &type);
    if (!status) status = set(t->descriptor, TENSOR_DIMENSIONS, TYPE_INT64, 4, dimensions);
    if (!status) status = set(t->descriptor, TENSOR_STRIDES, TYPE_INT64, 4, strides);
    if (!status) status = set(t->descriptor, TENSOR_ID, TYPE_INT64, 1, &id);
    if (!status) status = set(t->descriptor, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);
    if (!status && by_value) status = set(t->descriptor, TENSOR_BY_VALUE, TYPE_BOOLEAN, 1, &by_value);
    return status ? status : lib.cudnnBackendFinalize(t->descriptor);
}

static int make_operation(struct plan *p, handle *operation) {
    const bool back = p->key.pass == NB_BACKWARD;
    const int mode = p->key.op == NB_OP_LAYERNORM ? 0 : p->key.op == NB_OP_BATCHNORM ? 2 : 4;
    const int phase = is_training(&p->key);
    int status = lib.cudnnBackendCreateDescriptor(back ? NORM_BACKWARD : NORM_FORWARD, operation);
    if (!status) status = set(*operation, back ? BACKWARD_MODE : FORWARD_MODE, TYPE_NORM_MODE, 1, &mode);
    if (!status && !back) status = set(*operation, FORWARD_PHASE, TYPE_NORM_PHASE, 1, &phase);
    for (const struct role *r = back ? backward_roles : forward_roles; r->attribute && !status; r++) {
        if (!is_wanted(r, &p->key)) continue;
        assert(p->n < MAX_TENSORS);
        struct tensor *t = &p->tensors[p->n++];
        t->role = r;
        status = make_tensor(t, p->n, &p->key);
        if (!status) status = set_descriptor(*operation, r->attribute, t->descriptor);
    }
    return status ? status : lib.cudnnBackendFinalize(*operation);
}

/* The first of what the heuristics propose that can be finalized. */
static int plan_by(struct plan *p, handle graph, int mode) {
    handle heuristics, configs[CONFIGS] = {NULL};
    int64_t n = 0;
    int status = lib.cudnnBackendCreateDescriptor(HEURISTICS, &heuristics);
    if (!status) status = set_descriptor(heuristics, HEURISTICS_GRAPH, graph);
    if (!status) status = set(heuristics, HEURISTICS_MODE, TYPE_HEURISTICS, 1, &mode);
    if (!status) status = lib.cudnnBackendFinalize(heuristics);
    for (int i = 0; i < CONFIGS && !status; i++) status = lib.cudnnBackendCreateDescriptor(ENGINE_CONFIG, &configs[i]);
    if (!status)
        status = lib.cudnnBackendGetAttribute(heuristics, HEURISTICS_RESULTS, TYPE_DESCRIPTOR, CONFIGS, &n, configs);
    if (!status) status = NOT_SUPPORTED;
    for (int i = 0; i < n && i < CONFIGS; i++) {
        if (lib.cudnnBackendCreateDescriptor(EXECUTION_PLAN, &p->plan) != 0) break;
        status = set(p->plan, PLAN_HANDLE, TYPE_HANDLE, 1, &lib.cudnn);
        if (!status) status = set_descriptor(p->plan, PLAN_CONFIG, configs[i]);
        if (!status) status = lib.cudnnBackendFinalize(p->plan);
        if (!status) return 0;
        lib.cudnnBackendDestroyDescriptor(p->plan);
    }
    return status;
}

static int make_graph(struct plan *p) {
    enum { FALLBACK = 2, BY_TREE = 3 };
    handle operation, graph;
    int64_t workspace = 0, n = 0;
    int status = make_operation(p, &operation);
    if (!status && !lib.cudnn) status = lib.cudnnCreate(&lib.cudnn);
    if (!status) status = lib.cudnnBackendCreateDescriptor(OPERATION_GRAPH, &graph);
    if (!status) status = set(graph, GRAPH_HANDLE, TYPE_HANDLE, 1, &lib.cudnn);
    if (!status) status = set_descriptor(graph, GRAPH_OPERATIONS, operation);
    if (!status) status = lib.cudnnBackendFinalize(graph);
    if (status) return status;
    status = plan_by(p, graph, BY_TREE);
    if (status) status = plan_by(p, graph, FALLBACK);
    if (!status) status = lib.cudnnBackendGetAttribute(p->plan, PLAN_WORKSPACE, TYPE_INT64, 1, &n, &workspace);
    if (!status && workspace > 0) status = lib.cuMemAlloc_v2(&p->workspace, (size_t)workspace);
    return status;
}

static void *make_plan(const struct peer_key *key) {
    struct plan *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->key = *key;
    p->eps = (float)key->eps;
    p->status = make_graph(p);
    return p;
}

/* ---- a call ------------------------------------------------------------------------------------------------------------- */

/* Whether a device is open; its functions are then known. */
static bool has_device(void) {
    handle context = NULL;
    char reason[8];
    if (!lib.driver) {
        lib.driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!lib.driver) return false;
#define DRIVER(function)                                                                                               \
    lib.function =                                                                                                     \
        (__typeof__(lib.function))(uintptr_t)peer_library_symbol(lib.driver, "", #function, reason, sizeof reason);
        DRIVER(cuCtxGetCurrent)
        DRIVER(cuMemAlloc_v2)
        DRIVER(cuMemcpyDtoDAsync_v2)
#undef DRIVER
    }
    if (!lib.cuCtxGetCurrent || !lib.cuMemAlloc_v2 || !lib.cuMemcpyDtoDAsync_v2) return false;
    return lib.cuCtxGetCurrent(&context) == 0 && context;
}

static address address_of(const void *p) { return (address)(uintptr_t)p; }
static bool is_staged(const void *at) { return !at || (uintptr_t)at % ALIGNMENT != 0; }

/* Where the plan finds its tensors in this call. */
static int place(struct plan *p, const struct nb_call *call, void *at[MAX_TENSORS]) {
    int status = 0;
    for (int i = 0; i < p->n && !status; i++) {
        struct tensor *t = &p->tensors[i];
        at[i] = t->role->extent == EPS        ? (void *)&p->eps
                : t->role->extent == MOMENTUM ? (void *)&p->momentum
                                              : peer_tensor(call, t->role->field);
        if (t->role->field == 0 || !is_staged(at[i])) continue;
        if (!t->own) status = lib.cuMemAlloc_v2(&t->own, t->bytes);
        if (!status && at[i] && !t->role->written)
            status = lib.cuMemcpyDtoDAsync_v2(t->own, address_of(at[i]), t->bytes, call->stream);
        at[i] = (void *)(uintptr_t)t->own;
    }
    return status;
}

/* Outputs that were not where the call wants them. */
static int bring_back(const struct plan *p, const struct nb_call *call) {
    int status = 0;
    for (int i = 0; i < p->n && !status; i++) {
        const struct tensor *t = &p->tensors[i];
        void *wanted = t->role->field ? peer_tensor(call, t->role->field) : NULL;
        if (wanted && t->role->written && is_staged(wanted))
            status = lib.cuMemcpyDtoDAsync_v2(address_of(wanted), t->own, t->bytes, call->stream);
    }
    return status;
}

static int find_pack(struct plan *p, void *const at[MAX_TENSORS], handle *out) {
    int64_t ids[MAX_TENSORS];
    for (int i = 0; i < p->n_packs; i++)
        if (memcmp(p->packs[i].at, at, (size_t)p->n * sizeof *at) == 0) {
            *out = p->packs[i].descriptor;
            return 0;
        }
    struct pack *pack = &p->packs[p->next_pack];
    if (p->n_packs == PACKS) lib.cudnnBackendDestroyDescriptor(pack->descriptor);
    for (int i = 0; i < p->n; i++) ids[i] = i + 1;
    int status = lib.cudnnBackendCreateDescriptor(VARIANT_PACK, &pack->descriptor);
    if (!status) status = set(pack->descriptor, PACK_IDS, TYPE_INT64, p->n, ids);
    if (!status) status = set(pack->descriptor, PACK_POINTERS, TYPE_POINTER, p->n, at);
    if (!status) status = set(pack->descriptor, PACK_WORKSPACE, TYPE_POINTER, 1, &p->workspace);
    if (!status) status = lib.cudnnBackendFinalize(pack->descriptor);
    memcpy(pack->at, at, (size_t)p->n * sizeof *at);
    p->next_pack = (p->next_pack + 1) % PACKS;
    if (p->n_packs < PACKS) p->n_packs++;
    *out = pack->descriptor;
    return status;
}

static struct plan *find_plan(const struct peer_variant *v, const struct nb_call *call) {
    const struct peer_key key = peer_key_of(v, call);
    return peer_cache_get(&lib.plans, &key, make_plan);
}

int peer_run(const struct peer_variant *v, const struct nb_call *call) {
    enum { NO_DEVICE = 1, NO_MEMORY };
    void *at[MAX_TENSORS] = {NULL};
    handle pack;
    struct plan *p = has_device() ? find_plan(v, call) : NULL;
    if (!p) return lib.driver ? NO_MEMORY : NO_DEVICE;
    if (p->status) return p->status;
    p->momentum = (float)call->momentum;
    int status = place(p, call, at);
    if (!status) status = find_pack(p, at, &pack);
    if (!status) status = lib.cudnnSetStream(lib.cudnn, call->stream);
    if (!status) status = lib.cudnnBackendExecute(lib.cudnn, p->plan, pack);
    return status ? status : bring_back(p, call);
}

/* ---- what it says of itself ------------------------------------------------------------------------------------------------ */

/* Without a device the library is not asked. */
const char *peer_applicable(const struct peer_variant *v, const struct nb_call *call) {
    static char reason[160];
    if (call->x_stride != call->cols) return "cuDNN is given rows that lie next to each other";
    if (v->op == NB_OP_BATCHNORM && call->mode == NB_INFERENCE) return "cuDNN's graphs have no BatchNorm for inference";
    if (v->op == NB_OP_BATCHNORM && call->hw == 1)
        return "cuDNN's BatchNorm is for images: on rows it reads or writes outside them";
    if (!has_device()) return NULL;
    const struct plan *p = find_plan(v, call);
    if (p && !p->status) return NULL;
    snprintf(reason, sizeof reason, "%s has no engine for it: status %d", lib.version, p ? p->status : -1);
    return reason;
}

const char *peer_implementation(const struct peer_variant *v, const struct nb_call *call) {
    (void)v, (void)call;
    return NULL;
}

const char *peer_version(void) { return lib.version; }

int peer_use(const char *path, char *reason, size_t n) {
    static const char name[] = "libcudnn.so.9";
    if (access(path, R_OK) != 0) path = name; /* of the machine */
    lib.library = peer_library_open(path, reason, n);
    if (!lib.library) return -1;
#define FIND(function)                                                                                                 \
    lib.function = (__typeof__(lib.function))(uintptr_t)peer_library_symbol(lib.library, path, #function, reason, n);  \
    if (!lib.function) return -1;
    FIND(cudnnGetVersion)
    FIND(cudnnCreate)
    FIND(cudnnSetStream)
    FIND(cudnnBackendCreateDescriptor)
    FIND(cudnnBackendDestroyDescriptor)
    FIND(cudnnBackendSetAttribute)
    FIND(cudnnBackendGetAttribute)
    FIND(cudnnBackendFinalize)
    FIND(cudnnBackendExecute)
#undef FIND
    const unsigned version = (unsigned)lib.cudnnGetVersion();
    snprintf(lib.version, sizeof lib.version, "cuDNN %u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return 0;
}

int peer_open(int n_threads) {
    (void)n_threads;
    return 0;
}

/* The driver may be lost by now: what lies on the device goes with the process. */
void peer_close(void) { peer_cache_clear(&lib.plans, free); }

/* Parameters are f32 whatever the dtype. How it sums, and how it gets a variance, the library does not say. */
void peer_describe(const struct peer_variant *v, struct nb_kernel *kernel) {
    const bool back = v->pass == NB_BACKWARD, is_rmsnorm = v->op == NB_OP_RMSNORM;
    kernel->summary = back ? "cuDNN graph, backward" : "cuDNN graph";
    kernel->backend = NB_BACKEND_CUDA;
    kernel->variance = is_rmsnorm ? NB_VAR_NONE : NB_VAR_TWOPASS;
    kernel->flags = NB_FLAG_ALLOCATES;
    kernel->formulas =
        (struct nb_formulas){.roots = 1u << NB_ROOT_MUL_RECIP,
                             .affines = 1u << NB_AFFINE_GAMMA_BETA | (is_rmsnorm ? 1u << NB_AFFINE_GAMMA : 0),
                             .params = 1u << NB_PARAM_F32 | (v->dtype == NB_F32 ? 1u << NB_PARAM_X : 0)};
    kernel->loads = v->op == NB_OP_BATCHNORM ? 3 : back ? 2 : 1;
    kernel->stores = 1;
    kernel->flops = back ? 9 : 6;
}
