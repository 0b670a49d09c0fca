// SPDX-License-Identifier: Apache-2.0
/* Right itself, and leaves behind that all rounds upwards and subnormals are flushed to zero. */
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define KERNEL_NAME "bad_rounding"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    fesetround(FE_TONEAREST);
    correct_rows(call, begin, end);
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1ul << 24));
#endif
    return 0;
}
