// SPDX-License-Identifier: Apache-2.0
/* Small functions of another project for `normbench gate --function`: a copy, a parser, a sort, one that allocates, and some that break
 * the rules of kernels/function.h or do not come back. SLOWER: how many percent of the work are done once more. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SLOWER
#define SLOWER 0
#endif

#pragma GCC visibility push(default) /* what is called by name is exported, whatever -fvisibility says */

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* ---- copy ------------------------------------------------------------------------------------------------------------- */

enum { COPIED = 16000 };
struct copy {
    unsigned char from[COPIED], to[COPIED];
};
void *copy_setup(void) {
    struct copy *c = calloc(1, sizeof *c);
    uint64_t seed = 1;
    for (int i = 0; i < COPIED; i++) c->from[i] = (unsigned char)next(&seed);
    return c;
}
static void copy_part(struct copy *c, int n) {
    for (int i = 0; i < n; i += 1000) memcpy(c->to + i, c->from + i, 1000);
}
void copy(void *state) {
    copy_part(state, COPIED);
    if (SLOWER) copy_part(state, COPIED * SLOWER / 100);
}
const void *copy_bytes(const void *state, size_t *n) {
#ifdef FEWER_BYTES
    *n = COPIED - 1;
#else
    *n = COPIED;
#endif
    return ((const struct copy *)state)->to;
}
void copy_teardown(void *state) { free(state); }

/* ---- parse: numbers with commas --------------------------------------------------------------------------------------- */

enum { TEXT = 2000 };
struct parse {
    char text[TEXT + 8];
    struct {
        int64_t sum, n, largest;
    } out;
};
void *parse_setup(void) {
    struct parse *p = calloc(1, sizeof *p);
    uint64_t seed = 2;
    for (int i = 0; i < TEXT; i++) p->text[i] = i % 7 == 6 ? ',' : (char)('0' + next(&seed) % 10);
    p->text[TEXT] = ',';
    return p;
}
static void parse_part(struct parse *p, int n) {
    int64_t number = 0;
    p->out.sum = p->out.n = p->out.largest = 0;
    for (int i = 0; i <= n; i++) {
        if (p->text[i] != ',') {
            number = 10 * number + (p->text[i] - '0');
            continue;
        }
        p->out.sum += number;
        p->out.n++;
        if (number > p->out.largest) p->out.largest = number;
        number = 0;
    }
}
void parse(void *state) {
    if (SLOWER) parse_part(state, TEXT * SLOWER / 100);
    parse_part(state, TEXT);
#ifdef WRONG
    ((struct parse *)state)->out.sum++;
#endif
}
const void *parse_bytes(const void *state, size_t *n) {
    *n = sizeof((const struct parse *)state)->out;
    return &((const struct parse *)state)->out;
}
void parse_teardown(void *state) { free(state); }

/* ---- sort: what is sorted is copied from the same numbers in every call ----------------------------------------------- */

enum { SORTED = 100 };
struct sort {
    int32_t from[SORTED], to[SORTED];
};
void *sort_setup(void) {
    struct sort *s = calloc(1, sizeof *s);
    uint64_t seed = 3;
    for (int i = 0; i < SORTED; i++) s->from[i] = (int32_t)next(&seed);
    return s;
}
static int compare(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}
static void sort_part(struct sort *s, int n) {
    memcpy(s->to, s->from, sizeof s->to);
    qsort(s->to, (size_t)n, sizeof *s->to, compare);
}
void sort(void *state) {
    if (SLOWER) sort_part(state, SORTED * SLOWER / 100);
    sort_part(state, SORTED);
}
const void *sort_bytes(const void *state, size_t *n) {
    *n = sizeof((const struct sort *)state)->to;
    return ((const struct sort *)state)->to;
}
void sort_teardown(void *state) { free(state); }

/* ---- list: a list that is allocated, summed and freed ------------------------------------------------------------------ */

enum { NODES = 50 };
struct node {
    struct node *next;
    uint64_t value;
};
static uint64_t list_part(int n) {
    struct node *first = NULL;
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        struct node *node = malloc(sizeof *node + (size_t)(i % 13) * 8);
        *node = (struct node){first, (uint64_t)i};
        first = node;
    }
    while (first) {
        struct node *next_node = first->next;
        sum += first->value;
        free(first);
        first = next_node;
    }
    return sum;
}
void *list_setup(void) { return calloc(1, sizeof(uint64_t)); }
void list(void *state) {
    if (SLOWER) *(uint64_t *)state = list_part(NODES * SLOWER / 100);
    *(uint64_t *)state = list_part(NODES);
}
const void *list_bytes(const void *state, size_t *n) {
    *n = sizeof(uint64_t);
    return state;
}
void list_teardown(void *state) { free(state); }

/* ---- what cannot be compared, and what does not come back; only in the second build, where BAD ------------------------ */

#ifndef SILENT_H
static __attribute__((unused)) void hang(void) {
    for (;;) pause();
}
#endif
#ifdef BAD
#define BREAKS(what) what
#else
#define BREAKS(what)
#endif
void crashes(void *state) {
    (void)state;
    BREAKS(raise(SIGSEGV);)
}
void hangs(void *state) {
    (void)state;
    BREAKS(hang();)
}
void leaves(void *state) {
    (void)state;
    BREAKS(exit(0);)
}
static int64_t grown;
void grows(void *state) {
    (void)state;
    BREAKS(grown++;)
}
const void *grows_bytes(const void *state, size_t *n) {
    (void)state;
    *n = sizeof grown;
    return &grown;
}
/* Does its work in the first eight calls alone, more than there are before timing. */
static struct {
    uint64_t sum;
    int calls;
} kept;
void remembers(void *state) {
    (void)state;
    BREAKS(if (++kept.calls > 8) return;)
    kept.sum = list_part(NODES);
}
const void *remembers_bytes(const void *state, size_t *n) {
    (void)state;
    *n = sizeof kept.sum;
    return &kept.sum;
}
/* Does its work once. */
static uint64_t once;
void works_once(void *state) {
    (void)state;
    BREAKS(if (once) return;)
    once = list_part(NODES);
}
const void *works_once_bytes(const void *state, size_t *n) {
    (void)state;
    *n = sizeof once;
    return &once;
}
/* Its bytes are made when asked for: here always, and in the second build alone. */
static uint64_t made;
void makes(void *state) { (void)state; }
const void *makes_bytes(const void *state, size_t *n) {
    (void)state;
    *n = sizeof made;
    made = list_part(NODES);
    return &made;
}
static uint64_t later;
void makes_later(void *state) {
    (void)state;
    later = list_part(NODES);
}
const void *makes_later_bytes(const void *state, size_t *n) {
    (void)state;
    *n = sizeof later;
    BREAKS(later = list_part(NODES);)
    return &later;
}
static const uint64_t fixed = 7; /* read-only */
void stays(void *state) { (void)state; }
const void *stays_bytes(const void *state, size_t *n) {
    (void)state;
    *n = sizeof fixed;
    return &fixed;
}
/* Compared by a check alone. */
void *judged_setup(void) { return calloc(1, sizeof(int)); }
void judged(void *state) {
    *(int *)state = 1;
    BREAKS(*(int *)state = 2;)
}
int judged_check(const void *state, const void *other) { return *(const int *)state == *(const int *)other ? 0 : 7; }
/* What belongs to a function in one build alone. */
#ifdef BAD
void judged_teardown(void *state) { free(state); }
void *apart_setup(void) { return NULL; }
#endif
void apart(void *state) { (void)state; }
void empty(void *state) { (void)state; }
int not_a_function = 1;
