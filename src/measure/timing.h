// SPDX-License-Identifier: Apache-2.0
/* From samples to the time of a case, with evidence of how far it can be believed.
 *
 * All figures of a case are of one state of the core (src/measure/core_state.h): the uncontended one, unless too few launches met it.
 *
 * A launch gives three numbers for a case: the median over its blocks of the samples' times, and the medians over its
 * blocks of ln(copy / case) and of ln(case / reference), both paired within a block: neighbours in time share the
 * machine's state, so what preempts or slows both cancels, and the median forgets what hits only one. Launches are the
 * independent units: their numbers are combined by Hodges-Lehmann with exact signed-rank bounds (95 %), and
 * exponentiated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/stats.h"
#include "src/measure/paired.h"

/* What can be had at all: the larger of the copy, which moves the bytes, and of what the core needs for the arithmetic
 * (src/measure/launch_job.c), on a device of a call that computes nothing; both of the same launch. */
struct nb_roofline {
    struct nb_interval time_ns; /* NaN: the launches have no copy, or neither core bound nor floor */
    struct nb_interval share;   /* time_ns / time of the case in the same samples */
    double core_ns;             /* the core's bound alone */
    char bottleneck
        [8]; /* "core", "launch", or where the copy found its bytes: "L1", "L2", "L3", "DRAM"; "" where time_ns is NaN */
};

/* Why a group had as many launches as it did: the number was fixed; the ratios of all its cases are as exact as wanted; it was the most
 * that it may have; or the time was up. */
enum nb_stop { NB_STOP_UNKNOWN, NB_STOP_FIXED, NB_STOP_AIM, NB_STOP_MOST, NB_STOP_BUDGET, NB_N_STOPS };
extern const char *const nb_stop_names[]; /* "" "fixed" "aim" "most" "budget", null-terminated */

struct nb_timing {
    struct nb_interval time_ns;      /* of one call on the whole shape, over launches */
    struct nb_interval vs_copy;      /* time of the copy / time of the case */
    struct nb_interval vs_reference; /* time of the case / time of the group's reference case */
    char state[12];                  /* that these figures are of, of nb_state_names */
    struct nb_in_contention {
        struct nb_interval time_ns, vs_reference;
    } contended; /* the same on a contended core, where they are not that already; NaN: too few launches met it */
    struct nb_roofline roofline;
    double gbytes_per_s; /* compulsory bytes / time */
    double of_datasheet; /* on a GPU, from its memory: gbytes_per_s / the bandwidth of the datasheet; else NaN */
    double min_ns;       /* fastest sample, per call */
    int n_launches, n_samples;
    char stopped
        [8]; /* why there were no more launches of its group, of nb_stop_names; "": the run was cut off, or does not say */
    int n_preempted;   /* samples that, or whose copy's sample in the block, saw an involuntary switch or a migration */
    bool chunked;      /* samples are rows of the shape, not whole calls */
    double per_sample; /* calls in a sample, rows when chunked */
    bool suspect; /* vs_copy above NB_AS_FAST beyond its interval, which is known of no kernel that does its work */
    bool noisy;   /* too noisy to rank; noise says why */
    char noise[200];
    double steal_ms;     /* evidence, of all launches: time that the hypervisor took */
    double involuntary;  /* involuntary context switches */
    double throttled;    /* launches while power or heat lowered the GPU's clocks; NaN: not known, or none was used */
    double wall_per_cpu; /* median over launches of wall time / CPU time of the measuring thread */
    double copy_drift;   /* slowest / fastest launch median of the copy */
    double floor_ns;     /* of a call that computes nothing, on a GPU or in another process; NaN: none was timed */
    double uncontended;  /* share of the samples in which the core was; NaN: not known */
    double clock_ghz;    /* at which the times are given, the core's highest; NaN: as measured */
    double median_ghz;   /* of its launches */
    char copy[NB_VARIANT_MAX]; /* "" when none ran */
    char *reference;           /* key of the group's reference case; owned */
};

/* What the launches of one case have left so far. Zero-initialise. */
struct nb_launch_value {
    struct nb_by_state time, vs_copy, reference, copy;
    struct nb_by_state vs_other_copy, other_copy; /* of the runner-up among the copies */
    double wall_per_cpu, core_ns,
        floor_ns; /* NaN: this launch has none; core_ns: bound; floor_ns: a call that computes nothing */
    double clock_ghz, highest_ghz; /* NaN: times are as measured */
};
struct nb_launches {
    struct nb_launch_value *values;
    size_t n;
    bool adaptive; /* how many there are followed from their spread (nb_confidence()) */
    double min_ns, steal_ms, involuntary, throttled;
    int n_samples, n_preempted;
    struct nb_contention contention;
    char level[8]; /* nb_launches_bound() */
};
#define NB_AS_FAST 1.05 /* copies within this of each other are about as fast */
/* Takes in one launch. copy and reference: the samples of the same blocks, or null. A launch without one valid sample is
 * left out. */
void nb_launches_add(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *copy,
                     const struct nb_samples *reference, const struct nb_noise *noise);
/* Of the launch that was taken in last, the samples of the runner-up: another copy that was timed beside the one that was chosen. */
void nb_launches_add_other(struct nb_launches *l, const struct nb_samples *own, const struct nb_samples *other);
/* Does the runner-up take its place? Where it is faster than what was chosen, by more than NB_AS_FAST over all launches that have both. */
bool nb_launches_other_copy_is_faster(const struct nb_launches *l);
/* What the case needs at least, as found in the launch that was taken in last: the core, and a call that computes nothing; NaN: not known.
 * level: where the case's tensors lie. */
void nb_launches_bound(struct nb_launches *l, double core_ns, double floor_ns, const char *level);
/* Of the launch that was added last, which ran at one clock: times are given as at the highest, which they follow where data lie in the
 * core's own caches. A case of cold caches has none. */
void nb_launches_clock(struct nb_launches *l, double clock_ghz, double highest_ghz);
/* Half the width of the interval that says how well the case can be compared, as a share: of the wider of its ratios to the copy and to
 * the reference, of its time where it has neither; in the state that its figures are of so far. NaN: too few launches for an interval. */
double nb_launches_width(const struct nb_launches *l);
/* Is the ratio too noisy to rank: half its width above 3 %, or no interval? */
bool nb_is_too_wide(const struct nb_interval *ratio);
/* Figures and verdicts; bytes: compulsory bytes of a call. chunked, per_sample, copy, reference are the caller's to fill. */
void nb_launches_finish(const struct nb_launches *l, double bytes, struct nb_timing *out);
/* The time at the median clock of the launches, to be set beside times of other programs. */
struct nb_interval nb_timing_as_measured(const struct nb_timing *t);
void nb_launches_release(struct nb_launches *l);

/* As reports/schema/results.schema.json has it. What is read owns its reference. */
extern const struct nb_member nb_timing_members[];
