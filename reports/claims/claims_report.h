// SPDX-License-Identifier: Apache-2.0
/* The outcome of a run of claims, for people: all of it is made from the document (src/claims/claims_document.h). */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "reports/figures/figure.h"
#include "reports/text/grid.h"
#include "src/claims/claims.h"
#include "src/core/stats.h"
#include "src/core/text.h"

#define NB_CLAIMS_PAGE "claims.html"
#define NB_CLAIMS_MARKDOWN "claims.md"
#define NB_CLAIMS_PLOTS "claims-plots"

/* On a stream, in one of those formats. -1 after nb_error. */
int nb_claims_print(const cJSON *document, const char *format, FILE *out);
/* figures: pictures to be linked, or null. */
void nb_claims_markdown(const cJSON *document, struct nb_figures *figures, struct nb_strbuf *out);
/* DIR/claims.md, DIR/claims.html and DIR/claims-plots/. plots: false leaves the pictures out. */
int nb_claims_pages(const char *dir, const cJSON *document, bool plots);
/* What `claims --model` found (src/models/step.h). -1 after nb_error. */
int nb_model_answer_print(const cJSON *document, const char *format, FILE *out);
/* What --explain says of a claim before anything is run. */
void nb_claim_explain(const struct nb_claim *claim, struct nb_strbuf *out);
/* The property experiments that claims may use: what each is about, its parameters and their defaults. */
void nb_properties_explain(struct nb_strbuf *out);

/* ---- Pieces that the table, the Markdown page and the HTML page of claims share, read from the document. ---- */

bool nb_claims_is_bug(const cJSON *claim);
/* As a reader sees it: of the input of a bug report, how many kernels it breaks. */
const char *nb_claims_verdict(const cJSON *claim);
/* The item of that id in a list, the claim of that id, the figures of a reading of it; or null. */
const cJSON *nb_claims_claim(const cJSON *document, const char *id);
const cJSON *nb_claims_figures(const cJSON *document, const char *claim, const char *reading);

/* Of a figure of a reading: where it was measured ("style unfused, cols 512": its label, and the tags in which the figures differ), and
 * its value, "30.1% [29.8, 30.6]", of an exact one the value alone. Both are appended. */
void nb_claims_figure(const cJSON *figure, const cJSON *figures, struct nb_strbuf *where, struct nb_strbuf *value);
/* Appends the published figure of a rule behind the lead, or nothing. */
void nb_claims_published(const cJSON *rule, const char *lead, struct nb_strbuf *out);
/* "makes or breaks it: style (unfused REPRODUCED, fused NOT REPRODUCED)", one sentence for each axis that decides; "" for none. */
void nb_claims_sensitivity(struct nb_strbuf *out, const cJSON *claim);
/* "31 yes, 5 in part ...". */
void nb_claims_counts(struct nb_strbuf *out, const cJSON *document);
/* Appends what a quick run cannot decide, and how it can be; nothing for other runs. */
void nb_claims_quick_note(const cJSON *document, struct nb_strbuf *out);

/* Each claim but bug reports in words, by theme: the answer "no", `"rsqrt(v) equals 1 / sqrt(v)" is not true`, which is true when read
 * alone, and what was seen. */
struct nb_claims_sentence {
    const char *theme, *id, *answer; /* borrowed */
    char *said, *seen;               /* owned; seen: what is open where the claim is */
    bool is_measured;
};
size_t nb_claims_sentences(const cJSON *document, struct nb_claims_sentence **sentences);
void nb_claims_sentences_release(struct nb_claims_sentence *sentences, size_t n);

/* The table of verdicts in Markdown and on the page: a line for each claim; and where the statement itself cannot be tested here, one for
 * each other reading that could. Of bug reports (bugs), or of all the others. Returns how many lines. */
size_t nb_claims_lines_grid(const cJSON *document, bool bugs, struct nb_grid *grid);
/* Of bug reports on a terminal: those whose input breaks kernels, or that were not tried, with the kernels or the reason. Returns how many reports
 * there are. */
size_t nb_claims_bugs_grid(const cJSON *document, struct nb_grid *grid);

/* ---- claims.md and claims.html by one writer: each piece in Markdown, or as HTML ---- */

struct nb_claims_page {
    bool html;
    struct nb_strbuf *out;
};
void nb_claims_add(const struct nb_claims_page *p, const char *markdown, const char *html); /* as it stands */
void nb_claims_text(const struct nb_claims_page *p, const char *text);                      /* escaped */
/* A paragraph of a lead and escaped text; nothing where there is no text. */
void nb_claims_say(const struct nb_claims_page *p, const char *lead, const char *text);
/* One of a list; nothing where there is no text. */
void nb_claims_item(const struct nb_claims_page *p, const char *text);
void nb_claims_heading(const struct nb_claims_page *p, int level, const char *id, const char *title);
void nb_claims_grid(const struct nb_claims_page *p, const struct nb_grid *grid);

/* ---- The RMSNorm paper's running times (configs/claims/tables/rmsnorm-paper.json), what follows from them by arithmetic, and what was
 * measured here of the norms alone. ---- */

#define NB_PAPER_ROWS 16

struct nb_paper_row {
    char name[64], claim[64], table[8];
    double baseline, layernorm, rmsnorm;
    /* Cuts of the step by RMSNorm and by pRMSNorm, 1 - t / t_LN, at 95 % from the standard deviations of three runs each. */
    struct nb_interval step, step_p;
    /* share: of LayerNorm's step that is LayerNorm, (t_LN - t_none) / t_LN. norm_cut: of the norm alone, (t_LN - t) / (t_LN - t_none):
     * the step's cut is share * norm_cut. */
    double share, norm_cut;
};
struct nb_paper {
    struct nb_paper_row rows[NB_PAPER_ROWS];
    size_t n;
};
int nb_paper_read(struct nb_paper *paper); /* -1 after nb_error */
/* Appends what the 7 % to 64 % of its abstract are. */
void nb_claims_paper_sentence(struct nb_strbuf *out);
/* The section of its tables; nothing where no claim of the paper was run. */
void nb_claims_paper(const struct nb_claims_page *p, const cJSON *document);

/* ---- Whole steps, from the "steps" section of claims.json (src/claims/steps.h), what PyTorch took in this run, and recorded readings. ---- */

/* A row for each published figure: of a step, and here the step, the norm alone, the cost of dispatch at which the figure is reached, and
 * PyTorch. brief: for a terminal. False: no step was summed. The grid is to be released in either case. */
bool nb_claims_headline(const cJSON *document, bool brief, struct nb_grid *grid);
/* How to read it; of which machine and day the GPU's column is, and what its brackets are: recorded ones need not be 95 %. */
void nb_claims_headline_note(const cJSON *document, struct nb_strbuf *out);
/* The same figures as a picture. */
void nb_claims_savings_figure(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta);
/* Appends what a reader takes home of it, a sentence each; none where no step was summed. */
void nb_claims_takeaways(const cJSON *document, struct nb_strings *sentences);
/* The section "Whole steps": the sums, what published figures need, recorded readings. Nothing where no step was summed. */
void nb_claims_steps(const struct nb_claims_page *p, const cJSON *document);

/* ---- What was trained for claims, for people: tables of steps and memory, curves of losses; all from the "training" section of claims.json
 * (src/claims/training.h). ---- */

/* Nothing where nothing was trained. */
void nb_claims_training_tables(const struct nb_claims_page *p, const cJSON *document);
void nb_claims_training_figures(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta);
