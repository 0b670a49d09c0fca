// SPDX-License-Identifier: Apache-2.0
/* The header of kernels/simd/ that a host part is compiled with, so that it can use what kernels/shared/ says of formulas and chains. Of the
 * CPU's vectors it uses conversions alone; 32 lanes make the chains those of a block: 8 accumulators of 32 lanes are 256 threads. */
#pragma once

#include "kernels/simd/scalar.h"
#undef NB_LANES
#define NB_LANES 32
#undef NB_WIDTH
#define NB_WIDTH NB_NATIVE
#define BLOCKS_MAX 264 /* blocks of rows whose columns are added: GRID of args.h */
