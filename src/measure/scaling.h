// SPDX-License-Identifier: Apache-2.0
/* A fixture's rows times a power of two, which commutes with every rounding as long as nothing leaves the normal numbers; a gradient is
 * linear in what comes in, so that dy and dresidual_out times 2^k give dx times 2^k. */
#pragma once

#include <stdbool.h>

#include "src/accuracy/oracle.h"
#include "src/measure/fixture.h"

/* The case's own x, residual and running statistics times 2^k (variances 4^k), and eps and alpha to match; backward: dy and dresidual_out.
 * False when an element leaves the normal numbers of its dtype. */
bool nb_scale(struct nb_fixture *fixture, int k);
/* Why the result may not scale with the case's own rows, or null. oracle: of the whole case. */
const char *nb_scale_excuse(struct nb_fixture *fixture, const struct nb_oracle *oracle, int k);
