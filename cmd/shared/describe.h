// SPDX-License-Identifier: Apache-2.0
/* Manual pages and completions, made of what --help prints and of the tables that options are read by. */
#ifndef NB_DESCRIBE_H
#define NB_DESCRIBE_H

#include <stddef.h>

#include "cmd/command.h"

/* The manual page of a command, or of the program (command null). */
void nb_print_man(const struct nb_command *command, const struct nb_command *const *commands, size_t n);
/* The completion of bash. */
void nb_print_completions(const struct nb_command *const *commands, size_t n);

/* What nb_read_options() does with `normbench COMMAND --describe`, which nb_print_completions() calls for each command. words: what
 * its first argument is, null-terminated; null: anything. */
#define NB_DESCRIBE "--describe"
void nb_describe_options(const struct nb_option *const *rows, size_t n, const char *const *words);

#endif
