// SPDX-License-Identifier: Apache-2.0
/* Pieces that the table, the Markdown page and the HTML page of claims share, read from the document. */
#ifndef NB_CLAIMS_TEXT_H
#define NB_CLAIMS_TEXT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "reports/figures/plots.h"
#include "src/core/stats.h"
#include "src/core/text.h"

const char *nb_claims_text(const cJSON *object, const char *name); /* "" where there is none */
bool nb_claims_is_bug(const cJSON *claim);
/* The figures of a reading of a claim, or null. */
const cJSON *nb_claims_figures(const cJSON *document, const char *claim, const char *reading);

/* Of a figure of a reading: where it was measured ("style=composed, cols=512": its label, and the tags in which the figures differ), and
 * its value, "30.1 % [29.8 %, 30.6 %]", of an exact one the value alone. Both are appended. */
void nb_claims_figure(const cJSON *figure, const cJSON *figures, struct nb_strbuf *where, struct nb_strbuf *value);
/* "makes or breaks it: style (composed REPRODUCED, fused NOT REPRODUCED)", one sentence for each axis that decides; "" for none. */
void nb_claims_sensitivity(struct nb_strbuf *out, const cJSON *claim);
/* "31 REPRODUCED, 5 PARTLY ...". */
void nb_claims_counts(struct nb_strbuf *out, const cJSON *document);

/* The lines of the table of verdicts, the same on a terminal, in Markdown and on the page: one for each claim; and where the statement
 * itself cannot be tested here, one for each other reading that could. */

struct nb_claims_line {
    const cJSON *claim, *reading;       /* reading: null for the line of the claim itself */
    const char *name, *title, *verdict; /* borrowed from the document */
    char *measured, *published, *why;   /* owned */
};
/* Of bug reports (bugs), or of all the others. Returns how many. */
size_t nb_claims_lines(const cJSON *document, bool bugs, struct nb_claims_line **lines);
void nb_claims_lines_release(struct nb_claims_line *lines, size_t n);

/* ---- The RMSNorm paper's running times (configs/claims/tables/rmsnorm-paper.json), what follows from them by arithmetic, and what was
 * measured here of the norms alone. ---- */

#define NB_PAPER_ROWS 16

struct nb_paper_row {
    char name[64], claim[64], table[8];
    double baseline, layernorm, rmsnorm, prmsnorm;
    struct nb_interval step,
        step_p; /* step_cut and step_cut_p at 95 %, from the standard deviations of three runs each */
    /* share: of LayerNorm's step that is LayerNorm, (t_LN - t_none) / t_LN. Cuts: of the step, 1 - t / t_LN, and of the norm alone,
     * which is (t_LN - t) / (t_LN - t_none). step cut = share * norm cut. */
    double share, step_cut, step_cut_p, norm_cut, norm_cut_p;
};
struct nb_paper {
    struct nb_paper_row rows[NB_PAPER_ROWS];
    size_t n;
};
/* "What the 64 % is", as a section of claims.md; nothing where no claim of the paper was run. */
void nb_claims_paper_markdown(const cJSON *document, struct nb_strbuf *out);
/* Sentences about it, one a line; nothing where the table cannot be read. */
void nb_paper_sentences(struct nb_strbuf *out);

/* Amdahl's law for norms: what a step gains is the norm's share of it times what the norm saves. The paper's rows, and the steps that
 * were measured here. */

void nb_claims_amdahl_figure(struct nb_figures *figures, const cJSON *document, const struct nb_results *meta);

#endif
