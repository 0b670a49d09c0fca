// SPDX-License-Identifier: Apache-2.0
/* How the rows of a call are taken: what the caches hold decides, and changes no bit of a result.
 *
 * ahead is 2, or 1 where three rows of x, one of y and the parameters would not share three quarters of the first cache, or 0 where two
 * would not share all of it: then a row is summed, then put out. Out of the third cache that is faster in f32 from 8 KiB a row on, since
 * its prefetchers follow one stream of loads better than three. */
#ifndef NB_FAST_PLAN_H
#define NB_FAST_PLAN_H

#include "kernels/rows/fast_output.h"
#include "kernels/rows/fast_split.h"

#define FIRST_CACHE_DEFAULT_BYTES (32 << 10) /* where nobody has measured */
#define SECOND_CACHE_DEFAULT_BYTES (512 << 10)
#define FAR_ROW_BYTES (8 << 10)
#define ASK_ROWS 4 /* prefetchers manage where the first cache holds so many */
#define ASK_HELD 8
#define ASK_CACHES 16 /* second caches, about which the third is so small or so shared that it answers late */

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
/* While a row is summed that is put out next, is y asked for? Rows that the first cache does not hold, and of which the second holds a few,
 * gain wherever they are out of that; others where the third answers late. */
static inline bool asks(const struct nb_call *call, int64_t row) {
    const int64_t l1 = first_cache(call), l2 = second_cache(call);
    return is_beyond(call, row > l1 && ASK_HELD * row <= l2 ? l2 : ASK_CACHES * l2) && ASK_ROWS * row > l1;
}
/* By the first cache alone. */
static inline int rows_at_hand(const struct nb_call *call) {
    const struct nb_formula *f = &call->formula;
    const int64_t cache = first_cache(call);
    const int64_t n_params = f->affine == NB_AFFINE_NONE ? 0 : f->affine == NB_AFFINE_GAMMA ? 1 : 2;
    const int64_t param = f->param == NB_PARAM_X ? (int64_t)sizeof(elem) : (int64_t)sizeof(float);
    const int64_t row = call->cols * (int64_t)sizeof(elem), beside = row + n_params * call->cols * param;
    if (call->cols >= LONG_ROW) return 0;
    if (3 * row + beside <= cache / 4 * 3) return 2;
    return 2 * row + beside <= cache ? 1 : 0;
}

/* What stays the same in a range. */
struct fast_work {
    const struct nb_call *call;
    int64_t begin, end; /* rows; units where rows are split */
    int64_t ahead;
    bool shares; /* may rows share the loads of the parameters? */
    bool ask;    /* for y, while a row is summed that is put out next */
    bool asks_x; /* for later rows: out of memory, as long as the first cache has room for one; of LayerNorm, two */
    bool stream;
    bool care;   /* parameters may be NaN */
    bool native; /* rounds by the instruction of pair_native.h, which takes NaN as it should */
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
                              .ask = far && asks(call, row),
                              .asks_x = stream && row <= first_cache(call) / (FAST_CENTRE ? 2 : 1),
                              .stream = stream,
                              .care = care,
                              .native = native};
}

#endif
