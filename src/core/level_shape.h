// SPDX-License-Identifier: Apache-2.0
/* From "L2x1024" to a plain shape: as many rows (images of BatchNorm) as put the case's tensors into that level of this machine's memory,
 * well within its bounds, so that another cache line or neighbour does not move it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"

struct nb_level_caches {
    int64_t l1_bytes, l2_bytes, l3_bytes; /* 0: unknown */
};

/* text: of a level (nb_shape_level). c has its kernel's op, pass and dtype. -1: no number of rows does it on this machine, with the
 * reason written; else the plain shape. A working set lies in a level when it takes more than 5/4 of the level above and at most 9/10
 * of L1, 8/10 of L2 or half of L3; what is aimed at leaves room for half of it, on each of two threads. In DRAM: three times L3, at
 * least one and a half, at most a gigabyte. */
int nb_level_shape(const struct nb_case *c, const char *text, const struct nb_level_caches *caches, char *plain,
                   size_t n, char *reason, size_t reason_size);
