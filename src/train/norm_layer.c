// SPDX-License-Identifier: Apache-2.0
/* A normalization layer: kernels of the registry called through their ABI and timed around the call alone; what no kernel does, re-centring
 * and re-scaling alone, is written here. */
#include "src/train/norm_layer.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/core/tuning.h"
#include "src/measure/fp_state.h"

static int64_t row_sets_count(const struct nb_row_sets *s) { return s->by_position ? s->sequence : 1; }

/* The rows of set number i, ascending, into which (long enough for all). Returns how many. */
static int64_t row_sets_rows(const struct nb_row_sets *s, int64_t i, int64_t *which) {
    int64_t n = 0;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t t = 0; t < s->sequence; t++)
            if ((!s->by_position || t == i) && (!s->masked || t < s->lengths[b])) which[n++] = b * s->sequence + t;
    return n;
}

static void rows_gather(float *packed, const float *x, const int64_t *which, int64_t n, int64_t cols) {
    for (int64_t r = 0; r < n; r++) memcpy(packed + r * cols, x + which[r] * cols, (size_t)cols * sizeof *x);
}

static void rows_scatter(float *y, const float *packed, const int64_t *which, int64_t n, int64_t cols) {
    for (int64_t r = 0; r < n; r++) memcpy(y + which[r] * cols, packed + r * cols, (size_t)cols * sizeof *y);
}

/* ---- the kernel of a layer: found by name and style, the widest first ---- */

static const char *const ops[NB_N_NORM_KINDS] = {[NB_NORM_LAYERNORM] = "layernorm",
                                                 [NB_NORM_RMSNORM] = "rmsnorm",
                                                 [NB_NORM_PRMSNORM] = "prmsnorm",
                                                 [NB_NORM_BATCHNORM] = "batchnorm"};
enum { N_WAYS = 2 };
/* In the order of preference. A style takes no kernel of another style in its place: what it costs is what is asked. */
static const char *const ways[NB_N_STYLES][NB_N_PASSES][N_WAYS] = {
    [NB_FUSED] = {{"fast", "twopass"}, {"backward_fast", "backward_plain"}},
    [NB_COMPOSED] = {{"composed"}, {"backward_composed"}}};

/* Is the kind a kernel's? Not none, centre, scale. */
static bool norm_is_kernel(enum nb_norm_kind kind) { return ops[kind] != NULL; }

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

