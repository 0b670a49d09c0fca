// SPDX-License-Identifier: Apache-2.0
/* Our kernels against others (src/peers/peer_comparison.h): a page for a terminal or in Markdown, and a document. */
#ifndef NB_RENDER_PEERS_H
#define NB_RENDER_PEERS_H

#include <cjson/cJSON.h>

#include "reports/text/output.h"
#include "src/peers/peer_comparison.h"

/* Means first, then where ours is behind or looks so, then every comparison, then what a call costs before its first row. */
void nb_peers_print(const struct nb_results *results, const struct nb_peer_comparisons *comparisons,
                    const struct nb_page *page);
/* DIR/peers.md and DIR/peers.json. -1 after nb_error. */
int nb_peers_write(const struct nb_results *results, const char *dir);

#endif
