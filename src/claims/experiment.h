// SPDX-License-Identifier: Apache-2.0
/* How a claim is tried. An experiment is of one of a few kinds; each kind is a table of functions, and adding one is adding a
 * file and its line in experiment.c.
 *
 *   timing, accuracy   blocks of the matrix, which become cases of one plan for all claims (experiment_timing.c, _accuracy.c)
 *   property           a small experiment in C with parameters (property.h)
 *   step               a step of a model as the list of its operations (experiment_step.c)
 *   training           a model in PyTorch, with one norm or another (experiment_training.c) */
#pragma once

#include <stdbool.h>

#include "src/claims/finding.h"
#include "src/core/json.h"
#include "src/core/text.h"
#include "src/measure/paired.h"
#include "src/models/rates.h"
#include "src/models/study.h"
#include "src/plan/config.h"
#include "src/record/record.h"

/* The two plans that matrix experiments add their blocks to. */
/* Eager: no claim's, but PyTorch's RMSNorm on a row next to nothing, for what an operation costs it here. */
enum nb_claims_plan { NB_PLAN_TIMING, NB_PLAN_ACCURACY, NB_PLAN_EAGER, NB_N_CLAIMS_PLANS };
extern const char *const nb_claims_plan_names[NB_N_CLAIMS_PLANS]; /* "timing", "accuracy", "eager": folders, too */

/* What was measured for all claims at once. */
struct nb_claims_measured {
    const struct nb_results *results[NB_N_CLAIMS_PLANS]; /* null: nothing was */
    const struct nb_sample_table *samples;               /* of the timing plan; null likewise */
    const struct nb_rates *rates;                        /* of the operations of steps; null: nothing was timed */
    const struct nb_torch_results *training;             /* null: PyTorch was not asked */
    const char *no_training;                             /* why */
};

struct nb_experiment;
struct nb_experiment_kind {
    const char *name, *summary;
    /* Takes over what the file says beside "kind"; e->own is the kind's. -1 after nb_error with file and line. */
    int (*read)(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node);
    void (*release)(struct nb_experiment *e); /* what lies in e->own, not itself */
    /* Moves the blocks of the experiment, under its label, to the config of its plan; null: it has none. */
    void (*plan)(struct nb_experiment *e, bool quick, struct nb_config configs[NB_N_CLAIMS_PLANS]);
    /* Adds the products of its steps; null: it has none. */
    void (*rates)(const struct nb_experiment *e, struct nb_rates *rates);
    /* After plan: adds what PyTorch is to be asked on the device, "cpu" or "cuda"; null: nothing. device null: --quick leaves it out. */
    void (*torch)(const struct nb_experiment *e, struct nb_torch_plan *plan, const char *device);
    /* One line on what it does, where the kind has more to say than its summary; or null. */
    void (*describe)(const struct nb_experiment *e, struct nb_strbuf *out);
    /* Why it cannot be run here, or null; null function: it always can. */
    const char *(*refuses)(const struct nb_experiment *e);
    /* Adds what was found. What cannot be measured is a finding without a value, with the reason. */
    void (*find)(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out);
};
extern const struct nb_experiment_kind nb_experiment_timing, nb_experiment_accuracy, nb_experiment_property,
    nb_experiment_step, nb_experiment_training;

struct nb_experiment {
    char *name, *label; /* in its claim; of its cases: "ID/NAME" */
    const struct nb_experiment_kind *kind;
    void *own;
};

/* {"kind": "timing", ...} under its name in the claim. -1 after nb_error; release in either case. */
int nb_experiment_read(struct nb_experiment *e, const char *claim, const struct nb_jsonc *file, const cJSON *node);
void nb_experiment_release(struct nb_experiment *e);

/* What timing and accuracy experiments share: blocks of the matrix in a claim file, and the records that came of them. */

struct nb_blocks {
    struct nb_config blocks, quick; /* quick: with --quick instead of blocks; no blocks: the same */
};
/* {"config": "bugs", "label": "onnxruntime#28463"}: the blocks of a preset that have the label, for tables of fields. */
int nb_blocks_read_from(const struct nb_jsonc *file, const cJSON *node, void *blocks);
/* Cases of these blocks are timed beside none of another SIMD width. */
void nb_blocks_isolate_width(struct nb_blocks *m);
/* Moves the blocks to the config, under the label. */
void nb_blocks_move(struct nb_blocks *m, bool quick, const char *label, struct nb_config *config);
void nb_blocks_release(struct nb_blocks *m);
/* Tags of a record: every axis that means something for it, kernel, op, rows, cols, and "fits": the first cache that holds what the op
 * must move (L1, L2, L3, memory). */
void nb_tag_record(struct nb_finding *f, const struct nb_record *r, const cJSON *meta);
/* Why nothing was measured for the label: the reason most often given for a cell left out whose key it may be, else a general one. */
const char *nb_blocks_why_none(const struct nb_results *results);

/* Appends to the "steps" section of claims.json what the experiment, of kind step, came to: an entry for each model, number of tokens, norm and style, unless
 * another claim's is there already; its published rows are added to that.
 *   {"model","title","source","training","tokens","norm","style","reason",
 *    "parts":[{"part","seconds":{value,low,high},"norms":{..},"norm_share":{..},"cut":{..},"norm_cut":{..}}],
 *    "dispatch":[{"row","part","gpu","published":{..},"needed_here_us":{..},"needed_there_us":{..},"limit","sentence"}]} */
void nb_steps_to_json(const struct nb_experiment *e, const struct nb_claims_measured *m, cJSON *models);
