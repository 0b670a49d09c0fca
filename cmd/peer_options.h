// SPDX-License-Identifier: Apache-2.0
/* --peer NAME and --peer-lib PATH: other libraries beside our kernels. A peer joins the list of plugins as "peer:NAME[=LIBRARY]"
 * (src/core/peers.h), so that it goes wherever plugins go. */
#ifndef NB_PEER_OPTIONS_H
#define NB_PEER_OPTIONS_H

#include "cmd/options.h"

enum { NB_OPT_PEER = 1100, NB_OPT_PEER_LIB };
#define NB_PEER_OPTIONS                                                                                                \
    {"peer", required_argument, NULL, NB_OPT_PEER}, { "peer-lib", required_argument, NULL, NB_OPT_PEER_LIB }
#define NB_PEER_HELP                                                                                                   \
    "  --peer NAME          adds another library's kernels (`normbench list peers`); repeatable\n"                     \
    "  --peer-lib PATH      your build of the library of the --peer before it; also NAME=PATH\n"

/* Takes one of these two options. -1 after nb_error. */
int nb_peer_option(struct nb_texts *plugins, int option, const char *value);

/* Every peer whose adapter is built and that is not in the list yet, nor another build of its library. -1 after nb_error. */
int nb_peers_add_built(struct nb_texts *plugins);

/* Starts the libraries of the peers that are loaded, so that they can be asked what they compute. -1 after nb_error. */
int nb_peers_start(void);

#endif
