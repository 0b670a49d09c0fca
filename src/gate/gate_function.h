// SPDX-License-Identifier: Apache-2.0
/* Functions that are no kernels (kernels/function.h): where they are in a build. */
#pragma once

#include "src/gate/gate.h"

/* A function that is no kernel, and what belongs to it. */
enum nb_function_role {
    NB_FUNCTION_TIMED,
    NB_FUNCTION_SETUP,
    NB_FUNCTION_BYTES,
    NB_FUNCTION_CHECK,
    NB_FUNCTION_TEARDOWN,
    NB_N_FUNCTION_ROLES
};

/* The function of that role in a loaded file; null: it has none. */
void *nb_function_find(void *handle, const char *path, const char *name, enum nb_function_role role);

/* A case for each function, named as for `--function`, as C or C++ has them ("ns::parse"), or as the symbol; others: what stands for
 * NAME_setup and so on of all of them (null: nothing does). The builds are open. -1 after nb_error: neither build has it; the error says what
 * there is. */
int nb_gate_functions_make(struct nb_gate *g, const char *const *names, size_t n_names,
                           const char *const others[NB_N_FUNCTION_ROLES]);
