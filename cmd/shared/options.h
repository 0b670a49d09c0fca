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

/* Loads the built-in kernels and the plugins named (null: none); hides widths above max_width (text or null); chooses the tuning, unless an
 * option has. */
int nb_load_kernels(const struct nb_texts *plugins, const char *max_width);

/* ---- the folder that `run`, `stress` and `claims` leave behind ------------------------------------------------------ */

/* Ids above those of any command, below the common ones. */
enum {
    NB_OUTPUT_OUT = 900,
    NB_OUTPUT_RESUME,
    NB_OUTPUT_FORMAT,
    NB_OUTPUT_LIST,
    NB_OUTPUT_NO_PLOTS,
    NB_OUTPUT_CASE_TIMEOUT,
    NB_OUTPUT_END
};
#define NB_OUTPUT_OPTIONS                                                                                              \
    {"out", required_argument, NULL, NB_OUTPUT_OUT}, {"resume", required_argument, NULL, NB_OUTPUT_RESUME},            \
        {"format", required_argument, NULL, NB_OUTPUT_FORMAT}, {"list", no_argument, NULL, NB_OUTPUT_LIST},            \
        {"no-plots", no_argument, NULL, NB_OUTPUT_NO_PLOTS}, {                                                         \
        "case-timeout", required_argument, NULL, NB_OUTPUT_CASE_TIMEOUT                                                \
    }

struct nb_output_options {
    const char *out, *resume, *format; /* null: not said */
    bool list, no_plots;
    double case_timeout_s;
};

static inline bool nb_is_output_option(int id) { return id >= NB_OUTPUT_OUT && id < NB_OUTPUT_END; }
/* format_known: which --format there are; formats: the same for the error. -1 after nb_error. */
int nb_output_option_set(struct nb_output_options *o, int id, const char *value, bool (*format_known)(const char *),
                         const char *formats);

/* ---- --peer NAME and --peer-lib PATH: other libraries beside our kernels. A peer joins the list of plugins as "peer:NAME[=LIBRARY]"
 * (src/core/peers.h), so that it goes wherever plugins go. ---- */

enum { NB_OPT_PEER = 1100, NB_OPT_PEER_LIB };
#define NB_PEER_OPTIONS                                                                                                \
    {"peer", required_argument, NULL, NB_OPT_PEER}, { "peer-lib", required_argument, NULL, NB_OPT_PEER_LIB }
#define NB_PEER_HELP                                                                                                   \
    "  --peer NAME          adds another library's kernels (`normbench list peers`); repeatable\n"                     \
    "  --peer-lib PATH      your build of the library of the --peer before it; also NAME=PATH\n"

/* Takes one of these two options. -1 after nb_error. */
int nb_peer_option(struct nb_texts *plugins, int option, const char *value);

/* Every peer whose adapter is built and that is not in the list yet, nor another build of its library. -1 after nb_error. */
int nb_peers_add_built(struct nb_texts *plugins);

#endif
