// SPDX-License-Identifier: Apache-2.0
/* From what was found to what may be said of a claim. */
#ifndef NB_VERDICT_H
#define NB_VERDICT_H

#include "src/claims/claims.h"

enum nb_verdict { NB_REPRODUCED, NB_PARTLY, NB_NOT_REPRODUCED, NB_NOT_TESTABLE, NB_N_VERDICTS };
extern const char *const nb_verdict_names[NB_N_VERDICTS]; /* "REPRODUCED", ... */

/* What the rulings of one reading come to. All figures hold: REPRODUCED; none: NOT REPRODUCED; some: PARTLY. NOT TESTABLE HERE where
 * none could be decided; where all that could hold and more than a quarter could not; and where all that could fail and more than
 * half could not: what most figures refute may at best hold in part. reason is owned. */
enum nb_verdict nb_verdict_of(const struct nb_rulings *rulings, char **reason);

struct nb_read { /* a reading that was tried */
    const struct nb_reading *reading;
    struct nb_rulings rulings;
    enum nb_verdict verdict;
    char *reason;
};

struct nb_sensed { /* what a reading would come to with one value of an axis */
    const struct nb_sensitivity *by;
    const struct nb_reading *reading;
    char *value;
    enum nb_verdict verdict;
    size_t n;         /* figures */
    double low, high; /* their range */
};

struct nb_claim_result {
    const struct nb_claim *claim;
    struct nb_findings *findings; /* by experiment */
    struct nb_read *reads;        /* by reading */
    enum nb_verdict verdict;
    char *reason;
    size_t main; /* the reading that the verdict is explained by; NB_NO_READING: none */
    struct nb_sensed *sensed;
    size_t n_sensed;
};
#define NB_NO_READING ((size_t)-1)

/* Which choice makes or breaks a claim: its rules applied to the figures of one value of an axis at a time, whatever values the rules
 * select. */

/* Do the values of the axis that entry i belongs to come to different verdicts? */
bool nb_sensitivity_decides(const struct nb_claim_result *result, size_t i);

/* Tries a claim: its experiments, its readings, its verdict. */

/* Judges findings that are there already: result->claim and ->findings are given. */
void nb_claim_judge(struct nb_claim_result *result);
/* Runs what is not a matrix experiment, takes what was measured of the others, and judges. */
void nb_claim_try(struct nb_claim_result *result, const struct nb_claim *claim, const struct nb_claims_measured *m);
void nb_claim_result_release(struct nb_claim_result *result);

#endif
