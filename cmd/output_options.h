// SPDX-License-Identifier: Apache-2.0
/* Options of the commands that leave a folder behind: `run`, `stress`, `claims`. */
#ifndef NB_OUTPUT_OPTIONS_H
#define NB_OUTPUT_OPTIONS_H

#include <stdbool.h>

#include "cmd/options.h"

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

#endif
