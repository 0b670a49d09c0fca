// SPDX-License-Identifier: Apache-2.0
/* How a case comes out of its check and its timing. */
#pragma once

#include <stdbool.h>

enum nb_status {
    NB_OK,
    NB_OUT_OF_RANGE,  /* a loss that the declared formula predicts for this input; timed all the same */
    NB_INACCURATE,    /* beyond the bound, or NaN, Inf, 0 where a number belongs */
    NB_BIASED,        /* within the bound, but one-sided beyond prediction */
    NB_WROTE_OUTSIDE, /* wrote before, after or between its rows */
    NB_READ_OUTSIDE,  /* read memory that is not its own */
    NB_NOT_WRITTEN,   /* left an element of an output as it was */
    NB_CHANGED_INPUT,
    NB_NOT_REPRODUCIBLE, /* placement, ranges or repetition changed the result */
    NB_WRONG_WHEN_TIMED, /* what the timed calls wrote differs from what was checked */
    NB_RETURNED_ERROR,   /* run() returned non-zero */
    NB_CRASHED,          /* a signal */
    NB_TIMED_OUT,
    NB_SKIPPED, /* cannot run here; the reason says why */
    NB_NOT_RUN, /* planned, but the run ended before it */
    NB_N_STATUSES
};
extern const char *const nb_status_names[NB_N_STATUSES + 1]; /* by status, then null */
const char *nb_status_name(enum nb_status s);
enum nb_status nb_status_parse(const char *name); /* NB_N_STATUSES: unknown */
bool nb_status_failed(enum nb_status s);          /* makes the exit code 1 */
bool nb_status_ends(
    enum nb_status s); /* failed, or skipped by its worker: what a journal's line of a failure may say */
bool nb_status_timed(enum nb_status s); /* ok and out_of_range */
bool nb_status_wrong(enum nb_status s); /* by what it computed: it came back and kept to its memory */
