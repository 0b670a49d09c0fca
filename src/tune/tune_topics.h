// SPDX-License-Identifier: Apache-2.0
/* What `normbench tune` finds out: for each question the fields of struct nb_tuning that answer it, the settings that are tried, and
 * the kernels and shapes on which they are. A new question is a new entry of the table. */
#ifndef NB_TUNE_TOPICS_H
#define NB_TUNE_TOPICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/tuning.h"

enum { NB_TUNE_SETTINGS = 5, NB_TUNE_SHAPES = 8, NB_TUNE_CANDIDATES = 9 };

struct nb_tune_shape {
    int64_t
        size; /* what the field is compared with: bytes of a row, of a call, of a channel; of a choice the columns */
    char text[64];
};

struct nb_tune_topic {
    const char *name;
    const char *field; /* whose value is sought */
    /* A threshold: kernels do one thing up to the field's value and another beyond. settings[0] makes them do what they do
     * beyond it, whatever the size, settings[1] what they do within. A choice: the values themselves. */
    bool is_threshold;
    const char *settings[NB_TUNE_SETTINGS]; /* null-terminated, as nb_tuning_parse() reads them */
    bool zero_is_all;                       /* of a threshold: 0 leaves every size within; else it leaves none */
    const char *kernels[4];                 /* null-terminated; those that this build has */
    uint32_t dtypes[3];
    int n_dtypes;
    size_t (*shapes)(const struct nb_cpu *cpu, int64_t item, struct nb_tune_shape *out); /* smallest first */
};
extern const struct nb_tune_topic nb_tune_topics[];
extern const size_t nb_n_tune_topics;

/* One arrangement of the topic's fields. arm: on a shape of each size, which of the settings it is. */
struct nb_tune_candidate {
    struct nb_tuning tuning;
    int arm[NB_TUNE_SHAPES];
};

/* The settings as tunings that differ from base in nothing else; returns how many. Of a choice whose base is none of them, base too. */
int nb_tune_arms(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                 struct nb_tuning arms[NB_TUNE_SETTINGS + 1]);
/* Which arm base is on each shape. */
void nb_tune_base_arms(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                       const struct nb_tune_shape *shapes, size_t n_shapes, int arm[NB_TUNE_SHAPES]);
/* All arrangements worth a thought: of a threshold one between each two sizes; returns how many. */
size_t nb_tune_candidates(const struct nb_tune_topic *topic, const struct nb_tuning *base,
                          const struct nb_tune_shape *shapes, size_t n_shapes,
                          struct nb_tune_candidate out[NB_TUNE_CANDIDATES]);

#endif
