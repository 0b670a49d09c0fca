// SPDX-License-Identifier: Apache-2.0
/* Heat maps of a figure: coloured cells below a panel's lines, colours of their own for what is no number. In the data file each
 * state of each panel is a block of columns x, y, half width, half height, value, after the blocks of the lines. */
#ifndef NB_FIGURE_HEAT_H
#define NB_FIGURE_HEAT_H

#include "reports/figures/figure.h"

/* Room for n_x x n_y cells, all unknown. */
void nb_heat_init(struct nb_heat *heat, size_t n_x, size_t n_y);
void nb_heat_release(struct nb_heat *heat);
bool nb_heat_is_in(const struct nb_figure *f);
/* Half the distance of two cells. */
double nb_heat_half_step(const struct nb_heat *heat, bool x_axis);

void nb_heat_data(const struct nb_figure *f, size_t panel, struct nb_strbuf *out);
/* gnuplot: the palette and the scale beside the last panel; plot elements; entries of the legend. separator: what stands before the
 * next element. */
void nb_heat_add_palette(const struct nb_figure *f, size_t panel, struct nb_strbuf *out);
void nb_heat_plot(const struct nb_figure *f, size_t panel, const char **separator, struct nb_strbuf *out);
void nb_heat_legend(const struct nb_figure *f, const char **separator, struct nb_strbuf *out);

#endif
