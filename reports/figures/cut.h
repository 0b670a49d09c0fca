// SPDX-License-Identifier: Apache-2.0
/* What RMSNorm saves of LayerNorm's time: cut = 1 - t_rmsnorm / t_layernorm (Zhang & Sennrich 2019, tables 2 to 7). */
#ifndef NB_CUT_H
#define NB_CUT_H

#include <stddef.h>

#include "src/record/results.h"

struct nb_cut {
    size_t layernorm, rmsnorm; /* indices of the records */
    struct nb_interval cut;
};

/* All pairs that may be compared: both were timed against the same reference case in the same group (so that the ratio is one of
 * paired ratios), and they agree in dtype, width, style, place and dtype of the statistics, shape and formula; gamma and beta
 * are each op's own. A LayerNorm kernel is paired with the RMSNorm kernel named alike, else with the first that fits.
 * Returns the number written to *cuts (owned by the caller). */
size_t nb_cuts_find(const struct nb_results *results, struct nb_cut **cuts);

/* 1 - rms/ln. The two ratios share the reference, and how their errors hang together is not known: the half-widths of
 * the logarithms are added, which covers every case. A side that is the reference itself comes as {1, 1, 1}. */
struct nb_interval nb_cut_of(const struct nb_interval *rms, const struct nb_interval *ln);

#endif
