// SPDX-License-Identifier: Apache-2.0
/* Calls of BatchNorm kernels with tensors of their own. The kernels must be loaded. */
#ifndef NB_TEST_SUPPORT_BATCHNORM_H
#define NB_TEST_SUPPORT_BATCHNORM_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/dtype.h"
#include "src/core/registry.h"

/* What a problem owns. */
struct memory {
    void *blocks[24];
    int n;
};
void *take(struct memory *m, int64_t n, size_t item_bytes); /* zeroed */
float *take_floats(struct memory *m, int64_t n, float value);
/* Of bytes that read as NaN. */
void take_scratch(struct memory *m, const struct nb_kernel *k, struct nb_call *call);
void release_memory(struct memory *m);

struct size {
    int64_t n, c, hw;
};
/* Sizes, strides and formula of a call; rows lie `pad` elements apart. */
struct nb_call batchnorm_call(struct size size, uint32_t layout, uint32_t mode, int64_t pad);
int64_t channel_of(const struct nb_call *call, int64_t row, int64_t col);
/* From -1.5 to 1.5, in no order that a sum could profit from. */
double scattered(int64_t i);
/* Of x by channels, in double: the mean, then the mean of squares about it. Both arrays are zero before. */
void channel_statistics(const struct nb_call *call, enum nb_dtype dtype, double *mean, double *var);

/* Every kernel of BatchNorm that can run here, each size in both layouts. */
struct walk {
    uint32_t pass;
    const char *name; /* of the kernels; null: any */
    const struct size *sizes;
    size_t n_sizes;
    int64_t longest; /* planes that are longer, if it is not 0, are left out of NHWC: rows of a few columns there */
    /* where it is */
    const struct nb_kernel *kernel;
    struct size size;
    uint32_t layout;
    size_t next;
};
bool walk_on(struct walk *w); /* false at the end */

#endif
