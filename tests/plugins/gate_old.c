// SPDX-License-Identifier: Apache-2.0
/* A baseline: all kernels are right. */
#define WAITS_BY "xchg %ax, %ax" /* which a played clock calls slow */
#include "gated.h"

static int correct(ROWS) { return correct_rows(call, begin, end); }

static int by_rows(const struct nb_call *call) { return 1; }
#define CORRECT(name) GATED(name, correct, )
static const struct nb_kernel kernels[] = {
    CORRECT(steady),      CORRECT(doubled), CORRECT(rough),  CORRECT(zeros),
    CORRECT(crashes),     CORRECT(hangs),   CORRECT(strays), CORRECT(changes),
    CORRECT(skips),       CORRECT(fails),   CORRECT(gone),   GATED(units, correct, .row_local = by_rows),
    GATED(waits, waits, )};
TABLE(kernels)
