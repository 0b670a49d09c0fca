// SPDX-License-Identifier: Apache-2.0
/* PyTorch's CPU operators. Where an operator would allocate its result, the kernel behind it is called with ours: what is measured is at
 * most what at::native_layer_norm and the like take. RMSNorm is made of the same elementary operators as at::rms_norm on a CPU, the
 * last one into our buffer. Tensors over the call's memory are made once for each call's very addresses. */
/* As libtorch was compiled: the kernels' tables have an entry for each. */
#define HAVE_AVX2_CPU_DEFINITION
#define HAVE_AVX512_CPU_DEFINITION
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/native/batch_norm.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/native_batch_norm_native.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/peers/adapter.h"

/* Of the OpenMP that the library brings; null in a build on threads of its own. */
extern "C" __attribute__((weak)) void omp_set_num_threads(int n_threads);

namespace {

enum { THREW = 1, WRONG_THREADS = 2 };

struct views {
    nb_call call; /* compared as bytes: every address and extent stands in it */
    const nb_kernel *kernel = nullptr;
    at::Tensor x, y, dy, dx, gamma, beta, dgamma, dbeta, mean, rstd;
    at::Tensor running_mean, running_var, running_mean_out, running_var_out, variance;
};

at::ScalarType scalar_type(uint32_t dtype) {
    return dtype == NB_F32 ? at::kFloat : dtype == NB_F16 ? at::kHalf : at::kBFloat16;
}

at::Tensor over(const void *data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
    return data ? at::from_blob(const_cast<void *>(data), sizes, strides, at::TensorOptions().dtype(type))
                : at::Tensor();
}

at::Tensor vector(const void *data, int64_t n, at::ScalarType type) { return over(data, {n}, {1}, type); }

bool is_batchnorm(const nb_kernel *k) { return k->op == NB_OP_BATCHNORM; }

at::Tensor matrix(const nb_kernel *k, const nb_call *call, const void *data) {
    const at::ScalarType type = scalar_type(k->dtype);
    if (!is_batchnorm(k)) return over(data, {call->rows, call->cols}, {call->cols, 1}, type);
    const int64_t c = call->c, hw = call->hw;
    if (call->layout == NB_NCHW) return over(data, {call->n, c, hw, 1}, {c * hw, hw, 1, 1}, type);
    return over(data, {call->n, c, hw, 1}, {c * hw, 1, c, c}, type);
}

void make(views &p, const nb_kernel *k, const nb_call *call) {
    const int64_t params = is_batchnorm(k) ? call->c : call->cols, stats = is_batchnorm(k) ? call->c : call->rows;
    const at::ScalarType type = call->formula.param == NB_PARAM_F32 ? at::kFloat : scalar_type(k->dtype);
    std::memcpy(&p.call, call, sizeof p.call);
    p.kernel = k;
    p.x = matrix(k, call, call->x);
    p.y = matrix(k, call, call->y);
    p.dy = matrix(k, call, call->dy);
    p.dx = matrix(k, call, call->dx);
    p.gamma = vector(call->gamma, params, type);
    p.beta = vector(call->beta, params, type);
    p.dgamma = vector(call->dgamma, params, at::kFloat);
    p.dbeta = vector(call->dbeta, params, at::kFloat);
    p.mean = vector(call->mean, stats, at::kFloat);
    p.rstd = vector(call->rstd, stats, at::kFloat);
    p.running_mean = vector(call->running_mean_in, params, at::kFloat);
    p.running_var = vector(call->running_var_in, params, at::kFloat);
    p.running_mean_out = vector(call->running_mean_out, params, at::kFloat);
    p.running_var_out = vector(call->running_var_out, params, at::kFloat);
    if (!is_batchnorm(k)) return;
    p.variance = at::empty({stats}, at::kFloat);
    if (k->pass == NB_BACKWARD) return;
    if (!p.mean.defined()) p.mean = at::empty({stats}, at::kFloat);
    if (!p.rstd.defined()) p.rstd = at::empty({stats}, at::kFloat);
}

/* One place for each call by its addresses; another call in it is made anew. */
views &find(const nb_kernel *k, const nb_call *call) {
    static auto places = std::make_unique<std::array<views, 4096>>();
    const uintptr_t mixed = (reinterpret_cast<uintptr_t>(call->x) >> 6) * 31 +
                            (reinterpret_cast<uintptr_t>(call->y) >> 6) + reinterpret_cast<uintptr_t>(k) / 8;
    views &p = (*places)[(mixed ^ mixed >> 12) % places->size()];
    if (p.kernel != k || std::memcmp(&p.call, call, sizeof p.call) != 0) make(p, k, call);
    return p;
}

/* ---- the operators ------------------------------------------------------------------------------------------------- */

/* Statistics come in the dtype of the parameters: ours are f32. */
bool has_f32_statistics(const nb_kernel *k, const nb_call *call) {
    return k->dtype == NB_F32 || call->formula.affine != NB_AFFINE_NONE;
}

void layernorm(views &p) {
    const nb_call &c = p.call;
    const bool with_stats = p.mean.defined() && p.rstd.defined() && has_f32_statistics(p.kernel, &c);
    at::native::LayerNormKernel(at::kCPU, p.x, p.gamma, p.beta, c.rows, c.cols, c.eps, &p.y,
                                with_stats ? &p.mean : nullptr, with_stats ? &p.rstd : nullptr);
}

void layernorm_backward(views &p) {
    const nb_call &c = p.call;
    at::native::LayerNormBackwardKernel(at::kCPU, p.dy, p.x, p.mean, p.rstd, p.gamma, c.rows, c.cols, &p.dx, &p.dgamma,
                                        &p.dbeta);
}

/* at::rms_norm's own steps (rms_norm_composite). */
void rmsnorm(views &p) {
    const at::Tensor x = p.kernel->dtype == NB_F32 ? p.x : p.x.to(at::kFloat);
    const at::Tensor scale = at::rsqrt(at::pow(x, 2).mean({1}, true).add_(p.call.eps));
    if (p.kernel->dtype == NB_F32 && !p.gamma.defined()) {
        at::mul_out(p.y, x, scale);
        return;
    }
    at::Tensor product = x.mul(scale);
    if (p.kernel->dtype == NB_F32)
        at::mul_out(p.y, product, p.gamma);
    else
        p.y.copy_(p.gamma.defined() ? product.mul(p.gamma) : product);
}

void batchnorm(views &p) {
    const nb_call &c = p.call;
    const bool training = c.mode == NB_TRAINING;
    if (training && p.running_mean_out.defined()) { /* it updates in place */
        std::memcpy(c.running_mean_out, c.running_mean_in, static_cast<size_t>(c.c) * sizeof(float));
        std::memcpy(c.running_var_out, c.running_var_in, static_cast<size_t>(c.c) * sizeof(float));
    }
    at::native::batch_norm_cpu_out(p.x, p.gamma, p.beta, training ? p.running_mean_out : p.running_mean,
                                   training ? p.running_var_out : p.running_var, training, c.momentum, c.eps, p.y,
                                   p.mean, p.rstd);
}

/* In inference it takes the scale from a variance, and we have 1/sqrt(variance + eps). */
void batchnorm_backward(views &p) {
    const nb_call &c = p.call;
    const bool training = c.mode == NB_TRAINING;
    for (int64_t i = 0; !training && i < c.c; i++)
        p.variance.mutable_data_ptr<float>()[i] =
            std::fmax(1 / (c.rstd[i] * c.rstd[i]) - static_cast<float>(c.eps), 0.0f);
    at::native::batch_norm_cpu_backward_stub(at::kCPU, p.dx, p.dgamma, p.dbeta, p.dy, p.x, p.gamma,
                                             training ? p.running_mean : p.mean, training ? p.running_var : p.variance,
                                             p.mean, p.rstd, training, c.eps);
}

void compute(views &p) {
    const bool back = p.kernel->pass == NB_BACKWARD;
    if (is_batchnorm(p.kernel))
        back ? batchnorm_backward(p) : batchnorm(p);
    else if (p.kernel->op == NB_OP_LAYERNORM)
        back ? layernorm_backward(p) : layernorm(p);
    else
        rmsnorm(p);
}

/* at::set_num_threads() would start a second pool of threads besides, for operators that are not called here, and whoever pins the new
 * threads could not tell it from the team. Asking first has the library set its own default, which it does once. */
void set_threads(int n_threads) {
    if (at::get_num_threads() == n_threads) return;
    omp_set_num_threads ? omp_set_num_threads(n_threads) : at::set_num_threads(n_threads);
}

} // namespace

