// SPDX-License-Identifier: Apache-2.0
/* The operations of composed kernels: one object for each width and dtype, which is linked beside them. */
#define NB_DEFINES_OPERATIONS
#include "kernels/batchnorm/sum_operations.h"
