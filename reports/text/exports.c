// SPDX-License-Identifier: Apache-2.0
/* Metrics with their bounds; elements and attributes. */
#include "reports/text/exports.h"

#include <math.h>
#include <string.h>

#include "reports/text/escape.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* A case's key as other tools take names: no spaces, no control characters. */
static void stable_name(const char *key, struct nb_strbuf *out) {
    for (const char *s = key; *s; s++) nb_strbuf_addn(out, (unsigned char)*s <= ' ' || *s == 0x7F ? "_" : s, 1);
}

void nb_bencher_add(cJSON *benchmark, const char *measure, const struct nb_interval *i) {
    if (!isfinite(i->value)) return;
    cJSON *metric = cJSON_AddObjectToObject(benchmark, measure);
    nb_json_number(metric, "value", i->value);
    if (!nb_interval_known(i)) return;
    nb_json_number(metric, "lower_value", i->low);
    nb_json_number(metric, "upper_value", i->high);
}

void nb_bencher_keep(cJSON *document, const char *key, cJSON *benchmark) {
    struct nb_strbuf name released_by(nb_strbuf_release) = nb_strbuf_empty();
    stable_name(key, &name);
    if (name.len > NB_BENCHER_LONGEST)
        nb_warn("%.80s...: the name is too long for Bencher, and is left out", name.text);
    if (benchmark->child && name.len <= NB_BENCHER_LONGEST)
        cJSON_AddItemToObject(document, name.text, benchmark);
    else
        cJSON_Delete(benchmark);
}

/* ---- github-action-benchmark: range is a text that it shows behind the value ---- */

void nb_smaller_is_better_add(cJSON *list, const char *key, const char *unit, const struct nb_interval *i,
                              const char *extra) {
    if (!isfinite(i->value)) return;
    struct nb_strbuf name released_by(nb_strbuf_release) = nb_strbuf_empty(),
                          range released_by(nb_strbuf_release) = {0};
    cJSON *line = nb_json_add_object(list);
    stable_name(key, &name);
    nb_json_text(line, "name", name.text);
    nb_json_text(line, "unit", unit);
    nb_json_number(line, "value", i->value);
    if (nb_interval_known(i)) {
        nb_strbuf_addf(&range, "%.4g to %.4g", i->low, i->high);
        nb_json_text(line, "range", range.text);
    }
    if (extra && *extra) nb_json_text(line, "extra", extra);
}

/* ---- JUnit: times are in seconds with a decimal point ---- */

static void add_attribute(struct nb_strbuf *out, const char *name, const char *value) {
    nb_strbuf_addf(out, " %s=\"", name);
    nb_escape_html(out, value);
    nb_strbuf_add(out, "\"");
}

static void add_time(struct nb_strbuf *out, double time_s) {
    if (isfinite(time_s)) nb_strbuf_addf(out, " time=\"%.3f\"", time_s);
}

/* <NAME message="..">text</NAME> */
static void add_element(struct nb_strbuf *out, const char *name, const char *type, const char *message,
                        const char *text) {
    nb_strbuf_addf(out, "      <%s", name);
    if (type) add_attribute(out, "type", type);
    if (message) add_attribute(out, "message", message);
    nb_strbuf_add(out, ">");
    nb_escape_html(out, text);
    nb_strbuf_addf(out, "</%s>\n", name);
}

void nb_junit_property(struct nb_junit *j, const char *name, const char *value) {
    if (!value || !*value) return;
    nb_strbuf_add(&j->properties, "      <property");
    add_attribute(&j->properties, "name", name);
    add_attribute(&j->properties, "value", value);
    nb_strbuf_add(&j->properties, "/>\n");
}

void nb_junit_add(struct nb_junit *j, const struct nb_junit_case *c) {
    struct nb_strbuf *out = &j->cases;
    const char *message = c->message ? c->message : "";
    j->n++;
    j->n_failures += c->failure != NULL;
    j->n_skipped += !c->failure && c->skipped != NULL;
    nb_strbuf_add(out, "    <testcase");
    add_attribute(out, "classname", c->class_name);
    add_attribute(out, "name", c->name);
    add_time(out, c->time_s);
    nb_strbuf_add(out, ">\n");
    if (c->failure)
        add_element(out, "failure", c->failure, message, c->output ? c->output : message);
    else if (c->skipped)
        add_element(out, "skipped", NULL, c->skipped, "");
    if (c->output && !c->failure) add_element(out, "system-out", NULL, NULL, c->output);
    nb_strbuf_add(out, "    </testcase>\n");
}

static void add_counts(const struct nb_junit *j, struct nb_strbuf *out) {
    nb_strbuf_addf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\"", j->n, j->n_failures);
}

void nb_junit_finish(struct nb_junit *j, const char *suite, const char *started, double time_s, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    add_attribute(out, "name", suite);
    add_counts(j, out);
    add_time(out, time_s);
    nb_strbuf_add(out, ">\n  <testsuite");
    add_attribute(out, "name", suite);
    add_counts(j, out);
    nb_strbuf_addf(out, " skipped=\"%zu\"", j->n_skipped);
    /* The schemas allow no zone and no fraction. */
    const size_t instant = strlen("2026-01-31T12:00:00");
    if (strlen(started) >= instant) {
        char local[32] = "";
        memcpy(local, started, instant);
        add_attribute(out, "timestamp", local);
    }
    add_time(out, time_s);
    nb_strbuf_add(out, ">\n");
    if (j->properties.len) {
        nb_strbuf_add(out, "    <properties>\n");
        nb_strbuf_add(out, j->properties.text);
        nb_strbuf_add(out, "    </properties>\n");
    }
    if (j->cases.len) nb_strbuf_add(out, j->cases.text);
    nb_strbuf_add(out, "  </testsuite>\n</testsuites>\n");
    nb_strbuf_release(&j->properties);
    nb_strbuf_release(&j->cases);
    *j = (struct nb_junit){0};
}
