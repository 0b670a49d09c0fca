// SPDX-License-Identifier: Apache-2.0
/* The formats of a gate's report, one file each. */
#ifndef NB_GATE_PARTS_H
#define NB_GATE_PARTS_H

#include <stdio.h>

#include "reports/gate/gate_summary.h"

/* What all formats are made of. */
struct nb_gate_view {
    const struct nb_gate *g;
    struct nb_gate_summary summary;
    cJSON *fingerprint;
};

void nb_gate_add_table(const struct nb_gate_view *view, size_t screen, bool color, struct nb_strbuf *out);
void nb_gate_add_markdown(const struct nb_gate_view *view, struct nb_strbuf *out);
void nb_gate_add_junit(const struct nb_gate_view *view, struct nb_strbuf *out);
void nb_gate_add_bencher(const struct nb_gate_view *view, struct nb_strbuf *out);
void nb_gate_add_json(const struct nb_gate_view *view, struct nb_strbuf *out);

/* The columns of the table, of the terminal and of Markdown: short texts without escapes. */
enum nb_gate_column {
    NB_GATE_VERDICT,
    NB_GATE_CASE,
    NB_GATE_CHANGE,
    NB_GATE_INTERVAL,
    NB_GATE_SEEN_FROM,
    NB_GATE_CONTROL,
    NB_GATE_INSTRUCTIONS, /* exact counts, candidate against baseline */
    NB_GATE_LAUNCHES,
    NB_GATE_SECONDS,
    NB_GATE_N_COLUMNS
};
extern const char *const nb_gate_titles[NB_GATE_N_COLUMNS];
extern const bool nb_gate_right[NB_GATE_N_COLUMNS];
void nb_gate_cell(const struct nb_gate_view *view, const struct nb_gate_case *c, enum nb_gate_column column,
                  struct nb_strbuf *out);
/* Has any case a text in this column? */
bool nb_gate_has_column(const struct nb_gate_view *view, enum nb_gate_column column);

/* Verdicts that ask for something to be done, the worst first; what is before this one is none. */
#define NB_GATE_FIRST_OPEN NB_VERDICT_INCONCLUSIVE

#endif
