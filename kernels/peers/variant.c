// SPDX-License-Identifier: Apache-2.0
/* One kernel of an adapter: PEER_SYMBOL, PEER_OP, PEER_PASS, PEER_DTYPE and PEER_KERNEL come from the build. A call is one unit of
 * work: how it is shared out among threads is the library's business. */
#include "kernels/peers/adapter.h"

extern const struct peer_variant PEER_SYMBOL;

static int peer_variant_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    return begin < end ? peer_run(&PEER_SYMBOL, call) : 0;
}

static const char *applicable(const struct nb_call *call) { return peer_applicable(&PEER_SYMBOL, call); }

static const char *implementation(const struct nb_call *call) { return peer_implementation(&PEER_SYMBOL, call); }

const struct peer_variant PEER_SYMBOL = {
    .op = PEER_OP,
    .pass = PEER_PASS,
    .dtype = PEER_DTYPE,
    .name = PEER_KERNEL,
    .run = peer_variant_run,
    .applicable = applicable,
    .implementation = implementation,
};
