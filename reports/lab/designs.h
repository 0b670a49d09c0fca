// SPDX-License-Identifier: Apache-2.0
/* Designs and what was found about them, as tables and as JSON. */
#ifndef NB_REPORTS_DESIGNS_H
#define NB_REPORTS_DESIGNS_H

#include <stddef.h>

#include "src/lab/emulate/depth.h"
#include "src/lab/emulate/design_report.h"

struct nb_judged_design {
    struct nb_design design;
    char *text; /* as nb_design_print() has it */
    struct nb_design_report report;
    struct nb_depth depth; /* blocks 0: none */
};

/* format: as nb_grid_format_known() says. -1 after nb_error. */
int nb_print_designs(const struct nb_judged_design *designs, size_t n, const struct nb_design_data *data,
                     const struct nb_depth_options *depth, const char *format);
/* Presets, and the parts of a design's text. */
int nb_list_designs(const char *format);

#endif
