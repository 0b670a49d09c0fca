// SPDX-License-Identifier: Apache-2.0
/* The frame of the fast row kernels. While a row is put out, the row `ahead` places behind it is summed in the same loop: loads of the
 * one overlap stores of the other, and the latency of the sums, the root and the division (60 to 80 cycles) is hidden behind the row
 * between the two, so that nothing is left of it, and nothing is asked of the processor's window.
 *
 * ahead is 2, or 1 where three rows of x, one of y and the parameters would not share the first cache, or 0 where two would not: then a
 * row is summed, then put out. */
#ifndef NB_FAST_ROWS_H
#define NB_FAST_ROWS_H

#include "fast_output.h"

#define FIRST_CACHE_DEFAULT_BYTES (32 << 10) /* where nobody has measured */

static inline int rows_ahead(const struct nb_call *call) {
    const struct nb_tuning *t = call->tuning;
    const int64_t row_bytes = call->cols * (int64_t)sizeof(elem);
    const int64_t cache = t && t->l1_bytes > 0 ? t->l1_bytes : FIRST_CACHE_DEFAULT_BYTES;
    /* beside the rows of x: y and the parameters, in a cache that is not all ours */
    const int64_t room = cache / 4 * 3 - row_bytes - call->cols * (int64_t)sizeof(float);
    if (call->cols >= LONG_ROW) return 0;
    return room >= 3 * row_bytes ? 2 : room >= 2 * row_bytes ? 1 : 0;
}

/* What stays the same for all rows of a range. */
struct fast_work {
    const struct nb_call *call;
    int64_t begin, end;
    int64_t ahead;
    bool stream;
};
/* What goes from row to row, and would best be in registers. */
struct fast_walk {
    struct fast_output out;
    struct fast_input in;              /* ahead of it */
    struct row_numbers now, then;      /* of the row to put out and of the one behind it */
    float shift, shift_then;           /* of the row to sum and of the one behind it */
    struct source_stride first, later; /* steps of in.x and out.x */
    int64_t y_stride;
};

static inline struct fast_work fast_work_of(const struct nb_call *call, int64_t begin, int64_t end) {
    const bool stream = call_streams(call, FAST_ADD ? 3 + (call->residual_out != NULL) : 2);
    const int64_t ahead = rows_ahead(call);
    return (struct fast_work){
        .call = call, .begin = begin, .end = end, .ahead = ahead < end - begin ? ahead : 0, .stream = stream};
}

/* ---- statistics ahead ---- */

NB_INLINE float shift_at(const struct fast_work *w, int64_t row) {
    const int64_t n = stats_length(w->call);
    return FAST_CENTRE && row < w->end ? row_shift(row_source_at(w->call, row), n, head_inverse(n)) : 0.0f;
}

/* The first rows' numbers, and the rows to begin with. */
NB_INLINE void walk_begin(const struct fast_work *w, struct fast_walk *k) {
    const struct nb_call *call = w->call;
    const int64_t stride = call->x_stride, residual = call->residual_stride;
    *k = (struct fast_walk){.y_stride = call->y_stride};
    k->out = (struct fast_output){.x = later_source(call, w->begin, w->stream),
                                  .y = row_out(call->y, call->y_stride, w->begin),
                                  .n = call->cols,
                                  .params = params_of(call),
                                  .stream = w->stream};
    k->first = (struct source_stride){stride, residual, call->residual_out_stride};
    k->later = (struct source_stride){FAST_ADD && !k->out.x.add ? call->residual_out_stride : stride, residual, 0};
    if (w->ahead == 0) return;
    k->in = (struct fast_input){.x = first_source(call, w->begin + w->ahead, w->stream), .n = stats_length(call)};
    k->now = row_statistics(call, w->begin, w->stream);
    if (w->ahead > 1) k->then = row_statistics(call, w->begin + 1, w->stream);
    k->shift = shift_at(w, w->begin + w->ahead);
    k->shift_then = shift_at(w, w->begin + w->ahead + 1);
}

NB_INLINE void next_output(struct fast_walk *k) {
    k->out.x = source_moved(k->out.x, k->later);
    k->out.y += k->y_stride;
}

/* The row that was summed: its numbers come into play in one or two rows' time. */
NB_INLINE void take_totals(const struct fast_work *w, struct fast_walk *k, int64_t row, struct totals t,
                           struct quick_finish q) {
    const struct row_numbers r =
        finishes_quickly(q, t) ? quickly_finished(q, t, k->shift) : row_finish(w->call, row, t, k->shift, w->stream);
    k->now = w->ahead > 1 ? k->then : r;
    k->then = r;
}

