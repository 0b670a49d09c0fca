// SPDX-License-Identifier: Apache-2.0
/* Two documents of claims, mostly of two machines: which verdicts differ, and what makes the difference. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
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

static const cJSON *list(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The rules as people read them: what is not in there is not judged. */
static bool same_rules(const cJSON *a, const cJSON *b) {
    const cJSON *p = a ? a->child : NULL, *q = b ? b->child : NULL;
    while (p && q && strcmp(nb_claims_text(p, "rule"), nb_claims_text(q, "rule")) == 0) {
        p = p->next;
        q = q->next;
    }
    return !p && !q;
}

/* The figure of the other document that was measured where this one was, or null. */
static const cJSON *counterpart(const cJSON *figure, const cJSON *figures) {
    const cJSON *other, *tags = list(figure, "tags");
    cJSON_ArrayForEach(other, figures) {
        const cJSON *its = list(other, "tags");
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
    const cJSON *figure, *others = list(there, "figures");
    const char *id = nb_claims_text(here, "id");
    bool any = false;
    cJSON_ArrayForEach(figure, list(here, "figures")) {
        const cJSON *other = counterpart(figure, others);
        if (!other || strcmp(nb_claims_text(figure, "outcome"), nb_claims_text(other, "outcome")) == 0) continue;
        const bool measured =
            isfinite(nb_json_get_number(figure, "value")) && isfinite(nb_json_get_number(other, "value"));
        weigh(d, !measured ? BY_DATA : overlap(figure, other) ? BY_INTERVAL : BY_MACHINE);
        if (!d->why.len) say_figures(&d->why, id, figure, other);
        any = true;
    }
    return any;
}

static void say_readings(struct difference *d, const cJSON *here, const cJSON *there) {
    nb_strbuf_addf(&d->why, "%s: %s here, %s there (%s)", nb_claims_text(here, "id"), nb_claims_text(here, "verdict"),
                   nb_claims_text(there, "verdict"),
                   nb_claims_text(nb_claim_is_decided(nb_claims_text(here, "verdict")) ? there : here, "reason"));
}

static void compare_readings(struct difference *d, const cJSON *here, const cJSON *there) {
    if (!there || !same_rules(list(here, "expect"), list(there, "expect"))) {
        weigh(d, BY_RULE);
        if (!d->why.len) nb_strbuf_addf(&d->why, "%s is judged by other rules", nb_claims_text(here, "id"));
        return;
    }
    if (strcmp(nb_claims_text(here, "verdict"), nb_claims_text(there, "verdict")) == 0) return;
    if (compare_figures(d, here, there)) return;
    weigh(d, BY_DATA); /* other cases were measured, or none */
    if (!d->why.len) say_readings(d, here, there);
}

static struct difference difference_of(const cJSON *here, const cJSON *there) {
    struct difference d = {.cause = BY_INTERVAL};
    const cJSON *reading;
    cJSON_ArrayForEach(reading, list(here, "readings")) {
        if (!nb_json_get_bool(reading, "alternative"))
            compare_readings(&d, reading, nb_claims_with_id(list(there, "readings"), nb_claims_text(reading, "id")));
    }
    if (!d.why.len) {
        d.cause = BY_RULE;
        nb_strbuf_add(&d.why, "the readings that decide are others");
    }
    return d;
}

/* What a file of unknown origin says of itself is escaped. */
static void say_run(struct nb_strbuf *out, const char *side, const cJSON *document, bool markdown) {
    const cJSON *cpu = list(list(document, "fingerprint"), "cpu");
    struct nb_strbuf line = {0};
    const bool several = cJSON_GetArraySize(list(document, "machines")) > 1;
    nb_strbuf_addf(
        &line, "%s: %s%s, %s%s%s%s", side, nb_claims_text(cpu, "model"), several ? " and other machines" : "",
        nb_claims_text(document, "started"), nb_json_get_bool(document, "quick") ? ", --quick" : "",
        list(document, "training") ? "" : ", no training", nb_json_get_bool(document, "complete") ? "" : ", cut short");
    if (markdown)
        nb_escape_markdown(out, line.text);
    else
        nb_escape_terminal(out, line.text, true);
    nb_strbuf_add(out, markdown ? "\n\n" : "\n");
    nb_strbuf_release(&line);
}

static void add_difference(struct nb_grid *grid, const cJSON *here, const cJSON *there) {
    struct difference d = difference_of(here, there);
    nb_grid_add(grid, nb_claims_text(here, "id"));
    nb_grid_add(grid, nb_claims_text(here, "verdict"));
    nb_grid_add(grid, nb_claims_text(there, "verdict"));
    nb_grid_add(grid, cause_names[d.cause]);
    nb_grid_add(grid, d.why.text);
    nb_strbuf_release(&d.why);
}

void nb_claims_against(const cJSON *here, const cJSON *there, bool markdown, struct nb_strbuf *out) {
    static const char *const titles[] = {"claim", "here", "there", "differs by", "why"};
    struct nb_grid grid;
    const cJSON *claim;
    int n = 0, common = 0;
    assert(here && there && out);
    nb_grid_init(&grid, titles, 5);
    cJSON_ArrayForEach(claim, list(here, "claims")) {
        const cJSON *other = nb_claims_with_id(list(there, "claims"), nb_claims_text(claim, "id"));
        common += other != NULL;
        if (!other || strcmp(nb_claims_text(claim, "verdict"), nb_claims_text(other, "verdict")) == 0) continue;
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
