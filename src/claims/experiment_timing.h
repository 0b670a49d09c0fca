// SPDX-License-Identifier: Apache-2.0
/* Which cases of a timing experiment are compared. */
#ifndef NB_EXPERIMENT_TIMING_H
#define NB_EXPERIMENT_TIMING_H

#include "src/claims/finding.h"
#include "src/record/results.h"

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

#endif
