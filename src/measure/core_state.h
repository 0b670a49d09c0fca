// SPDX-License-Identifier: Apache-2.0
/* A core is slower while another tenant uses its other hyperthread or takes a slice of its time, of which a guest is told nothing. Two
 * kernels that use different parts of the core have another ratio in each state, and a mixture of both says nothing. So a probe runs
 * between samples, and figures are those of one state. A state follows from the probe, and from whether the sample was preempted or
 * migrated, never from its time: no outlier is dropped. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nb_state {
    NB_UNCONTENDED, /* both probes at the ends of the sample took what they take on an uncontended core */
    NB_CONTENDED,   /* one of them took longer */
    NB_ANY_STATE,   /* both, or nothing was probed */
    NB_N_STATES
};
extern const char *const nb_state_names[]; /* "uncontended" "contended" "any", null-terminated */

/* What a core of this machine does when nobody shares it.
 *
 * The probe's cycles, by the number of the launch's first CPU and of its threads, which are probed at once and may be
 * neighbours of each other. A single probe may be nonsense, where a switch fell into it: on a busy host 5 % of them are too low, each by another
 * amount. So one counts that agrees within 4 % with the one before or behind it of the same arm, and the floor is the median of the lowest stretch
 * of 4 % that holds a hundredth of the run's probes; where an earlier run's is lower by more, it is that, since this run may have met no
 * uncontended core; but what ten runs in a row have not met is no floor any more.
 *
 * The clock: the highest at which a launch has run. Zero-initialise. */
enum { NB_FLOOR_BINS = 3000, NB_FLOOR_UNMET = 10 };
struct nb_floors {
    struct nb_floor {
        int cpu, threads;
        double kept;                     /* of earlier runs; NaN: none */
        int unmet;                       /* so many runs have not met it */
        double clock_ghz, kept_ghz;      /* 0: not known; of earlier runs */
        uint32_t n_in[NB_FLOOR_BINS], n; /* those that count, in bins of half a percent; all probes */
    } * cpus;
    size_t n;
};
double nb_floors_get(const struct nb_floors *f, int cpu, int threads); /* in cycles; NaN: not known */
double nb_floors_of_line(const struct nb_floors *f, const cJSON *line);
/* The highest clock of the CPU on which the "launch" line was measured, GHz; 0: not known. */
double nb_floors_clock_of_line(const struct nb_floors *f, const cJSON *line);
/* Takes in probes; NaN where there is none. */
void nb_floors_take(struct nb_floors *f, int cpu, int threads, const double *probes, size_t n);
/* Takes in all arms of a "launch" line, or of a worker's answer with arms. */
void nb_floors_take_line(struct nb_floors *f, const cJSON *line);
/* [{"cpu","threads","cycles","clock_ghz"}] of a "run" line, and of the file in which they are kept. */
void nb_floors_from_json(struct nb_floors *f, const cJSON *list);
cJSON *nb_floors_to_json(const struct nb_floors *f);
/* What earlier commands found on this kind of CPU, beside the tuning (src/core/tuning.h); and keeps what is lower by now. No file is no error. */
void nb_floors_load(struct nb_floors *f);
void nb_floors_keep(struct nb_floors *f);
void nb_floors_forget(void); /* the file */
void nb_floors_release(struct nb_floors *f);

#define NB_QUIET_S 4e-3    /* at most so long a block looks for an uncontended core */
#define NB_ASLEEP_S 0.3e-3 /* and so long it sleeps at a time */

/* Above 1.10 times the floor, or below 0.93 of it, which is nonsense. Not, where either is not known. */
bool nb_is_contended(double probe, double floor);

/* Which state a figure is of, from how many launches have a value in each: the uncontended one where enough have it, or, where
 * all are fewer than enough, three quarters of them; else the contended one by the same rule; else any. */
enum nb_state nb_state_of_figure(const size_t n[NB_N_STATES], size_t enough);

/* ---- a neighbour of our own ---- */

/* What the probe of the core (src/measure/core_state.h) sees here, and how sensitive it is: with a neighbour of our own on the CPU's sibling. */

struct nb_neighbour {
    int cpu, sibling;  /* the first allowed CPU; one that shares its core, -1: the system shows none that is allowed */
    double now, floor; /* cycles: median of some 10 ms; of earlier runs, NaN: not known */
    double beside;     /* beside a thread that fills the sibling; NaN: there is none */
};
/* Takes some 20 ms. */
void nb_neighbour_measure(struct nb_neighbour *n);
