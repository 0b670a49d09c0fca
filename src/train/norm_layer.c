// SPDX-License-Identifier: Apache-2.0
/* A normalization layer: kernels of the registry called through their ABI and timed around the call alone; what no kernel does, re-centring
 * and re-scaling alone, is written here. */
#include "src/train/norm_layer.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/core/tuning.h"
#include "src/measure/fp_state.h"
#include "src/measure/pool.h"
#include "src/train/tensor.h"

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

/* In f32, at the widest width of this machine that takes the call; null after nb_error. */
static const struct nb_entry *norm_kernel_find(const struct nb_norm_choice *choice, enum nb_pass pass,
                                               const struct nb_call *call) {
    for (int i = 0; i < N_WAYS; i++) {
        const char *way = ways[choice->style][pass][i];
        char name[64];
        if (!way) break;
        snprintf(name, sizeof name, "%s_%s", ops[choice->kind], way);
        const struct nb_entry *e = nb_registry_widest(name, NB_F32);
        if (e && !nb_kernel_refuses(e->kernel, &call->formula) && !nb_kernel_applicable(e->kernel, call)) return e;
    }
    nb_error("no %s kernel %s_%s for rows of %lld in f32 runs here: `normbench list kernels` shows what there is",
             nb_style_names[choice->style], ops[choice->kind], ways[choice->style][pass][0], (long long)call->cols);
    return NULL;
}

/* ---- re-centring and re-scaling alone, a row at a time; sums in double ---- */

/* Half of a LayerNorm: re-centring alone, y = (x - mean) gamma, or re-scaling alone, y = x / sqrt(var + eps) gamma with the variance
 * about the mean, which itself stays. For g = dy gamma, means over the row and r = 1 / sqrt(var + eps):
 *   centred  dx = g - mean(g)
 *   scaled   dx = r g - (x - mean) r^3 mean(g x) */

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

static void rescale_forward(const struct nb_norm_layer *n, float *y, const float *x, int64_t rows) {
    const bool scales = n->choice.kind == NB_NORM_SCALE;
    const float *gamma = n->gamma->value;
    for (int64_t row = n->first; row < n->first + rows; row++, x += n->cols, y += n->cols) {
        const double mean = mean_of(x, n->cols);
        const float rstd = scales ? (float)rstd_of(x, mean, n->choice.eps, n->cols) : 1;
        const float taken = scales ? 0 : (float)mean;
        for (int64_t i = 0; i < n->cols; i++) y[i] = (x[i] - taken) * rstd * gamma[i];
        n->mean[row] = (float)mean;
        n->rstd[row] = rstd;
    }
}

static void rescale_row_back(const struct nb_norm_layer *n, int64_t row, float *dx, const float *dy, const float *x) {
    const float mean = n->mean[row], rstd = n->rstd[row], *gamma = n->gamma->value;
    double sum_g = 0, sum_gx = 0;
    for (int64_t i = 0; i < n->cols; i++) {
        const double g = (double)dy[i] * (double)gamma[i];
        sum_g += g;
        sum_gx += g * x[i];
    }
    const float mean_g = (float)(sum_g / (double)n->cols);
    const float pull = (float)(sum_gx / (double)n->cols * rstd * rstd * rstd);
    for (int64_t i = 0; i < n->cols; i++) {
        const float g = dy[i] * gamma[i];
        dx[i] = n->choice.kind == NB_NORM_SCALE ? rstd * g - (x[i] - mean) * pull : g - mean_g;
    }
}

/* Overwrites dx and n->dgamma. */
static void rescale_backward(const struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t rows) {
    memset(n->dgamma, 0, (size_t)n->cols * sizeof *n->dgamma);
    for (int64_t row = n->first; row < n->first + rows; row++, x += n->cols, dy += n->cols, dx += n->cols) {
        const float taken = n->choice.kind == NB_NORM_SCALE ? 0 : n->mean[row], rstd = n->rstd[row];
        rescale_row_back(n, row, dx, dy, x);
        for (int64_t i = 0; i < n->cols; i++) n->dgamma[i] += dy[i] * (x[i] - taken) * rstd;
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
                           .mean = centres(n->choice.kind) ? n->mean + n->first + n->set_at : NULL,
                           .rstd = n->rstd + n->first + n->set_at,
                           .tuning = nb_tuning_used()};
    call.x_stride = call.y_stride = call.dy_stride = call.dx_stride = n->cols;
    return call;
}

/* ---- set-up ---- */

static void add_parameters(struct nb_norm_layer *n, const char *name) {
    struct nb_parameters *all = &n->model->parameters;
    n->gamma = nb_parameter_vector(all, name, "gamma", all_columns(n), 1);
    n->gamma->frozen = n->choice.affine == NB_NORM_FROZEN;
    if (!centres(n->choice.kind)) return;
    n->beta = nb_parameter_vector(all, name, "beta", all_columns(n), 0);
    n->beta->frozen = n->gamma->frozen;
}

static float *columns(const struct nb_norm_layer *n) { return nb_arena_take(&n->model->passing, all_columns(n)); }

