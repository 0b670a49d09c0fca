// SPDX-License-Identifier: Apache-2.0
/* Peers: other libraries, measured through adapters (kernels/peers/). An adapter is a plugin that lies in the folder peers/ beside
 * the program, in the user's own (where `normbench peers` puts it), or of an installed program in ../lib/normbench/peers/, the first of
 * them that has it (NORMBENCH_PEERS names another one and that alone), and is loaded when the user names it. Where a plugin's file may be
 * named, "peer:NAME" or "peer:NAME=LIBRARY" names a peer, the second with a library other than the one it was built for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernels/peers/peer.h"

struct nb_peer_info {
    const char *name, *what;
    const char *size; /* of what `normbench peers NAME` downloads */
};
/* The peers whose adapters this project has, built or not. */
extern const struct nb_peer_info nb_peers[];
extern const size_t nb_n_peers;

bool nb_peer_is(const char *plugin); /* "peer:.."? */
/* "peer:NAME[=LIBRARY]", the library's path made absolute; owned. Null after nb_error: an unknown name, an adapter that is not
 * built, a library that is no file. */
char *nb_peer_spec(const char *name, const char *library);
/* Of such a text: NAME (owned), and LIBRARY or null (borrowed). */
char *nb_peer_name(const char *spec, const char **library);
/* The adapter's file; where there is none, the first place that it is looked for at; owned. */
char *nb_peer_adapter(const char *name);
/* Where libraries and adapters of the user's own are: peers/NAME.so below it; owned. Null: the environment names no home. */
char *nb_peer_user_dir(void);

/* After dlopen() of the adapter of the peer `name`: has it load its library. -1 after nb_error; two peers whose libraries have one name
 * are refused. A peer that spins between parallel regions would do so on the
 * cores of whoever runs next: how long is set here, unless the user's environment says it. */
int nb_peer_use(void *handle, const char *adapter, const char *name, const char *library);
