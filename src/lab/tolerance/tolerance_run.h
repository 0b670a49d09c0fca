// SPDX-License-Identifier: Apache-2.0
/* Derives a tolerance and tries it. */
#ifndef NB_TOLERANCE_RUN_H
#define NB_TOLERANCE_RUN_H

#include "src/lab/tolerance/tolerance.h"

/* -1 after nb_error. 128 + signal: interrupted. */
int nb_tolerance_run(struct nb_tolerance *t, const struct nb_tolerance_request *request);

#endif
