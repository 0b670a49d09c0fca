// SPDX-License-Identifier: Apache-2.0
/* The parts of an adapter. variant.c is compiled once for each kernel and knows its op, pass and dtype, which a call does not say;
 * table.c makes the table of them; the peer's own file defines the functions here. C linkage, also from C++. */
#pragma once

#include "kernels/peers/peer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The peer's. */
int peer_use(const char *library, char *reason, size_t n);
const char *peer_version(void);
/* Sets the library's threads, and starts them, so that they inherit the caller's CPUs. 0, or an error code. */
int peer_open(int n_threads);
void peer_close(void);
/* Null: the library computes this call; else why not, good until the next question. */
const char *peer_applicable(const struct nb_kernel *k, const struct nb_call *call);
int peer_run(const struct nb_kernel *k, const struct nb_call *call);
const char *peer_implementation(const struct nb_kernel *k, const struct nb_call *call);
/* Properties beyond op, pass, dtype, name and functions: summary, formulas, flags, variance, byte model. */
void peer_describe(struct nb_kernel *k);

#ifdef __cplusplus
}
#endif
