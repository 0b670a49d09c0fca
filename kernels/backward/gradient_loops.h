// SPDX-License-Identifier: Apache-2.0
/* The loops over rows, each a function of its own: what a call wants of the sums over rows, and what is done to its rows. A kernel's
 * file defines gradient_form_of_kernel(). */
#ifndef NB_GRADIENT_LOOPS_H
#define NB_GRADIENT_LOOPS_H

#include "kernels/backward/gradient_plan.h"

/* What the kernel that includes this file computes, whatever the call. */
static struct gradient_form gradient_form_of_kernel(void);

typedef void (*rows_fn)(const struct sweep *s, const struct assignment *a);
struct row_loops {
    rows_fn both, reduce, finish;
    rows_fn pairs; /* null: none */
};

enum sums { NO_WEIGHT, NO_SUMS, GAMMA_SUM, GAMMA_BETA_SUMS };
enum deed { REDUCE = 1, FINISH = 2, BOTH = 3, FAR = 4, STREAM = 8, ORDERED = 16, NATIVE = 32 };

NB_INLINE struct gradient_form form_of(enum sums sums, unsigned deed) {
    struct gradient_form f = gradient_form_of_kernel();
    f.weight = sums >= NO_SUMS;
    f.gamma_sum = sums >= GAMMA_SUM;
    f.beta_sum = sums == GAMMA_BETA_SUMS;
    f.reduce = deed & REDUCE;
    f.finish = deed & FINISH;
    f.far = deed & FAR;
    f.stream = deed & STREAM;
    f.ordered = deed & ORDERED;
    f.native = deed & NATIVE;
    f.rows = 1;
    return f;
}
NB_INLINE void run_form(const struct sweep *s, const struct assignment *a, enum sums sums, unsigned deed) {
    run_rows(s, a, form_of(sums, deed));
}
static void bare_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, BOTH); }
static void bare_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, FINISH); }
static void bare_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_WEIGHT, BOTH | FAR | STREAM);
}
static void plain_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, BOTH); }
static void plain_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, FINISH); }
static void plain_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_SUMS, BOTH | FAR | STREAM);
}
static void gamma_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_SUM, BOTH); }
static void gamma_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_SUM, FINISH); }
static void gamma_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_SUM, BOTH | FAR | STREAM);
}
static void beta_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_BETA_SUMS, BOTH); }
static void beta_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_BETA_SUMS, FINISH); }
static void beta_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_BETA_SUMS, BOTH | FAR | STREAM);
}
/* Whatever the sums over rows. */
static void bare_reduce(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, REDUCE); }
static void plain_reduce(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, REDUCE); }

static inline struct row_loops loops_in_packs(const struct nb_call *call, const struct gradient_plan *p) {
    static const struct row_loops loops[4][2] = {
        {{bare_both, bare_reduce, bare_finish, NULL}, {bare_stream, bare_reduce, bare_finish, NULL}},
        {{plain_both, plain_reduce, plain_finish, NULL}, {plain_stream, plain_reduce, plain_finish, NULL}},
        {{gamma_both, plain_reduce, gamma_finish, NULL}, {gamma_stream, plain_reduce, gamma_finish, NULL}},
        {{beta_both, plain_reduce, beta_finish, NULL}, {beta_stream, plain_reduce, beta_finish, NULL}},
    };
    const int sums = call->formula.affine == NB_AFFINE_NONE ? NO_WEIGHT : NO_SUMS + n_sums(call);
    return loops[sums][p->stream];
}

#if PACK > 1
static void gamma_ordered(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_SUM, BOTH | ORDERED);
}
static void gamma_ordered_finish(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_SUM, FINISH | ORDERED);
}
static void beta_ordered(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_BETA_SUMS, BOTH | ORDERED);
}
static void beta_ordered_finish(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_BETA_SUMS, FINISH | ORDERED);
}
static void ordered_reduce(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_SUMS, REDUCE | ORDERED);
}

static inline struct row_loops loops_in_order(const struct nb_call *call) {
    if (wants_beta(call)) return (struct row_loops){beta_ordered, ordered_reduce, beta_ordered_finish, NULL};
    return (struct row_loops){gamma_ordered, ordered_reduce, gamma_ordered_finish, NULL};
}
#endif

/* What each op is called with as a rule has loops for pairs of rows and for rows that come from memory and do not stream, and rounds
 * by the CPU's own instruction where it may. */
NB_INLINE enum sums rule_sums(void) { return gradient_form_of_kernel().centre ? GAMMA_BETA_SUMS : GAMMA_SUM; }
NB_INLINE bool is_rule(const struct nb_call *call) {
    return call->formula.affine != NB_AFFINE_NONE && NO_SUMS + n_sums(call) == (int)rule_sums();
}
NB_INLINE void run_paired(const struct sweep *s, const struct assignment *a, unsigned deed) {
    struct gradient_form f = form_of(rule_sums(), deed);
    f.rows = ROWS_TOGETHER;
    run_pairs(s, a, f);
}
static void rule_far(const struct sweep *s, const struct assignment *a) { run_form(s, a, rule_sums(), BOTH | FAR); }

static void pairs_of_rows(const struct sweep *s, const struct assignment *a) { run_paired(s, a, BOTH); }

/* Pairs pay where the core is the limit and not its path to the second cache: in the first one, and in 16 bits with two sums over rows;
 * nowhere where conversions are the limit, as those of f16 by 256 bits are. */
NB_INLINE bool takes_pairs(const struct nb_call *call, const struct gradient_plan *p) {
    const struct gradient_form f = gradient_form_of_kernel();
    const bool narrow = sizeof(elem) == 2;
    if (f.leading || NB_LANES < 8 || (NB_LANES == 8 && narrow && PACK == 1)) return false;
    return is_rule(call) && p->rows_at_hand >= (f.centre && narrow ? ROWS_TOGETHER : call->rows);
}

#if PAIR_NATIVE
static void native_both(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, rule_sums(), BOTH | NATIVE);
}
static void native_finish(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, rule_sums(), FINISH | NATIVE);
}
static void native_far(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, rule_sums(), BOTH | FAR | NATIVE);
}
static void native_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, rule_sums(), BOTH | FAR | STREAM | NATIVE);
}
static void native_pairs(const struct sweep *s, const struct assignment *a) { run_paired(s, a, BOTH | NATIVE); }

static inline struct row_loops native_loops(const struct gradient_plan *p, struct row_loops loops) {
    loops.both = p->stream ? native_stream : p->far ? native_far : native_both;
    loops.finish = native_finish;
    if (loops.pairs) loops.pairs = native_pairs;
    return loops;
}
#endif

/* Longer rows wait for memory, and the shorter loop gains nothing. The shape alone decides. */
NB_INLINE bool rounds_natively(const struct nb_call *call, const struct gradient_plan *p) {
    if (!PAIR_NATIVE || gradient_form_of_kernel().leading) return false;
    return call_is_native(call) && is_rule(call) && !p->ordered && p->n_pieces == 1;
}

static inline struct row_loops loops_of(const struct nb_call *call, const struct gradient_plan *p) {
#if PACK > 1
    if (p->ordered) return loops_in_order(call);
#endif
    struct row_loops loops = loops_in_packs(call, p);
    if (is_rule(call) && p->far && !p->stream) loops.both = rule_far;
    if (takes_pairs(call, p)) loops.pairs = pairs_of_rows;
#if PAIR_NATIVE
    if (rounds_natively(call, p)) loops = native_loops(p, loops);
#endif
    return loops;
}

#endif
