// SPDX-License-Identifier: Apache-2.0
/* normbench list peers. */
#ifndef NB_LIST_PEERS_H
#define NB_LIST_PEERS_H

#include "reports/text/grid.h"

/* One row for each peer: is its adapter built, is its library here, its version, the command that gets what is missing. */
int nb_list_peers(struct nb_grid *grid);

#endif