/* In f32, at the widest width of this machine that takes the call; null after nb_error. */
static const struct nb_entry *norm_kernel_find(const struct nb_norm_choice *choice, enum nb_pass pass,
                                               const struct nb_call *call) {
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

/* ---- re-centring and re-scaling alone, a row at a time; sums in double ---- */

/* Half of a LayerNorm: re-centring alone, y = (x - mean) gamma, or re-scaling alone, y = x / sqrt(var + eps) gamma with the variance
 * about the mean, which itself stays. For g = dy gamma, means over the row and r = 1 / sqrt(var + eps):
 *   centred  dx = g - mean(g)
 *   scaled   dx = r g - (x - mean) r^3 mean(g x) */

struct rescale {
    bool scales; /* else it centres */
    double eps;
    int64_t rows, cols;
    float *mean, *rstd; /* per row: written by forward, read by backward */
};

static double mean_of(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static double rstd_of(const float *x, double mean, double eps, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return 1 / sqrt(sum / (double)n + eps);
}

static void rescale_forward(const struct rescale *r, float *y, const float *x, const float *gamma) {
    for (int64_t row = 0; row < r->rows; row++, x += r->cols, y += r->cols) {
        const double mean = mean_of(x, r->cols);
        const float rstd = r->scales ? (float)rstd_of(x, mean, r->eps, r->cols) : 1;
        const float taken = r->scales ? 0 : (float)mean;
        for (int64_t i = 0; i < r->cols; i++) y[i] = (x[i] - taken) * rstd * gamma[i];
        r->mean[row] = (float)mean;
        r->rstd[row] = rstd;
    }
}

static void row_back(const struct rescale *r, int64_t row, float *dx, const float *dy, const float *x,
                     const float *gamma) {
    const float mean = r->mean[row], rstd = r->rstd[row];
    double sum_g = 0, sum_gx = 0;
    for (int64_t i = 0; i < r->cols; i++) {
        const double g = (double)dy[i] * (double)gamma[i];
        sum_g += g;
        sum_gx += g * x[i];
    }
    const float mean_g = (float)(sum_g / (double)r->cols);
    const float pull = (float)(sum_gx / (double)r->cols * rstd * rstd * rstd);
    for (int64_t i = 0; i < r->cols; i++) {
        const float g = dy[i] * gamma[i];
        dx[i] = r->scales ? rstd * g - (x[i] - mean) * pull : g - mean_g;
    }
}

/* Overwrites dx and dgamma. */
static void rescale_backward(const struct rescale *r, float *dx, float *dgamma, const float *dy, const float *x,
                             const float *gamma) {
    memset(dgamma, 0, (size_t)r->cols * sizeof *dgamma);
    for (int64_t row = 0; row < r->rows; row++) {
        const int64_t at = row * r->cols;
        const float taken = r->scales ? 0 : r->mean[row], rstd = r->rstd[row];
        row_back(r, row, dx + at, dy + at, x + at, gamma);
        for (int64_t i = 0; i < r->cols; i++) dgamma[i] += dy[at + i] * (x[at + i] - taken) * rstd;
    }
}

/* ---- the layer ---- */

static const double RUNNING_MOMENTUM = 0.1; /* as PyTorch */

static bool centres(enum nb_norm_kind kind) { return kind == NB_NORM_LAYERNORM || kind == NB_NORM_BATCHNORM; }
static bool is_batchnorm(const struct nb_norm_layer *n) { return n->choice.kind == NB_NORM_BATCHNORM; }

/* ceil(n p), as the paper; the small number keeps 0.0625 * 512 at 32 where p is not exact. */
static int64_t seen_by_statistics(const struct nb_norm_layer *n) {
    if (n->choice.kind != NB_NORM_PRMSNORM) return n->cols;
    const int64_t k = (int64_t)ceil(n->choice.partial * (double)n->cols - 1e-9);
    return k < 1 ? 1 : k > n->cols ? n->cols : k;
}

/* BatchNorm: are the rows taken in sets? Else all together. */
static bool has_sets(const struct nb_norm_layer *n) {
    const struct nb_row_sets *sets = n->choice.sets;
    return is_batchnorm(n) && sets && (sets->masked || sets->by_position);
}
/* Parameters and statistics of all sets. */
static int64_t all_columns(const struct nb_norm_layer *n) {
    return n->cols * (has_sets(n) ? row_sets_count(n->choice.sets) : 1);
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
                           .gamma = n->gamma->value + n->set_at,
                           .beta = n->beta ? n->beta->value + n->set_at : NULL,
                           .mean = centres(n->choice.kind) ? n->mean + n->set_at : NULL,
                           .rstd = n->rstd + n->set_at,
                           .tuning = nb_tuning_used()};
    call.x_stride = call.y_stride = call.dy_stride = call.dx_stride = n->cols;
    return call;
}

/* ---- set-up ---- */

static void add_parameters(struct nb_norm_layer *n, const char *name, struct nb_parameters *parameters) {
    char full[48];
    const bool frozen = n->choice.affine == NB_NORM_FROZEN;
    snprintf(full, sizeof full, "%s.gamma", name);
    n->gamma = nb_parameter_add(parameters, full, 1, all_columns(n), false);
    nb_parameter_fill(n->gamma, 1);
    n->gamma->frozen = frozen;
    if (!centres(n->choice.kind)) return;
    snprintf(full, sizeof full, "%s.beta", name);
    n->beta = nb_parameter_add(parameters, full, 1, all_columns(n), false);
    n->beta->frozen = frozen;
}

static float *columns(const struct nb_norm_layer *n) {
    return nb_alloc((unsigned long long)all_columns(n), sizeof(float));
}

static void allocate(struct nb_norm_layer *n) {
    const int64_t n_statistics = is_batchnorm(n) ? all_columns(n) : n->rows;
    n->mean = nb_alloc((unsigned long long)n_statistics, sizeof(float));
    n->rstd = nb_alloc((unsigned long long)n_statistics, sizeof(float));
    n->dgamma = columns(n);
    n->dbeta = columns(n);
    if (!is_batchnorm(n)) return;
    n->running_mean = columns(n);
    n->running_var = columns(n);
    n->next_mean = columns(n);
    n->next_var = columns(n);
    for (int64_t i = 0; i < all_columns(n); i++) n->running_var[i] = 1;
    if (!has_sets(n)) return;
    n->which = nb_alloc((unsigned long long)n->rows, sizeof *n->which);
    for (int i = 0; i < 3; i++) n->packed[i] = nb_alloc((unsigned long long)(n->rows * n->cols), sizeof(float));
}

int nb_norm_layer_init(struct nb_norm_layer *n, const char *name, const struct nb_norm_choice *choice, int64_t rows,
                       int64_t cols, struct nb_parameters *parameters, struct nb_pool *pool) {
    assert(n && choice && parameters && rows > 0 && cols > 0);
    assert(rows > 0 && cols > 0 && choice->kind < NB_N_NORM_KINDS);
    *n = (struct nb_norm_layer){.choice = *choice, .rows = rows, .cols = cols, .pool = pool};
    if (choice->kind == NB_NORM_NONE) return 0;
    add_parameters(n, name, parameters);
    allocate(n);
    if (!norm_is_kernel(choice->kind)) return 0;
    const struct nb_call call = start_call(n, rows, true);
    n->forward = norm_kernel_find(choice, NB_FORWARD, &call);
    n->backward = n->forward ? norm_kernel_find(choice, NB_BACKWARD, &call) : NULL;
    if (n->backward) return 0;
    nb_norm_layer_release(n);
    return -1;
}

void nb_norm_layer_release(struct nb_norm_layer *n) {
    float *const owned[] = {n->mean,      n->rstd,     n->dgamma,    n->dbeta,     n->running_mean, n->running_var,
                            n->next_mean, n->next_var, n->packed[0], n->packed[1], n->packed[2]};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) free(owned[i]);
    free(n->which);
    nb_arena_release(&n->scratch);
    *n = (struct nb_norm_layer){0};
}

