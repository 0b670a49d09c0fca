// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others, as a document. */
#include "reports/run/peers_page.h"
#include "reports/run/report.h"
#include "reports/text/output.h"
#include "src/core/json.h"

static int render(const struct nb_results *results, FILE *out) {
    struct nb_strbuf text = {0};
    struct nb_peer_comparisons comparisons;
    if (nb_peer_comparisons_make(&comparisons, results) != 0) return -1;
    cJSON *json = nb_peers_to_json(results, &comparisons);
    nb_json_print_pretty(json, 0, &text);
    nb_strbuf_add(&text, "\n");
    cJSON_Delete(json);
    nb_peer_comparisons_release(&comparisons);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_peers_json = {"peers_json", "the same as a document", render};
