// SPDX-License-Identifier: Apache-2.0
/* What `gate` and `calibrate` have in common on their command lines: which builds, which cases. */
#ifndef NB_GATE_SELECTION_H
#define NB_GATE_SELECTION_H

#include <stdbool.h>

#include "cmd/shared/options.h"
#include "src/gate/gate.h"
#include "src/plan/cells.h"

/* Ids of the options, below those of a command itself. */
enum nb_selection_option {
    NB_SELECT_BASELINE = 1,
    NB_SELECT_CANDIDATE,
    NB_SELECT_CONFIG,
    NB_SELECT_KERNEL,
    NB_SELECT_FILTER,
    NB_SELECT_AXIS,
    NB_SELECT_LIST,
    NB_SELECT_END
};
#define NB_SELECTION_OPTIONS                                                                                           \
    {"baseline", required_argument, NULL, NB_SELECT_BASELINE}, {"config", required_argument, NULL, NB_SELECT_CONFIG},  \
        {"kernel", required_argument, NULL, NB_SELECT_KERNEL}, {"filter", required_argument, NULL, NB_SELECT_FILTER},  \
        {"axis", required_argument, NULL, NB_SELECT_AXIS}, {                                                           \
        "list", no_argument, NULL, NB_SELECT_LIST                                                                      \
    }

struct nb_gate_selection {
    struct nb_texts baselines, candidates, kernels, filters, axes;
    const char *config; /* null: gate */
    bool list;
    char *builtin; /* the built-in kernels, where no baseline is named; owned */
};

/* Takes an option; false when the id is a command's own. */
bool nb_selection_take(struct nb_gate_selection *s, int id, const char *value);
/* The built-in kernels where no baseline is named. -1 after nb_error. */
int nb_selection_default(struct nb_gate_selection *s);
/* Opens the builds, the candidates' or, with_itself, the baselines a second time, and makes the cases. *n_elsewhere: cells that
 * only this CPU refuses. -1 after nb_error, or NB_OTHER_ABI. */
int nb_selection_make(const struct nb_gate_selection *s, struct nb_gate *g, bool with_itself, struct nb_skips *skips,
                      size_t *n_elsewhere);
/* --list, or nothing to do: true when the command is at its end, with its exit code. */
bool nb_selection_settles(const struct nb_gate_selection *s, const struct nb_gate *g, size_t n_elsewhere,
                          int *exit_code);
/* A whole number. -1 after nb_error. */
int nb_option_count(const char *option, const char *value, double least, int *out);
void nb_selection_release(struct nb_gate_selection *s);

#endif
