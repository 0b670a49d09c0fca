// SPDX-License-Identifier: Apache-2.0
/* The second stage of a run that compares kernels: what looks behind is measured again, in fresh processes. */
#ifndef NB_RUN_CONFIRM_H
#define NB_RUN_CONFIRM_H

#include "cmd/run_measure.h"
#include "src/plan/config.h"

/* DIR/confirm: a run of its own with the cases that look behind in the run in dir, which has ended; goes on with one that was cut off.
 * Changes config's launches and seed. As nb_run_plan(): 0, -1 after nb_error, or the signal that ended it. */
int nb_confirm(const struct nb_measuring *first, struct nb_config *config, const char *dir);

#endif
