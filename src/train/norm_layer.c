// SPDX-License-Identifier: Apache-2.0
/* Kernels of the registry behind a layer: found by name and style, called through their ABI, timed around the call alone. */
#include "src/train/norm_layer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/log.h"
#include "src/base/timer.h"
#include "src/case/case.h"
#include "src/case/tuning.h"
#include "src/harness/fp_state.h"
#include "src/registry/cpu.h"
#include "src/train/rescale.h"

static const double RUNNING_MOMENTUM = 0.1; /* as PyTorch */
static const char *const ops[NB_N_NORM_KINDS] = {[NB_NORM_LAYERNORM] = "layernorm",
                                                 [NB_NORM_RMSNORM] = "rmsnorm",
                                                 [NB_NORM_PRMSNORM] = "prmsnorm",
                                                 [NB_NORM_BATCHNORM] = "batchnorm"};
enum { N_WAYS = 2 };
/* In the order of preference. A style takes no kernel of another style in its place: what it costs is what is asked. */
static const char *const ways[NB_N_STYLES][NB_N_PASSES][N_WAYS] = {
    [NB_FUSED] = {{"fast", "twopass"}, {"backward_fast", "backward_plain"}},
    [NB_COMPOSED] = {{"composed"}, {"backward_composed"}}};

/* ---- finding kernels ---- */

static const struct nb_entry *widest(const char *kernel) {
    const struct nb_entry *best = NULL;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (strcmp(e->kernel_id, kernel) != 0 || e->kernel->dtype != NB_F32) continue;
        if (nb_cpu_refuses(e->kernel->cpu_features, e->kernel->width)) continue;
        if (!best || e->kernel->width > best->kernel->width) best = e;
    }
    return best;
}

static const struct nb_entry *find(const struct nb_norm_choice *choice, enum nb_pass pass, const struct nb_call *call) {
    for (int i = 0; i < N_WAYS; i++) {
        const char *way = ways[choice->style][pass][i];
        char name[64];
        if (!way) break;
        snprintf(name, sizeof name, "%s_%s", ops[choice->kind], way);
        const struct nb_entry *e = widest(name);
        if (e && !nb_kernel_refuses(e->kernel, &call->formula) && !nb_kernel_applicable(e->kernel, call)) return e;
    }
    nb_error("no %s kernel %s_%s for rows of %lld in f32 runs here: `normbench list kernels` shows what there is",
             nb_style_name(choice->style), ops[choice->kind], ways[choice->style][pass][0], (long long)call->cols);
    return NULL;
}

static bool centres(enum nb_norm_kind kind) { return kind == NB_NORM_LAYERNORM || kind == NB_NORM_BATCHNORM; }
static bool is_batchnorm(const struct nb_norm_layer *n) { return n->choice.kind == NB_NORM_BATCHNORM; }

/* ceil(n p), as the paper; the small number keeps 0.0625 * 512 at 32 where p is not exact. */
static int64_t seen_by_statistics(const struct nb_norm_layer *n) {
    if (n->choice.kind != NB_NORM_PRMSNORM) return n->cols;
    const int64_t k = (int64_t)ceil(n->choice.partial * (double)n->cols - 1e-9);
    return k < 1 ? 1 : k > n->cols ? n->cols : k;
}

/* What forward and backward calls have in common. BatchNorm: positions are rows, so that hw is 1. */
static struct nb_call start_call(const struct nb_norm_layer *n, int64_t rows, bool training) {
    struct nb_call call = {.struct_size = sizeof call,
                           .mode = training ? NB_TRAINING : NB_INFERENCE,
                           .layout = is_batchnorm(n) ? NB_NHWC : NB_ROWS,
                           .n_threads = 1,
                           .rows = rows,
                           .cols = n->cols,
                           .n = rows,
                           .c = n->cols,
                           .hw = 1,
                           .k = seen_by_statistics(n),
                           .eps = n->choice.eps,
                           .momentum = RUNNING_MOMENTUM,
                           .formula = {.struct_size = sizeof call.formula,
                                       .root = NB_ROOT_MUL_RECIP,
                                       .affine = n->beta ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA},
                           .gamma = n->gamma->value,
                           .beta = n->beta ? n->beta->value : NULL,
                           .mean = centres(n->choice.kind) ? n->mean : NULL,
                           .rstd = n->rstd,
                           .tuning = nb_tuning_used()};
    call.x_stride = call.y_stride = call.dy_stride = call.dx_stride = n->cols;
    return call;
}

