// SPDX-License-Identifier: Apache-2.0
/* Gradients against central differences, and small models to take them of. */
#ifndef NB_TEST_SUPPORT_TRAIN_H
#define NB_TEST_SUPPORT_TRAIN_H

#include <stdint.h>

#include "src/train/data.h"
#include "src/train/transformer.h"
#include "src/train/workload.h"

/* A loss as a function of numbers that the caller moves. */
struct nb_test_loss {
    double (*value)(void *context);
    void *context;
    double
        noise; /* standard deviation of what roundings in f32 make of it: nb_test_products_noise(), nb_test_noise_of_sum() */
};

/* The noise of a sum of n terms of about 1, each off by so many roundings to nearest, which err by 2^-24 / sqrt(3). */
double nb_test_noise_of_sum(int64_t n, int roundings);

/* Element by element (at most 40 of n, spread evenly): the slope by central differences with steps h and h / 2, extrapolated; it may
 * differ from the gradient by what the two steps differ by and NB_TEST_DEVIATIONS times what the noise makes of it. Fails too when these
 * are so wide that they would let most gradients pass unseen (gradients below the noise do, in nb_test_direction). */
void nb_test_gradient(const char *what, const struct nb_test_loss *loss, float *values, const float *gradient,
                      int64_t n, double h);
/* All of them at once, along a unit vector u: the slope along u against the sum of gradient * u. */
void nb_test_direction(const char *what, const struct nb_test_loss *loss, float *values, const float *gradient,
                       const double *u, int64_t n, double h);

/* The kernels that are built; once a test. */
void nb_test_load_kernels(void);

/* A transformer of 2 layers of 16 whose gradients are not small: first values of deviation 0.3. */
extern const struct nb_transformer_shape nb_test_transformer_shape;
struct nb_train_options nb_test_train_options(enum nb_norm_kind kind, enum nb_style style, enum nb_norm_place place);
/* A model of any shape; the shape must stay. What differs from MiniMind are its sizes alone. */
void nb_test_transformer(struct nb_model *model, const struct nb_transformer_shape *shape,
                         const struct nb_train_options *options);
/* Text whose bytes stay below the vocabulary of the small shape (32); nothing to release. */
struct nb_text nb_test_text(void);

#endif
