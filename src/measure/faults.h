// SPDX-License-Identifier: Apache-2.0
/* What a kernel does to memory that is not its own: a fault's last words, said before the process ends (which tensor's guard was hit, reading
 * or writing; that it was an input, or the calls' tuning), and writes to the heap, which a kernel may use, but not all of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/measure/buffers.h"

/* Installs the handlers. A fault is said to the parent (src/measure/answers.h):
 * {"type":"fault","signal":11,"status":"read_outside","reason":"..."}; then the process ends by that signal. */
void nb_faults_watch(void);
/* After kernels were called: the first signal whose handler is not ours any more, so that faults may have gone unseen. 0: none. */
int nb_faults_unwatched(void);
/* Last words of a worker whose kernel is of another process, which has ended or misbehaved: "WHOSE HOW". */
_Noreturn void nb_faults_end(const char *whose, const char *how);
/* Before kernels are called: fills the heap with blocks that are nobody's, between which a kernel's own come to lie. */
void nb_faults_guard_heap(void);
/* After it: has one of these blocks been written to? They are gone if not. Where the allocator's own words were, it may end the process
 * by SIGABRT. */
bool nb_faults_heap_harmed(void);
/* The buffers whose guards are in force; null: none. */
void nb_faults_set_buffers(const struct nb_buffers *b);

/* The floating-point state of a thread, kept across foreign code: rounding mode, flush to zero, clean upper halves of the
 * registers. A kernel may leave it as it likes and harms only itself. */

struct nb_fp_state {
    uint64_t control; /* MXCSR, FPCR */
    uint16_t x87;
};
/* Bits of control that take subnormal numbers for 0, as operands and as results; 0 where nothing is known to do so. */
#if defined(__x86_64__)
#define NB_FP_FLUSHES (1u << 15 | 1u << 6)
#elif defined(__aarch64__)
#define NB_FP_FLUSHES (1u << 24)
#else
#define NB_FP_FLUSHES 0u
#endif
struct nb_fp_state nb_fp_state(void);
void nb_fp_state_set(struct nb_fp_state state);
