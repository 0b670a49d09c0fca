// SPDX-License-Identifier: Apache-2.0
/* Says more of itself than anybody reads. */
#include <string.h>

#include "kernel.h"

static char words[100000];
static const char *version(void) { return memset(words, 'v', sizeof words - 1); }
static const char *implementation(const struct nb_call *call) {
    (void)call;
    return memset(words, 'i', sizeof words - 1);
}
#define KERNEL_NAME "bad_longwinded"
#define KERNEL_FIELDS .version = version, .implementation = implementation
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    return 0;
}
