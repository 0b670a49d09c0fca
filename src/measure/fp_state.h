// SPDX-License-Identifier: Apache-2.0
/* The floating-point state of a thread, kept across foreign code: rounding mode, flush to zero, clean upper halves of the
 * registers. A kernel may leave it as it likes and harms only itself. */
#pragma once

#include <stdint.h>

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
