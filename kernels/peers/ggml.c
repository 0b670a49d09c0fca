// SPDX-License-Identifier: Apache-2.0
/* ggml's CPU backend, f32: ggml_rms_norm, ggml_norm and ggml_rms_norm_back, with ggml_mul and ggml_add for the parameters, as its models
 * build them. A graph is planned once for each kind of call and computed many times, its nodes' addresses set at each call. */
#include <ggml-cpu.h>
#include <ggml.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/peers/adapter.h"
#include "kernels/peers/library.h"

#define GGML_FUNCTIONS(F)                                                                                              \
    F(ggml_version)                                                                                                    \
    F(ggml_commit)                                                                                                     \
    F(ggml_init)                                                                                                       \
    F(ggml_free)                                                                                                       \
    F(ggml_tensor_overhead)                                                                                            \
    F(ggml_graph_overhead)                                                                                             \
    F(ggml_new_tensor_2d)                                                                                              \
    F(ggml_rms_norm)                                                                                                   \
    F(ggml_rms_norm_back)                                                                                              \
    F(ggml_norm)                                                                                                       \
    F(ggml_mul)                                                                                                        \
    F(ggml_add)                                                                                                        \
    F(ggml_repeat_back)                                                                                                \
    F(ggml_new_graph)                                                                                                  \
    F(ggml_build_forward_expand)                                                                                       \
    F(ggml_cpu_init)                                                                                                   \
    F(ggml_graph_plan)                                                                                                 \
    F(ggml_graph_compute)                                                                                              \
    F(ggml_threadpool_params_default)                                                                                  \
    F(ggml_threadpool_new)                                                                                             \
    F(ggml_threadpool_free)

enum { FAILED = 1, NO_MEMORY, NO_THREADS, MAX_TENSORS = 12 };

/* The field of a tensor that no call has. */
enum { TEMPORARY = 0 };

struct graph {
    struct peer_key key;
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    struct ggml_cplan plan;
    struct ggml_tensor *tensors[MAX_TENSORS];
    size_t fields[MAX_TENSORS]; /* of the call, whose address a tensor has */
    int n_tensors;
    void *temporaries[MAX_TENSORS];
    int n_temporaries;
};

struct library {
#define MEMBER(function) __typeof__(function) *function;
    GGML_FUNCTIONS(MEMBER)
#undef MEMBER
    char version[96];
    struct ggml_threadpool *threads;
    int n_threads;
    struct peer_cache graphs;
};

static struct library *ggml(void) {
    static struct library library;
    return &library;
}

/* ---- building ------------------------------------------------------------------------------------------------------ */

static struct ggml_tensor *keep(struct graph *g, struct ggml_tensor *t, size_t field, int64_t stride) {
    g->tensors[g->n_tensors] = t;
    g->fields[g->n_tensors++] = field;
    if (stride > 0) {
        t->nb[1] = (size_t)stride * sizeof(float);
        t->nb[2] = t->nb[3] = t->nb[1] * (size_t)t->ne[1];
    }
    return t;
}

static struct ggml_tensor *input(struct graph *g, size_t field, int64_t stride) {
    const bool is_vector = stride == 0;
    struct ggml_tensor *t =
        ggml()->ggml_new_tensor_2d(g->context, GGML_TYPE_F32, g->key.cols, is_vector ? 1 : g->key.rows);
    return keep(g, t, field, stride);
}

/* Every step writes where the result will stand, as ggml's allocator lets element-wise nodes do. */
static void build_forward(struct graph *g) {
    const struct library *l = ggml();
    const struct peer_key *key = &g->key;
    struct ggml_tensor *x = input(g, PEER_FIELD(x), key->x_stride), *y;
    if (key->op == NB_OP_RMSNORM)
        y = l->ggml_rms_norm(g->context, x, (float)key->eps);
    else
        y = l->ggml_norm(g->context, x, (float)key->eps);
    keep(g, y, PEER_FIELD(y), key->y_stride);
    if (key->affine != NB_AFFINE_NONE)
        y = keep(g, l->ggml_mul(g->context, y, input(g, PEER_FIELD(gamma), 0)), PEER_FIELD(y), key->y_stride);
    if (key->affine == NB_AFFINE_GAMMA_BETA)
        y = keep(g, l->ggml_add(g->context, y, input(g, PEER_FIELD(beta), 0)), PEER_FIELD(y), key->y_stride);
    l->ggml_build_forward_expand(g->graph, y);
}

/* What its automatic differentiation makes of rms_norm(x) * gamma. */
static void build_backward(struct graph *g) {
    const struct library *l = ggml();
    const struct peer_key *key = &g->key;
    struct ggml_tensor *x = input(g, PEER_FIELD(x), key->x_stride), *dy = input(g, PEER_FIELD(dy), key->dy_stride),
                       *gradient = dy;
    if (key->affine != NB_AFFINE_NONE) {
        struct ggml_tensor *gamma = input(g, PEER_FIELD(gamma), 0);
        gradient = keep(g, l->ggml_mul(g->context, dy, gamma), TEMPORARY, 0);
        struct ggml_tensor *xhat = keep(g, l->ggml_rms_norm(g->context, x, (float)key->eps), TEMPORARY, 0);
        struct ggml_tensor *product = keep(g, l->ggml_mul(g->context, xhat, dy), TEMPORARY, 0);
        struct ggml_tensor *dgamma = keep(g, l->ggml_repeat_back(g->context, product, gamma), PEER_FIELD(dgamma), 0);
        l->ggml_build_forward_expand(g->graph, dgamma);
    }
    struct ggml_tensor *dx = l->ggml_rms_norm_back(g->context, gradient, x, (float)key->eps);
    l->ggml_build_forward_expand(g->graph, keep(g, dx, PEER_FIELD(dx), key->dx_stride));
}

