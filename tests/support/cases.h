// SPDX-License-Identifier: Apache-2.0
/* Cases made by hand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/kernel_fields.h"
#include "src/plan/inputs.h"

struct nb_kernel kernel_of(uint32_t op, uint32_t dtype);
struct nb_case case_of(uint32_t op, uint32_t dtype); /* defaults, with that kernel */
char *key_of(const struct nb_case *c);
char *value_of(const struct nb_case *c, const char *axis);
void set(struct nb_case *c, const char *axis, const char *text);
/* A case of a kernel for tests of many: the turn chooses formula, padding, mode and k; what the kernel does not implement becomes what it does.
 * False where the combination is not defined, or is refused. */
bool kernel_case(struct nb_case *c, const struct nb_entry *entry, const char *shape, size_t turn);
/* A case as `normbench probe` makes it, the formula fitted likewise. 0, or -1 when this combination does not exist. */
int probe_case(struct nb_case *c, const struct nb_entry *entry, struct nb_formula formula);
/* Fills x, and the residual with as much, by hard_value() of numerics.h: row after row, of BatchNorm channel after channel, of the next kind. */
void fill_with_kinds(struct nb_inputs *in, struct nb_case *c, int first);
bool same_case(const struct nb_case *a, const struct nb_case *b);
