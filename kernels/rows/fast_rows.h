// SPDX-License-Identifier: Apache-2.0
/* The frame of the fast row kernels. While a row is put out, the row `ahead` places behind it is summed in the same loop: loads of the
 * one overlap stores of the other, and the latency of the sums, the root and the division (60 to 80 cycles) is hidden behind the row
 * between the two, so that nothing is left of it, and nothing is asked of the processor's window.
 *
 * Rows with none ahead are summed, then put out; where gamma and beta both come from the second cache, four of them are summed and put out
 * in one sweep, which loads the parameters once. Few long rows are split over the threads (fast_split.h). */
#ifndef NB_FAST_ROWS_H
#define NB_FAST_ROWS_H

#include "kernels/rows/fast_plan.h"

/* What goes from row to row, and would best be in registers: a load right behind a row of stores may have the low bits of its
 * address in common with one of them, and waits for it. */
struct fast_walk {
    struct fast_output out;
    struct fast_input in;         /* ahead of it */
    struct row_numbers now, last; /* of the row to put out and, in the end, of the last row */
    struct totals summed;         /* two rows ahead: of the one behind the row to put out, not finished yet */
    float shift_summed;
    float shift, shift_then;           /* of the row to sum and of the one behind it */
    struct fast_source head;           /* the row to sum, without a store */
    struct source_stride first, later; /* steps of in.x and out.x */
    int64_t y_stride;
};
NB_INLINE void set_numbers(struct fast_output *o, struct row_numbers r) {
    o->mean = vec_set1(r.mean);
    o->scale = vec_set1(r.scale);
}
NB_INLINE struct fast_output output_at(const struct fast_work *w, int64_t row, struct fast_form f) {
    const struct nb_call *call = w->call;
    return (struct fast_output){.x = later_source(call, row, w->stream),
                                .y = row_out(call->y, call->y_stride, row),
                                .n = call->cols,
                                .params = params_of(call, f),
                                .stream = w->stream,
                                .native = w->native && !f.cast_before};
}

/* ---- rows with others ahead ---- */

/* The first rows' numbers, and the rows to begin with. */
NB_INLINE struct fast_walk walk_begin(const struct fast_work *w, struct fast_form f) {
    const struct nb_call *call = w->call;
    const int64_t x = call->x_stride, residual = call->residual_stride, sum = call->residual_out_stride;
    const int64_t next = w->begin + w->ahead;
    struct fast_walk k = {.out = output_at(w, w->begin, f), .y_stride = call->y_stride};
    k.in = (struct fast_input){.x = first_source(call, next, w->stream),
                               .n = stats_length(call),
                               .dot = f.usual ? FAST_DOT && f.native : !f.cast_before && call_dots(call)};
    k.head = row_source_at(call, next);
    k.first = (struct source_stride){x, residual, sum};
    k.later = (struct source_stride){FAST_ADD && !k.out.x.add ? sum : x, residual, 0};
    k.now = row_statistics(call, w->begin, w->stream, false);
    if (w->ahead > 1) {
        k.shift_summed = row_shift(call, w->begin + 1);
        k.summed = row_totals(first_source(call, w->begin + 1, w->stream), k.in.n, k.shift_summed, call_dots(call));
    }
    k.shift = row_shift(call, next);
    k.shift_then = next + 1 < w->end ? row_shift(call, next + 1) : 0.0f;
    return k;
}
NB_INLINE void next_output(struct fast_walk *k) {
    k->out.x = source_moved(k->out.x, k->later);
    k->out.y += k->y_stride;
}
NB_INLINE struct row_numbers finished_row(const struct fast_work *w, int64_t row, struct totals t, float shift,
                                          struct quick_finish q) {
    if (finishes_quickly(q, t)) return quickly_finished(q, t, shift);
    return row_finish(w->call, row, t, shift, w->stream);
}
/* `row` was summed: its numbers come into play in one or two rows' time. Two rows ahead its totals wait for another row before they
 * are finished: the two halves of the latency pass side by side, each short enough for the processor's window. */
NB_INLINE void take_row(const struct fast_work *w, struct fast_walk *k, int64_t row, struct lanes l,
                        struct quick_finish q) {
    const struct totals t = lanes_totals(l);
    const bool late = w->ahead > 1;
    k->now = finished_row(w, row - late, late ? k->summed : t, late ? k->shift_summed : k->shift, q);
    k->summed = t;
    k->shift_summed = k->shift;
    k->in.x = source_moved(k->in.x, k->first);
    if (!FAST_CENTRE) return;
    k->shift = k->shift_then;
    k->head = source_moved(k->head, k->first);
    if (row + 2 >= w->end) return;
    if (BLOCK >= SHIFT_ELEMENTS && k->in.n >= SHIFT_ELEMENTS)
        k->shift_then = head_shift(source_moved(k->head, k->first), SHIFT_ELEMENTS);
    else
        k->shift_then = row_shift(w->call, row + 2);
}

