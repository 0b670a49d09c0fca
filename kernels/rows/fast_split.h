// SPDX-License-Identifier: Apache-2.0
/* Few long rows are split by segments over the threads: partial sums into scratch, of rows that are centred once more where the shift
 * was bad, then the output. The segments are those in which a long row is summed anyway, so that its bits are the same. */
#ifndef NB_FAST_SPLIT_H
#define NB_FAST_SPLIT_H

#include "kernels/rows/fast_stats.h"

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
/* Enough for any number of rows, so that fewer of them than were asked about find their place, too. */
static inline size_t fast_scratch(const struct nb_call *call) {
    if (call->cols < LONG_ROW) return 0;
    return (size_t)(split_sums() * (SPLIT_ROWS - 1) * MAX_SEGMENTS) * sizeof(struct totals);
}
static inline int fast_row_local(const struct nb_call *call) { return !rows_are_split(call); }

/* The segments' sums of a row in a phase. */
static inline struct totals *split_parts(const struct nb_call *call, int phase, int64_t row) {
    return (struct totals *)call->scratch + (phase * call->rows + row) * MAX_SEGMENTS;
}
static inline struct totals split_totals(const struct nb_call *call, int phase, int64_t row) {
    const struct totals *part = split_parts(call, phase, row);
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
    const struct totals t = split_totals(call, 0, row);
    const float inverse = stats_inverse(call);
    if (shift_is_good(t, inverse)) return false;
    *shift = second_shift(t, *shift, inverse);
    return true;
}
/* Units [begin, end) of a phase of sums. */
static int split_sum(const struct nb_call *call, int phase, int64_t begin, int64_t end, bool stream) {
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
    return 0;
}

/* After the phases of sums; mean and rstd are stored if store. */
static __attribute__((noinline)) struct row_numbers split_numbers(const struct nb_call *call, int64_t row, bool store) {
    float shift = row_shift(call, row);
    struct totals t = split_totals(call, 0, row);
    if (FAST_CENTRE && !shift_is_good(t, stats_inverse(call))) {
        shift = second_shift(t, shift, stats_inverse(call));
        t = split_totals(call, 1, row);
    }
    struct nb_call quiet = *call;
    if (!store) quiet.mean = quiet.rstd = NULL;
    return numbers_of(&quiet, row, t, shift);
}

#endif
