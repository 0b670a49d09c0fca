// SPDX-License-Identifier: Apache-2.0
/* The order of a sum, as probes see it: what is lost beside a large addend tells what is added after it to the same running sum. */
#ifndef NB_PROBE_SUM_H
#define NB_PROBE_SUM_H

#include "src/lab/probe/probe_box.h"

/* Blocks of consecutive columns, each summed in interleaved lanes one after another: column i in lane i mod lanes of its block. */
struct nb_structure {
    int64_t block, lanes;
};

enum { NB_SUM_POSITIONS = 16 };
/* Ones lost with the large addend in column `at`. */
struct nb_losses {
    int64_t n, at[NB_SUM_POSITIONS];
    double loss[NB_SUM_POSITIONS], tolerance, relative; /* off by up to tolerance + relative * loss */
    int n_positions;
};
/* In a row of n columns with one zero (nb_sum_zero), the large addend in column j: how many ones this structure loses. */
int64_t nb_structure_loss(const struct nb_structure *s, int64_t n, int64_t j);
/* The column that is 0 in such rows. */
int64_t nb_sum_zero(int64_t n, int64_t j);
/* Every structure that fits: lanes m 2^k up to 1024, m = 1, 3, 5, 7, in the whole row or in blocks of 2^k. How many; the first. */
int nb_structure_search(const struct nb_losses *losses, struct nb_structure *found);
/* Weighs the losses at positions that tell structures apart. loss(b, j, arg) is NaN where it cannot be told. Returns how many
 * structures fit, -1 when a loss is NaN. */
int nb_structure_find(struct nb_losses *losses, double (*loss)(struct nb_box *b, int64_t j, void *arg),
                      struct nb_box *b, void *arg, struct nb_structure *found);
void nb_losses_print(const struct nb_losses *losses, struct nb_strbuf *out);

/* The sum of squares. */
struct nb_sum {
    bool found, wide; /* wide: nothing is lost */
    struct nb_structure structure;
    struct nb_losses losses;
    const char *why; /* not found: the reason */
};
void nb_sum_measure(struct nb_sum *m, struct nb_probe *p);
/* One row: a in column j, +-1 elsewhere with the sum -a. */
void nb_sum_set_row(struct nb_box *b, int64_t j, double a);

/* The mean of a LayerNorm. */
struct nb_mean {
    int n_missed, n_rows;  /* rows with a mean of 0 that was missed */
    bool hits_fractions;   /* a mean between two numbers of f32 is taken off as it is; */
    bool rounds_fractions; /* the nearest of these is */
    bool found;            /* one plain f32 sum, of the structure */
    bool corrected;        /* the losses are those of a mean that was corrected once */
    struct nb_structure structure;
    struct nb_losses losses;
    const char *why; /* not found: the reason; may be null */
};
void nb_mean_measure(struct nb_mean *m, struct nb_probe *p, const struct nb_sum *squares);

/* The answers about the sum of squares, once the variance is known. */
void nb_probe_sum(struct nb_probe *p, const struct nb_sum *m);
void nb_probe_variance(struct nb_probe *p, const struct nb_sum *m);
void nb_probe_sum_details(struct nb_probe *p, const struct nb_sum *m); /* joins of blocks, tail, fma */

#endif
