// SPDX-License-Identifier: Apache-2.0
/* The loops over rows, each a function of its own: what a call wants of the sums over rows, and what is done to its rows. A kernel's
 * file defines gradient_form_of_kernel(). */
#ifndef NB_GRADIENT_LOOPS_H
#define NB_GRADIENT_LOOPS_H

#include "gradient_plan.h"

/* What the kernel that includes this file computes, whatever the call. */
static struct gradient_form gradient_form_of_kernel(void);

typedef void (*rows_fn)(const struct sweep *s, const struct assignment *a);
struct row_loops {
    rows_fn both, reduce, finish;
};

enum sums { NO_WEIGHT, NO_SUMS, GAMMA_SUM, GAMMA_BETA_SUMS };
enum deed { REDUCE = 1, FINISH = 2, BOTH = 3, FAR = 4, STREAM = 8, ORDERED = 16 };

NB_INLINE void run_form(const struct sweep *s, const struct assignment *a, enum sums sums, unsigned deed) {
    struct gradient_form f = gradient_form_of_kernel();
    f.weight = sums >= NO_SUMS;
    f.gamma_sum = sums >= GAMMA_SUM;
    f.beta_sum = sums == GAMMA_BETA_SUMS;
    f.reduce = deed & REDUCE;
    f.finish = deed & FINISH;
    f.far = deed & FAR;
    f.stream = deed & STREAM;
    f.ordered = deed & ORDERED;
    run_rows(s, a, f);
}
static void bare_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, BOTH); }
static void bare_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, FINISH); }
static void bare_far(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, BOTH | FAR); }
static void bare_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_WEIGHT, BOTH | FAR | STREAM);
}
static void plain_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, BOTH); }
static void plain_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, FINISH); }
static void plain_far(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, BOTH | FAR); }
static void plain_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_SUMS, BOTH | FAR | STREAM);
}
static void gamma_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_SUM, BOTH); }
static void gamma_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_SUM, FINISH); }
static void gamma_far(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_SUM, BOTH | FAR); }
static void gamma_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_SUM, BOTH | FAR | STREAM);
}
static void beta_both(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_BETA_SUMS, BOTH); }
static void beta_finish(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_BETA_SUMS, FINISH); }
static void beta_far(const struct sweep *s, const struct assignment *a) { run_form(s, a, GAMMA_BETA_SUMS, BOTH | FAR); }
static void beta_stream(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, GAMMA_BETA_SUMS, BOTH | FAR | STREAM);
}
/* Whatever the sums over rows. */
static void bare_reduce(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_WEIGHT, REDUCE); }
static void plain_reduce(const struct sweep *s, const struct assignment *a) { run_form(s, a, NO_SUMS, REDUCE); }

static inline struct row_loops loops_in_packs(const struct nb_call *call, const struct gradient_plan *p) {
    static const struct row_loops loops[4][3] = {
        {{bare_both, bare_reduce, bare_finish},
         {bare_far, bare_reduce, bare_finish},
         {bare_stream, bare_reduce, bare_finish}},
        {{plain_both, plain_reduce, plain_finish},
         {plain_far, plain_reduce, plain_finish},
         {plain_stream, plain_reduce, plain_finish}},
        {{gamma_both, plain_reduce, gamma_finish},
         {gamma_far, plain_reduce, gamma_finish},
         {gamma_stream, plain_reduce, gamma_finish}},
        {{beta_both, plain_reduce, beta_finish},
         {beta_far, plain_reduce, beta_finish},
         {beta_stream, plain_reduce, beta_finish}},
    };
    const int sums = call->formula.affine == NB_AFFINE_NONE ? NO_WEIGHT : NO_SUMS + n_sums(call);
    return loops[sums][p->stream ? 2 : p->far];
}

#if PACK > 1
static void plain_ordered(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_SUMS, BOTH | ORDERED);
}
static void plain_ordered_finish(const struct sweep *s, const struct assignment *a) {
    run_form(s, a, NO_SUMS, FINISH | ORDERED);
}
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
    if (wants_beta(call)) return (struct row_loops){beta_ordered, ordered_reduce, beta_ordered_finish};
    if (wants_gamma(call)) return (struct row_loops){gamma_ordered, ordered_reduce, gamma_ordered_finish};
    return (struct row_loops){plain_ordered, ordered_reduce, plain_ordered_finish};
}
#endif

static inline struct row_loops loops_of(const struct nb_call *call, const struct gradient_plan *p) {
#if PACK > 1
    if (p->ordered) return loops_in_order(call);
#endif
    return loops_in_packs(call, p);
}

#endif
