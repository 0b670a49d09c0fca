// SPDX-License-Identifier: Apache-2.0
/* Results -> what a person or another tool reads. A renderer is one file, render_NAME.c, which the build lists; it defines
 * `const struct nb_renderer nb_renderer_NAME[]`, its formats, ended by an empty one. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "reports/figures/figure.h"
#include "reports/text/output.h"
#include "src/measure/paired.h"
#include "src/peers/peer_comparison.h"
#include "src/record/comparison.h"
#include "src/record/grade.h"
#include "src/record/record.h"

struct nb_renderer {
    const char *name, *summary;                                 /* --format=NAME */
    int (*render)(const struct nb_results *results, FILE *out); /* 0, or -1 after nb_error */
};
const struct nb_renderer *nb_renderer_find(const char *name); /* null */
const struct nb_renderer *nb_renderer_at(size_t i);           /* by name; null behind the last */

/* Writes DIR/plots/ (data, gnuplot scripts, SVG and PNG where gnuplot is there) and DIR/index.html. */
int nb_plots_write(const struct nb_results *results, const char *dir);
int nb_html_write(const struct nb_results *results, const char *dir);

/* Runs side by side as table, markdown or json (reports/schema/compare.schema.json): n comparisons of one run with others, the last of them in
 * full, of those before it the ratio that ranks each case. -1 after nb_error. */
int nb_compare_print(const struct nb_comparison *comparisons, size_t n, const char *format, FILE *out);

/* What a run says, for a person: the lines of `--format summary` as a table, without the commands. */
void nb_html_answer(const struct nb_results *results, struct nb_strbuf *out);

/* A tuning for a person: the fields, and for each question what was measured. json: the file of `normbench tune`,
 * or the choice of a process (nb_tuning_choice_to_json). */
void nb_tune_print(const cJSON *json, struct nb_strbuf *out);

/* ---- Parts that our pages share; each appends to out. ---- */

/* Escaped text between two pieces of markup; nothing at all when there is no text. */
void nb_html_text(struct nb_strbuf *out, const char *before, const char *text, const char *after);

/* From the doctype to <body>; and the script, which tables that sort need, to the end. The policy forbids what the page does not use, so
 * that text that slipped through could still do nothing. */
void nb_html_head(const char *title, struct nb_strbuf *out);
void nb_html_end(struct nb_strbuf *out);
/* A cell. Classes: n a figure, k the name, m what a phone shows beside the name, w a sentence, "" any other. On a phone the rows of a
 * <table class=rows> are folded, and figures that are not m left out. */
void nb_html_cell(struct nb_strbuf *out, const char *class, const char *text);

struct nb_html_pictures {
    const struct nb_figures *figures;
    const char *dir, *folder; /* drawn in DIR/FOLDER */
};
/* Figures as pictures inside the page, so that it can be sent around alone, with links to their files: the first `most` of those whose
 * name starts with prefix, "" for all; and the others, folded under a title. */
void nb_html_figures(const struct nb_html_pictures *from, const char *prefix, size_t most, struct nb_strbuf *out);
void nb_html_more_figures(const struct nb_html_pictures *from, const char *prefix, size_t first, const char *title,
                          struct nb_strbuf *out);
/* What is not drawn and why. Changes the notes. */
void nb_html_not_drawn(struct nb_figures *figures, struct nb_strbuf *out);

/* ---- What to type after a run: commands that work as they are printed, in the folder where the run was started. ---- */

struct nb_next {
    const struct nb_results *results;
    const struct nb_record *failed, *nearest; /* a case that failed, and the one nearest its error bound; or null */
    bool noisy;                               /* cases are too noisy to rank */
    size_t width;                             /* cells of a line */
};
/* Appends up to three commands with what each is for, and returns the number of lines: a longer command goes on in the next line
 * behind a backslash. */
int nb_next_commands(const struct nb_next *next, struct nb_strbuf *out);

/* Appends the shortest command that replays a record of results that lie in a folder, on lines of `width` cells; nothing where a terminal
 * would take its words for commands of its own. */
void nb_add_replay(const struct nb_results *results, const struct nb_record *r, size_t width, struct nb_strbuf *out);

/* The next word of a command line, after a blank where it is not the first, as a shell reads it; a line of `width` cells that it would fill
 * goes on in the next one. */
void nb_add_shell_word(struct nb_strbuf *out, size_t width, const char *word);

/* ---- One kernel of a plugin, as `normbench try` answers; one case, as `normbench replay` does ---- */

struct nb_tried {
    const struct nb_entry *entry;
    const struct nb_results *results;      /* of its run, which is timed */
    const struct nb_results *checks;       /* of the rows of `stress`; null: it did not get there */
    const struct nb_grades *grades;        /* of the checks, else of the results */
    const struct nb_sample_table *samples; /* of the run */
    const cJSON *probe;                    /* what nb_probe_kernel() says; null: it was not asked */
    const char *not_probed;                /* why not */
    const char *differs;                   /* nb_probe_differences(); null: nothing */
    bool is_cut;                           /* ended before all was tried */
};
/* Appends what came of one case that was run alone: right or wrong, where and why, its error and bound, its time. */
void nb_case_view(const struct nb_results *results, struct nb_strbuf *out);
/* Appends ten lines of 80 cells, and one more for each peer beside it: is it right, how accurate, how fast, what does it do inside. */
void nb_try_view(const struct nb_tried *t, struct nb_strbuf *out);

/* ---- Our kernels against others (src/peers/peer_comparison.h): a page for a terminal or in Markdown, and a document. ---- */

/* Means first, then where ours is behind or looks so, then every comparison, then what a call costs before its first row. */
void nb_peers_print(const struct nb_results *results, const struct nb_peer_comparisons *comparisons,
                    const struct nb_page *page);
/* Who is faster, a sentence for each library, then what has no figure and why. */
void nb_peers_sentences(const struct nb_peer_comparisons *comparisons, struct nb_strings *out);
/* DIR/peers.md and DIR/peers.json. -1 after nb_error. */
int nb_peers_write(const struct nb_results *results, const char *dir);
