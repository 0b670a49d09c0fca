// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others, for the terminal. */
#include "reports/run/peers_page.h"
#include "reports/run/report.h"
#include "reports/text/output.h"
#include "reports/text/screen.h"

static int render(const struct nb_results *results, FILE *out) {
    const struct nb_peers_style style = {.color = nb_screen_color(out), .screen = nb_screen_width(out)};
    struct nb_strbuf text = {0};
    struct nb_peer_comparisons comparisons;
    if (nb_peer_comparisons_make(&comparisons, results) != 0) return -1;
    nb_peers_print(results, &comparisons, &style, &text);
    nb_peer_comparisons_release(&comparisons);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_peers = {"peers", "our kernels against other libraries", render};
