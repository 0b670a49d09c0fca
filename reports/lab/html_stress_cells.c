// SPDX-License-Identifier: Apache-2.0
/* Cells of the precision page's tables. */
#include "reports/lab/html_stress.h"
#include "reports/run/html.h"
#include "reports/text/format.h"
#include "src/core/json.h"

const char *nb_stress_cell_text(const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    return text ? text : "";
}

void nb_stress_cell(struct nb_strbuf *out, const char *kind, const char *text) {
    nb_strbuf_addf(out, "<td class=\"%s\">", kind);
    nb_html_text(out, "", text, "");
    nb_strbuf_add(out, "</td>");
}

void nb_stress_number(struct nb_strbuf *out, double value, int digits) {
    struct nb_strbuf text = {0};
    nb_strbuf_add(&text, "");
    nb_format_digits(&text, value, digits);
    nb_stress_cell(out, "n", text.text);
    nb_strbuf_release(&text);
}
