// SPDX-License-Identifier: Apache-2.0
/* A case as data: what its kernel declares, what the kernel is called with, what it must move at least. How a case is
 * written as text is the business of axes.c and key.c. */
#include "src/core/case.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/names.h"

static const char *name_at(const char *const *names, uint32_t i) { return i < nb_names_count(names) ? names[i] : "?"; }

const char *nb_op_name(uint32_t op) { return name_at(nb_op_names, op); }
const char *nb_pass_name(uint32_t pass) { return name_at(nb_pass_names, pass); }
const char *nb_width_name(uint32_t width) { return name_at(nb_width_names, width); }
const char *nb_style_name(uint32_t style) { return name_at(nb_style_names, style); }
const char *nb_stats_name(uint32_t stats) { return name_at(nb_stats_names, stats); }
const char *nb_stats_dtype_name(uint32_t stats_dtype) { return name_at(nb_stats_dtype_names, stats_dtype); }
const char *nb_variance_name(uint32_t variance) { return name_at(nb_variance_names, variance); }
const char *nb_root_name(uint32_t root) { return name_at(nb_root_names, root); }
const char *nb_eps_place_name(uint32_t place) { return name_at(nb_eps_place_names, place); }
const char *nb_layout_name(uint32_t layout) { return name_at(nb_layout_names, layout); }

bool nb_op_adds(uint32_t op) { return op == NB_OP_ADD_RMSNORM || op == NB_OP_ADD_LAYERNORM; }
bool nb_op_centres(uint32_t op) { return op == NB_OP_LAYERNORM || op == NB_OP_ADD_LAYERNORM || op == NB_OP_BATCHNORM; }

void nb_case_set_kernel(struct nb_case *c, const struct nb_kernel *kernel, const char *plugin) {
    assert(kernel->variant);
    snprintf(c->variant, sizeof c->variant, "%s%s%s", plugin ? plugin : "", plugin ? ":" : "", kernel->variant);
    c->is_peer = false;
    c->op = kernel->op;
    c->pass = kernel->pass;
    c->dtype = kernel->dtype;
    c->width = kernel->width;
    c->style = kernel->style;
    c->stats = kernel->stats;
    c->stats_dtype = kernel->stats_dtype;
    c->variance = kernel->variance;
    c->folded = (kernel->flags & NB_FLAG_FOLDED) != 0;
    c->flushes = (kernel->flags & NB_FLAG_FLUSHES) != 0;
    c->copy_loads = kernel->op == NB_OP_COPY ? (double)kernel->loads : 0;
    c->copy_stores = kernel->op == NB_OP_COPY ? (double)kernel->stores : 0;
    nb_case_normalize(c);
}

/* Tensors beyond this would be a mistake on any machine that this program meets: 2^34 bytes in f32. */
static const int64_t max_elements = (int64_t)1 << 32;

const char *nb_case_conflict(const struct nb_case *c) {
    const struct nb_formula *f = &c->formula;
    bool estimate = f->root == NB_ROOT_RSQRT_NR || f->root == NB_ROOT_RSQRT_RAW;
    if (c->shape.layout != NB_ROWS && c->op != NB_OP_BATCHNORM && c->op != NB_OP_COPY)
        return "NCHW and NHWC shapes are for batchnorm";
    if (estimate && f->eps_place == NB_EPS_OUTSIDE)
        return "a reciprocal square root estimate with eps outside the root is not defined";
    if (c->op == NB_OP_PRMSNORM && (c->k < 1 || c->k > c->shape.cols)) return "k is more than the row has";
    if (c->op == NB_OP_BATCHNORM && c->mode == NB_TRAINING && c->shape.n * c->shape.hw < 2)
        return "batchnorm in training needs at least two values per channel";
    if (c->shape.rows > max_elements / (c->shape.cols + c->pad)) return "the padded rows take more than 2^32 elements";
    return NULL;
}

void nb_case_call(const struct nb_case *c, struct nb_call *call) {
    const struct nb_shape *s = &c->shape;
    const int64_t stride = s->cols + c->pad;
    *call = (struct nb_call){.struct_size = sizeof *call,
                             .mode = c->mode,
                             .layout = s->layout,
                             .n_threads = c->threads,
                             .rows = s->rows,
                             .cols = s->cols,
                             .n = s->n,
                             .c = s->c,
                             .hw = s->hw,
                             .k = c->op == NB_OP_PRMSNORM ? c->k : s->cols,
                             .eps = c->eps,
                             .alpha = c->alpha,
                             .momentum = c->momentum,
                             .formula = c->formula,
                             .tuning = c->tuning};
    call->formula.struct_size = sizeof call->formula;
    call->x_stride = call->residual_stride = call->y_stride = call->residual_out_stride = stride;
    call->dy_stride = call->dresidual_out_stride = call->dx_stride = call->dresidual_stride = stride;
}

/* Backward: x (for add_* the saved sum) and the gradients that come in; dx, which is the residual's gradient too. */
void nb_op_tensors(uint32_t op, uint32_t pass, int *n_loads, int *n_stores) {
    *n_loads = (nb_op_adds(op) ? 2 : 1) + (pass == NB_BACKWARD ? 1 : 0);
    *n_stores = nb_op_adds(op) && pass == NB_FORWARD ? 2 : 1;
}

/* Statistics that the op must read or write besides the tensors, in f32 elements. */
static double statistics_elements(const struct nb_case *c) {
    const struct nb_shape *s = &c->shape;
    if (c->op == NB_OP_COPY || c->op == NB_OP_DYT) return 0;
    if (c->op == NB_OP_BATCHNORM && c->pass == NB_FORWARD)
        return (double)s->c * (c->mode == NB_TRAINING ? 4 : 2); /* running mean and variance, in and out */
    if (c->pass == NB_FORWARD) return 0;
    return (double)(c->op == NB_OP_BATCHNORM ? s->c : s->rows) * (nb_op_centres(c->op) ? 2 : 1);
}

static double parameter_bytes(const struct nb_case *c) {
    if (c->op == NB_OP_COPY || c->formula.affine == NB_AFFINE_NONE) return 0;
    const double n = (double)(c->op == NB_OP_BATCHNORM ? c->shape.c : c->shape.cols);
    const double size = c->formula.param == NB_PARAM_X ? (double)nb_formats[c->dtype].bytes : 4;
    const int vectors = c->formula.affine == NB_AFFINE_GAMMA_BETA ? 2 : 1;
    if (c->pass == NB_FORWARD) return n * size * vectors;
    return n * size + n * 4 * vectors; /* gamma is read, dgamma and dbeta are written */
}

double nb_case_bytes(const struct nb_case *c) {
    int loads, stores;
    nb_op_tensors(c->op, c->pass, &loads, &stores);
    double tensors = c->op == NB_OP_COPY ? c->copy_loads + c->copy_stores : loads + stores;
    double tensor_bytes = (double)c->shape.rows * (double)c->shape.cols * (double)nb_formats[c->dtype].bytes;
    return tensors * tensor_bytes + parameter_bytes(c) + 4 * statistics_elements(c);
}
