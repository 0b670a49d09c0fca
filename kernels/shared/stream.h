// SPDX-License-Identifier: Apache-2.0
/* Non-temporal stores, and which calls are worth them. A store that misses reads its line first; one that streams does not, which
 * saves a third of a forward norm's traffic to memory, and costs up to half of the speed where the caches would have held the line. */
#pragma once

#include "kernels/shared/pair.h"

#if NB_LANES > 1
#define STREAM_ALIGN ((int64_t)sizeof(raw))
#else
#define STREAM_ALIGN INT64_C(4)
#endif

/* Used where the machine was not measured: no cache that a core can count on as its own is larger on the machines of today, and a call
 * beyond it gains from streaming everywhere it was tried. */
#define STREAM_DEFAULT_BYTES (INT64_C(64) << 20)

/* p aligned to STREAM_ALIGN. */
#if defined(NB_DTYPE_IS_BF16) && NB_LANES > 1
NB_INLINE void pair_stream(elem *p, struct pair v) { raw_stream((char *)p, pair_join(v)); }
#elif NB_LANES > 1
#define vec_stream NB_TYPED(vec_stream_)
#elif defined(__x86_64__) && defined(NB_DTYPE_IS_F32)
NB_INLINE void vec_stream(elem *p, vec v) {
    int bits;
    memcpy(&bits, &v, sizeof bits);
    _mm_stream_si32((int *)p, bits);
}
#elif defined(__x86_64__)
NB_INLINE void pair_stream(elem *p, struct pair v) {
    elem both[2];
    int bits;
    elem_set(&both[0], v.a);
    elem_set(&both[1], v.b);
    memcpy(&bits, both, sizeof bits);
    _mm_stream_si32((int *)p, bits);
}
#else
NB_INLINE void pair_stream(elem *p, struct pair v) { pair_store(p, v); }
#endif

#if (NB_LANES > 1 && !defined(NB_DTYPE_IS_BF16)) || (NB_LANES == 1 && defined(__x86_64__) && defined(NB_DTYPE_IS_F32))
NB_INLINE void pair_stream(elem *p, struct pair v) {
    vec_stream(p, v.a);
    vec_stream(p + NB_LANES, v.b);
}
#endif

/* Stores what may have to be stored again, where pairs are rounded half up (pair.h). */
NB_INLINE void pair_store_up(elem *p, struct pair v, struct ties *t) {
#if PAIR_ROUNDS_UP
    bits_store(p, bits_join_up(v.a, v.b, t));
#else
    pair_store(p, v);
#endif
}
NB_INLINE void pair_stream_up(elem *p, struct pair v, struct ties *t) {
#if PAIR_ROUNDS_UP
    raw_stream((char *)p, bits_join_up(v.a, v.b, t));
#else
    pair_stream(p, v);
#endif
}

/* Asks for the lines of n elements some way ahead, which are stored to later. Stores leave in their order: one that misses the first cache
 * holds up those behind it, which would hit. Where elements are converted, arithmetic hides that. */
#define STORE_AHEAD_BYTES 512
NB_INLINE void fetch_for_stores(const elem *p, int64_t n) {
    if (sizeof(elem) < sizeof(float)) return;
    NB_UNROLL
    for (int64_t at = 0; at < n * (int64_t)sizeof(elem); at += 64) __builtin_prefetch((const char *)p + at, 1);
}

/* The size of the whole call decides, however it is cut. */
static inline bool call_streams(const struct nb_call *call, int n_tensors) {
    const int64_t bytes = call->rows * call->cols * (int64_t)sizeof(elem) * n_tensors;
    if (!call->tuning) return bytes > STREAM_DEFAULT_BYTES;
    return call->tuning->stream_bytes > 0 && bytes > call->tuning->stream_bytes;
}
/* Are all rows aligned for streaming? */
static inline bool rows_stream(const void *tensor, int64_t stride) {
    return ((uintptr_t)tensor | (uintptr_t)(stride * (int64_t)sizeof(elem))) % (uintptr_t)STREAM_ALIGN == 0;
}
/* Elements before the first that may be streamed. */
static inline int64_t unaligned_elements(const elem *p) {
    return (int64_t)(-(uintptr_t)p % (uintptr_t)STREAM_ALIGN) / (int64_t)sizeof(elem);
}
