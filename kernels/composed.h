// SPDX-License-Identifier: Apache-2.0
/* Composed kernels: a recipe of elementary operations, one phase each, with temporaries in scratch.
 *
 * A kernel's file defines build(), which writes the recipe down in the order of an eager framework:
 *     struct tensor square = emit_full(p, op_square, x, nothing);
 *     ...
 *     drop(p, square);
 * The recipe is walked anew for every phase and only the wanted step is kept, so that nothing is stored between calls. A
 * dropped temporary is given out again to the next operation, as a caching allocator does. */
#ifndef NB_COMPOSED_H
#define NB_COMPOSED_H

#include <assert.h>

#include "elementwise.h"

#define SMALL_TEMPORARIES 6 /* columns of statistics and rows of parameters that may live at a time */

struct program {
    const struct nb_call *call;
    bool lowp; /* every tensor in x's dtype */
    int wanted, n_steps;
    struct step step;                   /* the wanted one */
    uint32_t full_in_use, small_in_use; /* slots, a bit each */
    int n_full, last_slot;              /* slots that are needed */
    int64_t partial_bytes;              /* of a reduction in two stages, before the slots */
    int64_t period;                     /* rows after which statistics by rows repeat */
};

/* The recipe of the kernel that includes this file. */
static void build(struct program *p);

static const struct tensor nothing = {0};

static inline int64_t round_to_line(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static inline int64_t full_bytes(const struct program *p) {
    const int64_t item = p->lowp ? sizeof(elem) : sizeof(float);
    return round_to_line(p->call->rows * p->call->cols * item);
}
static inline int64_t small_bytes(const struct program *p) {
    const int64_t rows = p->call->rows, cols = p->call->cols;
    return round_to_line((rows > cols ? rows : cols) * (int64_t)sizeof(float));
}
/* A place in scratch, which is null while sizes are asked for. */
static inline void *scratch_at(const struct program *p, int64_t offset) {
    return (void *)((uintptr_t)p->call->scratch + (uintptr_t)offset);
}

static inline int take_slot(uint32_t *in_use) {
    int slot = __builtin_ctz(~*in_use);
    *in_use |= 1u << slot;
    return slot + 1;
}

static inline struct tensor new_full(struct program *p, bool narrow, int64_t cols) {
    struct tensor t = {.slot = take_slot(&p->full_in_use), .stride = cols, .narrow = narrow, .full = true};
    t.data = scratch_at(p, p->partial_bytes + SMALL_TEMPORARIES * small_bytes(p) + (t.slot - 1) * full_bytes(p));
    return t;
}
static inline struct tensor new_small(struct program *p, bool narrow, int64_t stride) {
    struct tensor t = {.slot = take_slot(&p->small_in_use), .stride = stride, .narrow = narrow};
    assert(t.slot <= SMALL_TEMPORARIES);
    t.data = scratch_at(p, p->partial_bytes + (t.slot - 1) * small_bytes(p));
    return t;
}
static inline void drop(struct program *p, struct tensor t) {
    if (!t.slot) return;
    if (t.full)
        p->full_in_use &= ~(1u << (t.slot - 1));
    else
        p->small_in_use &= ~(1u << (t.slot - 1));
}

/* Appends a step. The slot of the last one is not counted before another follows: finish() puts y in its place. */
static __attribute__((noinline)) struct tensor emit(struct program *p, const struct step *step) {
    if (p->last_slot > p->n_full) p->n_full = p->last_slot;
    p->last_slot = step->dst.full ? step->dst.slot : 0;
    if (p->n_steps++ == p->wanted) {
        p->step = *step;
        p->step.call = p->call;
    }
    return step->dst;
}

/* rows x cols -> rows x cols; the result is narrow or f32 as told. */
static inline struct tensor emit_full(struct program *p, step_fn run, struct tensor a, struct tensor b, bool narrow) {
    const struct nb_call *call = p->call;
    struct step s = {.run = run, .a = a, .b = b, .n_units = call->rows, .cols = call->cols, .period = p->period};
    s.dst = new_full(p, narrow, call->cols);
    return emit(p, &s);
}
/* A column of n statistics -> another. */
static inline struct tensor emit_column(struct program *p, step_fn run, struct tensor a, int64_t n, float scalar) {
    struct step s = {.run = run, .a = a, .n_units = n, .cols = 1, .scalar = scalar};
    s.dst = new_small(p, a.narrow, 1);
    return emit(p, &s);
}
/* The same, and the operand is no longer needed. */
static inline struct tensor replace_column(struct program *p, step_fn run, struct tensor a, int64_t n, float scalar) {
    struct tensor result = emit_column(p, run, a, n, scalar);
    drop(p, a);
    return result;
}

/* The step that was emitted last writes y, not a temporary. */
static inline void finish(struct program *p, struct tensor result) {
    drop(p, result);
    p->last_slot = 0;
    if (p->wanted != p->n_steps - 1) return;
    p->step.dst.data = p->call->y;
    p->step.dst.stride = p->call->y_stride;
}

static inline void walk(struct program *p, const struct nb_call *call, int wanted) {
    *p = (struct program){.call = call, .wanted = wanted, .period = call->rows};
    build(p);
}
static inline int composed_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct program p;
    walk(&p, call, phase);
    p.step.run(&p.step, begin, end);
    return 0;
}
static inline int composed_phases(const struct nb_call *call) {
    struct program p;
    walk(&p, call, -1);
    return p.n_steps;
}
static inline int64_t composed_units(const struct nb_call *call, int phase) {
    struct program p;
    walk(&p, call, phase);
    return p.step.n_units;
}
static inline size_t composed_scratch(const struct nb_call *call) {
    struct program p;
    walk(&p, call, -1);
    return (size_t)(p.partial_bytes + SMALL_TEMPORARIES * small_bytes(&p) + p.n_full * full_bytes(&p));
}
/* The squares are rounded before they are summed. */
static inline int64_t composed_chain(const struct nb_call *call) { return row_chain(call) + 1; }

#endif
