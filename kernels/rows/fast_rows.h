// SPDX-License-Identifier: Apache-2.0
/* The frame of the fast row kernels: how the rows of a call are cut and taken, and the loops over them. */
#pragma once

#include "kernels/rows/fast_output.h"
#include "kernels/rows/fast_stats.h"

/* Few long rows are split by segments over the threads: partial sums into scratch, of rows that are centred once more where the shift
 * was bad, then the output. The segments are those in which a long row is summed anyway, so that its bits are the same. */
#define SPLIT_ROWS 4 /* fewer rows than this, each LONG_ROW or more, are split */

static inline bool rows_are_split(const struct nb_call *call) {
    return call->rows < SPLIT_ROWS && call->cols >= LONG_ROW;
}
static inline int split_sums(void) { return FAST_CENTRE ? 2 : 1; } /* phases of sums */

static inline int fast_phases(const struct nb_call *call) { return rows_are_split(call) ? split_sums() + 1 : 1; }
static inline int64_t fast_units(const struct nb_call *call, int phase) {
    if (!rows_are_split(call)) return call->rows;
    return call->rows * count_segments(phase < split_sums() ? stats_length(call) : call->cols);
}
/* Enough for any number of rows, so that a call of fewer rows than scratch was sized for fits, too. */
static inline size_t fast_scratch(const struct nb_call *call) {
    if (call->cols < LONG_ROW) return 0;
    return (size_t)(split_sums() * (SPLIT_ROWS - 1) * MAX_SEGMENTS) * sizeof(struct fast_totals);
}
static inline int fast_row_local(const struct nb_call *call) { return !rows_are_split(call); }

/* The segments' sums of a row in a phase. */
static inline struct fast_totals *split_parts(const struct nb_call *call, int phase, int64_t row) {
    return (struct fast_totals *)call->scratch + (phase * call->rows + row) * MAX_SEGMENTS;
}
static inline struct fast_totals split_totals(const struct nb_call *call, int phase, int64_t row) {
    const struct fast_totals *part = split_parts(call, phase, row);
    const int n = (int)count_segments(stats_length(call));
    float square[MAX_SEGMENTS], sum[MAX_SEGMENTS];
    for (int i = 0; i < n; i++) {
        square[i] = part[i].square;
        sum[i] = part[i].sum;
    }
    return segment_totals(square, sum, n);
}

/* The shift of a phase; false: the phase has nothing to do for this row. */
static inline bool split_shift(const struct nb_call *call, int phase, int64_t row, float *shift) {
    *shift = row_shift(call, row);
    if (phase == 0) return true;
    const struct fast_totals t = split_totals(call, 0, row);
    const float inverse = stats_inverse(call);
    if (shift_is_good(t, inverse)) return false;
    *shift = second_shift(t, *shift, inverse);
    return true;
}
/* Units [begin, end) of a phase of sums. */
static void split_sum(const struct nb_call *call, int phase, int64_t begin, int64_t end, bool stream) {
    const int64_t n = stats_length(call), length = segment_length(n), count = count_segments(n);
    float shift = 0;
    bool wanted = false;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit / count, at = unit % count * length;
        if (unit == begin || at == 0) wanted = split_shift(call, phase, row, &shift);
        if (!wanted) continue;
        const struct fast_source from = phase > 0 ? later_source(call, row, stream) : first_source(call, row, stream);
        const int64_t to = at + length < n ? at + length : n;
        split_parts(call, phase, row)[unit % count] = segment_sums(from, shift, at, to, call_dots(call));
    }
}

/* After the phases of sums; mean and rstd are stored if store. */
static __attribute__((noinline)) struct row_numbers split_numbers(const struct nb_call *call, int64_t row, bool store) {
    float shift = row_shift(call, row);
    struct fast_totals t = split_totals(call, 0, row);
    if (FAST_CENTRE && !shift_is_good(t, stats_inverse(call))) {
        shift = second_shift(t, shift, stats_inverse(call));
        t = split_totals(call, 1, row);
    }
    struct nb_call quiet = *call;
    if (!store) quiet.mean = quiet.rstd = NULL;
    return numbers_of(&quiet, row, t, shift);
}

