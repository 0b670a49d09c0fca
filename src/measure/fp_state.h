// SPDX-License-Identifier: Apache-2.0
/* The floating-point state of a thread, kept across foreign code: rounding mode, flush to zero, clean upper halves of the
 * registers. A kernel may leave it as it likes and harms only itself. */
#ifndef NB_FP_STATE_H
#define NB_FP_STATE_H

#include <stdint.h>

struct nb_fp_state {
    uint32_t sse;
    uint16_t x87;
};
struct nb_fp_state nb_fp_state(void);
void nb_fp_state_set(struct nb_fp_state state);

#endif
