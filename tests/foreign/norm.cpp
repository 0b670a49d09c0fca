// SPDX-License-Identifier: Apache-2.0
#include "norm.hpp"

int Norm::run(const nb_call *call, std::int64_t begin, std::int64_t end) const {
    const auto *gamma = static_cast<const float *>(call->gamma), *beta = static_cast<const float *>(call->beta);
    for (std::int64_t r = begin; r < end; r++) {
        const Row<float> row{static_cast<const float *>(call->x) + r * call->x_stride,
                             static_cast<float *>(call->y) + r * call->y_stride, call->cols};
        const double centre = mean(row);
        const double variance = mean_of(row, [centre](double x) { return (x - centre) * (x - centre); });
        const double rstd = 1 / std::sqrt(variance + call->eps);
        for (std::int64_t i = 0; i < row.n; i++)
            row.y[i] = static_cast<float>((row.x[i] - centre) * rstd * (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0));
    }
    return 0;
}

nb_kernel kernel_of(const char *name, const char *variant, nb_op op,
                    int (*run)(const nb_call *, int, std::int64_t, std::int64_t)) {
    nb_kernel k{};
    k.struct_size = sizeof k;
    k.op = op;
    k.dtype = NB_F32;
    k.width = NB_NATIVE;
    k.name = name;
    k.variant = variant;
    k.formulas.roots = 1u << NB_ROOT_DIV_SQRT | 1u << NB_ROOT_MUL_RECIP;
    k.formulas.affines = 1u << NB_AFFINE_NONE | 1u << NB_AFFINE_GAMMA | 1u << NB_AFFINE_GAMMA_BETA;
    if (op == NB_OP_LAYERNORM) k.variance = NB_VAR_TWOPASS;
    k.loads = 2;
    k.stores = 1;
    k.flops = 4;
    k.run = run;
    return k;
}
