// SPDX-License-Identifier: Apache-2.0
/* The mean and rstd that a backward call is given: those of a perfect forward call, the exact ones rounded once to f32. */
#ifndef NB_SAVED_STATISTICS_H
#define NB_SAVED_STATISTICS_H

#include "src/accuracy/gradient.h"
#include "src/core/case.h"
#include "src/plan/inputs.h"

/* Is there anything to save of the case: is it a gradient of an op with statistics? */
bool nb_case_has_saved(const struct nb_case *c);
/* Adds to the inputs what a case needs and they do not have; nothing for a forward case. The case's rows are the inputs'. -1 after
 * nb_error. */
int nb_saved_statistics_add(struct nb_inputs *in, const struct nb_case *c);
/* The exact gradient of a case whose inputs have them (gradient.h); borrows both. -1 after nb_error. */
int nb_saved_statistics_gradient(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in);

#endif
