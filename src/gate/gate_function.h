// SPDX-License-Identifier: Apache-2.0
/* Functions that are no kernels (kernels/function.h): where they are in a build, and what is known of them before they are timed. */
#ifndef NB_GATE_FUNCTION_H
#define NB_GATE_FUNCTION_H

#include "src/gate/gate.h"

/* The function of that role in a loaded file; null: it has none. */
void *nb_function_find(void *handle, const char *path, const char *name, enum nb_function_role role);

/* A case for each function, named as for `--function`; others: what stands for NAME_setup and so on of all of them (null: nothing
 * does). The builds are open. -1 after nb_error: neither build has it; the error says what there is. */
int nb_gate_functions_make(struct nb_gate *g, const char *const *names, size_t n_names,
                           const char *const others[NB_N_FUNCTION_ROLES]);
/* Calls both builds a few times: is each call like the last, do the builds agree, how many instructions is a call? Decides the case where
 * one of them fails. 0, -1 after nb_error, or a signal's number. */
int nb_gate_function_check(const struct nb_gate *g, struct nb_gate_case *c);

#endif
