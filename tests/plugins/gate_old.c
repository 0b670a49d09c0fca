// SPDX-License-Identifier: Apache-2.0
/* A baseline: all kernels are right. */
#include "gated.h"

static int correct(ROWS) { return correct_rows(call, begin, end); }

/* Beside the result, for each element instructions that a played clock calls slow. */
static int waits(ROWS) {
#if defined(__x86_64__)
    for (int64_t i = 0; i < (end - begin) * call->cols; i++) __asm__ volatile(SIXTEEN_TIMES("xchg %ax, %ax\n"));
#endif
    return correct_rows(call, begin, end);
}
static int by_rows(const struct nb_call *call) { return 1; }
#define CORRECT(name) GATED(name, correct, )
static const struct nb_kernel kernels[] = {
    CORRECT(steady),      CORRECT(doubled), CORRECT(rough),  CORRECT(zeros),
    CORRECT(crashes),     CORRECT(hangs),   CORRECT(strays), CORRECT(changes),
    CORRECT(skips),       CORRECT(fails),   CORRECT(gone),   GATED(units, correct, .row_local = by_rows),
    GATED(waits, waits, )};
TABLE(kernels)