/* ---- calls ---- */

static void lend_scratch(struct nb_norm_layer *n, const struct nb_kernel *kernel, struct nb_call *call) {
    const size_t bytes = nb_kernel_scratch_bytes(kernel, call);
    if (bytes > n->scratch.bytes) {
        nb_arena_release(&n->scratch);
        n->scratch_start = nb_arena_take(&n->scratch, (int64_t)((bytes + sizeof(float) - 1) / sizeof(float)));
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

static void move_running(struct nb_norm_layer *n) {
    const size_t bytes = (size_t)n->cols * sizeof(float);
    memcpy(n->running_mean + n->set_at, n->next_mean + n->set_at, bytes);
    memcpy(n->running_var + n->set_at, n->next_var + n->set_at, bytes);
}

static void forward_kernel(struct nb_norm_layer *n, float *y, const float *x, int64_t rows, bool training) {
    struct nb_call call = start_call(n, rows, training);
    call.x = x;
    call.y = y;
    if (is_batchnorm(n)) {
        call.running_mean_in = n->running_mean + n->set_at;
        call.running_var_in = n->running_var + n->set_at;
        if (training) call.running_mean_out = n->next_mean + n->set_at;
        if (training) call.running_var_out = n->next_var + n->set_at;
    }
    run(n, n->forward->kernel, &call);
    if (is_batchnorm(n) && training) move_running(n);
}

static void add(float *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void take_parameter_gradients(struct nb_norm_layer *n) {
    add(n->gamma->gradient + n->set_at, n->dgamma, n->cols);
    if (n->beta) add(n->beta->gradient + n->set_at, n->dbeta, n->cols);
}

static void backward_kernel(struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t rows) {
    struct nb_call call = start_call(n, rows, true);
    call.x = x;
    call.dy = dy;
    call.dx = dx;
    call.dgamma = n->dgamma;
    call.dbeta = n->beta ? n->dbeta : NULL;
    run(n, n->backward->kernel, &call);
    take_parameter_gradients(n);
}

/* Set by set; rows of none, which no loss looks at, become 0. dy null: forward. */
static void run_sets(struct nb_norm_layer *n, float *out, const float *dy, const float *x, int64_t rows,
                     bool training) {
    memset(out, 0, (size_t)(rows * n->cols) * sizeof *out);
    for (int64_t i = 0; i < row_sets_count(n->choice.sets); i++) {
        const int64_t count = row_sets_rows(n->choice.sets, i, n->which);
        n->set_at = i * n->cols;
        rows_gather(n->packed[0], x, n->which, count, n->cols);
        if (dy) {
            rows_gather(n->packed[1], dy, n->which, count, n->cols);
            backward_kernel(n, n->packed[2], n->packed[1], n->packed[0], count);
        } else {
            forward_kernel(n, n->packed[2], n->packed[0], count, training);
        }
        rows_scatter(out, n->packed[2], n->which, count, n->cols);
    }
    n->set_at = 0;
}

static struct rescale rescale_of(const struct nb_norm_layer *n, int64_t rows) {
    return (struct rescale){n->choice.kind == NB_NORM_SCALE, n->choice.eps, rows, n->cols, n->mean, n->rstd};
}

void nb_norm_forward(struct nb_norm_layer *n, float *y, const float *x, int64_t rows, bool training) {
    assert(rows > 0 && rows <= n->rows && y != x);
    if (n->choice.kind == NB_NORM_NONE) {
        memcpy(y, x, (size_t)(rows * n->cols) * sizeof *y);
    } else if (has_sets(n)) {
        run_sets(n, y, NULL, x, rows, training);
    } else if (norm_is_kernel(n->choice.kind)) {
        forward_kernel(n, y, x, rows, training);
    } else {
        const struct rescale r = rescale_of(n, rows);
        const double start = nb_now_s();
        rescale_forward(&r, y, x, n->gamma->value);
        n->seconds += nb_now_s() - start;
        n->calls++;
    }
}

void nb_norm_backward(struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t rows) {
    assert(rows > 0 && rows <= n->rows && dx != x && dx != dy);
    if (n->choice.kind == NB_NORM_NONE) {
        memcpy(dx, dy, (size_t)(rows * n->cols) * sizeof *dx);
    } else if (has_sets(n)) {
        run_sets(n, dx, dy, x, rows, true);
    } else if (norm_is_kernel(n->choice.kind)) {
        backward_kernel(n, dx, dy, x, rows);
    } else {
        const struct rescale r = rescale_of(n, rows);
        const double start = nb_now_s();
        rescale_backward(&r, dx, n->dgamma, dy, x, n->gamma->value);
        n->seconds += nb_now_s() - start;
        n->calls++;
        take_parameter_gradients(n);
    }
}

const float *nb_norm_pass(struct nb_norm_layer *n, float *buffer, const float *x, int64_t rows, bool training) {
    if (n->choice.kind == NB_NORM_NONE) return x;
    nb_norm_forward(n, buffer, x, rows, training);
    return buffer;
}

const float *nb_norm_pass_back(struct nb_norm_layer *n, float *buffer, const float *dy, const float *x, int64_t rows) {
    if (n->choice.kind == NB_NORM_NONE) return dy;
    nb_norm_backward(n, buffer, dy, x, rows);
    return buffer;
}

size_t nb_norm_kept_bytes(const struct nb_norm_layer *n) {
    if (n->choice.kind == NB_NORM_NONE) return 0;
    const int64_t n_statistics = is_batchnorm(n) ? all_columns(n) : n->rows;
    return (size_t)n_statistics * sizeof(float) *
           (n->choice.kind == NB_NORM_RMSNORM || n->choice.kind == NB_NORM_PRMSNORM ? 1 : 2);
}
