// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others, as a page. */
#include "reports/run/peers_page.h"
#include "reports/run/report.h"
#include "reports/text/output.h"

static int render(const struct nb_results *results, FILE *out) {
    const struct nb_peers_style style = {.markdown = true};
    struct nb_strbuf text = {0};
    struct nb_peer_comparisons comparisons;
    if (nb_peer_comparisons_make(&comparisons, results) != 0) return -1;
    nb_peers_print(results, &comparisons, &style, &text);
    nb_peer_comparisons_release(&comparisons);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_peers_markdown = {"peers_markdown", "the same as tables for GitHub", render};
