// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others, for the terminal. */
#include "reports/text/output.h"
#include "reports/run/peers_page.h"
#include "reports/run/report.h"
#include "reports/text/screen.h"

static int render(const struct nb_results *results, FILE *out) {
    const struct nb_peers_style style = {.color = nb_screen_color(out), .screen = nb_screen_width(out)};
    struct nb_strbuf text = {0};
    struct nb_duels duels;
    if (nb_duels_make(&duels, results) != 0) return -1;
    nb_peers_print(results, &duels, &style, &text);
    nb_duels_release(&duels);
    return nb_output(&text, out);
}

const struct nb_renderer nb_renderer_peers = {"peers", "our kernels against other libraries", render};
