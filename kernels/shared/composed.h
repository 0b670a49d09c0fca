// SPDX-License-Identifier: Apache-2.0
/* Composed kernels: a recipe of elementary operations, one phase each, with temporaries in scratch.
 *
 * A kernel's file defines build(), which writes the recipe down in the order of an eager framework:
 *     struct tensor square = emit_full(p, op_square, x, nothing);
 *     ...
 *     drop(p, square);
 * The recipe is walked anew for every phase and only the wanted step is kept, so that nothing is stored between calls. A
 * dropped temporary is given out again to the next operation, as a caching allocator does. */
#pragma once

#include <assert.h>

#include "kernels/shared/elementwise.h"

#define SMALL_TEMPORARIES 6 /* columns of statistics and rows of parameters that may live at a time */

struct program {
    const struct nb_call *call;
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
    const int64_t item = COMPOSED_LOWP ? sizeof(elem) : sizeof(float);
    return round_to_line(p->call->rows * p->call->cols * item);
}
static inline int64_t small_bytes(const struct program *p) {
    const int64_t rows = p->call->rows, cols = p->call->cols;
    return round_to_line((rows > cols ? rows : cols) * (int64_t)sizeof(float));
}
static inline int take_slot(uint32_t *in_use) {
    int slot = __builtin_ctz(~*in_use);
    *in_use |= 1u << slot;
    return slot + 1;
}

/* Temporaries. Their place is found when a step that uses them is run. */
static inline struct tensor new_full(struct program *p, bool narrow, int64_t cols) {
    return (struct tensor){.slot = take_slot(&p->full_in_use), .stride = cols, .narrow = narrow, .full = true};
}
static inline struct tensor new_small(struct program *p, bool narrow, int64_t stride) {
    return (struct tensor){.slot = take_slot(&p->small_in_use), .stride = stride, .narrow = narrow};
}
static inline void drop(struct program *p, struct tensor t) {
    if (!t.slot) return;
    if (t.full)
        p->full_in_use &= ~(1u << (t.slot - 1));
    else
        p->small_in_use &= ~(1u << (t.slot - 1));
}

/* Appends a step that writes dst: is it the wanted one? The slot of the last step is not counted before another follows:
 * finish() puts an output in its place. */
static inline bool append(struct program *p, struct tensor dst) {
    if (p->last_slot > p->n_full) p->n_full = p->last_slot;
    p->last_slot = dst.full ? dst.slot : 0;
    return p->n_steps++ == p->wanted;
}

/* rows x cols -> rows x cols; the result is narrow or f32 as the flag says. */
static inline struct tensor emit_full(struct program *p, step_fn run, struct tensor a, struct tensor b, bool narrow) {
    const int64_t rows = p->call->rows, cols = p->call->cols;
    const struct tensor dst = new_full(p, narrow, cols);
    if (append(p, dst))
        p->step = (struct step){run, .dst = dst, .a = a, .b = b, .n_units = rows, .cols = cols, .period = p->period};
    return dst;
}
/* The same where a is no longer needed, in its type. */
static inline struct tensor then(struct program *p, step_fn run, struct tensor a, struct tensor b) {
    const struct tensor result = emit_full(p, run, a, b, a.narrow);
    drop(p, a);
    return result;
}
/* A column of n statistics -> another, which may be an output. */
static inline struct tensor emit_column(struct program *p, step_fn run, struct tensor a, struct tensor dst, int64_t n,
                                        float scalar) {
    if (append(p, dst)) p->step = (struct step){run, .dst = dst, .a = a, .n_units = n, .cols = 1, .scalar = scalar};
    return dst;
}
/* The same into a temporary, and the operand is no longer needed. */
static inline struct tensor replace_column(struct program *p, step_fn run, struct tensor a, int64_t n, float scalar) {
    const struct tensor result = emit_column(p, run, a, new_small(p, a.narrow, 1), n, scalar);
    drop(p, a);
    return result;
}

/* The step that was emitted last writes an output, y or dx, not a temporary. */
static inline void finish(struct program *p, struct tensor result, void *output, int64_t stride) {
    drop(p, result);
    p->last_slot = 0;
    if (p->wanted != p->n_steps - 1) return;
    p->step.dst = (struct tensor){.data = output, .stride = stride, .narrow = result.narrow, .full = true};
}

static inline void place(struct program *p, struct tensor *t) {
    if (!t->slot) return;
    assert(t->full || t->slot <= SMALL_TEMPORARIES);
    int64_t at = p->partial_bytes + (t->slot - 1) * (t->full ? full_bytes(p) : small_bytes(p));
    if (t->full) at += SMALL_TEMPORARIES * small_bytes(p);
    t->data = (char *)p->call->scratch + at;
}
static inline void walk(struct program *p, const struct nb_call *call, int wanted) {
    *p = (struct program){.call = call, .wanted = wanted, .period = call->rows};
    build(p);
    p->step.call = call;
}
static inline int composed_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    struct program p;
    walk(&p, call, phase);
    place(&p, &p.step.dst);
    place(&p, &p.step.a);
    place(&p, &p.step.b);
    p.step.run(&p.step, begin, end);
#ifdef NB_OPERATIONS
    return step_error();
#else
    return 0;
#endif
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
/* Of a gradient. It is called before the tensors are known: enough for any of them. */
static inline size_t composed_gradient_scratch(const struct nb_call *call) {
    float any;
    struct nb_call all = *call;
    all.dgamma = all.dbeta = &any;
    all.dx = &any;
    all.dresidual_out = &any;
    return composed_scratch(&all);
}
/* The squares are rounded before they are summed. */
static inline int64_t composed_chain(const struct nb_call *call) { return row_chain(call) + 1; }

#define COMPOSED_KERNEL .run = composed_run, .n_phases = composed_phases, .n_units = composed_units
