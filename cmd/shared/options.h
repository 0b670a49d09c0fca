// SPDX-License-Identifier: Apache-2.0
/* A command's options as a table: each row names an option and the variable that its value goes to.
 *
 *     const struct nb_option options[] = {{"n", .large = &o->n, .least = 1, .most = 1 << 24},
 *                                         {"design", .text = &o->design},
 *                                         {"format", .text = &o->format, .among = formats},
 *                                         {.name = NULL}};
 *     if (!nb_read_options(help, options, 0, argc, argv, &exit_code)) return exit_code;
 *
 * --help, --quiet and --color are every command's and stand in no table. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd/command.h"

/* Reads the options of a command line, of which argv[0] is the command; text: what --help prints. The arguments that are none are moved to argv[optind] and behind, at most `arguments` of them.
 * False when the command has ended, with its code in *exit_code: after --help, or after nb_error. True leaves NB_EXIT_USAGE there, for
 * the checks that follow. */
bool nb_read_options(const char *text, const struct nb_option *options, int arguments, int argc, char **argv,
                     int *exit_code);
enum { NB_ANY_ARGUMENTS = 1 << 30 };

/* The usual lists of --format. */
extern const char *const nb_table_json[], *const nb_table_markdown_json[], *const nb_table_markdown_csv_json[];

#define NB_COMMON_HELP                                                                                                 \
    "  --quiet              no notes and no progress\n"                                                                \
    "  --color WHEN         auto, always or never; auto: on a terminal, unless NO_COLOR is set or TERM is dumb\n"      \
    "  --help               this text\n"

/* ---- help, manual pages and completions, made of what --help prints and of the tables that options are read by ---- */

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

/* ---- values ---- */

/* For options that are read by hand: the number in text, between least and most (-1 after nb_error that names the option), and the index
 * of a name in a null-terminated list, or -1 after nb_error. */
int nb_option_number(const char *option, const char *text, double least, double most, double *out);
int nb_option_name(const char *option, const char *text, const char *const *names);

/* --affine, into an enum nb_affine. */
int nb_take_affine(void *affine, const char *name);

/* ---- of commands that call kernels ---------------------------------------------------------------------------------- */

/* What kernels know of the machine (src/core/tuning.h). */
int nb_take_tuning(void *unused, const char *value);
#define NB_TUNING_OPTION                                                                                               \
    { "tuning", .take = nb_take_tuning }
#define NB_TUNING_HELP                                                                                                 \
    "  --tuning TEXT        what kernels know of the machine: default (ignores the file of `normbench tune`),\n"       \
    "                       FIELD=VALUE,.. (`normbench tune --help` has the fields), or default,FIELD=VALUE,..\n"

/* How long a plugin may take to be loaded. */
int nb_take_load_timeout(void *unused, const char *value);
#define NB_LOAD_TIMEOUT_OPTION                                                                                         \
    { "load-timeout", .take = nb_take_load_timeout }
#define NB_LOAD_TIMEOUT_HELP                                                                                           \
    "  --load-timeout S     give a plugin so long to be loaded, imports included (default 10; .py and programs 60)\n"

/* Other libraries beside our kernels. A peer joins the list of plugins as "peer:NAME[=LIBRARY]" (src/core/peers.h), so that it goes
 * wherever plugins go. */
int nb_take_peer(void *plugins, const char *name);
int nb_take_peer_library(void *plugins, const char *value);
#define NB_PLUGIN_OPTIONS(plugins)                                                                                     \
    {"plugin", .texts = (plugins)}, NB_LOAD_TIMEOUT_OPTION, {"peer", .take = nb_take_peer, .to = (plugins)}, {         \
        "peer-lib", .take = nb_take_peer_library, .to = (plugins)                                                      \
    }
#define NB_PEER_HELP                                                                                                   \
    "  --peer NAME          add another library's kernels (`normbench list peers`); repeatable\n"                      \
    "  --peer-lib PATH      your build of the library of the --peer before it; also NAME=PATH\n"

/* Every peer whose adapter is built and that is not in the list yet, nor another build of its library. -1 after nb_error. */
int nb_peers_add_built(struct nb_strings *plugins);

/* Loads the built-in kernels and the plugins named (null: none); hides widths above max_width (text or null); chooses the tuning, unless an
 * option has. */
int nb_load_kernels(const struct nb_strings *plugins, const char *max_width);

/* ---- the folder that `run`, `stress` and `claims` leave behind ------------------------------------------------------ */

struct nb_output_options {
    const char *out, *resume, *format; /* null: not given */
    bool list, no_plots;
    double case_timeout_s;
};
/* --format is each command's own. */
#define NB_OUTPUT_OPTIONS(o)                                                                                           \
    {"out", .text = &(o)->out}, {"resume", .text = &(o)->resume}, {"list", .flag = &(o)->list},                        \
        {"no-plots", .flag = &(o)->no_plots}, NB_CASE_TIMEOUT_OPTION(&(o)->case_timeout_s)
#define NB_CASE_TIMEOUT_OPTION(seconds)                                                                                \
    { "case-timeout", .number = (seconds), .least = 0.1, .most = 86400 }
