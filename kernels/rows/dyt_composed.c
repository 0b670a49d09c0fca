// SPDX-License-Identifier: Apache-2.0
/* DyT, unfused (Zhu et al. 2025): alpha * x, tanh, * gamma, + beta. Nothing is reduced; root and eps mean nothing to it. In f32
 * with gamma and beta 4 tensor reads and 4 writes where a fused kernel needs one of each. Errors as of dyt_fused, and a
 * rounding more where gamma and beta are applied apart. */
#include "kernels/shared/composed_norm.h"
#include "kernels/shared/tanh.h"

static void tanh_row(float *dst, const float *a, int64_t n) {
    int64_t i = 0;
    for (; i + NB_LANES <= n; i += NB_LANES) vec_store_f32(dst + i, vec_tanh(vec_load_f32(a + i)));
    if (i < n) vec_store_f32_tail(dst + i, vec_tanh(vec_load_f32_tail(a + i, n - i)), n - i);
}
/* From f32 to f32: a temporary, or y, whose rows may be apart. */
static void op_tanh(const struct step *s, int64_t begin, int64_t end) {
    if (s->dst.stride == s->cols) {
        tanh_row(tensor_row(s->dst, begin, false), tensor_row(s->a, begin, false), (end - begin) * s->cols);
        return;
    }
    for (int64_t r = begin; r < end; r++) tanh_row(tensor_row(s->dst, r, false), tensor_row(s->a, r, false), s->cols);
}

static void build(struct program *p) {
    struct tensor x = widen(p, tensor_x(p));
    const int64_t rows = p->call->rows, cols = p->call->cols;
    const struct tensor scaled = new_full(p, false, cols);
    if (append(p, scaled)) {
        p->step = (struct step){op_mul_scalar, .dst = scaled, .a = x, .n_units = rows, .cols = cols};
        p->step.scalar = (float)p->call->alpha;
    }
    drop(p, x);
    finish(p, affine(p, then(p, op_tanh, scaled, nothing)), p->call->y, p->call->y_stride);
}

/* As dyt_fused. */
static int64_t dyt_composed_chain(const struct nb_call *call) { return 1; }

NB_KERNEL(dyt_composed, .summary = "unfused DyT with temporaries, as an eager framework", .op = NB_OP_DYT,
          .style = NB_COMPOSED, .formulas = {NB_EVERY_FORMULA}, .loads = 4 * F32_TENSOR + CAST_LOADS,
          .stores = 4 * F32_TENSOR + CAST_STORES, .flops = 28, .scratch_bytes = composed_scratch,
          .chain = dyt_composed_chain, COMPOSED_KERNEL);
