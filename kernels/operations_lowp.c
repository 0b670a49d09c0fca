// SPDX-License-Identifier: Apache-2.0
/* The same for recipes that stay in x's dtype. */
#define COMPOSED_LOWP true
#include "kernels/operations.c"
