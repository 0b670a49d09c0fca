// SPDX-License-Identifier: Apache-2.0
/* A subcommand is one file: cmd/K.c defines `const struct nb_command nb_command_K`, and the build lists it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/core/text.h"

enum nb_exit {
    NB_EXIT_OK = 0,
    NB_EXIT_FAILED = 1, /* a case failed: wrong, crashed, less accurate */
    NB_EXIT_USAGE = 2,  /* usage or configuration */
    NB_EXIT_REGRESSION = 3,
    NB_EXIT_INCONCLUSIVE = 4,
    NB_EXIT_NOT_COMPARABLE = 5, /* builds or results; --resume: what one CPU measured and what another would */
    NB_EXIT_NOTHING_RUNS = 77,  /* cases were selected, but none can run here */
};                              /* 128 + n: a signal */

/* The exit code of a command that could not write or print all that belongs to it: what it found counts more. */
static inline int nb_exit_unwritten(int exit_code) {
    const bool stands = exit_code > 128 || exit_code == NB_EXIT_FAILED || exit_code == NB_EXIT_REGRESSION;
    return stands ? exit_code : NB_EXIT_USAGE;
}

struct nb_command {
    const char *name, *summary;        /* one line, for `normbench --help` */
    const char *help;                  /* all that `normbench NAME --help` prints */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns an exit code */
};

/* ---- options: rows of a table (cmd/shared/options.h) ---- */

/* The pointers say where the value goes; those that are null are not written. */
struct nb_option {
    const char *name;  /* without the dashes; null ends a table: there, among is what the first argument is */
    bool *flag;        /* set to true: such an option takes no value */
    const char **text; /* borrowed from argv */
    const char *const
        *among; /* of a text: those that are allowed, null-terminated; null: any. Of any other kind: to be completed */
    struct nb_strings *texts;    /* one more, and not an empty one: the option is repeatable */
    double *number, least, most; /* least, most: of the whole numbers too */
    int *count;                  /* a whole number, as are the next two */
    int64_t *large;
    uint64_t *seed;                           /* from 0 to 2^53 */
    int (*take)(void *to, const char *value); /* any other kind of value: -1 after nb_error */
    void *to;
    bool *given; /* set to true besides */
};
