// SPDX-License-Identifier: Apache-2.0
/* What a step costs, and what a norm saves of it.
 *
 *   step(d) = sum of count * (time of the operation) + d * dispatches          d: what it costs to dispatch one operation
 *   saved   = sum over the norms' shapes of count * t_L * (1 - r)              r: the paired ratio of the two kernels' times
 *   cut(d)  = (saved + d * (dispatches of L - dispatches of R)) / step_L(d)
 *
 * L is LayerNorm, or whatever norm is compared with, and R the other one. The cut of d = 0 can never exceed the share of L's norms. Intervals
 * are combined conservatively: low with low, high with high. A quotient of two linear functions of d goes one way, so that it reaches a
 * published cut c once at most:
 *
 *   d(c) = (c step_L(0) - saved) / (dispatches of L - dispatches of R - c dispatches of step_L)
 *
 * 0 where cut(0) is c or more already; never where the divisor is not above 0: then dispatch alone, however slow, saves less than c.
 *
 * Machines: "here", as measured; or a GPU, where products take their floating-point operations over its peak rate, and all else its bytes over
 * the peak rate of its memory, those of the norms as their kernels declare them. It leaves out that launches overlap with work, that an
 * operation may take longer than its bytes, and that no machine reaches its peak rates. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/stats.h"
#include "src/measure/paired.h"
#include "src/models/operations.h"
#include "src/models/rates.h"
#include "src/plan/config.h"
#include "src/record/record.h"

/* ---- norms: which kernels, and their times at the list's shapes ---- */

/* Two kernels by pass, of the norm (of) and of the one that it is compared with. */
struct nb_norm_pair {
    char style[16]; /* "fused", "composed", "keepdim"; of a plugin's kernel: "plugin" */
    char of[2][NB_VARIANT_MAX], against[2][NB_VARIANT_MAX]; /* by enum nb_pass */
};
extern const char *const nb_norm_style_names[]; /* "fused", "keepdim", "composed"; null-terminated */
/* Of "rmsnorm", "prmsnorm", "layernorm" ..: fused OP_fast, keepdim OP_keepdim, composed OP_composed; backward OP_backward_fast, or
 * OP_backward_composed with the other two. */
struct nb_norm_pair nb_norm_pair_of(const char *op, const char *against, const char *style);

/* Adds the cases of these pairs at the step's norms' shapes, in f32. Of a tensor larger than 8 MiB so many rows are timed as have these, or so
 * many more that they lie in the same cache as all of it, or past it (at most 64 MiB). quick: as many as have 2 MiB. */
void nb_norms_plan(const struct nb_model_step *step, const struct nb_norm_pair *pairs, size_t n, bool quick,
                   struct nb_config *config);

struct nb_norm_time {
    int64_t rows, cols, timed_rows;
    enum nb_pass pass;
    struct nb_interval against_s, ratio;   /* of one call, all rows; time of `of` over that of `against` */
    int of_dispatches, against_dispatches; /* phases of an unfused kernel, else 1 */
    double of_bytes, against_bytes;        /* tensors that the kernel declares to load and store */
    char *reason;                          /* why it was not timed, or null */
};
struct nb_norm_times { /* of one pair, by shape and pass */
    struct nb_norm_pair pair;
    struct nb_norm_time *items;
    size_t n;
};
/* From the records and samples of a plan that has these cases, as quick as it was planned. */
void nb_norm_times_find(struct nb_norm_times *times, const struct nb_norm_pair *pair, const struct nb_model_step *step,
                        bool quick, const struct nb_results *results, const struct nb_sample_table *samples);
void nb_norm_times_release(struct nb_norm_times *times);

/* ---- machines ---- */

struct nb_machine {
    const char *name, *title;
    double flops, bytes; /* a second: peak rates of f32 products and of memory */
};
const struct nb_machine *nb_machine_of(const char *name); /* "v100", "rtx-2080-ti" ..; null: not known */
/* "; did you mean ..", or the list. */
void nb_machine_names(struct nb_strbuf *out);

/* ---- the sum ---- */

struct nb_step_side { /* of one part (nb_part_has()) of a step with the norms of `against` */
    struct nb_interval products_s, moved_s, norms_s, saved_s;
    double flops, bytes;                                    /* of products; moved, norms apart */
    double dispatches, norm_dispatches, of_norm_dispatches; /* with the norms of `against`; of these alone; of `of` */
    const char *reason; /* why there is none of it: the first thing that was not measured; or null */
};
/* machine null: here. rates may be null for a GPU. */
struct nb_step_side nb_step_sum(const struct nb_model_step *step, int part, const struct nb_rates *rates,
                                const struct nb_norm_times *norms, const struct nb_machine *machine);

struct nb_interval nb_step_seconds(const struct nb_step_side *s, double dispatch_s);
struct nb_interval nb_step_share(const struct nb_step_side *s); /* of the norms compared with, without dispatch */
struct nb_interval nb_step_cut(const struct nb_step_side *s, double dispatch_s);
double nb_step_cut_limit(const struct nb_step_side *s); /* where dispatch is all that costs */
/* Seconds; infinite: no dispatch is enough. low and high are of the cut's interval here, not of the published one. */
struct nb_interval nb_step_dispatch_for(const struct nb_step_side *s, double cut);

/* What `claims --model` found, as JSON (reports/schema/step.schema.json): DIR/step.json, from which all output is made. */

#define NB_STEP_FILE "step.json"

struct nb_step_about {
    const struct nb_model_step *step;
    const struct nb_rates *rates;
    const struct nb_norm_times *norms; /* by pair */
    size_t n_norms;
    int argc;
    char **argv;
    double elapsed_s;
    bool complete;
};
cJSON *nb_step_document(const struct nb_step_about *about);
