// SPDX-License-Identifier: Apache-2.0
/* What the kernels' own vocabulary (kernels/simd/, kernels/shared/root.h) computes at each width, as functions over arrays: so that the
 * very code which the kernels are made of can be swept over all its inputs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Every function works on so many elements: a constant length needs no tails and fits the first-level cache. */
enum { NB_BATCH = 1024 };

struct nb_simd_functions {
    const char *width;
    uint32_t needs; /* mask of enum nb_cpu_feature */
    /* rstd of variance x and eps 0, by a form of enum nb_root. */
    void (*rstd)(const float *x, float *r, uint32_t root);
    void (*to_f16)(const float *x, uint16_t *y), (*to_bf16)(const float *x, uint16_t *y);
    /* One element at a time, as the kernels' loops over single elements do it. */
    void (*to_f16_single)(const float *x, uint16_t *y), (*to_bf16_single)(const float *x, uint16_t *y);
};
/* All widths of this architecture, whether the CPU has them or not. */
extern const struct nb_simd_functions *const nb_simd_functions[];
extern const size_t nb_n_simd_functions;

extern const struct nb_simd_functions nb_simd_scalar, nb_simd_128; /* 128: x86-64 and aarch64 */
#if defined(__x86_64__)
extern const struct nb_simd_functions nb_simd_256, nb_simd_512;
#endif
