// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others, as a page. */
#include "reports/text/output.h"
#include "reports/run/peers_page.h"
#include "reports/run/report.h"

static int render(const struct nb_results *results, FILE *out) {
    const struct nb_peers_style style = {.markdown = true};
    struct nb_strbuf text = {0};
    struct nb_duels duels;
    if (nb_duels_make(&duels, results) != 0) return -1;
    nb_peers_print(results, &duels, &style, &text);
    nb_duels_release(&duels);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_peers_markdown = {"peers_markdown", "the same as tables for GitHub", render};
