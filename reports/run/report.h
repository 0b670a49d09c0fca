// SPDX-License-Identifier: Apache-2.0
/* Results -> what a person or another tool reads. A renderer is one file, render_NAME.c, which the build lists; it defines
 * `const struct nb_renderer nb_renderer_NAME[]`, its formats, ended by an empty one. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reports/figures/figure.h"
#include "reports/text/output.h"
#include "src/core/axes.h"
#include "src/measure/paired.h"
#include "src/peers/peer_comparison.h"
#include "src/record/grade.h"
#include "src/record/record.h"

struct nb_renderer {
    const char *name, *summary;                                 /* --format=NAME */
    int (*render)(const struct nb_results *results, FILE *out); /* 0, or -1 after nb_error */
};
const struct nb_renderer *nb_renderer_find(const char *name); /* null */
const struct nb_renderer *nb_renderer_at(size_t i);           /* by name; null behind the last */

/* Writes DIR/plots/ (data, gnuplot scripts, SVG and PNG where gnuplot is there), then DIR/index.html. */
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
/* Figures as pictures inside the page, so that it can be sent around alone, with links to their files: of those whose name starts with
 * prefix, "" for all, the ones from first up to but without end, and how many have it; and those from first on, folded under a title. */
size_t nb_html_figures(const struct nb_html_pictures *from, const char *prefix, size_t first, size_t end,
                       struct nb_strbuf *out);
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

/* What a person needs to know of a run besides its figures: how many cases ended how, what was left out and why, how
 * far the noise can be trusted, on which machine it was. */

struct nb_reason {
    const char *text; /* borrowed from the results */
    size_t n;
};

struct nb_summary {
    size_t counts[NB_N_STATUSES];
    size_t n_cases;          /* records, skipped ones included */
    struct nb_reason *skips; /* cells left out, most frequent reason first; owned */
    size_t n_skips, n_skipped_cells;
    size_t *failures; /* indices of failed records; owned */
    size_t n_failures;
    struct nb_run_noise load;
    size_t n_suspect, n_without_interval;
    size_t n_throttled;           /* with launches during which the GPU's clocks were lowered */
    double n_probed, n_contended; /* samples of which the state of the core is known, and those of the contended one */
    size_t n_uncontended;         /* timed cases whose figures are of the uncontended core */
    double clock_ghz,
        sum_ghz;      /* the highest, at which times are given; the cases' median clocks, summed; NaN: not known */
    size_t n_clocked; /* summands */
    /* Texts, "" where there is nothing to say. */
    struct nb_strbuf footer;   /* "AMD EPYC 9R14, 2025-01-31" */
    struct nb_strbuf machines; /* as nb_meta_machines() has them, where there are several */
    char *counts_text;         /* "212 cases: 208 ok, 3 skipped, 1 crashed" */
    struct nb_strbuf noise;    /* sentences, one a line */
    /* Where the work was done, one line a library: "onednn: oneDNN 3.13.2, SYCL; jit:uni: layernorm_native_f32, .."; built-in kernels that chose
     * an implementation are lines without a library. */
    struct nb_strbuf libraries;
    /* One line a kernel with a ladder of row counts (src/record/call_overhead.h): the overhead of a call with its interval, and the time of a byte. */
    struct nb_strbuf overheads;
};

void nb_summary_init(struct nb_summary *summary, const struct nb_results *results);
double nb_summary_contended(const struct nb_summary *summary); /* n_contended / n_probed; 0: nothing was probed */
/* "The core was shared during 87% of the samples; all figures are from the other 13%. Times are given at 2.99 GHz; the core ran at 2.82.";
 * nothing below 1 %, and where the clock kept within 2 %. */
void nb_summary_core(const struct nb_summary *summary, struct nb_strbuf *out);
void nb_summary_release(struct nb_summary *summary);

/* What went wrong in one failed case, one sentence: the reason, and for a wrong result where it is worst. */
void nb_failure_reproducer(const struct nb_record *r, struct nb_strbuf *out);
/* Is an element of y or dx beyond its bound? Else it is something beside it, a relation, or how the kernel ended. */
bool nb_is_beyond_bound(const struct nb_record *r);
/* "only with columns that are no multiple of 8: 20 of 24 such cases, none of 123 others"; nothing where no such part of a variant's cases tells
 * those that fail by what they compute from the others beyond chance. more: a second run's, of other cases; may be null. */
void nb_failure_pattern(const struct nb_results *results, const struct nb_results *more, const char *variant,
                        struct nb_strbuf *out);

