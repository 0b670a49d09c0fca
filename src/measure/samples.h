// SPDX-License-Identifier: Apache-2.0
/* The samples of a timing run, launch by launch, so that any two cases that ran interleaved can be compared as the run itself compares a
 * case with its reference: the median over blocks of ln(a / b), Hodges-Lehmann over launches. */
#ifndef NB_SAMPLES_H
#define NB_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/stats.h"
#include "src/core/text.h"

struct nb_sample_row { /* one case in one launch of one part of a group */
    int part, launch;
    double *ns; /* by block; NaN where the sample failed */
    size_t n;
};
struct nb_sample_case {
    char *key;
    struct nb_sample_row *rows;
    size_t n;
};
struct nb_sample_table {
    struct nb_sample_case *cases;
    size_t n;
    struct nb_text_map index; /* by key */
    char **references;        /* key of each part's reference case */
    int *families;            /* of each part; -1: none */
    size_t n_parts, n_launches;
};

/* From DIR/journal.jsonl. -1 after nb_error. */
int nb_samples_read(struct nb_sample_table *s, const char *dir);
void nb_samples_release(struct nb_sample_table *s);

/* Time of a / time of b. Where they stood in one part of a group, from pairs within blocks; else from the ratios of both to the
 * reference that their parts share; else, where width alone keeps their groups apart, from pairs of neighbouring launches (medians
 * over blocks). NaN where none of that is known; bounds are NaN below NB_MIN_LAUNCHES launches. */
struct nb_paired {
    struct nb_interval ratio;
    int n_launches;
    enum nb_pairing { NB_WITHIN_BLOCKS, NB_THROUGH_REFERENCE, NB_NEIGHBOURS } pairing;
};
/* ln: room for n_launches numbers, ln(a / b) in each launch, NaN where it has none; or null. */
struct nb_paired nb_samples_ratio(const struct nb_sample_table *s, const char *a, const char *b, double *ln);

#endif
