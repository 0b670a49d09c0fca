// SPDX-License-Identifier: Apache-2.0
/* What `gate` and `calibrate` have in common on their command lines: which builds, which cases. */
#ifndef NB_GATE_SELECTION_H
#define NB_GATE_SELECTION_H

#include <stdbool.h>

#include "cmd/shared/options.h"
#include "src/gate/gate.h"

struct nb_gate_selection {
    struct nb_texts baselines, candidates, kernels, filters, axes;
    const char *config; /* null: gate */
    bool list;
    char *builtin;      /* the built-in kernels, where no baseline is named; owned */
    size_t n_elsewhere; /* cells that only this CPU refuses */
};

#define NB_SELECTION_OPTIONS(s)                                                                                        \
    {"baseline", .texts = &(s)->baselines}, {"config", .text = &(s)->config}, {"kernel", .texts = &(s)->kernels},      \
        {"filter", .texts = &(s)->filters}, {"axis", .texts = &(s)->axes}, {                                           \
        "list", .flag = &(s)->list                                                                                     \
    }

/* Opens the builds and makes the cases. with_itself: the candidates are the baselines again, and these the built-in kernels where none is
 * named. -1 after nb_error, or NB_OTHER_ABI. */
int nb_selection_make(struct nb_gate_selection *s, struct nb_gate *g, bool with_itself);
/* --list, or nothing to do: true when the command is at its end, with its exit code. */
bool nb_selection_settles(const struct nb_gate_selection *s, const struct nb_gate *g, int *exit_code);
void nb_selection_release(struct nb_gate_selection *s);

#endif
