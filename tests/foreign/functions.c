// SPDX-License-Identifier: Apache-2.0
/* Small functions of another project for `normbench gate --function`: a copy, a parser, one that allocates, and some that break
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

/* The bytes of output of a function: where they are, and how many. */
#define GIVES(function, at, size)                                                                                      \
    const void *function##_bytes(const void *state __attribute__((unused)), size_t *n) {                               \
        *n = size;                                                                                                     \
        return at;                                                                                                     \
    }

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
#ifndef FEWER_BYTES
#define FEWER_BYTES 0
#endif
GIVES(copy, ((const struct copy *)state)->to, COPIED - FEWER_BYTES)
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
GIVES(parse, &((const struct parse *)state)->out, sizeof((const struct parse *)state)->out)
void parse_teardown(void *state) { free(state); }

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
GIVES(list, state, sizeof(uint64_t))
void list_teardown(void *state) { free(state); }

/* ---- what cannot be compared, and what does not come back; only in the second build, where BAD ------------------------ */

#ifndef SILENT
static __attribute__((unused)) void hang(void) {
    for (;;) pause();
}
#endif
#ifdef BAD
#define BREAKS(what) what
#else
#define BREAKS(what)
#endif
#define DOES(function, ...)                                                                                            \
    void function(void *state __attribute__((unused))) { __VA_ARGS__ }
DOES(crashes, BREAKS(raise(SIGSEGV);))
DOES(hangs, BREAKS(hang();))
DOES(leaves, BREAKS(exit(0);))
static int64_t grown;
DOES(grows, BREAKS(grown++;))
GIVES(grows, &grown, sizeof grown)
/* Does its work in the first eight calls alone, more than there are before timing. */
static struct {
    uint64_t sum;
    int calls;
} kept;
DOES(remembers, BREAKS(if (++kept.calls > 8) return;) kept.sum = list_part(NODES);)
GIVES(remembers, &kept.sum, sizeof kept.sum)
/* Does its work once. */
static uint64_t once;
DOES(works_once, BREAKS(if (once) return;) once = list_part(NODES);)
GIVES(works_once, &once, sizeof once)
/* Its bytes are made when asked for: here always, and in the second build alone. */
static uint64_t made;
DOES(makes, )
GIVES(makes, (made = list_part(NODES), &made), sizeof made)
static uint64_t later;
DOES(makes_later, later = list_part(NODES);)
const void *makes_later_bytes(const void *state, size_t *n) {
    *n = sizeof later;
    BREAKS(later = list_part(NODES);)
    return &later;
}
static const uint64_t fixed = 7; /* read-only */
DOES(stays, )
GIVES(stays, &fixed, sizeof fixed)
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
DOES(apart, )
DOES(empty, )
int not_a_function = 1;
