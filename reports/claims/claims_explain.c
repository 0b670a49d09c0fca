// SPDX-License-Identifier: Apache-2.0
/* A claim before it is run: what is said, by whom, what would be tried, and what would make it REPRODUCED. */
#include <math.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/text/escape.h"
#include "reports/text/screen.h"

static void add_wrapped(struct nb_strbuf *out, const char *lead, const char *text) {
    struct nb_strbuf line = {0};
    if (!text) return;
    nb_strbuf_addf(&line, "%s%s", lead, text);
    nb_screen_wrap(out, line.text, 110, nb_utf8_wanted());
    nb_strbuf_release(&line);
}

static void add_sources(const struct nb_claim *claim, struct nb_strbuf *out) {
    for (size_t i = 0; i < claim->n_sources; i++) {
        const struct nb_claim_source *s = &claim->sources[i];
        struct nb_strbuf text = {0};
        nb_strbuf_addf(&text, "%s%s%s%s%s", s->cite, s->says ? ": " : "", s->says ? s->says : "", s->note ? ". " : "",
                       s->note ? s->note : "");
        add_wrapped(out, "source: ", text.text);
        nb_strbuf_release(&text);
    }
}

static void add_reading(const struct nb_claim *claim, const struct nb_reading *r, struct nb_strbuf *out) {
    const struct nb_experiment *e = &claim->experiments[r->experiment];
    const char *refused = e->kind->refuses ? e->kind->refuses(e) : NULL;
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s%s (%s)", r->id, r->alternative ? ", another reading" : "", e->kind->name);
    nb_strbuf_add(out, "\n");
    add_wrapped(out, "", text.text);
    add_wrapped(out, "  ", r->text);
    for (size_t i = 0; i < r->needs.n && !refused; i++) refused = nb_claim_lacks(r->needs.items[i]);
    if (refused) add_wrapped(out, "  cannot be tested here: ", refused);
    for (size_t i = 0; i < r->n_rules; i++) {
        nb_strbuf_clear(&text);
        nb_rule_print(&r->rules[i], &text);
        if (r->rules[i].text) nb_strbuf_addf(&text, " (%s)", r->rules[i].text);
        if (isfinite(r->rules[i].published)) nb_strbuf_addf(&text, "; published %.4g", r->rules[i].published);
        add_wrapped(out, "  expects ", text.text);
    }
    nb_strbuf_release(&text);
}

void nb_claim_explain(const struct nb_claim *claim, struct nb_strbuf *out) {
    struct nb_strbuf axes = {0};
    add_wrapped(out, "", claim->id);
    add_wrapped(out, "", claim->statement);
    nb_strbuf_add(out, "\n");
    add_sources(claim, out);
    add_wrapped(out, "scope: ", claim->scope);
    add_wrapped(out, "correction: ", claim->correction);
    add_wrapped(out, "", claim->remark);
    for (size_t i = 0; i < claim->n_readings; i++) add_reading(claim, &claim->readings[i], out);
    for (size_t i = 0; i < claim->n_sensitivities; i++)
        nb_strbuf_addf(&axes, "%s%s", i ? ", " : "", claim->sensitivities[i].axis);
    if (axes.len) nb_strbuf_add(out, "\n");
    add_wrapped(out, "may hang on: ", axes.text);
    add_wrapped(out, "file: ", claim->path);
    nb_strbuf_release(&axes);
}
