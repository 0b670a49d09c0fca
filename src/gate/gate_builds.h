// SPDX-License-Identifier: Apache-2.0
/* The shared objects that the gate compares, as private copies: the loader takes one file for one library whatever its path, so
 * that only files of their own give handles of their own, and a build that goes on beside the gate changes nothing. */
#ifndef NB_GATE_BUILDS_H
#define NB_GATE_BUILDS_H

#include "src/core/registry.h"
#include "src/gate/gate_launch.h"

#define NB_GATE_LAYOUTS 16

enum { NB_BUILD_BASELINE, NB_BUILD_CONTROL, NB_BUILD_CANDIDATE, NB_N_BUILDS };
extern const char *const nb_build_names[NB_N_BUILDS]; /* "baseline", "control", "candidate": plugins are called so */

struct nb_gate_builds {
    char *dir;                                         /* of the copies */
    const char *files[NB_GATE_LAYOUTS][NB_N_BUILDS];   /* copies, owned */
    const char *sources[NB_GATE_LAYOUTS][NB_N_BUILDS]; /* what they are copies of, as the caller named it, borrowed */
    int n_layouts;
};

/* Each arm in one or more layouts (builds of the same source that differ in padding and order); the arm with fewer repeats
 * them. Copies all, looks at all, and leaves the first layout of each loaded (with more than one, instead of whatever was loaded before).
 * After nb_error -1: a file that is no build of kernels, that binds to code of another one, or that has other kernels than its
 * arm's first; NB_OTHER_ABI. */
int nb_gate_builds_init(struct nb_gate_builds *b, const char *const *baselines, size_t n_baselines,
                        const char *const *candidates, size_t n_candidates);
void nb_gate_builds_release(struct nb_gate_builds *b);

/* Null, or why timing two kernels against each other would time one piece of code twice, or tell nothing: a build that binds to
 * another's functions. */
const char *nb_gate_same_code(const struct nb_entry *baseline, const struct nb_entry *candidate);

#endif