/* How many rows a row of x is asked for before it is summed: its first elements are looked at one row early (head_shift). */
#define LATER_ROWS 2

/* All but the last rows, which have none ahead any more. */
NB_INLINE struct fast_walk walk_rows(const struct fast_work *w, struct fast_form f) {
    const struct quick_finish q = quick_finish_of(w->call);
    struct fast_walk k = walk_begin(w, f);
    for (int64_t row = w->begin + w->ahead; row < w->end; row++) {
        set_numbers(&k.out, k.now);
        k.in.shift = vec_set1(k.shift);
        k.in.later = w->asks_x && row + LATER_ROWS < w->end ? k.in.x.x + LATER_ROWS * k.first.x : NULL;
        take_row(w, &k, row, put_and_sum(k.out, k.in, f), q);
        next_output(&k);
    }
    if (w->ahead > 1) k.last = finished_row(w, w->end - 1, k.summed, k.shift_summed, q);
    return k;
}

/* ---- the loop over rows ---- */

/* Of a range of units, the row that comes after n others: its columns. */
NB_INLINE struct fast_output split_output(const struct fast_work *w, int64_t n, struct fast_form f) {
    const int64_t cols = w->call->cols, count = count_segments(cols), length = segment_length(cols);
    const int64_t row = w->begin / count + n;
    const int64_t from = n > 0 ? 0 : w->begin % count * length;
    const int64_t to = w->end < (row + 1) * count ? w->end % count * length : cols;
    struct fast_output o = output_from(output_at(w, row, f), from);
    o.n = to - from;
    set_numbers(&o, split_numbers(w->call, row, from == 0));
    return o;
}
NB_INLINE int64_t steps_left(const struct fast_work *w) {
    if (w->ahead > 0) return w->ahead;
    if (!rows_are_split(w->call)) return w->end - w->begin;
    const int64_t count = count_segments(w->call->cols);
    return (w->end - 1) / count - w->begin / count + 1;
}

/* The next SHARED_ROWS rows. */
static __attribute__((noinline)) void shared_statistics(const struct fast_work *w, int64_t row,
                                                        struct row_numbers *numbers) {
    for (int i = 0; i < SHARED_ROWS; i++) numbers[i] = row_statistics(w->call, row + i, w->stream, w->ask);
}
NB_INLINE void put_together(const struct fast_work *w, int64_t row, const struct row_numbers *numbers,
                            struct fast_form f) {
    struct fast_output o[SHARED_ROWS];
    NB_UNROLL
    for (int r = 0; r < SHARED_ROWS; r++) {
        o[r] = output_at(w, row + r, f);
        set_numbers(&o[r], numbers[r]);
    }
    put_rows(o, f);
}
NB_INLINE int rows_of_form(const struct fast_work *w, struct fast_form f) {
    struct fast_walk k = {.out = {.n = 0}};
    const bool split = rows_are_split(w->call);
    if (w->ahead > 0) k = walk_rows(w, f);
    int64_t step = 0;
    if (f.usual && f.adds && w->shares) {
        struct row_numbers numbers[SHARED_ROWS];
        for (; step + SHARED_ROWS <= w->end - w->begin; step += SHARED_ROWS) {
            shared_statistics(w, w->begin + step, numbers);
            put_together(w, w->begin + step, numbers, f);
        }
    }
    for (const int64_t n = steps_left(w); step < n; step++) {
        struct fast_output o = k.out;
        if (w->ahead > 0) {
            set_numbers(&o, step == 0 ? k.now : k.last);
            next_output(&k);
        } else if (split) {
            o = split_output(w, step, f);
        } else {
            o = output_at(w, w->begin + step, f);
            if (w->asks_x && step + 1 < n) o.later = row_in(w->call->x, w->call->x_stride, w->begin + step + 1);
            set_numbers(&o, row_statistics(w->call, w->begin + step, w->stream, w->ask));
        }
        put_row(o, f);
        if (!PAIR_IN_ORDER && w->care) {
            const struct fast_output done = o;
            put_nan(&done);
        }
    }
    if (w->stream) raw_stream_end();
    return 0;
}

/* ---- the dispatch, once a call ---- */

/* Kernels that add, or have a native form, have none for a call without parameters, which nobody makes often; the native form is for
 * what each op has as a rule: gamma, where it centres beta as well. */
#define BARE_FORM (!FAST_ADD && !PAIR_NATIVE)
#define NATIVE_AFFINE (FAST_CENTRE ? NB_AFFINE_GAMMA_BETA : NB_AFFINE_GAMMA)

