// SPDX-License-Identifier: Apache-2.0
/* Which tensors a case's call takes, and where they are. */
#include <assert.h>

#include "src/measure/buffers.h"

const struct nb_tensor *nb_buffers_result(const struct nb_buffers *b, const struct nb_case *c) {
    return &b->tensors[c->pass == NB_BACKWARD ? NB_T_DX : NB_T_Y];
}

static uint32_t backward_wants(const struct nb_case *c) {
    uint32_t wants = 1u << NB_T_X | 1u << NB_T_DY | 1u << NB_T_DX;
    if (nb_op_adds(c->op) || c->op == NB_OP_COPY) wants |= 1u << NB_T_DRESIDUAL_OUT;
    if (c->op == NB_OP_COPY) return wants;
    if (c->formula.affine != NB_AFFINE_NONE)
        wants |= 1u << NB_T_DGAMMA | 1u << (c->formula.param == NB_PARAM_X ? NB_T_GAMMA_X : NB_T_GAMMA_F32);
    if (c->formula.affine == NB_AFFINE_GAMMA_BETA) wants |= 1u << NB_T_DBETA;
    if (c->op == NB_OP_DYT) return wants | 1u << NB_T_DALPHA;
    return wants | 1u << NB_T_SAVED_RSTD | (nb_op_centres(c->op) ? 1u << NB_T_SAVED_MEAN : 0);
}

uint32_t nb_buffers_wants(const struct nb_case *c, bool with_stats) {
    if (c->pass == NB_BACKWARD) return backward_wants(c);
    uint32_t wants = 1u << NB_T_X | 1u << NB_T_Y;
    if (nb_op_adds(c->op) || c->op == NB_OP_COPY) wants |= 1u << NB_T_RESIDUAL | 1u << NB_T_RESIDUAL_OUT;
    if (c->op == NB_OP_COPY) return wants;
    bool in_x = c->formula.param == NB_PARAM_X;
    if (c->formula.affine != NB_AFFINE_NONE) wants |= 1u << (in_x ? NB_T_GAMMA_X : NB_T_GAMMA_F32);
    if (c->formula.affine == NB_AFFINE_GAMMA_BETA) wants |= 1u << (in_x ? NB_T_BETA_X : NB_T_BETA_F32);
    if (c->op == NB_OP_BATCHNORM) {
        wants |= 1u << NB_T_RUNNING_MEAN_IN | 1u << NB_T_RUNNING_VAR_IN;
        if (c->mode == NB_TRAINING) wants |= 1u << NB_T_RUNNING_MEAN_OUT | 1u << NB_T_RUNNING_VAR_OUT;
    }
    if (with_stats && c->op != NB_OP_DYT) wants |= 1u << NB_T_MEAN | 1u << NB_T_RSTD;
    return wants;
}

/* ---- the call ---- */

/* What a case is given of the tensors that hold a row for each mathematics. */
static float *saved_for(const struct nb_buffers *b, const struct nb_case *c, enum nb_tensor_id id) {
    const struct nb_tensor *t = &b->tensors[id];
    if (!t->data || c->op == NB_OP_COPY || c->op == NB_OP_DYT) return NULL;
    const int at = b->request.saved == NB_ALL_SAVED ? nb_inputs_saved(b->in, c) : 0;
    assert(at >= 0 && at < t->rows);
    return nb_tensor_row(t, at);
}

/* What the formula has no gradient of is not wanted, though another case of the same buffers may want it. */
static void attach_backward(const struct nb_buffers *b, const struct nb_case *c, struct nb_call *call) {
    const struct nb_tensor *t = b->tensors;
    const bool adds = nb_op_adds(c->op) || c->op == NB_OP_COPY;
    call->dy = t[NB_T_DY].data;
    call->dy_stride = t[NB_T_DY].stride;
    call->dresidual_out = adds ? t[NB_T_DRESIDUAL_OUT].data : NULL;
    call->dresidual_out_stride = t[NB_T_DRESIDUAL_OUT].stride;
    call->dx = t[NB_T_DX].data;
    call->dx_stride = t[NB_T_DX].stride;
    call->dgamma = c->formula.affine != NB_AFFINE_NONE ? t[NB_T_DGAMMA].data : NULL;
    call->dbeta = c->formula.affine == NB_AFFINE_GAMMA_BETA ? t[NB_T_DBETA].data : NULL;
    call->dalpha = c->op == NB_OP_DYT ? t[NB_T_DALPHA].data : NULL;
    call->mean = nb_op_centres(c->op) ? saved_for(b, c, NB_T_SAVED_MEAN) : NULL;
    call->rstd = saved_for(b, c, NB_T_SAVED_RSTD);
}

static void attach_forward(const struct nb_buffers *b, const struct nb_case *c, struct nb_call *call) {
    const struct nb_tensor *t = b->tensors;
    const bool in_x = c->formula.param == NB_PARAM_X;
    call->residual = t[NB_T_RESIDUAL].data;
    call->residual_stride = t[NB_T_RESIDUAL].stride;
    call->beta = c->formula.affine == NB_AFFINE_GAMMA_BETA ? t[in_x ? NB_T_BETA_X : NB_T_BETA_F32].data : NULL;
    call->y = t[NB_T_Y].data;
    call->y_stride = t[NB_T_Y].stride;
    call->residual_out = t[NB_T_RESIDUAL_OUT].data;
    call->residual_out_stride = t[NB_T_RESIDUAL_OUT].stride;
    call->mean = t[NB_T_MEAN].data;
    call->rstd = t[NB_T_RSTD].data;
    call->running_mean_in = t[NB_T_RUNNING_MEAN_IN].data;
    call->running_var_in = t[NB_T_RUNNING_VAR_IN].data;
    call->running_mean_out = c->mode == NB_TRAINING ? t[NB_T_RUNNING_MEAN_OUT].data : NULL;
    call->running_var_out = c->mode == NB_TRAINING ? t[NB_T_RUNNING_VAR_OUT].data : NULL;
}

void nb_buffers_attach(const struct nb_buffers *b, const struct nb_case *c, struct nb_call *call) {
    const struct nb_tensor *t = b->tensors;
    const bool in_x = c->formula.param == NB_PARAM_X, affine = c->formula.affine != NB_AFFINE_NONE;
    call->x = t[NB_T_X].data;
    call->x_stride = t[NB_T_X].stride;
    call->gamma = affine ? t[in_x ? NB_T_GAMMA_X : NB_T_GAMMA_F32].data : NULL;
    call->scratch = t[NB_T_SCRATCH].data;
    if (c->pass == NB_BACKWARD)
        attach_backward(b, c, call);
    else
        attach_forward(b, c, call);
}