/* ---- set-up ---- */

static bool is_kernels(enum nb_norm_kind kind) { return ops[kind] != NULL; }

static void add_parameters(struct nb_norm_layer *n, const char *name, struct nb_parameters *parameters) {
    char full[48];
    const bool frozen = n->choice.affine == NB_NORM_FROZEN;
    snprintf(full, sizeof full, "%s.gamma", name);
    n->gamma = nb_parameter_add(parameters, full, 1, n->cols, false);
    nb_parameter_fill(n->gamma, 1);
    n->gamma->frozen = frozen;
    if (!centres(n->choice.kind)) return;
    snprintf(full, sizeof full, "%s.beta", name);
    n->beta = nb_parameter_add(parameters, full, 1, n->cols, false);
    n->beta->frozen = frozen;
}

static float *columns(const struct nb_norm_layer *n) { return nb_alloc((unsigned long long)n->cols, sizeof(float)); }

static void make_room(struct nb_norm_layer *n) {
    const int64_t n_statistics = is_batchnorm(n) ? n->cols : n->rows;
    n->mean = nb_alloc((unsigned long long)n_statistics, sizeof(float));
    n->rstd = nb_alloc((unsigned long long)n_statistics, sizeof(float));
    n->dgamma = columns(n);
    n->dbeta = columns(n);
    if (!is_batchnorm(n)) return;
    n->running_mean = columns(n);
    n->running_var = columns(n);
    n->next_mean = columns(n);
    n->next_var = columns(n);
    for (int64_t i = 0; i < n->cols; i++) n->running_var[i] = 1;
}

int nb_norm_layer_init(struct nb_norm_layer *n, const char *name, const struct nb_norm_choice *choice, int64_t rows,
                       int64_t cols, struct nb_parameters *parameters, struct nb_pool *pool) {
    assert(rows > 0 && cols > 0 && choice->kind < NB_N_NORM_KINDS);
    *n = (struct nb_norm_layer){.choice = *choice, .rows = rows, .cols = cols, .pool = pool};
    if (choice->kind == NB_NORM_NONE) return 0;
    add_parameters(n, name, parameters);
    make_room(n);
    if (!is_kernels(choice->kind)) return 0;
    const struct nb_call call = start_call(n, rows, true);
    n->forward = find(choice, NB_FORWARD, &call);
    n->backward = n->forward ? find(choice, NB_BACKWARD, &call) : NULL;
    if (n->backward) return 0;
    nb_norm_layer_release(n);
    return -1;
}

void nb_norm_layer_release(struct nb_norm_layer *n) {
    float *const owned[] = {n->mean,         n->rstd,        n->dgamma,    n->dbeta,
                            n->running_mean, n->running_var, n->next_mean, n->next_var};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    nb_room_release(&n->scratch);
    *n = (struct nb_norm_layer){0};
}

/* ---- calls ---- */

static void lend_scratch(struct nb_norm_layer *n, const struct nb_kernel *kernel, struct nb_call *call) {
    const size_t bytes = nb_kernel_scratch_bytes(kernel, call);
    if (bytes > n->scratch.bytes) {
        nb_room_release(&n->scratch);
        n->scratch_start = nb_room_take(&n->scratch, (int64_t)((bytes + sizeof(float) - 1) / sizeof(float)));
    }
    call->scratch = n->scratch_start;
}

/* Does nothing, on every thread: after it the pool is awake. */
static int rest(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)call, (void)phase, (void)begin, (void)end;
    return 0;
}
static const struct nb_kernel waking = {.struct_size = sizeof waking, .name = "waking", .run = rest};

