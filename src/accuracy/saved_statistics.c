// SPDX-License-Identifier: Apache-2.0
/* The oracle of the forward pass, rounded. */
#include "src/accuracy/saved_statistics.h"

#include <stdlib.h>

#include "src/core/log.h"

bool nb_case_has_saved(const struct nb_case *c) {
    return c->pass == NB_BACKWARD && c->op != NB_OP_COPY && c->op != NB_OP_DYT;
}

int nb_saved_statistics_add(struct nb_inputs *in, const struct nb_case *c) {
    struct nb_oracle oracle;
    if (!nb_case_has_saved(c) || nb_inputs_saved(in, c) >= 0) return 0;
    if (nb_oracle_init(&oracle, c, in) != 0) return -1;
    const unsigned long long n = (unsigned long long)oracle.n_truth;
    in->saved = nb_realloc(in->saved, (unsigned)in->n_saved + 1, sizeof *in->saved);
    struct nb_saved_statistics *saved = &in->saved[in->n_saved++];
    *saved = (struct nb_saved_statistics){.c = *c,
                                          .mean = nb_alloc(n, sizeof *saved->mean),
                                          .rstd = nb_alloc(n, sizeof *saved->rstd),
                                          .n = oracle.n_truth};
    nb_gradient_statistics(&oracle, saved->mean, saved->rstd);
    nb_oracle_release(&oracle);
    return 0;
}

int nb_saved_statistics_gradient(struct nb_gradient *g, const struct nb_case *c, const struct nb_inputs *in) {
    const int at = nb_inputs_saved(in, c);
    return nb_gradient_init(g, c, in, at >= 0 ? in->saved[at].mean : NULL, at >= 0 ? in->saved[at].rstd : NULL);
}
