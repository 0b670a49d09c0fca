// SPDX-License-Identifier: Apache-2.0
/* Paired measurement: how any two things that were timed beside each other are compared, whoever asks (run, gate, claims, peers, tuning,
 * training). Two arms of one launch are compared within each block, where what preempts or slows one hits the other, too: the median over
 * blocks of ln(a / b) is the launch's number. Launches are processes of their own and the independent units: their numbers are
 * combined by Hodges-Lehmann, with exact signed-rank bounds. What is made of the interval is the caller's rule. */
#pragma once

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/json.h"
#include "src/core/stats.h"
#include "src/core/text.h"
#include "src/measure/core_state.h"

/* Fewest launches whose signed-rank interval exists at 95 %: 2 / 2^6 = 3.1 % lie outside the range of six values. */
#define NB_MIN_LAUNCHES 6

/* ---- samples of one arm in one launch ---------------------------------------------------------------------------- */

struct nb_samples {
    const double *ns;      /* by block: time of one call; NaN where the sample failed */
    const bool *preempted; /* an involuntary switch or a migration in the sample; null: in none */
    size_t n;
    const int *position; /* how many arms came before in the block; null: not kept */
    const double *probe; /* the slower of the probes at the sample's ends, in cycles (NaN: none); null: not probed */
    double floor;        /* of its CPU: which state each sample is in follows from it; NaN: not known */
};
/* Members "sample_ns", "preempted", "position" and "probe" of an arm, alike in the journal, in the samples that the gate keeps and in the
 * answers of workers. Reading gives arrays that nb_samples_release() frees, also after -1 with nb_error. */
int nb_samples_from_json(struct nb_samples *s, const cJSON *arm, double floor);
void nb_samples_release(struct nb_samples *s);

double nb_samples_median(const struct nb_samples *s); /* of the finite ones; NaN: there is none */
/* How many samples, finite ones, were probed, and in how many of these the core was contended. */
struct nb_contention {
    int n_probed, n_contended;
};
struct nb_contention nb_samples_contention(const struct nb_samples *s);

/* What one launch says, by state: NaN where fewer than NB_FEWEST_PAIRS samples, or pairs of samples, of one block lie in it. NB_ANY_STATE takes
 * all of them. */
enum { NB_FEWEST_PAIRS = 3 };
struct nb_by_state {
    double ln[NB_N_STATES];
};
#define NB_NO_STATE ((struct nb_by_state){{NAN, NAN, NAN}})
struct nb_by_state nb_samples_ln(const struct nb_samples *s);                           /* of the median time */
struct nb_by_state nb_pairs_ln(const struct nb_samples *a, const struct nb_samples *b); /* median of ln(a / b) */

/* Which pairs, in any state: all; those in which a came first, or second; two halves of the launch that both reach over all of it and have
 * each order of the arms beside its reverse (src/measure/measure.h): two of every four blocks. The first and the second need positions. */
enum nb_pairs { NB_PAIRS_ALL, NB_PAIRS_FIRST, NB_PAIRS_SECOND, NB_PAIRS_HALF_A, NB_PAIRS_HALF_B };

/* Median of ln(a / b) over pairs of one block; NaN: there are none. */
double nb_paired_ln(const struct nb_samples *a, const struct nb_samples *b, enum nb_pairs which);
/* Share of the pairs in which either sample is preempted. */
double nb_paired_preempted(const struct nb_samples *a, const struct nb_samples *b);

/* What others did to a launch while it was timed. Of the measuring thread, but for steal_ms: time that the hypervisor gave to others, over
 * all CPUs. NaN: not known. */
struct nb_noise {
    double steal_ms, involuntary, voluntary, wall_s, cpu_s;
    int cpu, threads; /* the first one; how many of the launch are probed at once */
    double throttled; /* 1: power or heat lowered the GPU's clocks; 0; NaN: not known, or none was used */
};
extern const struct nb_member nb_noise_members[]; /* "noise" of a launch */

/* ---- over launches ----------------------------------------------------------------------------------------------- */

/* v: of each launch its number, NaN where it has none. All NaN when no launch has one; bounds are NaN where too few have one. */
struct nb_interval nb_over_launches(const double *v, size_t n, double confidence);
/* The level at which a run's intervals are computed, so that they hold 95 %. Where the number of launches was fixed beforehand, that
 * is 95 %. Where launches were added while the interval was wide, it is more, since such a rule stops early when the launches happen to
 * lie close together (src/decisions/0065-how-many-launches.md). */
double nb_confidence(bool adaptive);
/* Fewest launches that have an interval at that level. */
int nb_fewest_launches(double confidence);
/* Of logarithms: the interval of the ratio. */
struct nb_interval nb_ratio_over_launches(const double *ln, size_t n, double confidence);
/* The state that serves for the launches' numbers (nb_state_of_figure()), enough being those of an interval at that level. */
enum nb_state nb_state_over_launches(const struct nb_by_state *v, size_t n, double confidence);
/* Of one state's logarithms the interval of the ratio. */
struct nb_interval nb_ratio_in_state(const struct nb_by_state *v, size_t n, enum nb_state state, double confidence);
struct nb_interval nb_interval_exp(struct nb_interval ln);

/* Writes a permutation of 0 .. n - 1 for the round: orders in which each of several things follows each other one equally often. Over n
 * rounds (2 n where n is odd and above 1) each stands at each place equally often, and each pair of neighbours comes in both orders
 * equally often (Williams 1949, Experimental designs balanced for the estimation of residual effects of treatments). */
void nb_turns(int *order, int n, int round);

/* ---- all samples of a run ---------------------------------------------------------------------------------------- */

struct nb_sample_row { /* one case in one launch of one part of a group */
    int part, launch;
    size_t process; /* of all in the journal: cases of a group that fail together have one each */
    struct nb_samples samples;
    double per_sample; /* calls in a sample, rows where chunked; NaN: not known */
    bool chunked;
};
struct nb_sample_case {
    char *key;
    int part; /* the first that it stands in, where it is reported; a reference stands in each part of its group */
    struct nb_sample_row *rows;
    size_t n;
};
struct nb_sample_table {
    struct nb_sample_case *cases;
    size_t n;
    struct nb_text_map index; /* by key */
    char **references;        /* key of each part's reference case */
    int *families;            /* of each part; -1: none */
    size_t n_parts, n_launches, n_processes;
    struct nb_floors floors; /* of the whole run */
    bool adaptive;           /* nb_confidence() */
};

/* From DIR/journal.jsonl. -1 after nb_error. */
int nb_sample_table_read(struct nb_sample_table *s, const char *dir);
void nb_sample_table_release(struct nb_sample_table *s);

/* Time of a / time of b. Where they stood in one part of a group, from pairs within blocks; else from the ratios of both to the
 * reference that their parts share; else, where width alone keeps their groups apart, from pairs of neighbouring launches (medians
 * over blocks). NaN where none of that is known; bounds are NaN below NB_MIN_LAUNCHES launches. */
struct nb_paired {
    struct nb_interval ratio;     /* in `state` */
    struct nb_interval contended; /* beside an uncontended ratio; NaN where too few launches have it */
    enum nb_state state;
    int n_launches; /* that have a number in it */
};
/* ln: room for n_launches numbers, ln(a / b) in each launch, NaN where it has none; or null. */
struct nb_paired nb_paired_ratio(const struct nb_sample_table *s, const char *a, const char *b, double *ln);
