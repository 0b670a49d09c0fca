// SPDX-License-Identifier: Apache-2.0
/* Two documents of claims, mostly of two machines: which verdicts differ, and what makes the difference. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/claims/claims_report.h"
#include "reports/text/escape.h"
#include "reports/text/grid.h"
#include "src/claims/claims.h"
#include "src/core/json.h"

/* From the one that makes others meaningless to the one that is left over. */
enum cause { BY_RULE, BY_DATA, BY_MACHINE, BY_INTERVAL };
static const char *const cause_names[] = {"rule", "data", "machine", "interval"};

struct difference {
    enum cause cause;
    struct nb_strbuf why;
};

/* The rules as people read them: what is not in there is not judged. */
static bool same_rules(const cJSON *a, const cJSON *b) {
    const cJSON *p = a ? a->child : NULL, *q = b ? b->child : NULL;
    while (p && q && nb_json_same_text(p, q, "rule")) {
        p = p->next;
        q = q->next;
    }
    return !p && !q;
}

/* The figure of the other document that was measured where this one was, or null. */
static const cJSON *counterpart(const cJSON *figure, const cJSON *figures) {
    const cJSON *other, *tags = nb_json_get(figure, "tags");
    cJSON_ArrayForEach(other, figures) {
        const cJSON *its = nb_json_get(other, "tags");
        if (nb_json_get_number(other, "rule") == nb_json_get_number(figure, "rule") &&
            (tags && its ? cJSON_Compare(tags, its, true) : tags == its))
            return other;
    }
    return NULL;
}

static bool overlap(const cJSON *a, const cJSON *b) {
    return nb_json_get_number(a, "low") <= nb_json_get_number(b, "high") &&
           nb_json_get_number(b, "low") <= nb_json_get_number(a, "high");
}

static void say_figures(struct nb_strbuf *out, const char *reading, const cJSON *here, const cJSON *there) {
    struct nb_strbuf where = {0}, value = {0}, other = {0}, unused = {0};
    nb_claims_figure(here, here, &where, &value);
    nb_claims_figure(there, there, &unused, &other);
    nb_strbuf_addf(out, "%s: %s here, %s there", reading, value.text, other.text);
    nb_strbuf_release(&where);
    nb_strbuf_release(&value);
    nb_strbuf_release(&other);
    nb_strbuf_release(&unused);
}

static void weigh(struct difference *d, enum cause cause) {
    if (cause > d->cause) return; /* what was said first of the same cause stays */
    if (cause == d->cause && d->why.len) return;
    d->cause = cause;
    nb_strbuf_clear(&d->why);
}

/* Of two readings with the same rules: a figure that came out differently. False: there is none. */
static bool compare_figures(struct difference *d, const cJSON *here, const cJSON *there) {
    const cJSON *figure, *others = nb_json_get(there, "figures");
    const char *id = nb_json_get_string(here, "id");
    bool any = false;
    cJSON_ArrayForEach(figure, nb_json_get(here, "figures")) {
        const cJSON *other = counterpart(figure, others);
        if (!other || nb_json_same_text(figure, other, "outcome")) continue;
        const bool measured =
            isfinite(nb_json_get_number(figure, "value")) && isfinite(nb_json_get_number(other, "value"));
        weigh(d, !measured ? BY_DATA : overlap(figure, other) ? BY_INTERVAL : BY_MACHINE);
        if (!d->why.len) say_figures(&d->why, id, figure, other);
        any = true;
    }
    return any;
}

static void say_readings(struct difference *d, const cJSON *here, const cJSON *there) {
    nb_strbuf_addf(
        &d->why, "%s: %s here, %s there (%s)", nb_json_get_string(here, "id"), nb_json_get_string(here, "verdict"),
        nb_json_get_string(there, "verdict"),
        nb_json_get_string(nb_claim_is_decided(nb_json_get_string(here, "verdict")) ? there : here, "reason"));
}

static void compare_readings(struct difference *d, const cJSON *here, const cJSON *there) {
    if (!there || !same_rules(nb_json_get(here, "expect"), nb_json_get(there, "expect"))) {
        weigh(d, BY_RULE);
        if (!d->why.len) nb_strbuf_addf(&d->why, "%s is judged by other rules", nb_json_get_string(here, "id"));
        return;
    }
    if (nb_json_same_text(here, there, "verdict")) return;
    if (compare_figures(d, here, there)) return;
    weigh(d, BY_DATA); /* other cases were measured, or none */
    if (!d->why.len) say_readings(d, here, there);
}

static struct difference difference_of(const cJSON *here, const cJSON *there) {
    struct difference d = {.cause = BY_INTERVAL};
    const cJSON *reading;
    cJSON_ArrayForEach(reading, nb_json_get(here, "readings")) {
        if (!nb_json_get_bool(reading, "alternative"))
            compare_readings(&d, reading,
                             nb_json_find(nb_json_get(there, "readings"), "id", nb_json_get_string(reading, "id")));
    }
    if (!d.why.len) {
        d.cause = BY_RULE;
        nb_strbuf_add(&d.why, "the readings that decide are others");
    }
    return d;
}

/* What a file of unknown origin says of itself is escaped. */
static void say_run(struct nb_strbuf *out, const char *side, const cJSON *document, bool markdown) {
    const cJSON *cpu = nb_json_get(nb_json_get(document, "fingerprint"), "cpu");
    const bool several = cJSON_GetArraySize(nb_json_get(document, "machines")) > 1;
    char *line =
        nb_textf("%s: %s%s, %s%s%s%s", side, nb_json_get_string(cpu, "model"), several ? " and other machines" : "",
                 nb_json_get_string(document, "started"), nb_json_get_bool(document, "quick") ? ", --quick" : "",
                 nb_json_get(document, "training") ? "" : ", no training",
                 nb_json_get_bool(document, "complete") ? "" : ", cut short");
    if (markdown)
        nb_escape_markdown(out, line);
    else
        nb_escape_terminal(out, line, true);
    nb_strbuf_add(out, markdown ? "\n\n" : "\n");
    free(line);
}

static void add_difference(struct nb_grid *grid, const cJSON *here, const cJSON *there) {
    struct difference d = difference_of(here, there);
    nb_grid_row(grid, nb_json_get_string(here, "id"), nb_json_get_string(here, "verdict"),
                nb_json_get_string(there, "verdict"), cause_names[d.cause], d.why.text);
    nb_strbuf_release(&d.why);
}

void nb_claims_against(const cJSON *here, const cJSON *there, bool markdown, struct nb_strbuf *out) {
    static const char *const titles[] = {"claim", "here", "there", "differs by", "why"};
    struct nb_grid grid;
    const cJSON *claim;
    int n = 0, common = 0;
    assert(here && there && out);
    nb_grid_init(&grid, titles, 5);
    cJSON_ArrayForEach(claim, nb_json_get(here, "claims")) {
        const cJSON *other = nb_json_find(nb_json_get(there, "claims"), "id", nb_json_get_string(claim, "id"));
        common += other != NULL;
        if (!other || nb_json_same_text(claim, other, "verdict")) continue;
        add_difference(&grid, claim, other);
        n++;
    }
    nb_strbuf_addf(out, "\n%sVerdicts that differ: %d of %d claims that both runs have\n\n", markdown ? "## " : "", n,
                   common);
    say_run(out, "here", here, markdown);
    say_run(out, "there", there, markdown);
    if (n > 0 && markdown) nb_grid_add_markdown(&grid, out);
    if (n > 0 && !markdown) nb_grid_add_table(&grid, false, out);
    nb_grid_release(&grid);
}
