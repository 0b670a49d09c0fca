// SPDX-License-Identifier: Apache-2.0
/* Manual pages and completions, made of what --help prints and of the tables that options are read by. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "cmd/command.h"

/* A help text in lines of the terminal's width, 80 where there is none. A line that is indented as one before it, or less, begins a paragraph or the row
 * of an option; further ones continue it. Written with lines that end anywhere. */
void nb_print_help(const char *text, FILE *out);
/* The manual page of a command, or of the program (command null). */
void nb_print_man(const struct nb_command *command, const struct nb_command *const *commands, size_t n);
/* The completion of bash. */
void nb_print_completions(const struct nb_command *const *commands, size_t n);

/* What nb_read_options() does with `normbench COMMAND --describe`, which nb_print_completions() calls for each command. words: what
 * its first argument is, null-terminated; null: anything. */
#define NB_DESCRIBE "--describe"
void nb_describe_options(const struct nb_option *const *rows, size_t n, const char *const *words);
