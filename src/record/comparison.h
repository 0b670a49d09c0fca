// SPDX-License-Identifier: Apache-2.0
/* Two runs side by side. A report, and no gate: they were not measured at the same time, and on a shared machine times of minutes
 * apart differ by tens of percent with nothing changed.
 *
 * What may be ranked are ratios that were measured in pairs inside each run: the time over that of the copy, and over that
 * of the group's reference case. Their quotient between the runs has an interval from both runs' intervals, which are independent
 * (recovery of variances on the logarithms: Zou & Donner 2008), at 95 % for each case alone. */
#pragma once

#include "src/plan/cells.h"
#include "src/record/record.h"

enum { NB_BEFORE, NB_AFTER, NB_N_SIDES };

struct nb_difference {
    char *path, *values[NB_N_SIDES]; /* "cpu.model"; "-" where a side does not say; owned */
    bool forbids_times;              /* times of these machines say nothing about the kernels */
};

enum nb_change {
    NB_CHANGE_REFUSED, /* not ranked; refused says why */
    NB_CHANGE_NOT_SHOWN,
    NB_CHANGE_SLOWER,
    NB_CHANGE_FASTER,
    NB_CHANGE_MIXED, /* slower by the copy and faster by the reference, or the other way round */
    NB_N_CHANGES
};
const char *nb_change_name(enum nb_change c);

struct nb_compared {
    const struct nb_record *sides[NB_N_SIDES]; /* borrowed; null: only the other run has it */
    /* After / before: above 1 is slower, NaN where the reason says why. */
    struct nb_interval time, to_copy, to_reference;
    char time_reason[80], copy_reason[80], reference_reason[80], refused[200];
    enum nb_change change;
    bool status_differs, accuracy_differs;
};

struct nb_run_noise { /* what is known of the load */
    size_t n_timed, n_noisy;
    double preempted;    /* share of the samples that saw a switch or a migration; NaN: no samples */
    double wall_per_cpu; /* median over cases */
};

struct nb_comparison {
    const struct nb_results *runs[NB_N_SIDES]; /* borrowed */
    struct nb_difference *differences;         /* CPU, system, build, kernels, libraries, plan */
    size_t n_differences;
    struct nb_run_noise noise[NB_N_SIDES];
    bool same_cpu, same_plan;  /* same_plan: measured in the same way; the cases may differ */
    struct nb_compared *cases; /* of both runs, then of the first alone, then of the second alone */
    size_t n, n_common, n_only[NB_N_SIDES], n_changes[NB_N_CHANGES], n_inaccurate;
    size_t *order; /* indices of the common cases: ranked ones, slowed most first, then the others */
};

/* -1 after nb_error: no case is left of either run. */
int nb_comparison_make(struct nb_comparison *c, const struct nb_results *before, const struct nb_results *after,
                       const struct nb_filters *filters);
void nb_comparison_release(struct nb_comparison *c);
/* The ratio that ranks the case: to the copy, else to the reference; its value is NaN where neither is known. */
const struct nb_interval *nb_compared_rank(const struct nb_compared *c);
/* Was everything in both runs, on one kind of CPU, by one plan, and ranked? */
bool nb_comparison_is_whole(const struct nb_comparison *c);