/* ---- the adapter --------------------------------------------------------------------------------------------------- */

int peer_run(const nb_kernel *k, const nb_call *call) {
    try {
        const c10::InferenceMode no_gradients;
        if (call->n_threads > 0) set_threads(call->n_threads);
        compute(find(k, call));
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "PyTorch: %s\n", e.what());
        return THREW;
    }
}

/* The team is formed by an operator of the library: at::parallel_for() is a template, and runs on one thread in whoever is compiled without
 * OpenMP. An operator takes a thread for each internal::GRAIN_SIZE elements. */
int peer_open(int n_threads) {
    try {
        const c10::InferenceMode no_gradients;
        set_threads(n_threads);
        at::empty({n_threads * at::internal::GRAIN_SIZE}, at::kFloat).zero_().add_(1);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "PyTorch: %s\n", e.what());
        return THREW;
    }
    return at::get_num_threads() == n_threads ? 0 : WRONG_THREADS;
}

void peer_close(void) {}

/* Its C++ interface is that of one version: the adapter is linked to it. */
int peer_use(const char *library, char *reason, size_t n) {
    const nb_peer *peer = normbench_peer();
    if (std::strcmp(library, peer->library) == 0) return 0;
    std::snprintf(reason, n,
                  "the adapter is bound to %s; for another build: make peers PEERS=pytorch PEERS_DIR=FOLDER "
                  "with FOLDER/pytorch/include and lib",
                  peer->library);
    return -1;
}

