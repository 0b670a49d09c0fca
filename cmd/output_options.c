// SPDX-License-Identifier: Apache-2.0
#include "cmd/output_options.h"

#include "src/core/log.h"

int nb_output_option_set(struct nb_output_options *o, int id, const char *value, bool (*format_known)(const char *),
                         const char *formats) {
    switch (id) {
    case NB_OUTPUT_OUT:
        o->out = value;
        return 0;
    case NB_OUTPUT_RESUME:
        o->resume = value;
        return 0;
    case NB_OUTPUT_FORMAT:
        o->format = value;
        return format_known(value) ? 0 : nb_error("--format %s: %s", value, formats);
    case NB_OUTPUT_LIST:
        o->list = true;
        return 0;
    case NB_OUTPUT_NO_PLOTS:
        o->no_plots = true;
        return 0;
    default:
        return nb_option_number("--case-timeout", value, 0.1, 86400, &o->case_timeout_s);
    }
}
