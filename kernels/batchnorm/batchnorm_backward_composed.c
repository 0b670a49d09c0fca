// SPDX-License-Identifier: Apache-2.0
/* Gradients of BatchNorm op by op, each over the whole tensor in f32, as a framework whose BatchNorm is made of its own operators:
 *   xhat = (x - mean) * rstd      dgamma = sum of dy * xhat      dbeta = sum of dy      g = dy * w
 *   dx = ((g - mean of g) - xhat * mean of g * xhat) * rstd, in inference g * rstd
 * In f32 with gamma and beta 16 tensor reads and 9 writes in training. */
#include "kernels/batchnorm/batchnorm.h"
#include "kernels/batchnorm/composed_batchnorm.h"

/* t is dropped. */
static struct tensor then(struct program *p, step_fn run, struct tensor t, struct tensor b) {
    const struct tensor result = emit_full(p, run, t, b, false);
    drop(p, t);
    return result;
}
static struct tensor multiply_channels(struct program *p, struct tensor t, struct tensor by) {
    return then(p, is_nchw(p->call) ? op_mul_row : op_mul_col, t, by);
}
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
    const struct tensor projection = multiply_channels(p, xhat, mean_product);
    drop(p, mean_product);
    g = then(p, op_sub_full, g, projection);
    drop(p, projection);
    return g;
}
/* The step that was emitted last writes dx. */
static void finish_gradient(struct program *p, struct tensor result) {
    drop(p, result);
    p->last_slot = 0;
    if (p->wanted != p->n_steps - 1) return;
    p->step.dst =
        (struct tensor){.data = p->call->dx, .stride = p->call->dx_stride, .narrow = result.narrow, .full = true};
}

static void build(struct program *p) {
    const struct nb_call *call = p->call;
    const bool nchw = is_nchw(call), weighted = call->formula.affine != NB_AFFINE_NONE;
    const struct tensor rstd = of_channels(call->rstd);
    struct tensor g = {.data = (void *)call->dy, .stride = call->dy_stride, .narrow = x_is_narrow, .full = true};
    struct tensor xhat = nothing;
    if (nchw) p->period = call->c;
    if (!nchw) p->partial_bytes = n_blocks(call) * array_length(call) * (int64_t)sizeof(float);
    if (is_training(call) || call->dgamma) {
        xhat = centre_channels(p, widen(p, tensor_x(p)), of_channels(call->mean));
        xhat = multiply_channels(p, xhat, rstd);
    }
    g = widen(p, g);
    parameter_gradients(p, xhat, g);
    if (!call->dx) return;
    if (weighted) {
        const struct tensor gamma = parameter(p, call->gamma, call->c, call->formula.weight_offset, false);
        g = multiply_channels(p, g, gamma);
        drop(p, gamma);
    }
    if (is_training(call)) g = project(p, g, xhat);
    g = multiply_channels(p, g, rstd);
    if (x_is_narrow) {
        const struct tensor wide = g;
        g = emit_full(p, op_cast, wide, nothing, true);
        drop(p, wide);
    }
    finish_gradient(p, g);
}

/* Called before the outputs are known: enough for all of them. */
static size_t batchnorm_backward_composed_scratch_bytes(const struct nb_call *call) {
    struct nb_call all = *call;
    float any;
    all.dx = all.dgamma = all.dbeta = &any;
    return composed_scratch(&all);
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
NB_KERNEL(batchnorm_backward_composed, .summary = "gradients of BatchNorm op by op with temporaries",
          .op = NB_OP_BATCHNORM, .pass = NB_BACKWARD, .style = NB_COMPOSED, .stats = NB_STATS_KEEPDIM,
          .formulas = {NB_EVERY_GRADIENT}, .loads = 16 * F32_TENSOR + GRADIENT_CAST_LOADS,
          .stores = 9 * F32_TENSOR + GRADIENT_CAST_STORES, .flops = 13, .run = batchnorm_backward_composed_run,
          .applicable = batchnorm_applicable, .n_phases = batchnorm_backward_composed_n_phases,
          .n_units = composed_units, .scratch_bytes = batchnorm_backward_composed_scratch_bytes,
          .chain = batchnorm_backward_composed_chain, .column_chain = batchnorm_backward_composed_chain);
