// SPDX-License-Identifier: Apache-2.0
/* One kernel of an adapter: PEER_SYMBOL, PEER_OP, PEER_PASS, PEER_DTYPE and PEER_KERNEL come from the build. A call is one unit of
 * work: how it is shared out among threads is the library's business. */
#include <stdlib.h>

#include "kernels/peers/adapter.h"

enum { NO_MEMORY = 100, ALIGNMENT = 64 };

extern struct nb_kernel PEER_SYMBOL;

/* Libraries write the gradient of x, wanted or not. */
static int run_without_dx(struct nb_call call) {
    const size_t item = PEER_DTYPE == NB_F32 ? sizeof(float) : sizeof(uint16_t);
    const size_t bytes = (size_t)call.rows * (size_t)call.dx_stride * item;
    call.dx = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    const int code = call.dx ? peer_run(&PEER_SYMBOL, &call) : NO_MEMORY;
    free(call.dx);
    return code;
}

static int peer_variant_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (begin >= end) return 0;
    return PEER_PASS == NB_BACKWARD && !call->dx ? run_without_dx(*call) : peer_run(&PEER_SYMBOL, call);
}

static const char *applicable(const struct nb_call *call) { return peer_applicable(&PEER_SYMBOL, call); }

static const char *implementation(const struct nb_call *call) { return peer_implementation(&PEER_SYMBOL, call); }

static int64_t one_unit(const struct nb_call *call, int phase) { return 1; }

struct nb_kernel PEER_SYMBOL = {.struct_size = sizeof PEER_SYMBOL,
                                .op = PEER_OP,
                                .pass = PEER_PASS,
                                .dtype = PEER_DTYPE,
                                .width = NB_NATIVE,
                                .name = PEER_KERNEL,
                                .run = peer_variant_run,
                                .applicable = applicable,
                                .n_units = one_unit,
                                .open = peer_open,
                                .close = peer_close,
                                .version = peer_version,
                                .implementation = implementation};
