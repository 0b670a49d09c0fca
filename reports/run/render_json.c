// SPDX-License-Identifier: Apache-2.0
/* The results document itself (schema/results.schema.json), the same text as in DIR/results.json. */
#include "reports/run/report.h"
#include "reports/text/output.h"

static int render(const struct nb_results *results, FILE *out) {
    struct nb_strbuf text = {0};
    nb_results_print(results, &text);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_json[] = {{"json", "the results document", render}, {0}};