/* How the rows of a call are taken: what the caches hold decides, and changes no bit of a result.
 *
 * ahead is 2, or 1 where the first cache would not hold four rows of each tensor and something else, or 0 where it would not hold two of x,
 * one of y and the parameters: then a row is summed, then stored. Parameters do not count where the conversions of narrow elements take
 * longer than loads from the second cache. Out of the third cache one row at a time is faster in f32 from 8 KiB a row on, since its
 * prefetchers follow one stream of loads better than three. */
#define FIRST_CACHE_DEFAULT_BYTES (32 << 10) /* where the machine was not measured */
#define SECOND_CACHE_DEFAULT_BYTES (512 << 10)
#define FAR_ROW_BYTES (8 << 10)
#define HELD_ROWS 4     /* of each tensor, for two rows ahead */
#define PREFETCH_ROWS 4 /* prefetchers manage where the first cache holds so many */
#define PREFETCH_HELD 8
#define PREFETCH_CACHES 16 /* second caches, about which the third is so small or so shared that it answers late */

static inline int64_t tuned_bytes(int64_t value, int64_t fallback) { return value > 0 ? value : fallback; }
static inline int64_t first_cache(const struct nb_call *call) {
    return tuned_bytes(call->tuning ? call->tuning->l1_bytes : 0, FIRST_CACHE_DEFAULT_BYTES);
}
static inline int64_t second_cache(const struct nb_call *call) {
    return tuned_bytes(call->tuning ? call->tuning->l2_bytes : 0, SECOND_CACHE_DEFAULT_BYTES);
}
static inline int tensors(const struct nb_call *call) { return FAST_ADD ? 3 + (call->residual_out != NULL) : 2; }
/* A thread's part of the tensors. */
static inline bool is_beyond(const struct nb_call *call, int64_t bytes) {
    const int64_t n_threads = call->n_threads > 1 ? call->n_threads : 1;
    return call->rows * call->cols * (int64_t)sizeof(elem) * tensors(call) > n_threads * bytes;
}
/* While a row is summed that is stored next, is y prefetched? Rows that the first cache does not hold, and of which the second holds a few,
 * gain wherever they are out of that; others where the third answers late. */
static inline bool wants_prefetch(const struct nb_call *call, int64_t row) {
    const int64_t l1 = first_cache(call), l2 = second_cache(call);
    return is_beyond(call, row > l1 && PREFETCH_HELD * row <= l2 ? l2 : PREFETCH_CACHES * l2) &&
           PREFETCH_ROWS * row > l1;
}
/* Where elements lie in pairs, parameters take a shuffle or more each. Rows enough to repay it find them shuffled once, on the stack; native
 * calls need none. */
#define PREPARED_FLOATS 8192
#define PREPARED_ROWS (FAST_ADD ? 8 : 4)
static inline bool may_prepare(const struct nb_call *call) {
    const int n_params = USUAL_AFFINE == NB_AFFINE_GAMMA_BETA ? 2 : 1;
    return !PAIR_IN_ORDER && !call_is_native(call) && call->formula.affine == USUAL_AFFINE &&
           n_params * call->cols <= PREPARED_FLOATS;
}
/* By the first cache alone. */
static inline int rows_at_hand(const struct nb_call *call) {
    const struct nb_formula *f = &call->formula;
    const int64_t cache = first_cache(call);
    const int64_t n_params = f->affine == NB_AFFINE_NONE ? 0 : f->affine == NB_AFFINE_GAMMA ? 1 : 2;
    /* LayerNorm's two parameters in vectors of 8 take longer than its conversions, unless enough rows find them prepared. */
    const bool prepared = may_prepare(call) && (FAST_ADD || call->rows > PREPARED_ROWS);
    const bool hides_params = sizeof(elem) < sizeof(float) && (!FAST_CENTRE || NB_LANES >= 16 || prepared);
    const int64_t params = hides_params ? 0 : n_params * call->cols * (int64_t)sizeof(float);
    const int64_t row = call->cols * (int64_t)sizeof(elem);
    if (call->cols >= LONG_ROW) return 0;
    if (HELD_ROWS * tensors(call) * row < cache) return 2;
    return 3 * row + params <= cache ? 1 : 0;
}

