// SPDX-License-Identifier: Apache-2.0
/* Numbers into buffers of the dtype, one call, numbers out. */
#include "src/claims/norm_call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/measure/fp_state.h"
#include "src/measure/pool.h"
#include "src/plan/inputs.h"

static void *take(unsigned char **at, size_t bytes) {
    void *here = *at;
    *at += (bytes + 127) / 64 * 64; /* a line of its own, and one between */
    return here;
}

static int buffers_init(struct nb_norm_buffers *r, const struct nb_call *call, size_t item, size_t scratch,
                        int64_t n_params) {
    const size_t elements = (size_t)call->rows * (size_t)call->cols, params = (size_t)n_params * sizeof(float);
    const size_t bytes = 2 * (elements * item + 128) + scratch + 6 * (params + 128) + 128;
    r->block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!r->block) return -1;
    unsigned char *at = r->block;
    r->x = take(&at, elements * item);
    r->y = take(&at, elements * item);
    r->gamma = take(&at, params);
    r->beta = take(&at, params);
    r->mean_in = take(&at, params);
    r->var_in = take(&at, params);
    r->mean_out = take(&at, params);
    r->var_out = take(&at, params);
    r->scratch = take(&at, scratch);
    return 0;
}

static void fill(struct nb_norm_buffers *r, const struct nb_norm *n, const struct nb_matrix_view *v, int64_t n_params) {
    for (int64_t i = 0; i < v->rows * v->cols; i++) nb_set(r->x, i, n->dtype, v->x[i]);
    for (int64_t i = 0; i < n_params; i++) {
        r->gamma[i] = v->gamma ? (float)v->gamma[i] : n->formula.weight_offset ? 0 : 1;
        r->beta[i] = v->beta ? (float)v->beta[i] : 0;
        r->mean_in[i] = v->running_mean ? v->running_mean[i] : 0;
        r->var_in[i] = v->running_var ? v->running_var[i] : 1;
    }
}

static int make_case(struct nb_case *c, const struct nb_norm *n, const struct nb_matrix_view *v,
                     const struct nb_entry *entry, char *reason, size_t reason_n) {
    char shape[96];
    nb_case_init(c);
    nb_case_set_entry(c, entry);
    snprintf(shape, sizeof shape, "%lldx%lld", (long long)v->rows, (long long)v->cols);
    if (nb_axis_set(nb_axis_find("shape"), c, n->shape ? n->shape : shape, reason, reason_n) != 0) return -1;
    if (n->k && nb_axis_set(nb_axis_find("k"), c, n->k, reason, reason_n) != 0) return -1;
    c->eps = n->eps;
    c->formula = n->formula;
    c->formula.struct_size = sizeof c->formula;
    c->formula.affine = v->beta ? NB_AFFINE_GAMMA_BETA : v->gamma ? NB_AFFINE_GAMMA : NB_AFFINE_NONE;
    c->formula.param = NB_PARAM_F32;
    c->mode = n->mode;
    if (n->momentum > 0) c->momentum = n->momentum;
    nb_case_normalize(c);
    const char *refused = nb_kernel_refuses(entry->kernel, &c->formula);
    if (!refused) refused = nb_case_conflict(c);
    if (refused) snprintf(reason, reason_n, "%s: %s", n->kernel, refused);
    return refused ? -1 : 0;
}

static void attach(struct nb_call *call, const struct nb_norm_buffers *r) {
    call->x = r->x;
    call->y = r->y;
    call->gamma = r->gamma;
    call->beta = r->beta;
    call->running_mean_in = r->mean_in;
    call->running_var_in = r->var_in;
    call->running_mean_out = r->mean_out;
    call->running_var_out = r->var_out;
    call->scratch = r->scratch;
}

int nb_norm_prepare(struct nb_norm_prepared *p, const struct nb_norm *n, const struct nb_matrix_view *v, char *reason,
                    size_t reason_n) {
    struct nb_case c;
    *p = (struct nb_norm_prepared){.entry = nb_registry_widest(n->kernel, n->dtype)};
    if (!p->entry) {
        snprintf(reason, reason_n, "no kernel %s in %s runs here", n->kernel, nb_formats[n->dtype].name);
        return -1;
    }
    if (make_case(&c, n, v, p->entry, reason, reason_n) != 0) return -1;
    nb_case_call(&c, &p->call);
    const char *refused = nb_kernel_applicable(p->entry->kernel, &p->call);
    if (refused) {
        snprintf(reason, reason_n, "%s: %s", n->kernel, refused);
        return -1;
    }
    p->n_params = nb_case_n_params(&c);
    if (p->call.rows * p->call.cols != v->rows * v->cols ||
        buffers_init(&p->buffers, &p->call, nb_formats[n->dtype].bytes,
                     nb_kernel_scratch_bytes(p->entry->kernel, &p->call), p->n_params) != 0) {
        snprintf(reason, reason_n, "no memory for %lld x %lld", (long long)v->rows, (long long)v->cols);
        return -1;
    }
    fill(&p->buffers, n, v, p->n_params);
    attach(&p->call, &p->buffers);
    return 0;
}

