// SPDX-License-Identifier: Apache-2.0
/* Ranges, ticks and guide lines of one panel, as gnuplot commands. */
#ifndef NB_FIGURE_AXIS_H
#define NB_FIGURE_AXIS_H

#include "reports/figures/figure.h"

void nb_figure_add_axes(const struct nb_figure *f, size_t panel, struct nb_strbuf *out);

#endif
