// SPDX-License-Identifier: Apache-2.0
/* What timing and accuracy experiments share: blocks of the matrix in a claim file, and the records that came of them. */
#ifndef NB_MATRIX_H
#define NB_MATRIX_H

#include "src/claims/experiment.h"

struct nb_matrix {
    struct nb_config blocks, quick; /* quick: with --quick in place of blocks; no blocks: the same */
};
/* The keys "blocks" and "quick", for tables of fields. */
int nb_matrix_read_blocks(struct nb_matrix *m, const struct nb_jsonc *file, const cJSON *node, bool quick);
/* {"config": "bugs", "label": "onnxruntime#28463"}: the blocks of a preset that have the label. */
int nb_matrix_read_from(struct nb_matrix *m, const struct nb_jsonc *file, const cJSON *node);
/* Cases of these blocks are timed beside none of another SIMD width. */
void nb_matrix_isolate_width(struct nb_matrix *m);
/* Moves the blocks to the config, under the label. */
void nb_matrix_move(struct nb_matrix *m, bool quick, const char *label, struct nb_config *config);
void nb_matrix_release(struct nb_matrix *m);

bool nb_record_has_label(const struct nb_record *r, const char *label);
/* Tags of a record: every axis that means something for it, kernel, op, rows, cols, and "fits": the first cache that holds what the op
 * must move (L1, L2, L3, memory). */
void nb_tag_record(struct nb_finding *f, const struct nb_record *r, const cJSON *meta);
/* Why nothing was measured for the label: the reason most often given for a cell left out whose key it may be, else a general one. */
const char *nb_matrix_why_none(const struct nb_results *results);

#endif
