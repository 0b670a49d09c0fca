// SPDX-License-Identifier: Apache-2.0
/* oneDNN 3.x: layer normalization (RMSNorm by a flag, from 3.9 on) and batch normalization, forward and backward. Its statistics are
 * mean and variance: rstd is turned into the one or the other here, one number for each row or channel. */
#include <math.h>
#include <stdio.h>

#include "kernels/peers/onednn_library.h"
#include "kernels/peers/onednn_primitive.h"

/* ---- a call -------------------------------------------------------------------------------------------------------- */

static dnnl_status_t set_addresses(struct onednn_primitive *p, const struct nb_call *call) {
    for (int i = 0; i < p->n_args; i++) {
        struct argument *a = &p->arguments[i];
        void *address = a->field != 0 ? peer_tensor(call, a->field) : NULL;
        if (!address) address = a->own;
        if (address == a->address) continue;
        dnnl_status_t status = onednn()->dnnl_memory_set_data_handle(p->args[i].memory, address);
        if (status != dnnl_success) return status;
        a->address = address;
    }
    return dnnl_success;
}

/* What PyTorch and the ABI call running statistics: the new value weighs `momentum`, the variance has n/(n-1). */
static void update_running(const struct onednn_primitive *p, const struct nb_call *call) {
    const double n = (double)call->n * (double)call->hw, weight = call->momentum;
    const float *mean = call->mean ? call->mean : p->mean;
    for (int64_t i = 0; i < p->n_stats; i++) {
        const double variance = n > 1 ? p->variance[i] * (n / (n - 1)) : p->variance[i];
        call->running_mean_out[i] = (float)((1 - weight) * call->running_mean_in[i] + weight * mean[i]);
        call->running_var_out[i] = (float)((1 - weight) * call->running_var_in[i] + weight * variance);
    }
}

static void before(struct onednn_primitive *p, const struct nb_call *call) {
    if (p->key.pass != NB_BACKWARD) return;
    const float eps = (float)call->eps;
    for (int64_t i = 0; i < p->n_stats; i++) p->variance[i] = fmaxf(1 / (call->rstd[i] * call->rstd[i]) - eps, 0);
}

static void after(const struct onednn_primitive *p, const struct nb_call *call) {
    if (p->key.pass == NB_BACKWARD || onednn_is_inference(&p->key)) return;
    const float eps = (float)call->eps;
    for (int64_t i = 0; call->rstd && i < p->n_stats; i++) call->rstd[i] = 1 / sqrtf(p->variance[i] + eps);
    if (onednn_is_batchnorm(&p->key) && call->running_mean_out && call->running_var_out) update_running(p, call);
}

int peer_run(const struct peer_variant *v, const struct nb_call *call) {
    const struct onednn *d = onednn();
    int code = onednn_start(call->n_threads > 0 ? call->n_threads : 1);
    if (code != 0) return code;
    struct onednn_primitive *p = onednn_find(v, call);
    if (!p) return dnnl_out_of_memory;
    if (p->desc && !p->primitive) p->status = onednn_make(p);
    if (p->status == dnnl_success) p->status = set_addresses(p, call);
    if (p->status != dnnl_success) return (int)p->status;
    before(p, call);
    dnnl_status_t status = d->dnnl_primitive_execute(p->primitive, d->stream, p->n_args, p->args);
    if (status == dnnl_success) status = d->dnnl_stream_wait(d->stream);
    if (status == dnnl_success) after(p, call);
    return (int)status;
}

/* ---- what it says of itself ---------------------------------------------------------------------------------------- */

const char *peer_applicable(const struct peer_variant *v, const struct nb_call *call) {
    static char reason[200];
    if (call->x_stride != call->cols) return "oneDNN's normalization does not heed the stride of rows";
    int code = onednn_start(call->n_threads > 0 ? call->n_threads : 1);
    const struct onednn_primitive *p = code == 0 ? onednn_find(v, call) : NULL;
    if (p && p->desc) return NULL;
    if (p && (p->status == dnnl_unimplemented || v->op == NB_OP_RMSNORM))
        snprintf(reason, sizeof reason, "%.100s does not implement it%s", onednn()->version,
                 v->op == NB_OP_RMSNORM ? " (RMSNorm comes with 3.9)" : "");
    else
        snprintf(reason, sizeof reason, "%.100s refuses it with status %d", onednn()->version,
                 p      ? (int)p->status
                 : code ? code
                        : (int)dnnl_out_of_memory);
    return reason;
}

const char *peer_implementation(const struct peer_variant *v, const struct nb_call *call) {
    const struct onednn_primitive *p = onednn()->engine ? onednn_find(v, call) : NULL;
    return p ? p->implementation : NULL;
}

const char *peer_version(void) { return onednn()->version; }

int peer_use(const char *library, char *reason, size_t n) { return onednn_load(library, reason, n); }

int peer_open(int n_threads) { return onednn_start(n_threads); }

void peer_close(void) {
    onednn_forget_all();
    onednn_stop();
}

/* Parameters are f32 whatever the dtype. The library's documentation names no order of its sums: taken as sequential. */
void peer_describe(const struct peer_variant *v, struct nb_kernel *kernel) {
    const bool back = v->pass == NB_BACKWARD;
    kernel->summary = back ? "oneDNN primitive, backward" : "oneDNN primitive";
    kernel->variance = v->op == NB_OP_RMSNORM ? NB_VAR_NONE : NB_VAR_TWOPASS;
    kernel->flags = NB_FLAG_ALLOCATES | NB_FLAG_OWN_THREADS;
    kernel->formulas = (struct nb_formulas){
        .roots = 1u << NB_ROOT_MUL_RECIP, .affines = 7, .params = 1u << NB_PARAM_F32 | (v->dtype == NB_F32 ? 2u : 0)};
    kernel->loads = v->op == NB_OP_BATCHNORM ? 3 : 2;
    kernel->stores = 1;
    kernel->flops = back ? 9 : 6;
}
