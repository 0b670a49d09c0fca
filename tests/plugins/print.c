// SPDX-License-Identifier: Apache-2.0
/* Prints where the data of the run belongs, and reads what is the program's. */
#include <stdio.h>

#define KERNEL_NAME "bad_print"
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    puts("a kernel was here");
    fflush(stdout);
    if (getchar() != EOF) row_y(call, begin)[0] = 0;
    return 0;
}
