// SPDX-License-Identifier: Apache-2.0
/* The outcome of a run of claims, for people: all of it is made from the document (src/claims/claims_document.h). */
#ifndef NB_CLAIMS_REPORT_H
#define NB_CLAIMS_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "reports/figures/plots.h"
#include "src/claims/claims.h"

#define NB_CLAIMS_PAGE "claims.html"
#define NB_CLAIMS_MARKDOWN "claims.md"
#define NB_CLAIMS_PLOTS "claims-plots"

bool nb_claims_format_known(const char *format); /* table, markdown, json */
/* On a stream, in one of those formats. -1 after nb_error. */
int nb_claims_print(const cJSON *document, const char *format, FILE *out);
/* figures: pictures to be linked, or null. */
void nb_claims_markdown(const cJSON *document, const struct nb_figures *figures, struct nb_strbuf *out);
/* DIR/claims.md, DIR/claims.html and DIR/claims-plots/. plots: false leaves the pictures out. */
int nb_claims_pages(const char *dir, const cJSON *document, bool plots);
/* What --explain says of a claim before anything is run. */
void nb_claim_explain(const struct nb_claim *claim, struct nb_strbuf *out);
/* The property experiments that claims may use: what each is about, its parameters and their defaults. */
void nb_properties_explain(struct nb_strbuf *out);

#endif
