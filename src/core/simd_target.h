// SPDX-License-Identifier: Apache-2.0
/* Files of src/ that hold code for an instruction set which the program as a whole is not compiled for: everything between
 * BEGIN and END may use it, and is called only after the CPU was asked (src/core/cpu.h). Headers of the system come before BEGIN. */
#ifndef NB_SIMD_TARGET_H
#define NB_SIMD_TARGET_H

#if defined(__clang__)
#define NB_TARGET_PRAGMA(text) _Pragma(#text)
#define NB_TARGET_BEGIN(isa) NB_TARGET_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define NB_TARGET_END _Pragma("clang attribute pop")
#else
#define NB_TARGET_PRAGMA(text) _Pragma(#text)
#define NB_TARGET_BEGIN(isa) _Pragma("GCC push_options") NB_TARGET_PRAGMA(GCC target(isa))
#define NB_TARGET_END _Pragma("GCC pop_options")
#endif

/* As the kernels of these widths are compiled. */
#define NB_TARGET_V3 "avx2,fma,f16c,bmi,bmi2,lzcnt"
#define NB_TARGET_V4 "avx2,fma,f16c,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512vl,avx512dq"

#endif
