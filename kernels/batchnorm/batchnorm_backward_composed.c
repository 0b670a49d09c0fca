// SPDX-License-Identifier: Apache-2.0
/* Gradients of BatchNorm, unfused, each over the whole tensor in f32, as a framework whose BatchNorm is made of its own operators:
 *   xhat = (x - mean) * rstd      dgamma = sum of dy * xhat      dbeta = sum of dy      g = dy * w
 *   dx = ((g - mean of g) - xhat * mean of g * xhat) * rstd, in inference g * rstd
 * In f32 with gamma and beta 16 tensor reads and 9 writes in training. */
#include "kernels/batchnorm/batchnorm.h"
#include "kernels/batchnorm/composed_batchnorm.h"

static step_fn op_mul_channels(const struct nb_call *call) { return is_nchw(call) ? op_mul_row : op_mul_col; }
static struct tensor of_channels(const float *data) { return (struct tensor){.data = (void *)data, .stride = 1}; }

static void parameter_gradients(struct program *p, struct tensor xhat, struct tensor dy) {
    const struct nb_call *call = p->call;
    if (call->dgamma) {
        const struct tensor products = emit_full(p, op_mul_full, dy, xhat, false);
        channel_sum(p, products, 1.0f, of_channels(call->dgamma));
        drop(p, products);
    }
    if (call->dbeta) channel_sum(p, dy, 1.0f, of_channels(call->dbeta));
}
/* g and xhat are dropped. */
static struct tensor project(struct program *p, struct tensor g, struct tensor xhat) {
    const struct tensor mean = channel_mean(p, g);
    struct tensor products = emit_full(p, op_mul_full, g, xhat, false);
    const struct tensor mean_product = channel_mean(p, products);
    drop(p, products);
    g = centre_channels(p, g, mean);
    const struct tensor projection = then(p, op_mul_channels(p->call), xhat, mean_product);
    drop(p, mean_product);
    g = then(p, op_sub_full, g, projection);
    drop(p, projection);
    return g;
}

static void build(struct program *p) {
    const struct nb_call *call = p->call;
    const bool nchw = is_nchw(call), weighted = call->formula.affine != NB_AFFINE_NONE;
    const struct tensor rstd = of_channels(call->rstd);
    struct tensor xhat = nothing;
    if (nchw) p->period = call->c;
    if (!nchw) p->partial_bytes = n_blocks(call) * array_length(call) * (int64_t)sizeof(float);
    if (is_training(call) || call->dgamma) {
        xhat = centre_channels(p, widen(p, tensor_x(p)), of_channels(call->mean));
        xhat = then(p, op_mul_channels(p->call), xhat, rstd);
    }
    struct tensor g = widen(p, tensor_of(call->dy, call->dy_stride));
    parameter_gradients(p, xhat, g);
    if (!call->dx) return;
    if (weighted) g = with_parameter(p, g, op_mul_channels(call), call->gamma, call->c, call->formula.weight_offset);
    if (is_training(call)) g = project(p, g, xhat);
    g = then(p, op_mul_channels(p->call), g, rstd);
    finish(p, narrowed(p, g), call->dx, call->dx_stride);
}

/* In inference a call that wants nothing has no step: one phase without units. */
static int batchnorm_backward_composed_n_phases(const struct nb_call *call) {
    const int n = composed_phases(call);
    return n > 0 ? n : 1;
}
static int batchnorm_backward_composed_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return begin < end ? composed_run(call, phase, begin, end) : 0;
}
/* The product is rounded before it is summed. */
static int64_t batchnorm_backward_composed_chain(const struct nb_call *call) {
    return 1 + (is_nchw(call) ? planes_chain(call) : columns_chain(call));
}

/* x and dy up, dx down */
#define GRADIENT_CAST_LOADS (4 * (F32_TENSOR - 1))
#define GRADIENT_CAST_STORES (5 * (F32_TENSOR - 1))

/* In training. */
NB_KERNEL(batchnorm_backward_composed, .summary = "unfused gradients of BatchNorm with temporaries",
          .op = NB_OP_BATCHNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = {NB_EVERY_GRADIENT}, .loads = 16 * F32_TENSOR + GRADIENT_CAST_LOADS,
          .stores = 9 * F32_TENSOR + GRADIENT_CAST_STORES, .flops = 13, .run = batchnorm_backward_composed_run,
          .applicable = batchnorm_applicable, .n_phases = batchnorm_backward_composed_n_phases,
          .n_units = composed_units, .scratch_bytes = composed_gradient_scratch,
          .chain = batchnorm_backward_composed_chain, .column_chain = batchnorm_backward_composed_chain);
