// SPDX-License-Identifier: Apache-2.0
/* Shapes by text and by name: what the models and papers use (configs/shapes.json holds the named ones). */
#ifndef NB_SHAPE_H
#define NB_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"

/* "64x384", "2x3x[4x5]", "nchw:8x64x28x28", "nhwc:...". Returns -1 with the reason written. */
int nb_shape_parse(struct nb_shape *shape, const char *text, char *reason, size_t n);

/* A level of memory in place of the first dimension, which stands for as many of it as make the working set lie there:
 * "L2x1024", "DRAMx16x[4x5]", "nchw:L3x64x28x28", on the machine at hand and for the case at hand (nb_level_shape). */
enum nb_level { NB_L1, NB_L2, NB_L3, NB_DRAM, NB_N_LEVELS };
/* Is it such a shape? Then *level, and the text with 1 in the level's place in plain. -1: it is a plain shape, or none. */
int nb_shape_level(const char *text, enum nb_level *level, char *plain, size_t n);

/* Expands a name of a preset ("minimind2-small", "rnnsearch") or a range ("64x256:65536:*4", cols from 256 to 65536 times 4) to
 * a list of plain shape texts; a plain shape expands to itself. -1 with the reason written. */
int nb_shape_expand(const char *text, struct nb_strings *texts, char *reason, size_t n);

/* ---- levels of memory ---- */

/* From "L2x1024" to a plain shape: as many rows (images of BatchNorm) as put the case's tensors into that level of this machine's memory,
 * well within its bounds, so that another cache line or neighbour does not move it. */

struct nb_level_caches {
    int64_t l1_bytes, l2_bytes, l3_bytes; /* 0: unknown */
};

/* text: of a level (nb_shape_level). c has its kernel's op, pass and dtype. -1: no number of rows does it on this machine, with the
 * reason written; else the plain shape. A working set lies in a level when it takes more than 5/4 of the level above and at most 9/10
 * of L1, 8/10 of L2 or half of L3; what is aimed at leaves room for half of it, on each of two threads. In DRAM: three times L3, at
 * least one and a half, at most a gigabyte. */
int nb_level_shape(const struct nb_case *c, const char *text, const struct nb_level_caches *caches, char *plain,
                   size_t n, char *reason, size_t reason_size);

#endif