/* A function each: what a compiler does about one grows faster than the function. */
#define ROWS_APART static __attribute__((noinline, unused)) int
ROWS_APART rows_bare(const struct fast_work *w) { return rows_of_form(w, (struct fast_form){.usual = true}); }
ROWS_APART rows_gamma(const struct fast_work *w) {
    return rows_of_form(w, (struct fast_form){.usual = true, .weighs = true});
}
ROWS_APART rows_gamma_beta(const struct fast_work *w) {
    return rows_of_form(w, (struct fast_form){.usual = true, .weighs = true, .adds = true});
}
ROWS_APART rows_native(const struct fast_work *w) {
    return rows_of_form(w,
                        (struct fast_form){.usual = true, .weighs = true, .adds = FAST_CENTRE, .native = PAIR_NATIVE});
}
ROWS_APART rows_cast_before(const struct fast_work *w) {
    return rows_of_form(w, (struct fast_form){.cast_before = true});
}
ROWS_APART rows_any(const struct fast_work *w) { return rows_of_form(w, (struct fast_form){.usual = false}); }

static inline bool is_usual(const struct fast_work *w) {
    const int affine = (int)w->call->formula.affine;
    const bool whole = stats_length(w->call) == w->call->cols || (FAST_PARTIAL && sizeof(elem) == sizeof(float));
    if (w->stream || !whole) return false;
    if (w->native) return affine == NATIVE_AFFINE;
    return BARE_FORM || affine != NB_AFFINE_NONE;
}
static inline int usual_rows(const struct fast_work *w) {
    const int affine = (int)w->call->formula.affine;
#if PAIR_NATIVE
    if (w->native) return rows_native(w);
#endif
    if (BARE_FORM && affine == NB_AFFINE_NONE) return rows_bare(w);
    return affine == NB_AFFINE_GAMMA ? rows_gamma(w) : rows_gamma_beta(w);
}
/* Rows, or units where rows are split. */
static inline int fast_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    if (begin >= end) return 0;
    const struct fast_work w = fast_work_of(call, begin, end);
#ifndef NB_DTYPE_IS_F32
    if (call->formula.cast == NB_CAST_BEFORE && call->formula.affine != NB_AFFINE_NONE) return rows_cast_before(&w);
#endif
    return is_usual(&w) ? usual_rows(&w) : rows_any(&w);
}
static inline int fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (phase + 1 == fast_phases(call)) return fast_rows(call, begin, end);
    const bool stream = call_streams(call, tensors(call));
    split_sum(call, phase, begin, end, stream);
    if (stream) raw_stream_end();
    return 0;
}

/* ---- the contract ---- */

#define FAST_FORMULAS                                                                                                  \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP) | NB_BIT(NB_ROOT_RSQRT_NR) | NB_BIT(NB_ROOT_RSQRT_RAW),                     \
        .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS), .weight_offsets = NB_ALL(2),               \
        .affines = NB_ALL(NB_N_AFFINES), .params = NB_ALL(NB_N_PARAMS)                                                 \
    }

#define FAST_ADD_FORMULAS                                                                                              \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP) | NB_BIT(NB_ROOT_RSQRT_NR) | NB_BIT(NB_ROOT_RSQRT_RAW),                     \
        .eps_places = NB_ALL(NB_N_EPS_PLACES), .casts = NB_ALL(NB_N_CASTS), .weight_offsets = NB_ALL(2),               \
        .affines = NB_ALL(NB_N_AFFINES), .params = NB_ALL(NB_N_PARAMS), .round_sums = NB_ALL(2)                        \
    }

#define FAST_FLAGS (PAIR_NATIVE ? NB_FLAG_FLUSHES : 0)

static inline const char *fast_implementation(const struct nb_call *call) {
    return call_is_native(call) ? "avx512_bf16" : NULL;
}
/* The dot product takes squares below 2^-126 for 0, each off by as much: 24 bits of their mean are left down to 2^-51. */
static inline void fast_range(const struct nb_call *call, struct nb_range *range) {
    if (FAST_CENTRE)
        corrected_range(call, range);
    else
        square_range(call, range);
    if (call_dots(call) && range->min_rms > 0) range->min_rms = 0x1p-51;
}

/* Longest chain of roundings in a row's sums, of which a dot product has two; about a shift it is longer by the factor that the shift may cost, for the sums and
 * the four roundings that go with them. */
static inline int64_t fast_chain(const struct nb_call *call) {
    const int64_t n = stats_length(call), length = segment_length(n), tree = length < n ? 4 : 0;
    const int64_t sums = reduction_chain(length, call_dots(call) ? BLOCK_PAIRS : SUM_CHAINS) + tree;
    return FAST_CENTRE ? (int64_t)(SHIFT_FACTOR * (double)(sums + 4)) + 1 : sums;
}

#endif
