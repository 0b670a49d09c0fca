// SPDX-License-Identifier: Apache-2.0
/* What several subcommands have in common on their command lines. */
#ifndef NB_OPTIONS_H
#define NB_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "cmd/command.h"

/* A list of texts that options fill; the texts are borrowed from argv, but for those that were made. */
struct nb_texts {
    const char **items;
    size_t n;
    char **owned;
    size_t n_owned;
};
void nb_texts_add(struct nb_texts *t, const char *item);
/* Item i is this text from now on, which the list frees. */
void nb_texts_own(struct nb_texts *t, size_t i, char *text);
void nb_texts_release(struct nb_texts *t);

/* Options that every subcommand takes: --help, --quiet, --color. Ids from 1000 on. */
enum { NB_OPT_HELP = 1000, NB_OPT_QUIET, NB_OPT_COLOR, NB_OPT_TUNING };
/* Of those that call kernels: what kernels are told of the machine (src/core/tuning_file.h). */
#define NB_TUNING_OPTION                                                                                               \
    { "tuning", required_argument, NULL, NB_OPT_TUNING }
#define NB_TUNING_HELP                                                                                                 \
    "  --tuning TEXT        what kernels are told of the machine: default (leaves the file of `normbench tune` "       \
    "aside),\n"                                                                                                        \
    "                       FIELD=VALUE,.. (`normbench tune --help` has the fields), or default,FIELD=VALUE,..\n"
#define NB_COMMON_OPTIONS                                                                                              \
    {"help", no_argument, NULL, NB_OPT_HELP}, {"quiet", no_argument, NULL, NB_OPT_QUIET},                              \
        {"color", required_argument, NULL, NB_OPT_COLOR}, {                                                            \
        NULL, 0, NULL, 0                                                                                               \
    }
#define NB_COMMON_HELP                                                                                                 \
    "  --quiet              no notes and no progress\n"                                                                \
    "  --color WHEN         auto, always or never; auto: on a terminal, unless NO_COLOR is set or TERM is dumb\n"      \
    "  --help               this text\n"

/* getopt_long for a subcommand. Returns the option's id; -1 at the end; handles the common options itself. An option that is
 * wrong (its nearest valid name is said) or --help sets *done with the exit code in *exit_code and returns -1. */
int nb_next_option(int argc, char **argv, const struct option *options, const struct nb_command *command, bool *done,
                   int *exit_code);

/* The number in text, between least and most; -1 after nb_error that names the option. */
int nb_option_number(const char *option, const char *text, double least, double most, double *out);

/* Loads the built-in kernels and the plugins named; hides widths above max_width (text or null); chooses the tuning, unless an
 * option has. */
int nb_load_kernels(const struct nb_texts *plugins, const char *max_width);

#endif
