// SPDX-License-Identifier: Apache-2.0
/* MXCSR and the x87 control word, which the C library's fegetround() reads, on x86. Dirty upper halves would slow the SSE code of a kernel
 * that comes later. FPCR on aarch64. Elsewhere there is nothing that is known to be left behind. */
#include "src/measure/fp_state.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

#include "src/core/cpu.h"

struct nb_fp_state nb_fp_state(void) {
    struct nb_fp_state state = {.control = _mm_getcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(state.x87));
    return state;
}

void nb_fp_state_set(struct nb_fp_state state) {
    /* No clobber is named: compiled without AVX, nothing here holds a value in an upper half. */
    if (nb_cpu_light()->features & NB_CPU_AVX2) __asm__ volatile("vzeroupper");
    __asm__ volatile("fldcw %0" : : "m"(state.x87));
    _mm_setcsr((unsigned)state.control);
}

#elif defined(__aarch64__)

struct nb_fp_state nb_fp_state(void) {
    struct nb_fp_state state = {0};
    __asm__ volatile("mrs %0, fpcr" : "=r"(state.control));
    return state;
}

void nb_fp_state_set(struct nb_fp_state state) { __asm__ volatile("msr fpcr, %0" : : "r"(state.control)); }

#else

struct nb_fp_state nb_fp_state(void) {
    return (struct nb_fp_state){0};
}
void nb_fp_state_set(struct nb_fp_state state) { (void)state; }

#endif
