// SPDX-License-Identifier: Apache-2.0
/* The instrument of the probes: a kernel, a tensor of rows that one writes into, and a scale for sums of squares.
 *
 * The scale: with eps inside the root y falls monotonically in v + eps, v being the row's variance or mean square. The eps at which
 * an output drops to a given level is found by bisection; the difference of two rows' drops is the difference of their v, whatever
 * the root does and however few bits the output has. With eps outside the root it is the difference of the two roots. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/lab/stress/trial.h"

/* The kernel that is probed, what is known of it so far, and the answers. Later questions build on what earlier ones found. */

enum { NB_PROBE_COLS = 1 << 13 }; /* of the longest rows */

struct nb_probe {
    struct nb_case c;
    const struct nb_entry *entry;
    enum nb_dtype dtype;
    const struct nb_format *format;
    bool centres; /* LayerNorm: the mean is taken off */
    bool of_sum;  /* L2Norm: v is the sum, not the mean */
    bool has_gamma, has_beta;
    double unit;                 /* the gamma that leaves x * rstd as it is: 1, or 0 where 1 + gamma is applied */
    int eps_place;               /* enum nb_eps_place; -1: not known */
    bool eps_plain;              /* eps enters v (or its root) as given, or the sum as given (eps_on_sum) */
    bool eps_on_sum;             /* n v + eps */
    const char *why_not_weighed; /* the statistics are not known to be fine: the reason */
    bool coarse_eps;             /* eps, or what it is added to, has 16 bits: nothing can be weighed against it */
    bool coarse_stats;           /* sums of 16-bit rows could be weighed no more finely than to the bits of x */
    bool fine_stats;             /* the statistics keep more than 12 bits */
    int variance;                /* enum nb_variance; -1: not known */
    const char *failure;         /* the kernel refused, or returned an error: nothing more can be asked */
    char failure_text[200];
    int64_t calls;
    cJSON *answers;
};

/* One answer. value null: undetermined, and the evidence is the reason. confidence: "certain" where one output that differs disproves
 * every other answer, "strong" where several numbers fit one answer of a family, or what the limit of the trial is. */
void nb_probe_say(struct nb_probe *p, const char *question, const char *value, const char *confidence,
                  const char *evidence, ...) __attribute__((format(printf, 5, 6)));

/* The parts of a probe that are files of their own, in the order in which probe.c asks them. */
void nb_probe_eps(struct nb_probe *p);      /* place, value, dtype; the statistics' dtype */
void nb_probe_variance(struct nb_probe *p); /* the format of sums of squares; the variance of a LayerNorm */
void nb_probe_root(struct nb_probe *p);     /* form, instruction, rounding of the output */

struct nb_box {
    struct nb_probe *p;
    struct nb_trial t;
    double *x; /* rows x cols; zeros at first */
    double *gamma, *beta;
    int64_t rows, cols;
    bool broken; /* a call failed; p->failure says why */
};

/* gamma: p->unit; beta: 0; eps as given. -1 with p->failure. */
int nb_box_init(struct nb_box *b, struct nb_probe *p, int64_t rows, int64_t cols, double eps);
void nb_box_release(struct nb_box *b);
static inline void nb_box_clear(struct nb_box *b) { /* all x to 0 */
    for (int64_t i = 0; i < b->rows * b->cols; i++) b->x[i] = 0;
}
void nb_box_set(struct nb_box *b, int64_t row, int64_t col, double x); /* as the dtype stores it */
/* x = +-a in every column of row 0, alternating: mean 0, v = a^2 (L2Norm: cols a^2). */
void nb_box_set_level(struct nb_box *b, double a);
/* Standard normal numbers; where the mean is taken off in pairs of +-, so that it is 0. */
void nb_box_fill_normal(struct nb_box *b, uint64_t stream);
/* Calls the kernel with x, gamma and beta as they are. */
int nb_box_run(struct nb_box *b);
/* The same with another eps and x unchanged. */
int nb_box_rerun(struct nb_box *b, double eps);
static inline double nb_box_y(const struct nb_box *b, int64_t row, int64_t col) { return nb_trial_y(&b->t, row, col); }

/* The eps in (low, high) from which |y(0, col)| is at most level, by bisection to 2^-36; NaN when it does not cross. */
double nb_box_drop(struct nb_box *b, int64_t col, double level, double low, double high);

/* The eps that is worth 1 in v of a row of n columns. */
static inline double nb_eps_unit(const struct nb_probe *p, int64_t n) { return p->eps_on_sum ? (double)n : 1; }

/* Weighs sums of squares against that of a row which is known: x_at = a, all else 0, sum a^2. */
struct nb_scale {
    int64_t n;
    double known; /* the sum of that row as v sees it: over n, for L2Norm as it is */
    double level, drop;
    double unit;      /* eps that is worth 1 in v, or in its root */
    double tolerance; /* of a sum of squares, absolute */
    bool direct;      /* read off y, since eps is a clamp, or coarse */
    bool by_weight;   /* eps is coarse, and the weight is f32: y falls when it is divided by drop */
};
/* -1: this kernel cannot be weighed; why says so. b holds the known row afterwards. */
int nb_scale_init(struct nb_scale *s, struct nb_box *b, int64_t at, double a, const char **why);
/* Sum of squares of the row in b as the kernel formed it, read at the element of value a; NaN when it left the scale. */
double nb_scale_weigh(const struct nb_scale *s, struct nb_box *b, int64_t at, double a);
