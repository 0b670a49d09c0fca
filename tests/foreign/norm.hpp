// SPDX-License-Identifier: Apache-2.0
// Kernels of another project, in C++: templates, lambdas, virtual functions, objects that are made at the first call.
#pragma once
#include "kernel.h"
#include <cmath>
#include <cstddef>
#include <cstdint>

template <typename T> struct Row {
    const T *x;
    T *y;
    std::int64_t n;
};

template <typename T, typename Term> double mean_of(const Row<T> &row, Term term) {
    double total = 0;
    for (std::int64_t i = 0; i < row.n; i++) total += term(row.x[i]);
    return total / static_cast<double>(row.n);
}

class Norm {
  public:
    virtual ~Norm() = default;
    int run(const nb_call *call, std::int64_t begin, std::int64_t end) const;

  protected:
    virtual double mean(const Row<float> &row) const = 0;
};
const nb_kernel *rms_kernel();
const nb_kernel *layer_kernel();
nb_kernel kernel_of(const char *name, const char *variant, nb_op op,
                    int (*run)(const nb_call *, int, std::int64_t, std::int64_t));
