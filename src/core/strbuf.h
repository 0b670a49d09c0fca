// SPDX-License-Identifier: Apache-2.0
/* A string that grows. Zero-initialise; text is never null after the first append. */
#ifndef NB_STRBUF_H
#define NB_STRBUF_H

#include <stddef.h>

struct nb_strbuf {
    char *text;
    size_t len, cap;
};
void nb_strbuf_add(struct nb_strbuf *b, const char *s);
void nb_strbuf_addn(struct nb_strbuf *b, const char *s, size_t n);
void nb_strbuf_addf(struct nb_strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nb_strbuf_clear(struct nb_strbuf *b); /* empty, memory kept */
void nb_strbuf_release(struct nb_strbuf *b);

/* The name in names[0..n) nearest to s by edit distance, or null when none is near: for "did you mean". */
const char *nb_nearest(const char *s, const char *const *names, size_t n);

#endif
