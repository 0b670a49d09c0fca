// SPDX-License-Identifier: Apache-2.0
/* What to run, as the user wrote it: blocks of axes with lists of values, from a JSON file with comments and from options. */
#ifndef NB_CONFIG_H
#define NB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/plan/config_compare.h"
#include "src/plan/config_gate.h"

#define NB_MAX_AXES 40

/* A product of lists; values[i] belongs to nb_axes[i]; n == 0: the axis's default.
 * includes: partial blocks, each a product of its own in which an axis that it does not name has the block's values.
 * excludes: partial blocks; a cell is taken away when its value is in the list of every axis that one of them names. */
struct nb_block {
    struct nb_values values[NB_MAX_AXES];
    struct nb_block *includes, *excludes;
    size_t n_includes, n_excludes;
    char *label, *source, *text; /* a name for its cases, where they come from, what they are about; may be null */
    bool
        isolate_width; /* its cases are timed beside none of another SIMD width (groups.h); asked for by claims, which have no
                                    shards that would part a family */
    char *path;        /* of its file */
    int line;
};

struct nb_config {
    char *name;        /* "quick" */
    char *path;        /* the file it was read from */
    char *description; /* from the file, may be null */
    struct nb_block *blocks;
    size_t n_blocks;
    int launches,
        blocks_per_launch; /* measuring: launches per group, blocks per launch; 0 launches: checked, not timed */
    double sample_ms;      /* length of a sample */
    char *reference;       /* glob on the case key: which case of a group is its reference; null: the first */
    uint64_t order_seed;   /* of the random orders and offsets */
    struct nb_gate_settings gate;
    struct nb_compare_settings compare;
};

/* NAME is a preset (configs/NAME.json, see nb_config_find) or a path when it holds a slash or ends in .json.
 * Every error names file, line, key and the nearest valid name. Returns -1 after nb_error. */
int nb_config_read(struct nb_config *config, const char *name);
/* The same from a path, and from a text that errors call by a path. */
int nb_config_read_file(struct nb_config *config, const char *path);
int nb_config_parse(struct nb_config *config, const char *path, const char *text, size_t len);
/* A list of blocks that stands in another kind of file (a claim). config: zeroed; it gets the path and the blocks alone. */
int nb_config_read_blocks(const struct nb_jsonc *file, const cJSON *node, struct nb_config *config);
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

/* The presets that can be named: owned strings, sorted. */
int nb_config_list(char ***names);
/* The path of a preset or of another file of the configs folder: NORMBENCH_CONFIGS, configs/ beside the program or one
 * above, the installed share folder. Owned, or null. */
char *nb_config_find(const char *file_name);

#endif