const char *peer_version(void) {
    static const std::string text = "PyTorch " TORCH_VERSION ", " + at::get_cpu_capability() + ", OpenMP";
    return text.c_str();
}

const char *peer_applicable(const nb_kernel *k, const nb_call *call) {
    if (call->x_stride != call->cols) return "PyTorch's kernels take rows next to each other; the operator would copy";
    const bool back = k->pass == NB_BACKWARD, batch = is_batchnorm(k);
    if (back && k->op == NB_OP_RMSNORM) return "PyTorch has no kernel for it on a CPU";
    if (back && !batch && !has_f32_statistics(k, call)) return "PyTorch takes 16-bit statistics here";
    return nullptr;
}

const char *peer_implementation(const nb_kernel *k, const nb_call *call) {
    if (k->op == NB_OP_RMSNORM) return "elementary operators, as rms_norm_composite";
    if (k->op == NB_OP_BATCHNORM) return k->pass == NB_BACKWARD ? "batch_norm_cpu_backward_stub" : "batch_norm_cpu_out";
    return k->pass == NB_BACKWARD ? "LayerNormBackwardKernel" : "LayerNormKernel";
}

/* Orders of summation are not documented: taken as sequential. LayerNorm's moments are Welford's; BatchNorm's output and xhat in
 * LayerNorm's backward are folded into y = x a + b. */
void peer_describe(nb_kernel *k) {
    const bool back = k->pass == NB_BACKWARD, composed = k->op == NB_OP_RMSNORM;
    k->summary = composed ? "PyTorch operators, one by one" : "PyTorch's CPU kernel";
    k->style = composed ? NB_COMPOSED : NB_FUSED;
    k->variance = composed ? NB_VAR_NONE : k->op == NB_OP_LAYERNORM ? NB_VAR_WELFORD : NB_VAR_TWOPASS;
    const bool folded = back ? k->op == NB_OP_LAYERNORM : is_batchnorm(k);
    k->flags = NB_FLAG_ALLOCATES | NB_FLAG_OWN_THREADS | (folded ? NB_FLAG_FOLDED : 0u);
    k->formulas.roots = 1u << NB_ROOT_MUL_RECIP;
    k->formulas.affines = composed ? 3 : 7;
    k->formulas.params = 1u << NB_PARAM_F32 | (k->dtype == NB_F32 ? 1u << NB_PARAM_X : 0u);
    k->loads = composed ? 6 : 2;
    k->stores = composed ? 4 : 1;
    k->flops = back ? 9 : 6;
}