/* ---- the loops over rows ---- */

/* Rows [begin, end - ahead). */
NB_INLINE void put_and_sum_rows(const struct fast_work *w, struct fast_walk *k, struct fast_form f) {
    const struct quick_finish q = quick_finish_of(w->call);
    const int64_t ahead = w->ahead, end = w->end;
    const float inverse_of_head = head_inverse(k->in.n);
    struct fast_source head = row_source_at(w->call, w->begin + ahead);
    for (int64_t row = w->begin + ahead; row < end; row++) {
        k->out.mean = vec_set1(k->now.mean);
        k->out.scale = vec_set1(k->now.scale);
        k->in.shift = vec_set1(k->shift);
        const struct totals t = lanes_totals(put_and_sum(k->out, k->in, f));
        take_totals(w, k, row, t, q);
        next_output(k);
        k->in.x = source_moved(k->in.x, k->first);
        if (!FAST_CENTRE) continue;
        k->shift = k->shift_then;
        head = source_moved(head, k->first);
        if (row + 2 < end) k->shift_then = row_shift(source_moved(head, k->first), k->in.n, inverse_of_head);
    }
}

NB_INLINE int rows_of_form(const struct fast_work *w, struct fast_form f) {
    struct fast_walk k;
    walk_begin(w, &k);
    if (w->ahead > 0) put_and_sum_rows(w, &k, f);
    for (int64_t row = w->ahead > 0 ? w->end - w->ahead : w->begin; row < w->end; row++) {
        if (w->ahead == 0) k.now = row_statistics(w->call, row, w->stream);
        k.out.mean = vec_set1(k.now.mean);
        k.out.scale = vec_set1(k.now.scale);
        put_row(k.out, f);
        next_output(&k);
        k.now = k.then;
    }
    if (w->stream) raw_stream_end();
    return 0;
}

/* ---- the dispatch, once a call ---- */

NB_INLINE int rows_with_offset(const struct fast_work *w, struct fast_form f) {
    f.offset = true;
    if (f.exact && w->call->formula.weight_offset) return rows_of_form(w, f);
    f.offset = false;
    return rows_of_form(w, f);
}
NB_INLINE int rows_with_weights(const struct fast_work *w, struct fast_form f) {
    f.affine = NB_AFFINE_GAMMA;
    if (w->call->formula.affine == NB_AFFINE_GAMMA) return rows_with_offset(w, f);
    f.affine = NB_AFFINE_GAMMA_BETA;
    return rows_with_offset(w, f);
}
NB_INLINE int rows_with_cast(const struct fast_work *w, struct fast_form f) {
    f.affine = NB_AFFINE_NONE;
    if (w->call->formula.affine == NB_AFFINE_NONE) return rows_of_form(w, f);
    return rows_with_weights(w, f);
}
static inline bool is_exact(const struct fast_work *w) {
    return !w->stream && w->call->cols % BLOCK == 0 && stats_length(w->call) == w->call->cols;
}
NB_INLINE int fast_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    if (begin >= end) return 0;
    const struct fast_work w = fast_work_of(call, begin, end);
#ifndef NB_DTYPE_IS_F32
    if (call->formula.cast == NB_CAST_BEFORE) return rows_with_cast(&w, (struct fast_form){.cast_before = true});
#endif
    if (is_exact(&w)) return rows_with_cast(&w, (struct fast_form){.exact = true});
    return rows_with_cast(&w, (struct fast_form){0});
}

/* ---- the contract ---- */

#define FAST_FORMULAS                                                                                                  \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP) | NB_BIT(NB_ROOT_RSQRT_NR) | NB_BIT(NB_ROOT_RSQRT_RAW),                     \
        .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS), .weight_offsets = NB_ALL(2),               \
        .affines = NB_ALL(NB_N_AFFINES), .params = NB_ALL(NB_N_PARAMS)                                                 \
    }

/* Longest chain of roundings in a row's sums; about a shift it is longer by the factor that the shift may cost, for the sums and
 * the four roundings that go with them. */
static inline int64_t fast_chain(const struct nb_call *call) {
    const int64_t n = stats_length(call), length = segment_length(n), tree = length < n ? 4 : 0;
    const int64_t sums = reduction_chain(length, SUM_CHAINS) + tree;
    return FAST_CENTRE ? (int64_t)(SHIFT_FACTOR * (double)(sums + 4)) + 1 : sums;
}
static inline int fast_row_local(const struct nb_call *call) {
    (void)call;
    return 1;
}

#endif
