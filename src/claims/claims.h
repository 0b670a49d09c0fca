// SPDX-License-Identifier: Apache-2.0
/* A claim: a published statement as a file that can be run (configs/claims/ID.json; reports/schema/claim.schema.json describes it).
 * A statement may be read in more than one way, so a claim has readings: what each expects of which experiment. The verdict of
 * the claim is that of its readings, alternatives left out.
 *
 * The claims that can be named: files of configs/claims/, and a family: one claim for each label of configs/bugs.json ("bug-LABEL"),
 * which says that its input breaks kernels, and is reported for each kernel. */
#pragma once

#include "src/claims/experiment.h"
#include "src/claims/rule.h"
#include "src/core/json.h"

struct nb_claim_source {
    char *cite, *says,
        *note; /* who and where; in which words or figures; what is odd about it; the last two may be null */
};

struct nb_reading {
    char *id, *text;
    char *
        under; /* "models whose step saves 7%": readings of one condition are rows, of which the reason counts those that hold; or null */
    char *
        seen; /* what its figures say: "{}" for their range, "{holds}" for how many hold, "{above|below}" for their sign, which {} then
                  * leaves out: "the saving is {} {above|below} that at 64"; or null */
    size_t experiment;       /* index */
    bool alternative;        /* another way to read the statement: shown, and no part of the verdict */
    struct nb_strings needs; /* what a machine must have: "gpu" */
    struct nb_rule *rules;
    size_t n_rules;
};

struct nb_sensitivity {          /* an axis whose choice may make or break the claim */
    char *axis, *reading, *text; /* reading null: the first that can be tested */
};

struct nb_claim {
    char *id, *path, *title, *statement, *scope;
    struct nb_claim_source *sources;
    size_t n_sources;
    struct nb_experiment *experiments;
    size_t n_experiments;
    struct nb_reading *readings;
    size_t n_readings;
    struct nb_sensitivity *sensitivities;
    size_t n_sensitivities;
    char *correction;                     /* of a statement that no measurement can decide: what is right; or null */
    bool false_in_part;                   /* such a statement is wrong in part, as the correction says */
    char *remark;                         /* what a reader should know of the source; or null */
    struct nb_strings changed_after_data; /* "DATE: what": to its rules, seeds or margins; also in changes.csv */
};

/* -1 after nb_error with file, line, key and mend; claim is empty then. id: of the file's name, or of a family. */
int nb_claim_parse(struct nb_claim *claim, const char *path, const char *text, size_t len);
void nb_claim_release(struct nb_claim *claim);
const struct nb_reading *nb_claim_reading(const struct nb_claim *claim, const char *id); /* or null */

/* Why this machine lacks what a reading needs, or null; needs that no version knows are refused when the claim is read. */
const char *nb_claim_lacks(const char *need);

#define NB_BUG_PREFIX "bug-"
bool nb_claim_is_bug(const char *id);

struct nb_claims {
    struct nb_claim *items; /* by id; those of the family last */
    size_t n;
};
/* Those that match any of the patterns (globs on the id, or the path of a file: with a slash or .json); n_patterns 0: all. -1 after
 * nb_error: a file that is wrong, a pattern that matches nothing. */
int nb_claims_read(struct nb_claims *claims, const char *const *patterns, size_t n_patterns);
void nb_claims_release(struct nb_claims *claims);

/* The plans of all claims: blocks are moved out of the claims. launches 0: as usual. configs[i].n_blocks 0: nothing of that kind. */
struct nb_claims_effort {
    bool quick;
    int launches;
};
void nb_claims_configs(struct nb_claims *claims, const struct nb_claims_effort *effort,
                       struct nb_config configs[NB_N_CLAIMS_PLANS]);
/* Of the family's blocks only the kernels of the plugins that are loaded. */
void nb_claims_bugs_on_plugins(struct nb_config *config);

/* ---- From what was found to what may be said of a claim. ---- */

enum nb_claim_verdict {
    NB_REPRODUCED,
    NB_PARTLY,
    NB_NOT_REPRODUCED,
    NB_FALSE_IN_PART, /* a statement of fact, no measurement */
    NB_FIRST_OPEN,    /* from here on: not decided, and why */
    NB_NEEDS_A_GPU = NB_FIRST_OPEN,
    NB_NOT_MEASURED,   /* left out by --quick or a budget, or by a machine that lacks something else */
    NB_UNDECIDED_HERE, /* intervals are too wide; the reason says what would do */
    NB_NO_MEASUREMENT, /* none decides it */
    NB_N_CLAIM_VERDICTS
};
extern const char *const nb_claim_verdict_names[NB_N_CLAIM_VERDICTS]; /* "REPRODUCED", ... */
/* Is the verdict of that name one of those that decide? Not of the open ones, nor of the one that older files have. */
bool nb_claim_is_decided(const char *verdict);

/* What the rulings of one reading come to. All figures hold: REPRODUCED; none: NOT REPRODUCED; some: PARTLY. Open where none could be
 * decided; where all that could hold and more than a quarter could not; and where all that could fail and half or more could not:
 * what most figures refute may at best hold in part. reason is owned. */
enum nb_claim_verdict nb_verdict_of(const struct nb_rulings *rulings, char **reason);

struct nb_read { /* a reading that was tried */
    const struct nb_reading *reading;
    struct nb_rulings rulings;
    enum nb_claim_verdict verdict;
    char *reason;
};

struct nb_sensed { /* what a reading would come to with one value of an axis */
    const struct nb_sensitivity *by;
    const struct nb_reading *reading;
    char *value;
    enum nb_claim_verdict verdict;
    size_t n;         /* figures */
    double low, high; /* their range */
};

struct nb_claim_result {
    const struct nb_claim *claim;
    struct nb_findings *findings; /* by experiment */
    struct nb_read *reads;        /* by reading */
    enum nb_claim_verdict verdict;
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
