// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others: every comparison of a run whose config has "compare" (src/plan/config.h), from pairs of samples of
 * the same block. A comparison is one op, pass, dtype and formula on one shape with one thread count; in it the fastest of ours meets
 * the fastest of each library. What looks behind was measured again, in a run of its own in DIR/confirm, and counts as behind only
 * when it is so there, too. */
#pragma once

#include "src/plan/config.h"
#include "src/record/record.h"

#define NB_CONFIRM_FOLDER "confirm"
/* Cases with this label are there for another reason than to be compared: the ladders of the call overhead. */
#define NB_LABEL_OVERHEAD "call overhead"

enum nb_peer_comparison_verdict {
    NB_PEER_COMPARISON_AHEAD,         /* faster, with the whole interval */
    NB_PEER_COMPARISON_EVEN,          /* neither; or slower by less than counts */
    NB_PEER_COMPARISON_BEHIND,        /* slower by more than counts, and again on fresh launches */
    NB_PEER_COMPARISON_NOT_CONFIRMED, /* looked so, but was not on fresh launches */
    NB_PEER_COMPARISON_LOOKS_BEHIND,  /* looks so, and was not measured again */
    NB_PEER_COMPARISON_UNKNOWN,       /* no figure; reason says why */
    NB_N_PEER_COMPARISON_VERDICTS
};

struct nb_peer_comparison {
    const struct nb_record *ours, *theirs; /* borrowed; ours may be null */
    char library[NB_VARIANT_MAX];          /* theirs: the plugin's name, else the kernel's */
    struct nb_interval ratio;              /* time of theirs / time of ours: above 1 ours is faster */
    struct nb_interval confirmed;          /* of the fresh launches alone; NaN: none */
    int n_launches, n_confirmed;
    enum nb_peer_comparison_verdict verdict;
    const char *reason; /* of NB_PEER_COMPARISON_UNKNOWN; static */
};

struct nb_peer_comparisons {
    struct nb_peer_comparison *items; /* by library, then as planned */
    size_t n, n_comparisons;
    struct nb_compare_settings settings;
};
/* -1 after nb_error: results of a config that compares nothing, or a journal that cannot be read. results must outlive it. */
int nb_peer_comparisons_make(struct nb_peer_comparisons *d, const struct nb_results *results);
void nb_peer_comparisons_release(struct nb_peer_comparisons *d);

/* From the figures alone. */
enum nb_peer_comparison_verdict nb_peer_comparison_judge(const struct nb_interval *ratio,
                                                         const struct nb_interval *confirmed, int n_confirmed,
                                                         const struct nb_compare_settings *settings);

/* Geometric mean over comparisons of one library, op, pass and layout. */
struct nb_peer_mean {
    const struct nb_peer_comparison *first;        /* whose library, op, pass, layout they share */
    struct nb_interval ratio;                      /* with the interval that independent comparisons give */
    double median, least, most;                    /* of the ratios: one far off moves a mean of few, and no median */
    double roofline_share;                         /* of ours, median over the comparisons; NaN: not known */
    size_t n, n_of[NB_N_PEER_COMPARISON_VERDICTS]; /* with a ratio; by verdict */
};
/* Owned; returns how many. */
size_t nb_peer_means(const struct nb_peer_comparisons *d, struct nb_peer_mean **out);
