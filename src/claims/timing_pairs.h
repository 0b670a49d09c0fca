// SPDX-License-Identifier: Apache-2.0
/* Two cases of a timing experiment that differ in what is compared and in nothing else, and what one saves of the other's time. */
#ifndef NB_TIMING_PAIRS_H
#define NB_TIMING_PAIRS_H

#include "src/claims/finding.h"
#include "src/measure/paired.h"
#include "src/record/results.h"

struct nb_sides {
    struct nb_selector of, against;
};

struct nb_timed_cases { /* records of one experiment, each with its tags in a finding of its own */
    const struct nb_record **records;
    struct nb_findings tagged;
};
void nb_timed_cases_init(struct nb_timed_cases *c, const struct nb_results *results, const char *label);
void nb_timed_cases_release(struct nb_timed_cases *c);

#define NB_NO_CASE ((size_t)-1)
/* The case that `of` is compared with: selected by `against`, of the same group unless both selectors name the width, and with equal
 * values on every axis but those that both name and, where they choose kernels (kernel, op, style, stats, variance), those that are a kernel's own. */
size_t nb_timed_against(const struct nb_timed_cases *c, const struct nb_sides *s, size_t of);

struct nb_timed_pair {
    struct nb_interval cut; /* 1 - t / t_against */
    double *cuts;           /* in each launch, NaN where it has none; owned; null where there is no cut */
    size_t n_cuts;
    int n_launches; /* that have one */
    double against_ns;
    const char *reason; /* why there is no cut, or null */
};
void nb_timed_pair_release(struct nb_timed_pair *p);
struct nb_timed_pair nb_timed_measure(const struct nb_timed_cases *c, const struct nb_sample_table *samples, size_t of,
                                      size_t against);
/* The pair that s selects for the same shape, dtype and width as case `at`, such as its backward pass. */
struct nb_timed_pair nb_timed_partner(const struct nb_timed_cases *c, const struct nb_sample_table *samples,
                                      const struct nb_sides *s, size_t at);
/* The cut of both times together: the mean of both cuts, weighted by what each takes on the other side. Bounds are added, which holds
 * whatever correlation there is. */
struct nb_timed_pair nb_timed_join(const struct nb_timed_pair *p, const struct nb_timed_pair *q);
double nb_cut_to_ratio(double cut);

#endif
