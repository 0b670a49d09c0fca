// SPDX-License-Identifier: Apache-2.0
/* The results document itself (schema/results.schema.json). */
#include "reports/output.h"
#include "reports/report.h"
#include "src/json.h"

static int render(const struct nb_results *results, FILE *out) {
    struct nb_strbuf text = {0};
    cJSON *document = results->meta ? cJSON_Duplicate(results->meta, true) : cJSON_CreateObject();
    cJSON *records = cJSON_AddArrayToObject(document, "records");
    for (size_t i = 0; i < results->n; i++) cJSON_AddItemToArray(records, nb_record_to_json(&results->records[i]));
    nb_json_print_pretty(document, 1, &text);
    nb_strbuf_add(&text, "\n");
    cJSON_Delete(document);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_json = {"json", "the results document", render};
