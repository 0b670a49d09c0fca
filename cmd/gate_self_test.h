// SPDX-License-Identifier: Apache-2.0
/* `normbench gate --self-test`: the options of trials, and how they are run and told. */
#ifndef NB_GATE_SELF_TEST_H
#define NB_GATE_SELF_TEST_H

#include "cmd/gate_selection.h"
#include "src/gate/gate_trials.h"

enum nb_trial_option {
    NB_TRIAL_TRIALS = NB_SELECT_END,
    NB_TRIAL_POWERED,
    NB_TRIAL_EFFECTS,
    NB_TRIAL_LOAD,
    NB_TRIAL_END
};
#define NB_TRIAL_OPTIONS                                                                                               \
    {"trials", required_argument, NULL, NB_TRIAL_TRIALS}, {"powered", required_argument, NULL, NB_TRIAL_POWERED},      \
        {"effects", required_argument, NULL, NB_TRIAL_EFFECTS}, {                                                      \
        "load", required_argument, NULL, NB_TRIAL_LOAD                                                                 \
    }

extern const struct nb_trial_plan nb_trial_plan_default;
/* -1 after nb_error. */
int nb_trial_plan_take(struct nb_trial_plan *plan, int id, const char *value);
/* Makes the trials and tells them; out may be null. Returns the exit code: trials say how good the gate is and are no gate, so that it
 * tells only whether they could be made. */
int nb_self_test(struct nb_gate *g, const struct nb_trial_plan *plan, const char *format, const char *out);

#endif
