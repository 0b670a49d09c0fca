// SPDX-License-Identifier: Apache-2.0
/* A config's blocks times the registry: every cell of the matrix that makes sense, once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/core/case.h"
#include "src/core/kernel_fields.h"
#include "src/core/text.h"
#include "src/plan/config.h"

struct nb_filters {
    const char *const *texts;
    size_t n;
};
/* A filter is any stretch of the key as it stands, or a glob on the whole key or on its first parts ("rmsnorm_*_f32/shape:64x*"
 * need not have the rest). No filters: everything matches. */
bool nb_filters_match(const struct nb_filters *filters, const char *key);

/* Names that a config gives to the cases of its blocks, so that a reader can take together what belongs to one question or to
 * one public bug report. A case that several blocks make has all their labels. */
struct nb_label {
    char *name;          /* "onnxruntime#28463" */
    char *source, *text; /* where it comes from, what it is about; may be null */
};
/* Zero-initialise. */
struct nb_labels {
    struct nb_label *items;
    size_t n;
};
/* [{"name","source","text"}] */
void nb_labels_release(struct nb_labels *labels);

/* The labels of one case, by index, in the order in which they were given; owned. */
struct nb_label_set {
    size_t *at;
    size_t n;
};

/* What a plan leaves out, counted by reason. */

struct nb_skip {
    char *reason; /* "width 512: this CPU has no AVX-512" */
    char *key;    /* null for cells that were never built (no kernel); else the case, which gets a record "skipped" */
    size_t n;     /* cells with this reason; 1 where there is a key */
};

/* Zero-initialise. */
struct nb_skips {
    struct nb_skip *items;
    size_t n;
    struct nb_text_map by_reason; /* of those without a key */
};

/* n more cells that have no record of their own. */
void nb_skips_count(struct nb_skips *s, size_t n, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A case that gets a record. */
void nb_skips_case(struct nb_skips *s, const char *key, const char *reason);
/* Most frequent reason first, the entries of a reason together. */
void nb_skips_sort(struct nb_skips *s);
void nb_skips_release(struct nb_skips *s);

#define NB_MAX_CASES 200000

struct nb_cell {
    struct nb_case c;
    char *key;
    const struct nb_entry *entry;
    char *refused;      /* why this machine cannot run it, null when it can */
    bool isolate_width; /* some block wants it timed beside no other width */
    struct nb_label_set labels;
};

struct nb_cells {
    struct nb_cell *items;
    size_t n;
    struct nb_text_map known; /* by key with eps and k written in one way, so that 1e-5 and 1e-05 are one case */
    struct nb_cell_place {
        char *key;
        size_t at; /* index of the cell, NB_NOWHERE for one that was left out */
    } * places;
    size_t n_places;
    struct nb_labels labels;
};

/* Fills zeroed cells, in the order of blocks, kernels and values. Cells that make no sense are counted in skips; those that only
 * this machine refuses stay, since which cell belongs to which shard may not depend on the machine. -1 after nb_error:
 * an absurd product, data that does not exist. */
int nb_cells_expand(struct nb_cells *cells, const struct nb_config *config, const struct nb_filters *filters,
                    struct nb_skips *skips);
void nb_cells_release(struct nb_cells *cells);

/* The variants that a config selects of all that the sources have and this CPU runs, and the copies beside them, a line each. Needs no
 * kernel to be loaded. */
void nb_config_print_variants(const struct nb_config *config, FILE *out);
