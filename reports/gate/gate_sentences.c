// SPDX-License-Identifier: Apache-2.0
/* The gate's figures in words. */
#include <math.h>

#include "reports/gate/gate_summary.h"
#include "reports/text/format.h"
#include "src/core/json.h"

void nb_gate_say_counts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const char *separator = ": ";
    nb_strbuf_addf(out, "%zu case%s", s->g->n_cases, s->g->n_cases == 1 ? "" : "s");
    for (int v = NB_N_VERDICTS - 1; v >= 0; v--) {
        if (!s->counts[v]) continue;
        nb_strbuf_addf(out, "%s%zu %s", separator, s->counts[v], nb_verdict_name((enum nb_verdict)v));
        separator = ", ";
    }
    nb_strbuf_addf(out, "; %.0f s", s->g->elapsed_s);
}

void nb_gate_say_mean(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    const struct nb_interval *m = &s->mean;
    nb_strbuf_add(out, "");
    if (s->n_timed == 0) return;
    nb_strbuf_addf(out, "%zu case%s timed: candidate / baseline %.4f", s->n_timed, s->n_timed == 1 ? "" : "s",
                   m->value);
    if (nb_interval_known(m)) nb_strbuf_addf(out, " [%.4f, %.4f]", m->low, m->high);
    nb_strbuf_add(out, s->n_timed == 1 ? "." : " (geometric mean).");
    if (!isfinite(s->smallest_effect)) return;
    nb_strbuf_addf(out,
                   " The smallest slowdown that this run would have called a REGRESSION in 95 %% of cases: %.1f %%",
                   100 * s->smallest_effect);
    if (s->n_timed > 1) nb_strbuf_addf(out, " for the median case, %.1f %% for the worst", 100 * s->largest_smallest);
    nb_strbuf_add(out, ".");
}

void nb_gate_say_layouts(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (s->n_timed == 0) return;
    if (s->n_layouts > 1)
        nb_strbuf_addf(out, "%d layouts of the code examined.", s->n_layouts);
    else
        nb_strbuf_add(out,
                      "Layout not examined: one build of each side, whose place in memory alone may be worth about "
                      "1 %. --baseline and --candidate can be given several times.");
}

void nb_gate_say_leaning(const struct nb_gate_summary *s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "");
    if (!nb_leans(s->n_slower, s->n_null)) return;
    const bool slower = 2 * s->n_slower > s->n_null;
    nb_strbuf_addf(
        out, "%zu of %zu cases inside the margin lean to the %s side, which chance does in less than 1 %% of runs: ",
        slower ? s->n_slower : s->n_null - s->n_slower, s->n_null, slower ? "slow" : "fast");
    const bool control =
        nb_leans(s->n_control_slower, s->n_control) && (2 * s->n_control_slower > s->n_control) == slower;
    nb_strbuf_add(
        out, control ? "so do the copies of the baseline, so that the measurement leans and not the change."
                     : "something small changed everywhere (flags, compiler, layout), while copies of the baseline "
                       "do not lean.");
}

static const char *text_at(const cJSON *json, const char *object, const char *name) {
    const char *text = nb_json_get_text(cJSON_GetObjectItemCaseSensitive(json, object), name);
    return text ? text : "";
}

void nb_say_machine(const cJSON *fingerprint, struct nb_strbuf *out) {
    static const char *const places[][2] = {
        {"cpu", "model"}, {"cpu", "hypervisor"}, {"system", "kernel"}, {"system", "os"}};
    const char *separator = "";
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = text_at(fingerprint, places[i][0], places[i][1]);
        if (!*text) continue;
        nb_strbuf_addf(out, "%s%s", separator, text);
        separator = ", ";
    }
}

const char *nb_gate_advice(enum nb_verdict v) {
    switch (v) {
    case NB_VERDICT_WRONG:
        return "The candidate computes something wrong, or breaks: mend it first, its speed means nothing. `normbench "
               "run "
               "--plugin CANDIDATE.so` with the same case says where it is worst.";
    case NB_VERDICT_LESS_ACCURATE:
        return "The candidate's results are worse than the baseline's beyond the margin. `normbench stress --plugin "
               "CANDIDATE.so` shows for which inputs; if the loss is wanted, say so in the change.";
    case NB_VERDICT_REGRESSION:
        return "Slower by more than the margin, seen in launches made to confirm it, or above a budget of "
               "instructions. "
               "Compare the machine code of both builds (objdump -d); the same command with --filter KEY repeats a "
               "case "
               "alone.";
    case NB_VERDICT_NOT_COMPARABLE:
        return "There is nothing to compare with. Expected where a kernel was added, renamed or removed; otherwise the "
               "reason says what to mend.";
    case NB_VERDICT_INCONCLUSIVE:
        return "Neither shown to be slower nor shown to be within the margin; this is no failure of the change. A "
               "quieter "
               "machine, a larger --budget or more layouts decide it.";
    default:
        return "";
    }
}
