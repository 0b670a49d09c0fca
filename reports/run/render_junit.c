// SPDX-License-Identifier: Apache-2.0
/* A run as a JUnit test suite: each case is a test of its kernel's results. */
#include <math.h>
#include <string.h>

#include "reports/run/report.h"
#include "reports/text/exports.h"
#include "reports/text/output.h"

static void add_case(struct nb_junit *junit, const struct nb_results *results, const struct nb_record *r) {
    struct nb_strbuf reproducer released_by(nb_strbuf_release) = nb_strbuf_empty(),
                                output released_by(nb_strbuf_release) = {0};
    const bool failed = nb_status_failed(r->status), ran = r->status != NB_SKIPPED && r->status != NB_NOT_RUN;
    if (failed) nb_failure_reproducer(r, &reproducer);
    nb_meta_whose(results, r, "", "; ", &output);
    nb_strbuf_add(&output, nb_status_name(r->status));
    for (size_t i = NB_MEASURED_TIME; i < NB_N_MEASURED && ran; i++) {
        struct nb_strbuf cell released_by(nb_strbuf_release) = nb_strbuf_empty();
        nb_column_print(&nb_measured_columns[i], r, false, &cell);
        if (cell.len) nb_strbuf_addf(&output, "; %s %s", nb_measured_columns[i].title, cell.text);
    }
    if (failed && r->replay) nb_strbuf_addf(&output, "; again: %s", r->replay);
    nb_junit_add(junit, &(struct nb_junit_case){.class_name = "normbench.run",
                                                .name = r->key ? r->key : "?",
                                                .time_s = NAN,
                                                .failure = failed ? nb_status_name(r->status) : NULL,
                                                .skipped = ran         ? NULL
                                                           : r->reason ? r->reason
                                                                       : "not run",
                                                .message = reproducer.text,
                                                .output = output.text});
}

/* "machine 0: AMD EPYC": a property of each. */
static void add_machines(struct nb_junit *junit, char *lines) {
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        const char *name = strsep(&line, ":");
        nb_junit_property(junit, name, line + 1);
    }
}

static int render(const struct nb_results *results, FILE *out) {
    struct nb_summary summary released_by(nb_summary_release);
    struct nb_junit junit = {0};
    struct nb_strbuf text = {0};
    nb_summary_init(&summary, results);
    nb_junit_property(&junit, "machine", summary.footer.text);
    add_machines(&junit, summary.machines.text);
    nb_junit_property(&junit, "counts", summary.counts_text);
    for (size_t i = 0; i < results->n; i++) add_case(&junit, results, &results->records[i]);
    nb_junit_finish(&junit, "normbench run", nb_meta_text(results, "started"),
                    nb_json_get_number(results->meta, "elapsed_s"), &text);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_junit[] = {{"junit", "JUnit XML: a test for every case", render}, {0}};
