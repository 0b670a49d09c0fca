// SPDX-License-Identifier: Apache-2.0
/* The claims that can be named: files of configs/claims/, and a family: one claim for each label of configs/bugs.json ("bug-LABEL"),
 * which says that its input breaks kernels, and is reported for each kernel. */
#ifndef NB_CLAIMS_H
#define NB_CLAIMS_H

#include "src/claims/claim.h"

#define NB_BUG_PREFIX "bug-"

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

#endif