static void allocate(struct nb_norm_layer *n) {
    struct nb_arena *kept = &n->model->kept, *passing = &n->model->passing;
    const int64_t n_statistics = is_batchnorm(n) ? all_columns(n) : n->rows;
    const bool without_mean = n->choice.kind == NB_NORM_RMSNORM || n->choice.kind == NB_NORM_PRMSNORM;
    n->mean = without_mean ? NULL : nb_arena_take(kept, n_statistics);
    n->rstd = nb_arena_take(kept, n_statistics);
    n->dgamma = columns(n);
    n->dbeta = columns(n);
    if (!is_batchnorm(n)) return;
    n->running_mean = columns(n);
    n->running_var = columns(n);
    n->next_mean = columns(n);
    n->next_var = columns(n);
    for (int64_t i = 0; i < all_columns(n); i++) n->running_var[i] = 1;
    if (!has_sets(n)) return;
    n->which = nb_arena_take_bytes(passing, (size_t)n->rows * sizeof *n->which);
    for (int i = 0; i < 3; i++) n->packed[i] = nb_arena_take(passing, n->rows * n->cols);
}

static void take_scratch(struct nb_norm_layer *n, const struct nb_call *call) {
    const size_t forward = nb_kernel_scratch_bytes(n->forward->kernel, call),
                 backward = nb_kernel_scratch_bytes(n->backward->kernel, call);
    n->scratch_bytes = forward > backward ? forward : backward;
    if (n->scratch_bytes > 0) n->scratch = nb_arena_take_bytes(&n->model->passing, n->scratch_bytes);
}

void nb_norm_layer_init(struct nb_norm_layer *n, struct nb_model *model, const char *name, int64_t rows, int64_t cols) {
    const struct nb_norm_choice *choice = &model->options.norm;
    assert(n && name && rows > 0 && cols > 0 && choice->kind < NB_N_NORM_KINDS);
    *n = (struct nb_norm_layer){.choice = *choice, .model = model, .rows = rows, .cols = cols};
    if (choice->kind == NB_NORM_NONE || model->failed) return;
    add_parameters(n, name);
    allocate(n);
    if (!norm_is_kernel(choice->kind)) return;
    const struct nb_call call = start_call(n, rows, true);
    n->forward = norm_kernel_find(choice, NB_FORWARD, &call);
    n->backward = n->forward ? norm_kernel_find(choice, NB_BACKWARD, &call) : NULL;
    if (n->backward)
        take_scratch(n, &call);
    else
        model->failed = true;
}

/* ---- calls ---- */

/* Does nothing, on every thread: after it the pool is awake. */
static int rest(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)call, (void)phase, (void)begin, (void)end;
    return 0;
}
static const struct nb_kernel waking = {.struct_size = sizeof waking, .name = "waking", .run = rest};

static void count_call(struct nb_model *model, enum nb_pass pass, double seconds, int64_t n_ops) {
    model->norm_seconds[pass] += seconds;
    model->norm_ops[pass] += n_ops;
    model->norm_calls++;
}

static void run_kernel(struct nb_norm_layer *n, const struct nb_kernel *kernel, struct nb_call *call) {
    const struct nb_fp_state state = nb_fp_state();
    struct nb_pool *pool = n->model->pool;
    assert(nb_kernel_scratch_bytes(kernel, call) <= n->scratch_bytes);
    call->scratch = n->scratch;
    if (pool) nb_pool_run(pool, &waking, call);
    const int64_t n_ops = nb_kernel_n_phases(kernel, call); /* composed: an operation each */
    const double start = nb_now_s();
    nb_op(n_ops);
    const int code = pool ? nb_pool_run(pool, kernel, call) : nb_run_in_ranges(kernel, call, 0);
    count_call(n->model, call->dy ? NB_BACKWARD : NB_FORWARD, nb_now_s() - start, n_ops);
    if (pool) nb_pool_park(pool); /* spinning, they would take the cores from the products */
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
    run_kernel(n, n->forward->kernel, &call);
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
    run_kernel(n, n->backward->kernel, &call);
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

/* By loops of this file; dy null: forward. */
static void rescale(struct nb_norm_layer *n, float *out, const float *dy, const float *x, int64_t rows) {
    const double start = nb_now_s();
    nb_op(1);
    if (dy)
        rescale_backward(n, out, dy, x, rows);
    else
        rescale_forward(n, out, x, rows);
    count_call(n->model, dy ? NB_BACKWARD : NB_FORWARD, nb_now_s() - start, 1);
    if (dy) take_parameter_gradients(n);
}

/* dy null: forward. */
static const float *pass(struct nb_norm_layer *n, float *out, const float *dy, const float *x, int64_t rows,
                         bool training) {
    if (has_sets(n))
        run_sets(n, out, dy, x, rows, training);
    else if (!norm_is_kernel(n->choice.kind))
        rescale(n, out, dy, x, rows);
    else if (dy)
        backward_kernel(n, out, dy, x, rows);
    else
        forward_kernel(n, out, x, rows, training);
    nb_round_tensor(out, rows * n->cols, n->model->options.dtype);
    return out;
}

const float *nb_norm_forward(struct nb_norm_layer *n, float *y, const float *x, int64_t first, int64_t rows,
                             bool training) {
    if (n->choice.kind == NB_NORM_NONE) return x;
    assert(first >= 0 && rows > 0 && first + rows <= n->rows && (first == 0 || !is_batchnorm(n)) && y != x);
    n->first = first;
    return pass(n, y, NULL, x, rows, training);
}

const float *nb_norm_backward(struct nb_norm_layer *n, float *dx, const float *dy, const float *x, int64_t first,
                              int64_t rows) {
    if (n->choice.kind == NB_NORM_NONE) return dy;
    assert(first >= 0 && rows > 0 && first + rows <= n->rows && (first == 0 || !is_batchnorm(n)) && dx != x &&
           dx != dy);
    n->first = first;
    return pass(n, dx, dy, x, rows, true);
}