/* What stays the same in a range. */
struct fast_work {
    const struct nb_call *call;
    int64_t begin, end; /* rows; units where rows are split */
    int64_t ahead;
    bool shares;       /* may rows share the loads of the parameters? */
    bool prefetch_y;   /* while a row is summed that is stored next */
    bool prefetches_x; /* for later rows: out of memory, as long as the second cache has room for two */
    bool stream;
    bool care;             /* parameters may be NaN */
    bool native;           /* rounds by the instruction of pair_native.h, which takes NaN as it should */
    const float *prepared; /* parameters (rows_prepared), or null */
};

static inline struct fast_work fast_work_of(const struct nb_call *call, int64_t begin, int64_t end) {
    const bool native = call_is_native(call);
    const bool care = !native && params_need_care(call);
    const bool stream = call_streams(call, tensors(call)) && !care;
    const int64_t row = call->cols * (int64_t)sizeof(elem);
    const bool far = !stream && row >= FAR_ROW_BYTES && is_beyond(call, second_cache(call));
    /* Rows that conversions, or narrow vectors, make a matter of arithmetic go on hiding it. */
    const bool simple = sizeof(elem) == sizeof(float) && (!FAST_CENTRE || NB_LANES >= 16);
    const int64_t at_hand = rows_at_hand(call);
    const bool apart = (far && simple) || care || (stream && !rows_stream(call->y, call->y_stride));
    return (struct fast_work){.call = call,
                              .begin = begin,
                              .end = end,
                              .ahead = at_hand < end - begin && !apart ? at_hand : 0,
                              .shares = at_hand == 0 && !stream && !care && !rows_are_split(call),
                              .prefetch_y = far && wants_prefetch(call, row),
                              .prefetches_x = stream && 2 * row <= second_cache(call),
                              .stream = stream,
                              .care = care,
                              .native = native};
}

/* The frame of the fast row kernels. While a row is stored, the row `ahead` places behind it is summed in the same loop: loads of the
 * one overlap stores of the other, and the latency of the sums, the root and the division (60 to 80 cycles) is hidden behind the row
 * between the two, so that nothing is left of it, without relying on the processor's out-of-order window.
 *
 * Rows with none ahead are summed, then stored; where gamma and beta both come from the second cache, four of them are summed, then
 * stored in one pass, which loads the parameters once. Few long rows are split over the threads. */
/* What goes from row to row, and would best be in registers: a load right behind a row of stores may have the low bits of its
 * address in common with one of them, and waits for it. */
struct fast_walk {
    struct fast_output out;
    struct fast_input in;              /* ahead of it */
    struct row_numbers now;            /* of the row to store */
    struct summed_row summed;          /* two rows ahead: the one behind the row to store */
    float shift, shift_then;           /* of the row to sum and of the one behind it */
    struct fast_source head;           /* the row to sum, without a store */
    struct source_stride first, later; /* steps of in.x and out.x */
    int64_t y_stride;
};
NB_INLINE void set_output_numbers(struct fast_output *o, struct row_numbers r, float eps) {
    o->normalizer.scale = vec_set1(r.scale);
    if (!FAST_CENTRE) return;
    o->folded = folds_mean(r.mean, r.scale, eps);
    o->normalizer.minus = vec_set1(o->folded ? 0.0f : r.mean);
    o->normalizer.plus = vec_set1(o->folded ? -(r.mean * r.scale) : -0.0f);
}
NB_INLINE bool form_streams(const struct fast_work *w, struct fast_form f) {
    return f.stream || (!f.usual && w->stream);
}
/* What a usual form knows of its sources, which are given as for any form: the sum is stored, non-temporally or not, and made again
 * where it went past them; in f32 it is not otherwise. */
