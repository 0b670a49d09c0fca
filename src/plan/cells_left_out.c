// SPDX-License-Identifier: Apache-2.0
/* What a plan leaves out: entries by reason, and their order. */
#include "src/plan/cells.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/text.h"

static struct nb_skip *append(struct nb_skips *s, const char *reason, const char *key, size_t n) {
    struct nb_skip *skip = NB_PUSH(s->items, s->n);
    *skip = (struct nb_skip){.reason = nb_strdup(reason), .key = key ? nb_strdup(key) : NULL, .n = n};
    return skip;
}

void nb_skips_count(struct nb_skips *s, size_t n, const char *format, ...) {
    char reason[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    size_t found = nb_text_map_find(&s->by_reason, reason);
    if (found != NB_NOWHERE) {
        s->items[found].n += n;
        return;
    }
    const struct nb_skip *added = append(s, reason, NULL, n);
    nb_text_map_add(&s->by_reason, added->reason, s->n - 1);
}

void nb_skips_case(struct nb_skips *s, const char *key, const char *reason) { append(s, reason, key, 1); }

/* An entry with what it is sorted by. */
struct ranked {
    struct nb_skip skip;
    size_t total, first, index; /* of its reason: cells, the first entry; its own place */
};

static int compare_ranked(const void *a, const void *b) {
    const struct ranked *p = a, *q = b;
    if (p->total != q->total) return p->total < q->total ? 1 : -1;
    if (p->first != q->first) return p->first < q->first ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

void nb_skips_sort(struct nb_skips *s) {
    struct nb_text_map firsts released_by(nb_text_map_release) = {0};
    struct ranked *ranked freed = nb_alloc(s->n, sizeof *ranked);
    for (size_t i = 0; i < s->n; i++) {
        size_t found = nb_text_map_add(&firsts, s->items[i].reason, i);
        ranked[i] = (struct ranked){.skip = s->items[i], .first = found == NB_NOWHERE ? i : found, .index = i};
        ranked[ranked[i].first].total += s->items[i].n;
    }
    for (size_t i = 0; i < s->n; i++) ranked[i].total = ranked[ranked[i].first].total;
    if (s->n > 1) qsort(ranked, s->n, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < s->n; i++) s->items[i] = ranked[i].skip;
    nb_text_map_release(&s->by_reason); /* its indices hold no more */
}

void nb_skips_release(struct nb_skips *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->items[i].reason);
        free(s->items[i].key);
    }
    free(s->items);
    nb_text_map_release(&s->by_reason);
    *s = (struct nb_skips){0};
}
