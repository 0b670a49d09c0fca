// SPDX-License-Identifier: Apache-2.0
#include "norm.hpp"

namespace {
class Rms final : public Norm {
    double mean(const Row<float> &) const override { return 0; }
};
int run(const nb_call *call, int, std::int64_t begin, std::int64_t end) {
    static const Rms norm;
#ifdef TWICE
    norm.run(call, begin, end);
#endif
    return norm.run(call, begin, end);
}
} // namespace

const nb_kernel *rms_kernel() {
    static const nb_kernel kernel = kernel_of("rms", "rms_f32", NB_OP_RMSNORM, run);
    return &kernel;
}
