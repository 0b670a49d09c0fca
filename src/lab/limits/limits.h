// SPDX-License-Identifier: Apache-2.0
/* Where a design's arithmetic ends: thresholds in closed form for one configuration, each tried on a generated row at the threshold and
 * at its neighbour. A prediction that does not hold is a line that says so. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/lab/limits/limits_rules.h"

extern const char *const nb_limit_states[NB_N_LIMIT_STATES];

/* Everything done in the dtype, one running sum, two-pass variance: what a kernel without a wider format does. */
void nb_limits_init(struct nb_limits *l, enum nb_op op, enum nb_number dtype, int64_t n, double eps);

void nb_limit_predict(const struct nb_limit_rule *rule, const struct nb_limits *l, struct nb_limit *line);
void nb_limit_verify(const struct nb_limit_rule *rule, const struct nb_limits *l, struct nb_limit *line);

/* In the order of the report; null behind the last. */
const struct nb_limit_rule *nb_limit_rule_at(size_t i);
