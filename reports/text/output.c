// SPDX-License-Identifier: Apache-2.0
/* The end of every renderer. */
#include "reports/text/output.h"

#include <errno.h>
#include <string.h>

#include "src/core/log.h"

int nb_output(struct nb_strbuf *text, FILE *out) {
    size_t written = text->len ? fwrite(text->text, 1, text->len, out) : 0;
    bool whole = written == text->len && fflush(out) == 0;
    int reason = errno;
    nb_strbuf_release(text);
    if (!whole && reason == EPIPE) return 0; /* the reader (head, less) has seen enough */
    return whole ? 0 : nb_error("cannot write the report: %s", strerror(reason));
}
