// SPDX-License-Identifier: Apache-2.0
/* 256.h compiled with the flags of 512.h: the same vectors in EVEX encoding, with its 32 registers and its estimate. */
#pragma once

#define NB_WIDTH NB_256X
#define NB_CPU_NEEDED (NB_CPU_AVX2 | NB_CPU_AVX512)
#define NB_HAVE_RSQRT14
#include "256.h"