NB_INLINE struct fast_source known_first(struct fast_source s, struct fast_form f) {
    if (!FAST_ADD || !f.usual) return s;
    s.store = true;
    if (!f.stream) s.stream = false;
    return s;
}
NB_INLINE struct fast_source known_later(struct fast_source s, struct fast_form f) {
    if (!FAST_ADD || !f.usual) return s;
    if (f.stream) s.add = true;
    if (!f.stream && sizeof(elem) == sizeof(float)) s.add = false;
    return s;
}
NB_INLINE struct fast_output output_at(const struct fast_work *w, int64_t row, struct fast_form f) {
    const struct nb_call *call = w->call;
    struct fast_output o; /* not by a literal, which compilers clear by a slow instruction (rep stos) */
    o.x = known_later(later_source(call, row, form_streams(w, f)), f);
    o.y = row_out(call->y, call->y_stride, row);
    o.n = call->cols;
    o.params = params_of(call, w->prepared, f);
    o.stream = form_streams(w, f);
    o.native = w->native;
    o.normalizer = (struct normalizer){vec_set1(0.0f), vec_set1(0.0f), vec_set1(0.0f)};
    o.folded = false;
    o.later = NULL;
    return o;
}

/* ---- rows with others ahead ---- */

/* The first rows' numbers, and the rows to begin with. */
NB_INLINE void walk_begin(struct fast_walk *k, const struct fast_work *w, struct quick_finish q, struct fast_form f) {
    const struct nb_call *call = w->call;
    const int64_t x = call->x_stride, residual = call->residual_stride, sum = call->residual_out_stride;
    const int64_t next = w->begin + w->ahead;
    k->out = output_at(w, w->begin, f);
    k->y_stride = call->y_stride;
    k->in = (struct fast_input){.x = known_first(first_source(call, next, form_streams(w, f)), f),
                                .n = stats_length(call),
                                .dot = f.usual ? FAST_DOT && f.native : call_dots(call)};
    k->head = row_source_at(call, next);
    k->first = (struct source_stride){x, residual, sum};
    k->later = (struct source_stride){FAST_ADD && !k->out.x.add ? sum : x, residual, 0};
    k->now = row_statistics(call, w->begin, w->stream, false);
    if (w->ahead > 1) {
        const float shift = row_shift(call, w->begin + 1);
        const struct fast_source from = first_source(call, w->begin + 1, w->stream);
        const struct fast_totals t = row_totals(from, k->in.n, shift, call_dots(call));
        k->summed = row_summed(call, w->begin + 1, t, shift, q, w->stream);
    }
    k->shift = row_shift(call, next);
    k->shift_then = next + 1 < w->end ? row_shift(call, next + 1) : 0.0f;
}
NB_INLINE void next_output(struct fast_walk *k) {
    k->out.x = source_moved(k->out.x, k->later);
    k->out.y += k->y_stride;
}
/* `row` was summed: its numbers come into play in one or two rows' time. Two rows ahead its root waits for another row: the two halves of
 * the latency pass side by side, each short enough for the processor's window. */
NB_INLINE void take_row(const struct fast_work *w, struct fast_walk *k, int64_t row, struct lanes l,
                        struct quick_finish q) {
    const struct summed_row summed = row_summed(w->call, row, lanes_totals(l), k->shift, q, w->stream);
    const bool late = w->ahead > 1;
    k->now = row_finished(row - late, late ? k->summed : summed, q);
    k->summed = summed;
    k->in.x = source_moved(k->in.x, k->first);
    if (!FAST_CENTRE) return;
    k->shift = k->shift_then;
    k->head = source_moved(k->head, k->first);
    if (row + 2 >= w->end) return;
    if (BLOCK >= SIGN_ELEMENTS && k->in.n >= SIGN_ELEMENTS)
        k->shift_then = head_shift(source_moved(k->head, k->first), SIGN_ELEMENTS);
    else
        k->shift_then = row_shift(w->call, row + 2);
}

/* How many rows before it is summed a row of x is prefetched: its first elements are read one row early (head_shift). */
#define LATER_ROWS 2
#define MOST_AHEAD 2 /* of fast_work.ahead */

