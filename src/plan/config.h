// SPDX-License-Identifier: Apache-2.0
/* What to run, as the user wrote it: blocks of axes with lists of values, from a JSON file with comments and from options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/axes.h"
#include "src/core/json.h"

/* What a config says about gating, under its key "gate":
 *   { "fail_margin": 1, "pass_margin": 3, "level": 1,                   in %, as the options of the same names
 *     "instructions": { "rmsnorm_*_f32": 5200, "*": "+2%" } }            budgets of exact instruction counts
 * A budget belongs to the cases that a filter (nb_filters_match) takes, and is a number of instructions of one small call or a
 * share above the baseline's. A case keeps to every budget that is its. */
struct nb_instruction_budget {
    char *filter;
    double most; /* instructions, or with relative the share above the baseline's (0.02) */
    bool relative;
};

#define NB_GATE_FAIL_MARGIN 0.005 /* where neither a config nor an option says another */
#define NB_GATE_PASS_MARGIN 0.015
struct nb_gate_settings {
    double fail_margin, pass_margin, level; /* shares, not %; 0: not said */
    struct nb_instruction_budget *budgets;
    size_t n_budgets;
};

void nb_gate_settings_release(struct nb_gate_settings *settings);

/* What a config says about comparing our kernels with others, under its key "compare":
 *   { "ours": ["*_fast"],               globs on kernels; every other kernel of a comparison is compared with the best of these
 *     "confirm": { "launches": 16,      what looks behind is measured again in so many fresh processes,
 *                  "behind_percent": 5 } }   behind: slower by more than that, with the whole interval
 * With it cases of several ops do not share a group, and a budget drops whole comparisons. */

struct nb_compare_settings {
    struct nb_strings ours; /* none: the config compares nothing */
    int confirm_launches;   /* 0: nothing is measured again */
    double behind;          /* share: 0.05 */
};

/* {"ours":[..],"confirm_launches":16,"behind":0.05}, and back; null for a config that compares nothing. */
cJSON *nb_compare_settings_to_json(const struct nb_compare_settings *settings);
void nb_compare_settings_from_json(struct nb_compare_settings *settings, const cJSON *json);
void nb_compare_settings_release(struct nb_compare_settings *settings);

#define NB_MAX_AXES 40
#define NB_LABEL_MAX 80 /* characters of a label */

/* A product of lists; values[i] belongs to nb_axes[i]; n == 0: the axis's default.
 * includes: partial blocks, each a product of its own in which an axis that it does not name has the block's values.
 * excludes: partial blocks; a cell is taken away when its value is in the list of every axis that one of them names. */
struct nb_block {
    struct nb_values values[NB_MAX_AXES];
    struct nb_block *includes, *excludes;
    size_t n_includes, n_excludes;
    char *label, *source, *text; /* a name for its cases, where they come from, what they are about; may be null */
    /* Its cases are timed beside none of another SIMD width; set by claims. */
    bool isolate_width;
    char *path; /* of its file */
    int line;
};

struct nb_config {
    char *name;        /* "quick" */
    char *path;        /* the file it was read from */
    char *description; /* from the file, may be null */
    struct nb_block *blocks;
    size_t n_blocks;
    int launches;       /* of each group; 0: checked, not timed */
    int most_launches;  /* above launches: more where intervals are wide, until the aim is met; else exactly launches */
    double aim_percent; /* half-width of the intervals of ratios */
    double budget_s;    /* 0: none */
    int blocks_per_launch;
    double sample_ms;    /* length of a sample */
    char *reference;     /* glob on the case key: which case of a group is its reference; null: the first */
    uint64_t order_seed; /* of the random orders and offsets */
    struct nb_gate_settings gate;
    struct nb_compare_settings compare;
};

/* NAME is a preset (configs/NAME.json, see nb_jsonc_find) or a path when it holds a slash or ends in .json.
 * Every error names file, line, key and the nearest valid name. Returns -1 after nb_error. */
int nb_config_read(struct nb_config *config, const char *name);
/* The same from a text that errors call by a path. */
int nb_config_parse(struct nb_config *config, const char *path, const char *text, size_t len);
/* A list of blocks that stands in another kind of file (a claim). config: zeroed; it gets the path and the blocks alone. For
 * tables of fields. */
int nb_config_read_blocks(const struct nb_jsonc *file, const cJSON *node, void *config);
/* NAME=V1,V2,...: replaces the axis in every block, and in those includes that name it. Commas inside brackets do not separate.
 * The last of a name wins. */
int nb_config_axis(struct nb_config *config, const char *assignment);
/* Adds the blocks of another config, which is released; everything else stays as the first says. */
void nb_config_append(struct nb_config *config, struct nb_config *more);
/* Keeps of the values that the blocks give to an axis with choices only those of the list V1,V2,...; blocks that are left without
 * one are dropped. The option --AXIS. -1 after nb_error. */
int nb_config_narrow(struct nb_config *config, const char *axis, const char *list);
void nb_config_release(struct nb_config *config);
void nb_block_release(struct nb_block *block); /* what it holds */

/* The presets that can be named, sorted. */
void nb_config_list(struct nb_strings *names);
