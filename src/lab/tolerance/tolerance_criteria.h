// SPDX-License-Identifier: Apache-2.0
/* Does an output pass a criterion? */
#ifndef NB_TOLERANCE_CRITERIA_H
#define NB_TOLERANCE_CRITERIA_H

#include "src/lab/tolerance/tolerance.h"

/* Appends the criteria in common use for outputs of the format. */
void nb_criteria_in_use(struct nb_tolerance *t, enum nb_number store);
/* A test of rows x cols outputs; usable: null, or false for elements that no criterion looks at. True: it fails. */
bool nb_criterion_alarms(const struct nb_criterion *c, enum nb_number store, int64_t rows, int64_t cols,
                         const double *got, const double *want, const bool *usable);
/* Mean over |want| > rms(want) / 4 of each row of (|got| - |want|) / |want|; NaN without such elements. */
double nb_mean_error(int64_t rows, int64_t cols, const double *got, const double *want, const bool *usable);

void nb_rate_count(struct nb_rate *rate, bool seen);
void nb_rate_finish(struct nb_rate *rate);

#endif
