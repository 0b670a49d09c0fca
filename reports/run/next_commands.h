// SPDX-License-Identifier: Apache-2.0
/* What to type after a run: commands that work as they are printed, in the folder where the run was started. */
#ifndef NB_NEXT_COMMANDS_H
#define NB_NEXT_COMMANDS_H

#include <stdbool.h>

#include "src/record/record.h"

struct nb_next {
    const struct nb_results *results;
    const struct nb_record *failed, *nearest; /* a case that failed, and the one nearest its error bound; or null */
    bool noisy;                               /* cases are too noisy to rank */
    size_t width;                             /* cells of a line */
};
/* Appends up to three commands with what each is for, and returns the number of lines: a longer command goes on in the next line
 * behind a backslash. */
int nb_next_commands(const struct nb_next *next, struct nb_strbuf *out);

/* The next word of a command line, after a blank where it is not the first, as a shell reads it; a line of `width` cells that it would fill
 * goes on in the next one. */
void nb_add_shell_word(struct nb_strbuf *out, size_t width, const char *word);

#endif
