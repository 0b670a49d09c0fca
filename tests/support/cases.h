// SPDX-License-Identifier: Apache-2.0
/* Cases made by hand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/accuracy/gradient.h"
#include "src/core/case.h"
#include "src/core/kernel_fields.h"
#include "src/measure/check.h"
#include "src/measure/metamorphic.h"
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
/* Each variant of our own kernels that can run here and is of the kind; there must be one. */
void each_kernel(bool (*is)(const struct nb_kernel *k), void (*check)(const struct nb_kernel *k));
/* Fills x, and the residual with as much, by hard_value() of numerics.h: row after row, of BatchNorm channel after channel, of the next kind. */
void fill_with_kinds(struct nb_inputs *in, struct nb_case *c, int first);
bool same_case(const struct nb_case *a, const struct nb_case *b);

/* A case, its inputs, and what is exact of it. */
struct solved {
    struct nb_case c;
    const struct nb_entry *entry;
    struct nb_inputs in;
    struct nb_oracle oracle;
    struct nb_gradient gradient;
};
/* Of the case and the kernel that are there; of all kinds: with the rows of fill_with_kinds(). */
void solve(struct solved *s, bool of_all_kinds);
/* Of a key of one of our kernels or of tests/plugins/mistakes.c: "mistakes:rmsb_f32_in_double/shape:64x40". */
void solve_key(struct solved *s, const char *key);
/* As a run checks it; the digests are the caller's. */
struct nb_checked checked_by(const struct solved *s);
void solved_release(struct solved *s);
/* Which relations between calls the kernel of such a key keeps. */
struct nb_metamorphic related_by(const char *key);