static void run(struct nb_norm_layer *n, const struct nb_kernel *kernel, struct nb_call *call) {
    const struct nb_fp_state state = nb_fp_state();
    lend_scratch(n, kernel, call);
    if (n->pool) nb_pool_run(n->pool, &waking, call);
    const double start = nb_now_s();
    const int code = n->pool ? nb_pool_run(n->pool, kernel, call) : nb_run_in_ranges(kernel, call, 0);
    n->seconds += nb_now_s() - start;
    n->calls++;
    if (n->pool) nb_pool_park(n->pool); /* spinning, they would take the cores from the products */
    nb_fp_state_set(state);
    assert(code == 0);
    (void)code;
}

static void swap(float **a, float **b) {
    float *const t = *a;
    *a = *b;
    *b = t;
}

static void forward_kernel(struct nb_norm_layer *n, float *y, const float *x, int64_t rows, bool training) {
    struct nb_call call = start_call(n, rows, training);
    call.x = x;
    call.y = y;
    call.running_mean_in = n->running_mean;
    call.running_var_in = n->running_var;
    if (is_batchnorm(n) && training) {
        call.running_mean_out = n->next_mean;
        call.running_var_out = n->next_var;
    }
    run(n, n->forward->kernel, &call);
    if (!is_batchnorm(n) || !training) return;
    swap(&n->running_mean, &n->next_mean);
    swap(&n->running_var, &n->next_var);
}

void nb_norm_forward(struct nb_norm_layer *n, float *y, const float *x, int64_t rows, bool training) {
    assert(rows > 0 && rows <= n->rows && y != x);
    if (n->choice.kind == NB_NORM_NONE) {
        memcpy(y, x, (size_t)(rows * n->cols) * sizeof *y);
    } else if (is_kernels(n->choice.kind)) {
        forward_kernel(n, y, x, rows, training);
    } else {
        const struct nb_rescale r = {n->choice.kind == NB_NORM_SCALE, n->choice.eps, rows, n->cols, n->mean, n->rstd};
        const double start = nb_now_s();
        nb_rescale_forward(&r, y, x, n->gamma->value);
        n->seconds += nb_now_s() - start;
        n->calls++;
    }
}

static void add(float *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

void nb_norm_backward(struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t rows) {
    assert(rows > 0 && rows <= n->rows && dx != x && dx != dy);
    if (n->choice.kind == NB_NORM_NONE) {
        memcpy(dx, dy, (size_t)(rows * n->cols) * sizeof *dx);
        return;
    }
    if (is_kernels(n->choice.kind)) {
        struct nb_call call = start_call(n, rows, true);
        call.x = x;
        call.dy = dy;
        call.dx = dx;
        call.dgamma = n->dgamma;
        call.dbeta = n->beta ? n->dbeta : NULL;
        run(n, n->backward->kernel, &call);
    } else {
        const struct nb_rescale r = {n->choice.kind == NB_NORM_SCALE, n->choice.eps, rows, n->cols, n->mean, n->rstd};
        const double start = nb_now_s();
        nb_rescale_backward(&r, dx, n->dgamma, dy, x, n->gamma->value);
        n->seconds += nb_now_s() - start;
        n->calls++;
    }
    add(n->gamma->gradient, n->dgamma, n->cols);
    if (n->beta) add(n->beta->gradient, n->dbeta, n->cols);
}

const float *nb_norm_pass(struct nb_norm_layer *n, float *room, const float *x, int64_t rows, bool training) {
    if (n->choice.kind == NB_NORM_NONE) return x;
    nb_norm_forward(n, room, x, rows, training);
    return room;
}

const float *nb_norm_pass_back(struct nb_norm_layer *n, float *room, const float *dy, const float *x, int64_t rows) {
    if (n->choice.kind == NB_NORM_NONE) return dy;
    nb_norm_backward(n, room, dy, x, rows);
    return room;
}

size_t nb_norm_kept_bytes(const struct nb_norm_layer *n) {
    if (n->choice.kind == NB_NORM_NONE) return 0;
    const int64_t n_statistics = is_batchnorm(n) ? n->cols : n->rows;
    return (size_t)n_statistics * sizeof(float) *
           (n->choice.kind == NB_NORM_RMSNORM || n->choice.kind == NB_NORM_PRMSNORM ? 1 : 2);
}