static void free_graph(void *item) {
    struct graph *g = item;
    for (int i = 0; i < g->n_temporaries; i++) free(g->temporaries[i]);
    free(g->plan.work_data);
    if (g->context) ggml()->ggml_free(g->context);
    free(g);
}

static int allocate_temporaries(struct graph *g) {
    const size_t bytes = (size_t)g->key.rows * (size_t)g->key.cols * sizeof(float);
    for (int i = 0; i < g->n_tensors; i++) {
        if (g->fields[i] != TEMPORARY) continue;
        void *room = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (!room) return NO_MEMORY;
        g->temporaries[g->n_temporaries++] = g->tensors[i]->data = room;
    }
    return 0;
}

static int build(struct graph *g) {
    const struct library *l = ggml();
    struct ggml_init_params params = {.mem_size = MAX_TENSORS * l->ggml_tensor_overhead() + l->ggml_graph_overhead(),
                                      .no_alloc = true};
    g->context = l->ggml_init(params);
    if (!g->context) return NO_MEMORY;
    g->graph = l->ggml_new_graph(g->context);
    if (g->key.pass == NB_FORWARD)
        build_forward(g);
    else
        build_backward(g);
    if (allocate_temporaries(g) != 0) return NO_MEMORY;
    g->plan = l->ggml_graph_plan(g->graph, g->key.n_threads, l->threads);
    if (g->plan.work_size == 0) return 0;
    g->plan.work_data = malloc(g->plan.work_size);
    return g->plan.work_data ? 0 : NO_MEMORY;
}

static void *make_graph(const struct peer_key *key) {
    struct graph *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->key = *key;
    if (build(g) == 0) return g;
    free_graph(g);
    return NULL;
}

/* ---- a call -------------------------------------------------------------------------------------------------------- */

int peer_run(const struct nb_kernel *k, const struct nb_call *call) {
    const int n_threads = call->n_threads > 0 ? call->n_threads : 1;
    int code = peer_open(n_threads);
    if (code != 0) return code;
    struct peer_key key = peer_key_of(k, call);
    key.n_threads = n_threads;
    struct graph *g = peer_cache_get(&ggml()->graphs, &key, make_graph);
    if (!g) return NO_MEMORY;
    for (int i = 0; i < g->n_tensors; i++)
        if (g->fields[i] != TEMPORARY) g->tensors[i]->data = peer_tensor(call, g->fields[i]);
    return ggml()->ggml_graph_compute(g->graph, &g->plan) == GGML_STATUS_SUCCESS ? 0 : FAILED;
}

/* ---- what it says of itself ---------------------------------------------------------------------------------------- */

int peer_use(const char *library, char *reason, size_t n) {
    struct library *l = ggml();
    void *handle = peer_library_open(library, reason, n);
    if (!handle) return -1;
#define FIND(function)                                                                                                 \
    l->function = (__typeof__(function) *)(uintptr_t)peer_library_symbol(handle, library, #function, reason, n);       \
    if (!l->function) return -1;
    GGML_FUNCTIONS(FIND)
#undef FIND
    snprintf(l->version, sizeof l->version, "ggml %s (%.12s)", l->ggml_version(), l->ggml_commit());
    return 0;
}

const char *peer_version(void) { return ggml()->version; }

/* A pool of threads that stays: without one the library starts new threads for every graph. */
int peer_open(int n_threads) {
    struct library *l = ggml();
    if (l->threads && l->n_threads == n_threads) return 0;
    peer_close();
    l->ggml_cpu_init();
    struct ggml_threadpool_params params = l->ggml_threadpool_params_default(n_threads);
    params.poll =
        1; /* in 131072 pauses, some ms: calls back to back find its threads awake; its default, 50, is over 0.1 s */
    l->threads = l->ggml_threadpool_new(&params);
    l->n_threads = n_threads;
    return l->threads ? 0 : NO_THREADS;
}

void peer_close(void) {
    struct library *l = ggml();
    peer_cache_clear(&l->graphs, free_graph);
    if (l->threads) l->ggml_threadpool_free(l->threads);
    l->threads = NULL;
}

const char *peer_applicable(const struct nb_kernel *k, const struct nb_call *call) {
    if (k->pass == NB_BACKWARD && call->formula.affine == NB_AFFINE_GAMMA_BETA) return "ggml's graph has no dbeta here";
    return NULL;
}

const char *peer_implementation(const struct nb_kernel *k, const struct nb_call *call) {
    return call->formula.affine == NB_AFFINE_NONE ? "one node" : "a node for each step";
}

void peer_describe(struct nb_kernel *k) {
    const bool back = k->pass == NB_BACKWARD;
    k->summary = back ? "ggml_rms_norm_back in a planned graph" : "ggml_rms_norm or ggml_norm in a planned graph";
    k->style = NB_COMPOSED;
    k->variance = k->op == NB_OP_RMSNORM ? NB_VAR_NONE : NB_VAR_TWOPASS;
    k->flags = NB_FLAG_ALLOCATES | NB_FLAG_OWN_THREADS;
    k->formulas = (struct nb_formulas){
        .roots = 1u << NB_ROOT_MUL_RECIP, .affines = back ? 3 : 7, .params = 1u << NB_PARAM_F32 | 1u << NB_PARAM_X};
    k->loads = back ? 8 : 4;
    k->stores = back ? 4 : 2;
    k->flops = back ? 12 : 6;
}