int nb_norm_call(const struct nb_norm_prepared *p) {
    const struct nb_fp_state state = nb_fp_state();
    const int code = nb_run_in_ranges(p->entry->kernel, &p->call, 0);
    nb_fp_state_set(state);
    return code;
}

void nb_norm_prepared_release(struct nb_norm_prepared *p) { free(p->buffers.block); }

/* -1 with the reason written. */
static int norm_run(const struct nb_norm *n, const struct nb_matrix_view *v, double *y, char *reason, size_t reason_n) {
    struct nb_norm_prepared p;
    if (nb_norm_prepare(&p, n, v, reason, reason_n) != 0) return -1;
    const int code = nb_norm_call(&p);
    const size_t bytes = (size_t)p.n_params * sizeof(float);
    const bool trains = p.entry->kernel->op == NB_OP_BATCHNORM && p.call.mode == NB_TRAINING;
    if (code != 0) snprintf(reason, reason_n, "%s returned error %d", p.entry->id, code);
    for (int64_t i = 0; code == 0 && i < v->rows * v->cols; i++) y[i] = nb_get(p.buffers.y, i, n->dtype);
    if (code == 0 && trains && v->running_mean) memcpy(v->running_mean, p.buffers.mean_out, bytes);
    if (code == 0 && trains && v->running_var) memcpy(v->running_var, p.buffers.var_out, bytes);
    nb_norm_prepared_release(&p);
    return code == 0 ? 0 : -1;
}

int nb_norm_found(const struct nb_property_call *call, const struct nb_norm *n, const struct nb_matrix_view *v,
                  double *y, const char *figure) {
    char reason[300];
    if (norm_run(n, v, y, reason, sizeof reason) == 0) return 0;
    nb_findings_add_missing(call->out, figure, "%s", reason);
    return -1;
}

int nb_norm_plain(const struct nb_property_call *call, const char *kernel, double eps, const double *x, int64_t rows,
                  int64_t cols, double *y, const char *figure) {
    const struct nb_norm n = {.kernel = kernel, .eps = eps};
    const struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x};
    if (strcmp(kernel, "none") != 0) return nb_norm_found(call, &n, &v, y, figure);
    memcpy(y, x, (size_t)(rows * cols) * sizeof *y);
    return 0;
}

double *nb_norm_rows(const struct nb_property_call *call, const char *data, int64_t rows, int64_t cols,
                     const char *figure) {
    struct nb_case c;
    struct nb_inputs in = {0};
    const struct nb_entry *entry = nb_registry_widest("rmsnorm_twopass", NB_F32);
    nb_case_init(&c);
    if (entry) nb_case_set_kernel(&c, entry->kernel, NULL);
    snprintf(c.shape.text, sizeof c.shape.text, "%lldx%lld", (long long)rows, (long long)cols);
    c.shape.rows = rows;
    c.shape.cols = cols;
    snprintf(c.data, sizeof c.data, "%s", data);
    c.seed = 1;
    char *refused = nb_inputs_refuse(&c);
    if (refused || nb_inputs_init(&in, &c) != 0) {
        nb_findings_add_missing(call->out, figure, "data %s: %s", data, refused ? refused : "cannot be made");
        free(refused);
        return NULL;
    }
    double *x = nb_alloc((unsigned long long)(rows * cols), sizeof *x);
    for (int64_t i = 0; i < rows * cols; i++) x[i] = nb_get(in.x, i, NB_F32);
    nb_inputs_release(&in);
    return x;
}

double *nb_norm_normal(int64_t n, int64_t all) {
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)all, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = nb_random_normal(random, (uint64_t)i);
    return x;
}

/* ---- figures of rows ---- */

double nb_mean_of(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i];
    return sum / (double)n;
}

double nb_variance_of(const double *v, int64_t n) {
    const double mean = nb_mean_of(v, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (v[i] - mean) * (v[i] - mean);
    return sum / (double)n;
}

double nb_rms_of(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum / (double)n);
}

double nb_largest_difference(const double *a, const double *b, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(a[i] - b[i]);
        if (isnan(d) && !(isnan(a[i]) && isnan(b[i]))) return INFINITY;
        most = d > most ? d : most;
    }
    return most;
}
