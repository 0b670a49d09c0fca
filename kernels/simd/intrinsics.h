// SPDX-License-Identifier: Apache-2.0
/* The compiler's intrinsics. What a compiler knows of x86 is a third to a half of the time of a small object, most of it for instructions
 * that no width has; GCC 12's parts are included one by one, of other compilers all of it. */
#ifndef NB_SIMD_INTRINSICS_H
#define NB_SIMD_INTRINSICS_H

#if defined(__clang__) || __GNUC__ != 12 || defined(_IMMINTRIN_H_INCLUDED)
#include <immintrin.h>
#else
// clang-format off
#define _IMMINTRIN_H_INCLUDED /* which its parts ask for */
#include <x86gprintrin.h>
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#ifdef __AVX512F__
#include <avx512fintrin.h>
typedef unsigned int __mmask32; /* of avx512vlintrin.h, a third of all, of which nothing else is used */
#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vlbwintrin.h>
#endif
#include <fmaintrin.h>
#include <f16cintrin.h>
// clang-format on
#endif

#endif
