// SPDX-License-Identifier: Apache-2.0
/* A complete plugin in C++: RMSNorm of f32 rows. kernel.h lies beside it, or -I says where. Built and tried with
 *     c++ -O2 -shared -fPIC example.cpp -o example.so
 *     normbench try ./example.so */
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "kernel.h"

namespace {

int run(const nb_call *call, int /* phase: there is one */, std::int64_t begin, std::int64_t end) {
    const auto *gamma = static_cast<const float *>(call->gamma);
    for (std::int64_t row = begin; row < end; row++) {
        const float *x = static_cast<const float *>(call->x) + row * call->x_stride;
        float *y = static_cast<float *>(call->y) + row * call->y_stride;
        const float sum = std::inner_product(x, x + call->cols, x, 0.0f);
        const float rstd = 1 / std::sqrt(sum / static_cast<float>(call->cols) + static_cast<float>(call->eps));
        for (std::int64_t i = 0; i < call->cols; i++) y[i] = gamma ? x[i] * rstd * gamma[i] : x[i] * rstd;
    }
    return 0;
}

/* What it claims to be accurate for: rows whose squares neither overflow nor vanish. */
void range(const nb_call * /* the same for every call */, nb_range *range) {
    range->min_rms = 1e-15;
    range->max_abs = 1e15;
}

nb_kernel describe() {
    nb_kernel k{};
    k.struct_size = sizeof k;
    k.op = NB_OP_RMSNORM;
    k.pass = NB_FORWARD;
    k.dtype = NB_F32;
    k.width = NB_NATIVE;
    k.name = "example";
    k.variant = "example_f32";
    k.summary = "RMSNorm in C++";
    k.formulas.roots = 1u << NB_ROOT_MUL_RECIP;
    k.formulas.affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA;
    k.loads = 2;
    k.stores = 1;
    k.flops = 4;
    k.run = run;
    k.range = range;
    return k;
}

} // namespace

const nb_kernel *const *normbench_kernels(std::uint32_t abi_version, std::size_t *n) {
    static const nb_kernel kernel = describe();
    static const nb_kernel *const table[] = {&kernel};
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : nullptr;
}
