// SPDX-License-Identifier: Apache-2.0
/* The kernel that is probed, what is known of it so far, and the answers. Later questions build on what earlier ones found. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/kernel_entry.h"

enum { NB_PROBE_COLS = 1 << 13 }; /* of the longest rows */

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
    bool coarse_eps;             /* eps, or what it is added to, has 16 bits: nothing can be weighed against it */
    bool coarse_stats;           /* sums of 16-bit rows could be weighed no more finely than to the bits of x */
    bool fine_stats;             /* the statistics keep more than 12 bits */
    int variance;                /* enum nb_variance; -1: not known */
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

/* The parts of a probe that are files of their own, in the order in which probe.c asks them. */
void nb_probe_eps(struct nb_probe *p);      /* place, value, dtype; the statistics' dtype */
void nb_probe_variance(struct nb_probe *p); /* the format of sums of squares; the variance of a LayerNorm */
void nb_probe_root(struct nb_probe *p);     /* form, instruction, rounding of the output */
