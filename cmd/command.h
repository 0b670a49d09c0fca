// SPDX-License-Identifier: Apache-2.0
/* A subcommand is one file: cmd/K.c defines `const struct nb_command nb_command_K`, and the build lists it. */
#ifndef NB_COMMAND_H
#define NB_COMMAND_H

enum nb_exit {
    NB_EXIT_OK = 0,
    NB_EXIT_FAILED = 1, /* a case failed: wrong, crashed, less accurate */
    NB_EXIT_USAGE = 2,  /* usage or configuration */
    NB_EXIT_REGRESSION = 3,
    NB_EXIT_INCONCLUSIVE = 4,
    NB_EXIT_NOT_COMPARABLE = 5,
    NB_EXIT_NOTHING_RUNS = 77, /* cases were selected, but none can run here */
};                             /* 128 + n: a signal */

struct nb_command {
    const char *name, *summary;        /* one line, for `normbench --help` */
    const char *help;                  /* all that `normbench NAME --help` prints */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns an exit code */
};

#endif
