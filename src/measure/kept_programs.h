// SPDX-License-Identifier: Apache-2.0
/* Programs with kernels (src/programs/kernel_program.h) outlive the workers that call them, since starting one may take seconds, where it
 * imports PyTorch. The process that starts the workers has them, and lends each to one worker at a time; a worker that ends as it should
 * leaves it with nothing open, for the next. Of any other worker it is ended, and the next gets a new one. For several threads at once. */
#pragma once

#include <stdbool.h>

struct nb_kept_programs; /* those of a worker, and the memory that they share */

/* For a worker that needs these n files, n > 0; anew: none that a worker had before. Null: none to be had; the worker starts its own. */
struct nb_kept_programs *nb_kept_programs_lend(const char *const *files, int n, bool anew);
/* Had a worker some of them before? */
bool nb_kept_programs_had_company(const struct nb_kept_programs *k);
/* What the worker inherits: a descriptor, which the caller closes, with so many messages for nb_kept_programs_take(). -1: none. */
int nb_kept_programs_send(const struct nb_kept_programs *k, int *n_messages);
/* When the worker has ended. */
void nb_kept_programs_return(struct nb_kept_programs *k, bool ended_well);
/* Ends those that no worker has. */
void nb_kept_programs_end(void);

/* In the worker: the programs that are loaded from now on are these. */
void nb_kept_programs_take(int fd, int n_messages);
