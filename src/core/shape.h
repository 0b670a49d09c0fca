// SPDX-License-Identifier: Apache-2.0
/* Shapes by text and by name: what the models and papers use (configs/shapes.json holds the named ones). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/core/text.h"

#define NB_MAX_DIMS 8

/* rows x cols as the kernels see them, and how the user wrote it: "64x384", "2x3x[4x5]" (normalized_shape in brackets, the
 * product of it is cols), "nchw:8x64x28x28" (rows = n*c, cols = hw), "nhwc:..." (rows = n*hw, cols = c). */
struct nb_shape {
    uint32_t layout; /* enum nb_layout */
    int64_t rows, cols;
    int64_t n, c, hw; /* NCHW, NHWC only */
    char text[96];
};

/* "64x384", "2x3x[4x5]", "nchw:8x64x28x28", "nhwc:...". Returns -1 with the reason written. */
int nb_shape_parse(struct nb_shape *shape, const char *text, char *reason, size_t n);

/* Rows and columns as they are. */
struct nb_shape nb_shape_of(int64_t rows, int64_t cols);

/* A level of memory in place of the first dimension, which stands for as many of it as make the working set lie there:
 * "L2x1024", "DRAMx16x[4x5]", "nchw:L3x64x28x28", on the machine at hand and for the case at hand (nb_level_shape). */
enum nb_level { NB_L1, NB_L2, NB_L3, NB_DRAM, NB_N_LEVELS };
/* Is it such a shape? Then *level, and the text with 1 in the level's place in plain. -1: it is a plain shape, or none. */
int nb_shape_level(const char *text, enum nb_level *level, char *plain, size_t n);

/* Expands a name of a preset ("minimind2-small", "rnnsearch") or a range ("64x256:65536:*4", cols from 256 to 65536 times 4) to
 * a list of plain shape texts; a plain shape expands to itself. -1 with the reason written. */
int nb_shape_expand(const char *text, struct nb_strings *texts, char *reason, size_t n);