/* All but the last rows, which have none ahead any more: their numbers. */
NB_INLINE void walk_rows(const struct fast_work *w, struct row_numbers *left, struct fast_form f) {
    const struct quick_finish q = quick_finish_of(w->call);
    struct fast_walk k;
    walk_begin(&k, w, q, f);
    for (int64_t row = w->begin + w->ahead; row < w->end; row++) {
        set_output_numbers(&k.out, k.now, q.eps);
        k.in.shift = vec_set1(k.shift);
        k.in.later = w->prefetches_x && row + LATER_ROWS < w->end ? k.in.x.x + LATER_ROWS * k.first.x : NULL;
        const struct lanes sums = both_about_zero(&k.out, k.shift, f) ? store_and_sum_about_zero(k.out, k.in, f)
                                                                      : store_and_sum(k.out, k.in, f);
        take_row(w, &k, row, sums, q);
        next_output(&k);
    }
    left[0] = k.now;
    if (w->ahead > 1) left[1] = row_finished(w->end - 1, k.summed, q);
}

/* ---- the loop over rows ---- */

/* Rows that are split: those of a range of units. In f32 a segment of each comes before the next one, so that gamma and beta come from the
 * cache; conversions hide them. */
static inline int64_t split_first(const struct fast_work *w) { return w->begin / count_segments(w->call->cols); }
static inline int64_t split_rows(const struct fast_work *w) {
    return (w->end - 1) / count_segments(w->call->cols) - split_first(w) + 1;
}
static inline int64_t split_parts_of_row(const struct fast_work *w) {
    return sizeof(elem) == sizeof(float) && split_rows(w) > 1 ? count_segments(w->call->cols) : 1;
}
_Static_assert(SPLIT_ROWS - 1 <= SHARED_ROWS, "one array has the numbers of either kind of rows");
static __attribute__((noinline)) void split_rows_numbers(const struct fast_work *w, struct row_numbers *numbers) {
    const int64_t count = count_segments(w->call->cols), first = split_first(w), n = split_rows(w);
    for (int64_t r = 0; r < n; r++) numbers[r] = split_numbers(w->call, first + r, w->begin <= (first + r) * count);
}
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
/* The columns of a step; none, where another range has them. */
NB_INLINE struct fast_output split_output(const struct fast_work *w, int64_t step, const struct row_numbers *numbers,
                                          struct fast_form f) {
    const int64_t cols = w->call->cols, count = count_segments(cols), length = segment_length(cols);
    const int64_t n = split_rows(w), r = step % n, row = split_first(w) + r;
    const int64_t segments = count / split_parts_of_row(w), first = row * count + step / n * segments;
    const int64_t begin = w->begin > first ? w->begin : first, end = least(w->end, first + segments);
    const int64_t from = (begin - row * count) * length, to = least((end - row * count) * length, cols);
    struct fast_output o = output_from(output_at(w, row, f), from);
    o.n = to > from ? to - from : 0;
    set_output_numbers(&o, numbers[r], eps_beside_variance(w->call));
    return o;
}
NB_INLINE int64_t steps_left(const struct fast_work *w) {
    if (w->ahead > 0) return w->ahead;
    return rows_are_split(w->call) ? split_rows(w) * split_parts_of_row(w) : w->end - w->begin;
}

