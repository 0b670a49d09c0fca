// SPDX-License-Identifier: Apache-2.0
/* A few rows of a case in buffers that are called on again and again while the inputs are transformed. */
#pragma once

#include <stdint.h>

#include "src/core/kernel_entry.h"
#include "src/measure/buffers.h"
#include "src/plan/inputs.h"

struct nb_fixture {
    struct nb_case c; /* with the fixture's rows; eps and alpha may be changed between calls */
    const struct nb_entry *entry;
    const struct nb_inputs *source; /* of the case, borrowed */
    struct nb_inputs in;            /* what the next call sees; owned */
    struct nb_buffers buffers;
    struct nb_call call;
    int64_t source_rows; /* row r of the fixture is row r mod source_rows of the case */
    size_t item;
    double eps, alpha; /* the case's own */
};

/* rows: of the fixture; by BatchNorm as many as the case has. -1: the kernel refuses, or there is no memory. */
int nb_fixture_init(struct nb_fixture *fixture, const struct nb_case *c, const struct nb_entry *entry,
                    const struct nb_inputs *in, int64_t rows);
/* Inputs, eps and alpha as the case has them. */
void nb_fixture_reset(struct nb_fixture *fixture);
/* Calls the kernel on rows [0, rows) in ranges of so many units (0: whole), y or dx poisoned before; a backward call is given the
 * statistics of x as it is now. result: y or dx, packed. -1 when it returned an error. */
int nb_fixture_call(struct nb_fixture *fixture, int64_t rows, int64_t range, void *result);
void nb_fixture_release(struct nb_fixture *fixture);
