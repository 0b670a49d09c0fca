// SPDX-License-Identifier: Apache-2.0
/* What a case is called with, and what it must move at least. */
#include "src/core/case.h"

#include <stdio.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/names.h"
#include "src/core/params.h"

bool nb_op_adds(uint32_t op) { return op == NB_OP_ADD_RMSNORM || op == NB_OP_ADD_LAYERNORM; }
/* Of a row, or in BatchNorm of a channel. What is about one row at a time may ask too, since it never has a BatchNorm: searches refuse
 * it (nb_row_score_refuses), sweeps over short rows and the emulator's designs have no such op. */
bool nb_op_centres(uint32_t op) { return op == NB_OP_LAYERNORM || op == NB_OP_ADD_LAYERNORM || op == NB_OP_BATCHNORM; }

void nb_kernel_name(const struct nb_case *c, struct nb_strbuf *out) {
    char suffix[64];
    if (c->kernel[0]) {
        nb_strbuf_add(out, c->kernel);
        return;
    }
    const char *dtype = c->dtype < NB_N_DTYPES ? nb_formats[c->dtype].name : "";
    const char *width = c->width < NB_N_WIDTHS ? nb_width_names[c->width] : "";
    bool lanes = c->width == NB_128 || c->width == NB_256 || c->width == NB_256X || c->width == NB_512;
    if (c->backend != NB_BACKEND_CPU) width = c->backend == NB_BACKEND_CUDA ? "cuda" : "cuda_emulated";
    int n = snprintf(suffix, sizeof suffix, "_%s%s_%s", lanes && c->backend == NB_BACKEND_CPU ? "v" : "", width, dtype);
    size_t len = strnlen(c->variant, sizeof c->variant);
    bool ends = n > 0 && (size_t)n < len && memcmp(c->variant + len - n, suffix, (size_t)n) == 0;
    nb_strbuf_addn(out, c->variant, ends ? len - (size_t)n : len);
}

char *nb_kernel_text(const struct nb_case *c) {
    struct nb_strbuf text = {0};
    nb_kernel_name(c, &text);
    return text.text;
}

/* Tensors beyond this would be a mistake on any machine that this program meets: 2^34 bytes in f32. */
static const int64_t max_elements = (int64_t)1 << 32;

bool nb_case_chooses_dy(const struct nb_case *c) {
    return c->pass == NB_BACKWARD && c->op != NB_OP_COPY && c->dy[0] && strcmp(c->dy, NB_PARAMS_DRAWN) != 0;
}

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
    if (c->backend != NB_BACKEND_CPU && c->threads > 1) return "a GPU's kernel is launched by one thread";
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
