// SPDX-License-Identifier: Apache-2.0
/* The RMSNorm paper's running times (configs/claims/tables/rmsnorm-paper.json), what follows from them by arithmetic, and what was
 * measured here of the norms alone. */
#ifndef NB_CLAIMS_TABLES_H
#define NB_CLAIMS_TABLES_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "reports/figures/plots.h"
#include "src/core/stats.h"
#include "src/core/text.h"

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
