// SPDX-License-Identifier: Apache-2.0
/* Whatever text it has for others holds commands of a terminal, in one byte and in two, a direction override and a formula. */
#define EVIL                                                                                                           \
    "=1+1 \033[31m\033]0;title\007 \xC2\x9B"                                                                           \
    "2J \xE2\x80\xAE \x9B |<b>\r\nnormbench: error: forged"
#include "kernel.h"
static const char *refuses_one_row(const struct nb_call *call) { return call->rows == 1 ? EVIL : NULL; }
static const char *names_library(void) { return EVIL; }
static const char *names_itself(const struct nb_call *call) {
    (void)call;
    return EVIL;
}
#define KERNEL_NAME "bad_escapes"
#define KERNEL_SUMMARY EVIL
#define KERNEL_FIELDS .applicable = refuses_one_row, .version = names_library, .implementation = names_itself
#include "plugin.h"

static int run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)phase;
    correct_rows(call, begin, end);
    return 0;
}
