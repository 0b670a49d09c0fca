// SPDX-License-Identifier: Apache-2.0
/* What the rooms of a probe share: the kernel, what is known of it so far, and the answers. Each room asks some of the questions, in the
 * order of src/lab/probe/probe.c; later ones build on what earlier ones found. */
#ifndef NB_PROBE_STATE_H
#define NB_PROBE_STATE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/registry.h"

struct nb_probe {
    struct nb_case c;
    const struct nb_entry *entry;
    const struct nb_format *format;
    bool centres; /* LayerNorm: the mean is taken off */
    bool of_sum;  /* L2Norm: v is the sum, not the mean */
    bool has_gamma, has_beta;
    double unit;                 /* the gamma that leaves x * rstd as it is: 1, or 0 where 1 + gamma is applied */
    int eps_place;               /* enum nb_eps_place; -1: not known */
    bool eps_plain;              /* eps enters v (or its root) as given, or the sum as given (eps_on_sum) */
    bool eps_on_sum;             /* n v + eps */
    const char *why_not_weighed; /* the statistics are not known to be fine: the reason */
    bool coarse_stats;           /* they have the 16 bits of x */
    bool fine_stats;             /* the statistics keep more than 12 bits */
    int variance;                /* enum nb_variance; -1: not known */
    int64_t cols;                /* length of the rows that show how a row is summed: a power of two, 2^13 .. 2^20 */
    int64_t lanes;               /* of the sum of squares; 0: not known */
    const char *failure;         /* the kernel refused, or returned an error: nothing more can be asked */
    char failure_text[200];
    int64_t calls;
    cJSON *answers;
};

void nb_probe_init(struct nb_probe *p, const struct nb_case *c, const struct nb_entry *entry);
/* One answer. value null: undetermined, and the evidence is the reason. confidence: "certain" where one output that differs disproves
 * every other answer, "strong" where several numbers fit one answer of a family, or what the limit of the trial is. */
void nb_probe_say(struct nb_probe *p, const char *question, const char *value, const char *confidence,
                  const char *evidence, ...) __attribute__((format(printf, 5, 6)));
/* Of an array of answers: null when undetermined or not asked. */
const char *nb_probe_value_in(const cJSON *answers, const char *question);

/* The rooms; those of sums and variances are in probe_sum.h. */
void nb_probe_params(struct nb_probe *p);  /* 1 + gamma or gamma */
void nb_probe_eps(struct nb_probe *p);     /* place, value, dtype; the statistics' dtype */
void nb_probe_root(struct nb_probe *p);    /* form, instruction, rounding of the output */
void nb_probe_affine(struct nb_probe *p);  /* cast order, dtype of 1 + gamma, fma with beta */
void nb_probe_special(struct nb_probe *p); /* subnormals, NaN, Inf */
void nb_probe_context(struct nb_probe *p); /* repeated calls, other rows, threads, padding */
/* All that is known on one line. */
void nb_probe_summary(const struct nb_probe *p, struct nb_strbuf *out);

#endif
