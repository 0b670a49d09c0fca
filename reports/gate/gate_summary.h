// SPDX-License-Identifier: Apache-2.0
/* What a gate as a whole says: how many of each verdict, the worst of them, what it could have seen, and whether everything leans to
 * one side. */
#ifndef NB_GATE_SUMMARY_H
#define NB_GATE_SUMMARY_H

#include "reports/text/key_parts.h"
#include "src/gate/gate.h"

struct nb_gate_summary {
    const struct nb_gate *g; /* borrowed */
    size_t counts[NB_N_VERDICTS];
    enum nb_verdict verdict; /* the worst; NB_VERDICT_NONE: no case */
    size_t *order;           /* indices of the cases, the worst first; owned */
    size_t n_timed;
    struct nb_interval mean; /* geometric mean of the timed cases' ratios, with a 95 % interval; NaN: none was timed */
    double smallest_effect,
        largest_smallest; /* ratio - 1 that would be found: median over the timed cases, the worst */
    /* Cases whose ratio is inside the margin of failure: how many lean to the slow side, of how many. */
    size_t n_slower, n_null;
    size_t n_control_slower, n_control; /* the same of the controls, of all timed cases */
    struct nb_key_parts parts;
    int n_layouts;
};

void nb_gate_summary_init(struct nb_gate_summary *s, const struct nb_gate *g);
void nb_gate_summary_release(struct nb_gate_summary *s);

/* Was the case timed to a judgement? One that broke while it was timed has launches, but none. */
bool nb_gate_judged(const struct nb_gate_case *c);
/* Is a split so one-sided that a fair coin gives it in less than 1 % (two-sided)? */
bool nb_leans(size_t k, size_t n);

/* The sentences below the table and above the pages; each without a line break; empty where there is nothing to say. */
void nb_gate_say_counts(const struct nb_gate_summary *s, struct nb_strbuf *out);  /* "7 cases: 1 REGRESSION, 6 PASS" */
void nb_gate_say_mean(const struct nb_gate_summary *s, struct nb_strbuf *out);    /* geometric mean, smallest effect */
void nb_gate_say_layouts(const struct nb_gate_summary *s, struct nb_strbuf *out); /* were several layouts looked at? */
void nb_gate_say_leaning(const struct nb_gate_summary *s, struct nb_strbuf *out); /* the sign test */
/* "AMD EPYC 9R14, KVM, Linux 6.1, Debian GNU/Linux 12" from a fingerprint. */
void nb_say_machine(const cJSON *fingerprint, struct nb_strbuf *out);
/* What a person does about a verdict; "" when nothing. */
const char *nb_gate_advice(enum nb_verdict v);

/* ---- formats for people ---------------------------------------------------------------------------------------------- */

/* What all formats are made of. */
struct nb_gate_view {
    const struct nb_gate *g;
    struct nb_gate_summary summary;
    cJSON *fingerprint;
};

void nb_gate_add_table(const struct nb_gate_view *view, size_t screen, bool color, struct nb_strbuf *out);
void nb_gate_add_markdown(const struct nb_gate_view *view, struct nb_strbuf *out);
void nb_gate_add_junit(const struct nb_gate_view *view, struct nb_strbuf *out);

/* Verdicts from this one on call for something to be done. */
#define NB_GATE_FIRST_OPEN NB_VERDICT_INCONCLUSIVE

#endif
