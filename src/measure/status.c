// SPDX-License-Identifier: Apache-2.0
/* Names of the statuses, as the journal and results.json have them. */
#include "src/measure/status.h"

#include <string.h>

const char *const nb_status_names[NB_N_STATUSES + 1] = {
    [NB_OK] = "ok",
    [NB_OUT_OF_RANGE] = "out_of_range",
    [NB_INACCURATE] = "inaccurate",
    [NB_BIASED] = "biased",
    [NB_WROTE_OUTSIDE] = "wrote_outside",
    [NB_READ_OUTSIDE] = "read_outside",
    [NB_NOT_WRITTEN] = "not_written",
    [NB_CHANGED_INPUT] = "changed_input",
    [NB_NOT_REPRODUCIBLE] = "not_reproducible",
    [NB_WRONG_WHEN_TIMED] = "wrong_when_timed",
    [NB_RETURNED_ERROR] = "returned_error",
    [NB_CRASHED] = "crashed",
    [NB_TIMED_OUT] = "timed_out",
    [NB_SKIPPED] = "skipped",
    [NB_NOT_RUN] = "not_run",
};

const char *nb_status_name(enum nb_status s) { return nb_status_names[s]; }

enum nb_status nb_status_parse(const char *name) {
    int s = 0;
    while (s < NB_N_STATUSES && strcmp(name, nb_status_names[s]) != 0) s++;
    return (enum nb_status)s;
}

bool nb_status_ends(enum nb_status s) { return nb_status_failed(s) || s == NB_SKIPPED; }

bool nb_status_timed(enum nb_status s) { return s == NB_OK || s == NB_OUT_OF_RANGE; }

bool nb_status_wrong(enum nb_status s) { return s == NB_INACCURATE || s == NB_BIASED || s == NB_NOT_REPRODUCIBLE; }

bool nb_status_failed(enum nb_status s) {
    return !nb_status_timed(s) && s != NB_SKIPPED && s != NB_NOT_RUN && s < NB_N_STATUSES;
}
