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
#define steady correct
#define doubled correct
#define rough correct
#define zeros correct
#define crashes correct
#define hangs correct
#define strays correct
#define changes correct
#define skips correct
#define fails correct
#define gone correct
#define units correct
static int by_rows(const struct nb_call *call) { return 1; }
static const struct nb_kernel kernels[] = {GATED(steady, ), GATED(doubled, ), GATED(rough, ),
                                           GATED(zeros, ),  GATED(crashes, ), GATED(hangs, ),
                                           GATED(strays, ), GATED(changes, ), GATED(skips, ),
                                           GATED(fails, ),  GATED(gone, ),    GATED(units, .row_local = by_rows),
                                           GATED(waits, )};
TABLE(kernels)