/* "every row is too small by a factor of 1.0034 to 1.0092, as if the sum were divided by n - 7"; nothing where less than half of a variant's
 * failures by what it computes are right but for a factor in each row. */
void nb_failure_factor(const struct nb_results *results, const struct nb_results *more, const char *variant,
                       struct nb_strbuf *out);

/* What the meta data have by dotted path ("fingerprint.cpu.model"): null when absent; as a text "" when absent. */
const cJSON *nb_meta(const struct nb_results *results, const char *path);
const char *nb_meta_text(const struct nb_results *results, const char *path);
/* "AMD EPYC 9R14, 2025-01-31": for footers; either part may be missing. */
void nb_meta_footer(const struct nb_results *results, struct nb_strbuf *out);
/* "machine 1", whose the record is, between before and after, where there are several; else nothing is appended. */
void nb_meta_whose(const struct nb_results *results, const struct nb_record *r, const char *before, const char *after,
                   struct nb_strbuf *out);
/* A part of a machine's fingerprint, "cpu" or "gpu"; null when absent. */
const cJSON *nb_meta_of_machine(const struct nb_results *results, int machine, const char *part);
/* "AMD EPYC 9R14 (Genoa)", of the fingerprint's "cpu". */
void nb_cpu_name(const cJSON *cpu, struct nb_strbuf *out);
/* Of merged results or claims a line for each machine: "machine 1: AMD EPYC 9R14; unlike machine 0 in cpu.l3_bytes"; else "". */
void nb_meta_machines(const cJSON *meta, struct nb_strbuf *out);

/* How results are laid out as tables: which axes are the same everywhere (said once), which differ between groups (a heading), and which
 * differ inside (a column). Of merged results a group is of one machine. Cells that did not run are not in it; nb_summary counts them. */

enum nb_priority { /* a terminal that is too narrow loses the columns of the smallest value first */
                   NB_DROP_FIRST,
                   NB_DROP_SECOND,
                   NB_DROP_THIRD,
                   NB_DROP_LAST,
                   NB_KEEP,
};

enum nb_measured { /* in the order of the columns */
                   NB_MEASURED_KERNEL,
                   NB_MEASURED_STATUS,
                   NB_MEASURED_TIME,
                   NB_MEASURED_RATE,
                   NB_MEASURED_VS_COPY,
                   NB_MEASURED_ROOFLINE, /* share of the roofline, and the bottleneck */
                   NB_MEASURED_RATIO,
                   NB_MEASURED_MAX_ULP,
                   NB_MEASURED_BOUND,
                   NB_MEASURED_PARAMETERS,
                   NB_MEASURED_BIAS,
                   NB_MEASURED_NOTE,
                   NB_N_MEASURED
};

struct nb_column {
    const char *title;
    const struct nb_axis *axis; /* a case column; null: a measured one */
    enum nb_measured measured;
    bool right; /* aligned to the right */
    enum nb_priority priority;
};
extern const struct nb_column nb_measured_columns[NB_N_MEASURED];

/* Is the record its group's reference? */
bool nb_is_reference(const struct nb_record *r);
/* The cell of a record, not escaped; narrow: of times the ratio alone has its interval. */
void nb_column_print(const struct nb_column *column, const struct nb_record *r, bool narrow, struct nb_strbuf *out);

/* ---- layout ---- */

#define NB_VIEW_COLUMNS 64

struct nb_section {
    struct nb_strbuf heading; /* "machine 1  f32  64x384  data normal"; "" when there is nothing to tell apart */
    size_t *records;          /* indices into results->records, in their order; owned */
    size_t n;
    bool said[NB_VIEW_COLUMNS];   /* on a narrow screen: axis columns that the heading has */
    char *usual[NB_VIEW_COLUMNS]; /* and the value that the heading gives for most of its rows; owned, or null */
    bool hidden[NB_VIEW_COLUMNS]; /* axis columns that say the same in all its rows: the heading has them */
};

struct nb_view {
    const struct nb_results *results; /* borrowed */
    struct nb_column columns[NB_VIEW_COLUMNS];
    size_t n_columns;
    struct nb_section *sections;
    size_t n_sections;
    struct nb_strbuf constants; /* "pass forward, eps 1e-5, ...": axes with one value */
};

/* flat: one section, in which all that differs is a column. */
void nb_view_init(struct nb_view *view, const struct nb_results *results, bool flat);
void nb_view_release(struct nb_view *view);
/* Appends "root div_sqrt" to a heading, but for values that a reader expects anyway. */
void nb_view_add_to_heading(const struct nb_axis *axis, const char *value, struct nb_strbuf *heading);
