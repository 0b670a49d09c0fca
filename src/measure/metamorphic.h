// SPDX-License-Identifier: Apache-2.0
/* Relations between the results of two calls that hold whatever the exact result is. They need no oracle to fail, and find what an
 * accuracy within the bound hides: a dependence on the place of a row, a rounding to one side.
 *
 * A relation is judged only where the declared formula promises it: scaling is exact while no number on the way leaves the normal
 * numbers of the statistics' dtype, which an estimate of 1/sqrt keeps too, since v is scaled by an even power of two; negation is exact
 * for rounding to nearest. Where the range may be hit, or the op has no such relation, it is not applicable, with the reason. */
#pragma once

#include <stdint.h>

#include "src/accuracy/oracle.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"

enum nb_relation {
    NB_REL_SCALE, /* x 2^k, eps 4^k, k = 1, -1, 4, -4: the same bits; backward dy 2^k: dx 2^k. Figure: elements that differ */
    NB_REL_NEGATE,    /* -x, -beta (backward -dy): the same bits with the other sign. Elements that differ */
    NB_REL_PERMUTE,   /* columns in another order: within the sum of both bounds. Largest difference / that sum */
    NB_REL_SHIFT,     /* centred ops: x + c, exact on a coarse grid: likewise */
    NB_REL_ROW_ORDER, /* rows in reverse: the same bits. Rows that differ */
    NB_REL_BATCH,     /* each row in a call of its own: the same bits. Rows that differ */
    NB_REL_RANGES,    /* a call cut as for several threads: the same bits. Rows that differ */
    NB_REL_TWICE,     /* the same call again: the same bits. Rows that differ */
    NB_REL_SQUARES, /* mean of y^2 = v / (v + eps) without gamma and beta: residual in units of the declared arithmetic */
    NB_REL_SUM,     /* centred ops: mean of y = 0, likewise */
    NB_REL_EXACT, /* normal data: rows on which the last rounding is the only one (fixture.h): elements that are not it */
    NB_N_RELATIONS
};
const char *nb_relation_name(enum nb_relation relation);

enum nb_holds { NB_NOT_PROMISED, NB_HOLDS, NB_BROKEN, NB_N_HOLDS };

struct nb_relation_result {
    enum nb_holds verdict;
    double figure;    /* NaN when not applicable */
    int64_t row, col; /* where it failed first, or worst; -1: nowhere */
    char reason[96];  /* why it does not apply, or what failed; "" when passed */
};

struct nb_metamorphic {
    struct nb_relation_result relations[NB_N_RELATIONS];
};

/* The same in the journal and in results.json (reports/schema/results.schema.json, "metamorphic"). */
extern const struct nb_member nb_metamorphic_members[];

/* Calls the kernel some dozens of times on a few of the case's rows. The process may die of it. */
void nb_metamorphic_check(const struct nb_case *c, const struct nb_entry *entry, const struct nb_oracle *oracle,
                          struct nb_metamorphic *out);
