// SPDX-License-Identifier: Apache-2.0
/* A family of figures is one file: reports/figures/plot_NAME.c defines nb_plot_NAME(), and the build lists it. A family more makes those
 * anew that include this, and no other file of figures. */
#pragma once

#include "reports/figures/figure.h"

typedef void nb_plot(const struct nb_results *results, struct nb_figures *figures);
#define NB_PLOT_ENTRY(name) nb_plot nb_plot_##name;
#include "plot_list.h"
#undef NB_PLOT_ENTRY
