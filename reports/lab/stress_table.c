// SPDX-License-Identifier: Apache-2.0
/* One listing a question, each with a heading. */
#include "reports/lab/stress_table.h"

#include <string.h>

#include "reports/lab/stress_parts.h"
#include "reports/text/escape.h"
#include "reports/text/format.h"
#include "reports/text/output.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MAX_FAILURES = 20 };

bool nb_stress_format_known(const char *format) {
    return strcmp(format, "table") == 0 || strcmp(format, "markdown") == 0 || strcmp(format, "json") == 0;
}

/* ---- shared by the parts -------------------------------------------------------------------------------------------- */

const cJSON *nb_stress_list(const struct nb_stress_text *p, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(p->stress, name);
}

void nb_stress_heading(const struct nb_stress_text *p, const char *text) {
    const bool markdown = strcmp(p->format, "markdown") == 0;
    const bool color = !markdown && nb_color_on(fileno(p->out));
    fprintf(p->out, "\n%s%s%s\n%s",
            markdown ? "## "
            : color  ? "\033[1m"
                     : "",
            text, color ? "\033[0m" : "", markdown ? "\n" : "");
}

void nb_stress_say(const struct nb_stress_text *p, const char *text) {
    struct nb_strbuf safe = {0};
    nb_strbuf_add(&safe, "");
    if (strcmp(p->format, "markdown") == 0)
        nb_escape_markdown(&safe, text);
    else
        nb_escape_terminal(&safe, text, p->utf8);
    fputs(safe.text, p->out);
    nb_strbuf_release(&safe);
}

void nb_grid_add_count(struct nb_grid *grid, double n) {
    char text[32] = "";
    if (n > 0) snprintf(text, sizeof text, "%.0f", n);
    nb_grid_add(grid, text);
}

void nb_grid_add_number(struct nb_grid *grid, double value, int digits) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    nb_format_digits(&text, value, digits);
    nb_grid_add(grid, text.text);
    nb_strbuf_release(&text);
}

/* ---- what failed ---------------------------------------------------------------------------------------------------- */

static void print_failed_case(const struct nb_stress_text *p, const struct nb_record *r) {
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "%s: %s", nb_status_name(r->status), r->key);
    nb_stress_say(p, text.text);
    fputs("\n  ", p->out);
    nb_strbuf_clear(&text);
    nb_strbuf_add(&text, "");
    nb_failure_witness(r, &text);
    nb_stress_say(p, text.text);
    fputs("\n  ", p->out);
    nb_stress_say(p, r->replay);
    fputs("\n", p->out);
    nb_strbuf_release(&text);
}

static void print_failed_studies(const struct nb_stress_text *p) {
    const cJSON *study;
    int n = 0, n_not_run = 0;
    cJSON_ArrayForEach(study, nb_stress_list(p, "studies")) {
        const char *status = nb_json_get_text(study, "status"), *reason = nb_json_get_text(study, "reason");
        if (!status || strcmp(status, nb_status_name(NB_OK)) == 0) continue;
        if (strcmp(status, nb_status_name(NB_NOT_RUN)) == 0) {
            n_not_run++;
            continue;
        }
        if (n++ == 0) nb_stress_heading(p, "Not searched to the end");
        if (n > MAX_FAILURES) continue;
        nb_stress_say(p, nb_json_get_text(study, "variant"));
        fprintf(p->out, ": %s", status);
        if (reason) fputs(", ", p->out);
        if (reason) nb_stress_say(p, reason);
        fputs("\n", p->out);
    }
    if (n > MAX_FAILURES) fprintf(p->out, "... and %d more\n", n - MAX_FAILURES);
    if (n_not_run > 0)
        fprintf(p->out, "%s%d variant%s not searched: the time was used up; --search gives more.\n", n ? "" : "\n",
                n_not_run, n_not_run == 1 ? " was" : "s were");
}

static void print_relations(const struct nb_stress_text *p) {
    const cJSON *list = nb_stress_list(p, "relations"), *relation;
    int n = 0;
    cJSON_ArrayForEach(relation, list) {
        if (n++ == 0) nb_stress_heading(p, "Relations between calls that do not hold");
        if (n > MAX_FAILURES) continue;
        nb_stress_say(p, nb_json_get_text(relation, "relation"));
        fputs(": ", p->out);
        nb_stress_say(p, nb_json_get_text(relation, "text"));
        fputs("\n  ", p->out);
        nb_stress_say(p, nb_json_get_text(relation, "replay"));
        fputs("\n", p->out);
    }
    if (n > MAX_FAILURES) fprintf(p->out, "... and %d more: stress.json has them all.\n", n - MAX_FAILURES);
}

void nb_stress_print_failures(const struct nb_stress_text *p, const struct nb_summary *summary) {
    struct nb_strbuf heading = {0};
    print_failed_studies(p);
    print_relations(p);
    if (summary->n_failures == 0) return;
    nb_strbuf_addf(&heading, "%zu failed", summary->n_failures);
    nb_stress_heading(p, heading.text);
    for (size_t i = 0; i < summary->n_failures && i < MAX_FAILURES; i++)
        print_failed_case(p, &p->results->records[summary->failures[i]]);
    if (summary->n_failures > MAX_FAILURES)
        fprintf(p->out, "... and %zu more: results.json has them all.\n", summary->n_failures - MAX_FAILURES);
    nb_strbuf_release(&heading);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------- */

static void print_end(const struct nb_stress_text *p, const struct nb_summary *summary) {
    struct nb_strbuf text = {0};
    nb_summary_counts(summary, &text);
    fprintf(p->out, "\n%s\n", text.text);
    nb_strbuf_release(&text);
    if (!p->results->dir) return;
    fputs("Results: ", p->out);
    nb_stress_say(p, p->results->dir);
    fputs(" (stress.json, results.json, precision.html, index.html)\n", p->out);
}

int nb_stress_print(const cJSON *stress, const struct nb_results *results, const char *format, FILE *out) {
    const struct nb_stress_text p = {
        .stress = stress, .results = results, .format = format, .utf8 = nb_utf8_wanted(), .out = out};
    struct nb_strbuf text = {0};
    if (strcmp(format, "json") == 0) {
        nb_json_print_pretty(stress, 0, &text);
        nb_strbuf_add(&text, "\n");
        return nb_output(&text, out);
    }
    struct nb_summary summary;
    nb_summary_init(&summary, results);
    nb_meta_footer(results, &text);
    nb_stress_say(&p, text.text ? text.text : "");
    fputs("\n", out);
    int result =
        nb_stress_print_grades(&p) != 0 || nb_stress_print_frontiers(&p) != 0 || nb_stress_print_bugs(&p) != 0 ? -1 : 0;
    nb_stress_print_low(&p);
    nb_stress_print_failures(&p, &summary);
    print_end(&p, &summary);
    nb_summary_release(&summary);
    nb_strbuf_release(&text);
    return result;
}
