// SPDX-License-Identifier: Apache-2.0
/* Training text: one file, read whole; sequences that may begin anywhere in it. */
#include "src/train/text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"

/* English prose of Debian's base-files package, longest first; the last one is of netbase. */
static const char *const usual[] = {"/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/GFDL-1.3",
                                    "/usr/share/common-licenses/GPL-2", "/usr/share/common-licenses/Apache-2.0",
                                    "/etc/services"};
enum { LEAST_BYTES = 1024, TEXT_STREAM = 0x7e97 };
static const long MOST_BYTES = 1L << 30;

/* -1 without a word: there is no such file. */
static int read_all(struct nb_text *text, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    long n = -1;
    if (fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    rewind(f);
    if (n >= 0 && n <= MOST_BYTES) {
        text->bytes = nb_alloc((unsigned long long)n + 1, 1);
        text->n = fread(text->bytes, 1, (size_t)n, f);
    }
    fclose(f);
    snprintf(text->path, sizeof text->path, "%s", path);
    return 0;
}

static int open_named(struct nb_text *text, const char *path) {
    if (read_all(text, path) != 0)
        return nb_error("text %s: %s; name a file of text to train on", path, strerror(errno));
    if (text->n >= LEAST_BYTES) return 0;
    const size_t n = text->n;
    nb_text_release(text);
    return nb_error("text %s: %zu bytes could be read; training needs a file of %d to %ld", path, n, LEAST_BYTES,
                    MOST_BYTES);
}

int nb_text_open(struct nb_text *text, const char *path) {
    *text = (struct nb_text){0};
    const char *named = path ? path : getenv("NORMBENCH_TEXT");
    if (named && *named) return open_named(text, named);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (read_all(text, usual[i]) == 0 && text->n >= LEAST_BYTES) return 0;
        nb_text_release(text);
    }
    return nb_error("no text to train on: %s and the like are not there; name a file, or set NORMBENCH_TEXT", usual[0]);
}

void nb_text_sequence(const struct nb_text *text, uint64_t i, int64_t length, int32_t *tokens, int32_t *targets) {
    assert(text->n > 0 && length > 0);
    const uint64_t start = nb_random_bits(nb_random_stream(0, TEXT_STREAM), i) % text->n;
    for (int64_t t = 0; t < length; t++) {
        tokens[t] = text->bytes[(start + (uint64_t)t) % text->n];
        targets[t] = text->bytes[(start + (uint64_t)t + 1) % text->n];
    }
}

void nb_text_release(struct nb_text *text) {
    free(text->bytes);
    *text = (struct nb_text){0};
}
