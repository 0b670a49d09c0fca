// SPDX-License-Identifier: Apache-2.0
/* What an experiment found: figures with a name, tags that say under which choices they were measured, and an interval. Rules and
 * sensitivities read these and nothing else, whatever kind of experiment they come from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/core/json.h"
#include "src/core/stats.h"
#include "src/core/text.h"

struct nb_tag {
    char *axis, *value; /* "style", "composed" */
};

struct nb_finding {
    char *name; /* "cut" */
    char *unit; /* "share", "ns", "ulp"; "" for plain numbers */
    struct nb_tag *tags;
    size_t n_tags;
    struct nb_interval value; /* low == high == value: exact. NaN bounds: fewer launches than an interval needs */
    int n_launches;           /* behind the interval; 0: exact, or over seeds */
    double *
        units; /* the value in each launch or with each seed, by its number, NaN where there is none; null: not known. What
                                 has a number in common was measured under the same conditions and can be paired. */
    size_t n_units;
    char *evidence; /* a key, a command, a formula; null: none */
    char *reason;   /* why there is no value, or none of more launches; or null */
};

/* Zero-initialise. A finding stays where it is until the next one is added. */
struct nb_findings {
    struct nb_finding *items;
    size_t n;
};
struct nb_finding *nb_findings_add(struct nb_findings *f, const char *name, const char *unit, struct nb_interval value);
struct nb_finding *nb_findings_add_exact(struct nb_findings *f, const char *name, const char *unit, double value);
/* For people: "30.1% [29.8, 30.6]", "1.5 points [-2.8, 7.2]", "12 ulp"; "-": no value. Of an exact one the value alone. */
void nb_figure_print(struct nb_strbuf *out, struct nb_interval value, const char *unit);
/* The value of a tag in the reader's word: "unfused" of "composed". */
const char *nb_tag_word(const char *value);
/* No value; the reason is a format. */
struct nb_finding *nb_findings_add_missing(struct nb_findings *f, const char *name, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));
void nb_finding_tag(struct nb_finding *f, const char *axis, const char *value);
void nb_finding_tag_number(struct nb_finding *f, const char *axis, double value);
const char *nb_finding_get(const struct nb_finding *f, const char *axis); /* null: no such tag */
void nb_findings_release(struct nb_findings *f);

/* Which findings are meant: of every axis named one of its values. A value is a glob, or a bound on a number (">=4096", "<1"). */
struct nb_wanted {
    char *axis, **values;
    size_t n;
};
struct nb_selector {
    struct nb_wanted *axes;
    size_t n;
};
/* {"style": "composed", "cols": ["512", ">=4096"]}; -1 after nb_error. */
int nb_selector_read(const struct nb_jsonc *file, const cJSON *node, void *selector); /* as nb_field.read */
/* but_not: an axis that is not looked at, or null. */
bool nb_selector_takes(const struct nb_selector *s, const struct nb_finding *f, const char *but_not);
/* The values of the selector's axis, or null. */
const struct nb_wanted *nb_selector_axis(const struct nb_selector *s, const char *axis);
void nb_selector_release(struct nb_selector *s);

/* Two findings that are compared. */
struct nb_sides {
    struct nb_selector of, against;
};
/* Do they differ in nothing but axes that both selectors name, and those for which may_differ (null: none) says so? An axis that only one
 * of them has is no difference. */
bool nb_sides_alike(const struct nb_sides *s, const struct nb_finding *of, const struct nb_finding *against,
                    bool (*may_differ)(const struct nb_sides *s, const char *axis));
bool nb_sides_both_name(const struct nb_sides *s, const char *axis);
void nb_sides_release(struct nb_sides *s);
