// SPDX-License-Identifier: Apache-2.0
/* Crashes when it is asked whether it applies. */
#include "kernel.h"

static const char *applicable(const struct nb_call *call) {
    (void)call;
    return *(const char *volatile *)NULL;
}
#define KERNEL_NAME "bad_question"
#define KERNEL_FIELDS .applicable = applicable
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    return 0;
}
