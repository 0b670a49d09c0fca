// SPDX-License-Identifier: Apache-2.0
/* Before any timing: is what the kernel returns right, and does it keep to its own memory? */
#pragma once

#include "src/core/kernel_fields.h"
#include "src/measure/buffers.h"
#include "src/measure/judge.h"
#include "src/plan/inputs.h"

/* Are the figures that a kernel declares for a call (without tensors) such that it can be called? They decide how often, with which ranges, and what
 * it may be off by: no reduction rounds more than a few times for each of its elements, and a longer chain would be a licence for any error. */
bool nb_check_declared(const struct nb_case *c, const struct nb_kernel *k, const struct nb_call *call,
                       struct nb_checked *out);
/* Of a call with its tensors: a gradient that wants nothing may take nothing. */
bool nb_declares_units(const struct nb_kernel *k, const struct nb_call *call);

/* The inputs of a backward case have its saved statistics. Calls the kernel in four placements (buffers.h), cut into ranges and whole, and
 * judges what it wrote against the oracle. The process may die of it: nb_faults_watch() should stand. */
void nb_check_case(const struct nb_case *c, const struct nb_entry *entry, const struct nb_inputs *in,
                   const struct nb_exact *exact, struct nb_checked *out);

/* Digest of one row of elements; equal bits give equal digests. */
uint64_t nb_row_digest(const void *row, int64_t cols, size_t item);
/* Of all that was written for a row; row = rows of the case: of all rows together. */
uint64_t nb_output_digest(const struct nb_outputs *o, int64_t row);
/* The first row, of rows [0, rows), whose outputs have not the bits of the digests; `rows` where it is those of all rows together (looked
 * at where all rows are); -1: none. */
int64_t nb_digests_differ(const struct nb_buffers *b, const struct nb_case *c, int64_t rows, const uint64_t *digests);
/* nb_n_digests() of them; owned. */
uint64_t *nb_take_digests(const struct nb_buffers *b, const struct nb_case *c);

/* Bytes of buffers above which the calls at the guard pages take only the first rows of a row_local kernel. */
#define NB_CHECK_WHOLE_BYTES (16 << 20)

/* Of a case that was right there: calls it on and on, in the same buffers, up to random numbers between powers of two until 64 MiB, 2^12 calls or a
 * quarter of a second have gone by, compares all outputs of each call with the first's, checks it anew behind each stretch, and adds to *out how many
 * calls it were. A fault of every Nth call is seen if they are N or more, else in a share calls / N of processes. */
void nb_check_on(const struct nb_case *c, const struct nb_entry *entry, const struct nb_inputs *in,
                 struct nb_checked *out);
