// SPDX-License-Identifier: Apache-2.0
/* The ways to form x / sqrt(v) that are in use, as predictions of an output's bits; and rows on which two of them differ. */
#ifndef NB_PROBE_WAYS_H
#define NB_PROBE_WAYS_H

#include "src/lab/exhaustive/root_variants.h"
#include "src/lab/probe/probe_box.h"

enum nb_way_kind { NB_BY_PRODUCT, NB_BY_QUOTIENT, NB_BY_DOUBLE };
struct nb_way {
    const char *root; /* div_sqrt, mul_recip, rsqrt_nr ... */
    const char *name, *formula;
    enum nb_way_kind kind;                 /* x r, x / sqrtf(v), or x / sqrt(v) in double */
    const struct nb_root_variant *variant; /* that gives r */
    int64_t n_wrong;                       /* outputs that differ; counting ends at NB_GIVEN_UP */
};
enum { NB_MAX_WAYS = 40, NB_GIVEN_UP = 8 };

/* Those that this machine has. */
int nb_ways_list(struct nb_way ways[NB_MAX_WAYS]);
/* Counts the outputs of the last call, on rows of integers, that each way would have given otherwise. */
void nb_ways_test(struct nb_way *ways, int n, const struct nb_box *b);
/* Fills b with rows on which ways that have not been wrong differ; each pair on several, if such rows are found. The number of rows. */
int64_t nb_ways_tell_apart(const struct nb_way *ways, int n, struct nb_box *b);

#endif