/* The next SHARED_ROWS rows. */
static __attribute__((noinline)) void shared_statistics(const struct fast_work *w, int64_t row,
                                                        struct row_numbers *numbers) {
    for (int i = 0; i < SHARED_ROWS; i++) numbers[i] = row_statistics(w->call, row + i, w->stream, w->prefetch_y);
}
NB_INLINE void store_together(const struct fast_work *w, int64_t row, const struct row_numbers *numbers,
                              struct fast_form f) {
    struct fast_output o[SHARED_ROWS];
    const float eps = eps_beside_variance(w->call);
    NB_UNROLL
    for (int r = 0; r < SHARED_ROWS; r++) {
        o[r] = output_at(w, row + r, f);
        set_output_numbers(&o[r], numbers[r], eps);
    }
    store_rows(o, f);
}
NB_INLINE int fast_rows_of_form(const struct fast_work *w, struct fast_form f) {
    struct row_numbers left[MOST_AHEAD];
    const bool split = rows_are_split(w->call);
    const float eps = eps_beside_variance(w->call);
    if (w->ahead > 0) walk_rows(w, left, f);
    int64_t step = 0;
    struct row_numbers numbers[SHARED_ROWS];
    if (split) split_rows_numbers(w, numbers);
    if (f.usual && FAST_CENTRE && !f.stream && !f.prepared && w->shares) {
        for (; step + SHARED_ROWS <= w->end - w->begin; step += SHARED_ROWS) {
            shared_statistics(w, w->begin + step, numbers);
            store_together(w, w->begin + step, numbers, f);
        }
    }
    for (const int64_t n = steps_left(w); step < n; step++) {
        struct fast_output o;
        if (w->ahead > 0) {
            o = output_at(w, w->end - n + step, f);
            set_output_numbers(&o, left[step], eps);
        } else if (split) {
            o = split_output(w, step, numbers, f);
        } else {
            o = output_at(w, w->begin + step, f);
            if (w->prefetches_x && step + 1 < n) o.later = row_in(w->call->x, w->call->x_stride, w->begin + step + 1);
            set_output_numbers(&o, row_statistics(w->call, w->begin + step, w->stream, w->prefetch_y), eps);
        }
        store_row(o, f);
        if (!PAIR_IN_ORDER && w->care) {
            const struct fast_output done = o;
            store_nan(&done);
        }
    }
    if (w->stream) raw_stream_end();
    return 0;
}

/* ---- the dispatch, once a call ---- */

/* A function each: what a compiler does about one grows faster than the function. */
#define ROWS_APART static __attribute__((noinline, unused)) int
ROWS_APART rows_usual(const struct fast_work *w) { return fast_rows_of_form(w, (struct fast_form){.usual = true}); }
ROWS_APART rows_stream_lines(const struct fast_work *w) {
    return fast_rows_of_form(w, (struct fast_form){.usual = true, .stream = true});
}
ROWS_APART rows_native(const struct fast_work *w) {
    return fast_rows_of_form(w, (struct fast_form){.usual = true, .native = PAIR_NATIVE});
}
ROWS_APART rows_native_stream(const struct fast_work *w) {
    return fast_rows_of_form(w, (struct fast_form){.usual = true, .native = PAIR_NATIVE, .stream = true});
}
ROWS_APART rows_any(const struct fast_work *w) { return fast_rows_of_form(w, (struct fast_form){.usual = false}); }

static inline bool fast_is_usual(const struct fast_work *w) {
    const bool stores = !FAST_ADD || w->call->residual_out;
    const bool whole = stats_length(w->call) == w->call->cols || (FAST_PARTIAL && sizeof(elem) == sizeof(float));
    return stores && whole && w->call->formula.affine == USUAL_AFFINE;
}
/* Past the caches y is stored by whole lines; other rows have a head and a tail, which the form for anything knows. */
static inline bool stores_lines(const struct fast_work *w) {
    return w->stream && rows_stream(w->call->y, w->call->y_stride);
}
/* Four rows that share their loads shuffle once anyway. */
static inline bool wants_prepared(const struct fast_work *w) {
    return may_prepare(w->call) && (FAST_PARTIAL || fast_is_usual(w)) && !w->care && (!w->stream || stores_lines(w)) &&
           w->end - w->begin >= PREPARED_ROWS + w->shares;
}
NB_INLINE void prepare(float *to, const float *param, int64_t n) {
    for (int64_t i = 0; i < n; i += PAIR) {
        const struct pair v = i + PAIR <= n ? pair_load_f32(param + i) : pair_load_f32_tail(param + i, n - i);
        vec_store_f32(to + i, v.a);
        vec_store_f32(to + i + NB_LANES, v.b);
    }
}
NB_INLINE int rows_with_prepared(const struct fast_work *w, bool stream) {
    _Alignas(CACHE_LINE) float prepared[PREPARED_FLOATS + 2 * (PAIR + CACHE_LINE / sizeof(float))];
    struct fast_work with = *w;
    with.prepared = prepared;
    prepare(prepared, w->call->gamma, w->call->cols);
    if (USUAL_AFFINE == NB_AFFINE_GAMMA_BETA)
        prepare(prepared + prepared_columns(w->call), w->call->beta, w->call->cols);
    return fast_rows_of_form(&with,
                             (struct fast_form){.usual = !FAST_PARTIAL, .stream = stream, .prepared = !PAIR_IN_ORDER});
}
ROWS_APART rows_prepared(const struct fast_work *w) { return rows_with_prepared(w, false); }
ROWS_APART rows_prepared_stream(const struct fast_work *w) { return rows_with_prepared(w, true); }

