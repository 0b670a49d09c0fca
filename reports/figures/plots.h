// SPDX-License-Identifier: Apache-2.0
/* The families of figures. Each makes the figures that the results allow and says in a note which it could not make, and why. */
#ifndef NB_PLOTS_H
#define NB_PLOTS_H

#include "reports/figures/figure.h"
#include "src/record/record.h"

struct nb_figures {
    struct nb_figure *list;
    size_t n;
    struct nb_strbuf notes; /* one line each: what is not drawn, and why */
};

/* A family is one file: reports/figures/plot_NAME.c defines nb_plot_NAME(), and the build lists it. */
typedef void nb_plot(const struct nb_results *results, struct nb_figures *figures);
#define NB_PLOT_ENTRY(name) nb_plot nb_plot_##name;
#include "plot_list.h"
#undef NB_PLOT_ENTRY

void nb_figures_init(struct nb_figures *figures, const struct nb_results *results); /* all families */
void nb_figures_release(struct nb_figures *figures);
/* An empty figure at the end of the list, with the footer of the results. */
struct nb_figure *nb_figures_new(struct nb_figures *figures, const struct nb_results *results, const char *name);
void nb_figures_drop_last(struct nb_figures *figures);
void nb_figures_note(struct nb_figures *figures, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes DIR/FOLDER/: data, scripts and, where gnuplot is there, pictures of the figures, all.gp and README.md. -1 after nb_error. */
int nb_figures_write(const struct nb_figures *figures, const char *dir, const char *folder);

#endif
