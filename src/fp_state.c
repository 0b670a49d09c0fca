// SPDX-License-Identifier: Apache-2.0
/* MXCSR on x86. Dirty upper halves would slow the SSE code of a kernel that comes later. Elsewhere there is nothing that is known
 * to be left behind. */
#include "src/fp_state.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

#include "src/cpu.h"

unsigned nb_fp_state(void) { return _mm_getcsr(); }

void nb_fp_state_set(unsigned state) {
    /* No clobber is named: compiled without AVX, nothing here holds a value in an upper half. */
    if (nb_cpu_light()->features & NB_CPU_AVX2) __asm__ volatile("vzeroupper");
    _mm_setcsr(state);
}

#else

unsigned nb_fp_state(void) { return 0; }
void nb_fp_state_set(unsigned state) { (void)state; }

#endif