/* Rows, or units where rows are split. Conversions take about as long as memory does, and would be slower in the form for anything; f32
 * is not, and of one lane it is not worth a form. */
static inline int fast_rows(const struct nb_call *call, int64_t begin, int64_t end) {
    const bool narrow = sizeof(elem) < sizeof(float) && NB_LANES > 1;
    if (begin >= end) return 0;
    const struct fast_work w = fast_work_of(call, begin, end);
    const bool native = PAIR_NATIVE && w.native;
    if (wants_prepared(&w)) return w.stream ? rows_prepared_stream(&w) : rows_prepared(&w);
    if (!fast_is_usual(&w) || (w.stream && !stores_lines(&w))) return rows_any(&w);
    if (!w.stream) return native ? rows_native(&w) : rows_usual(&w);
    if (native) return FAST_ADD ? rows_any(&w) : rows_native_stream(&w);
    return narrow ? rows_stream_lines(&w) : rows_any(&w);
}
static int fast_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    if (phase + 1 == fast_phases(call)) return fast_rows(call, begin, end);
    const bool stream = call_streams(call, tensors(call));
    split_sum(call, phase, begin, end, stream);
    if (stream) raw_stream_end();
    return 0;
}

/* ---- the contract ---- */

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

/* Longest chain of roundings in a row's sums, of which a dot product has two; about a shift it is longer by the factor that the shift may
 * cost, for the sums and the four roundings that go with them. The bound takes the shift for x_0, from which the root mean square distance
 * is never below the standard deviation sigma: for the mean it leaves (2.62 (sums + 4) + 3) u sigma, of which the sums take 1.12 (sums + 3)
 * u sigma at most and mean * scale, where it is folded, one u sigma. */
static inline int64_t fast_chain(const struct nb_call *call) {
    const int64_t n = stats_length(call), length = segment_length(n), tree = length < n ? 4 : 0;
    const int64_t sums = reduction_chain(length, call_dots(call) ? BLOCK_PAIRS : SUM_CHAINS) + tree;
    return FAST_CENTRE ? (int64_t)(SHIFT_FACTOR * (double)(sums + 4)) + 1 : sums;
}

/* Parameters in f32, the cast after them, L2 without a beta; the twopass kernels have every formula. */
#define FAST_FORMULAS                                                                                                  \
    {                                                                                                                  \
        .roots = NB_BIT(NB_ROOT_MUL_RECIP) | NB_BIT(NB_ROOT_RSQRT_NR) | NB_BIT(NB_ROOT_RSQRT_RAW),                     \
        .eps_places = NB_ALL(NB_N_EPS_PLACES), .affines = NB_ALL(FAST_TOTAL ? NB_AFFINE_GAMMA_BETA : NB_N_AFFINES),    \
        .round_sums = FAST_ADD ? NB_ALL(2) : 0                                                                         \
    }
/* Loads for a sum that is taken from where it was stored; one more where it is made again. */
#define FAST_KERNEL                                                                                                    \
    .formulas = FAST_FORMULAS, .loads = FAST_ADD ? 3 : 2, .stores = FAST_ADD ? 2 : 1, .run = fast_run,                 \
    .row_local = fast_row_local, .scratch_bytes = fast_scratch, .n_phases = fast_phases, .n_units = fast_units,        \
    .chain = fast_chain, .range = fast_range, .flags = NB_FLAG_STREAMS_BEYOND | (PAIR_NATIVE ? NB_FLAG_FLUSHES : 0),   \
    .implementation = fast_implementation
