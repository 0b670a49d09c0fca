// SPDX-License-Identifier: Apache-2.0
/* A case from its axes: defaults, what follows from other fields, and its key, which determines it:
 *     rmsnorm_twopass_v512_bf16/shape:64x384/data:minilm_layer0_out/seed:1/eps:1e-6/eps_place:inside/root:mul_recip/...
 * Only axes that mean something for the case's op appear, always in the table's order (axes.h); a '/' or '%' inside a value is written
 * %2F, %25. */
#pragma once

#include "kernels/kernel.h"
#include "src/core/case.h"
#include "src/core/text.h"

/* Defaults of every axis; op and dtype must be set before axes that depend on them are printed. */
void nb_case_init(struct nb_case *c);
/* Takes over what a kernel declares: variant, op, pass, dtype, width, properties. Of a kernel of the registry see
 * nb_case_set_entry(). */
void nb_case_set_kernel(struct nb_case *c, const struct nb_kernel *kernel, const char *plugin);
/* Fields that do not apply to the case's op get their defaults, so that equal cases have equal keys; what depends on other
 * fields is resolved: the op's usual affine, k as a count, ROWSxCOLS for BatchNorm as positions x channels. */
void nb_case_normalize(struct nb_case *c);

void nb_case_key(const struct nb_case *c, struct nb_strbuf *out);
/* The value of one axis as text; "" when it does not apply. */
void nb_case_axis(const struct nb_case *c, const char *axis, struct nb_strbuf *out);
char *nb_case_axis_text(const struct nb_case *c, const char *axis); /* owned */
/* Undoes %XX in place; -1: not such a text. */
int nb_case_key_unescape(char *text);
/* The inverse of nb_case_key for the cell axes; the fields that belong to the kernel stay 0 until nb_case_set_kernel.
 * Returns -1 after nb_error. */
int nb_case_parse(struct nb_case *c, const char *key);
