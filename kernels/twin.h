// SPDX-License-Identifier: Apache-2.0
/* Twins: the loads and stores of an op without its arithmetic, a register at a time, as fast as memory and this width allow.
 * Elements are moved bit by bit. Rows that lie next to each other are one run of bytes; the end of a run is moved by a
 * last register that overlaps the one before, so that no length or alignment costs more than one access. */
#ifndef NB_TWIN_H
#define NB_TWIN_H

#include <stdbool.h>
#include <string.h>

#include "reduce.h"

#define RAW_BYTES ((int64_t)sizeof(raw))
#define TWIN_UNROLL 4

/* Loads of x (and residual) and stores to y (and residual_out); constants wherever this is used. */
struct twin_form {
    int loads, stores;
    bool stream;
};
/* A run of bytes; out_aligned: the second output may be streamed where the first can. */
struct twin_run {
    const char *in[2];
    char *out[2];
    int64_t bytes;
    bool out_aligned;
};

/* y = x, or x | residual where two loads meet in one store; residual_out = residual. */
NB_INLINE void move(const struct twin_run *t, int64_t i, raw *seen, bool stream, struct twin_form f) {
    raw a = raw_opaque(raw_load(t->in[0] + i)), b = a;
    if (f.loads == 2) b = raw_opaque(raw_load(t->in[1] + i));
    if (f.stores == 0) *seen = raw_or(*seen, a);
    if (f.loads == 2 && f.stores == 1) a = raw_or(a, b);
    if (f.stores > 0) {
        if (stream)
            raw_stream(t->out[0] + i, a);
        else
            raw_store(t->out[0] + i, a);
    }
    if (f.stores > 1) {
        if (stream && t->out_aligned)
            raw_stream(t->out[1] + i, b);
        else
            raw_store(t->out[1] + i, b);
    }
}

/* Fewer bytes than a register: element by element. */
NB_INLINE void move_elements(const struct twin_run *t, struct twin_form f) {
    for (int64_t i = 0; i < t->bytes; i += (int64_t)sizeof(elem)) {
        uint32_t a = 0, b = 0;
        memcpy(&a, t->in[0] + i, sizeof(elem));
        if (f.loads == 2) memcpy(&b, t->in[1] + i, sizeof(elem));
        if (f.loads == 2 && f.stores == 1) a |= b;
        __asm__ volatile("" : "+r"(a), "+r"(b));
        if (f.stores > 0) memcpy(t->out[0] + i, &a, sizeof(elem));
        if (f.stores > 1) memcpy(t->out[1] + i, &b, sizeof(elem));
    }
}

NB_INLINE void move_run(struct twin_run *t, struct twin_form f) {
    if (t->bytes < RAW_BYTES) {
        move_elements(t, f);
        return;
    }
    raw seen[TWIN_UNROLL];
    NB_UNROLL
    for (int a = 0; a < TWIN_UNROLL; a++) seen[a] = raw_load(t->in[0]);
    int64_t i = 0;
    if (f.stream) { /* up to the first whole register of the output */
        move(t, 0, &seen[0], false, f);
        i = RAW_BYTES - (int64_t)((uintptr_t)t->out[0] % RAW_BYTES);
        t->out_aligned = ((uintptr_t)t->out[1] + (uintptr_t)i) % RAW_BYTES == 0;
    }
    for (; i + TWIN_UNROLL * RAW_BYTES <= t->bytes; i += TWIN_UNROLL * RAW_BYTES) {
        NB_UNROLL
        for (int a = 0; a < TWIN_UNROLL; a++) move(t, i + a * RAW_BYTES, &seen[a], f.stream, f);
    }
    for (; i + RAW_BYTES <= t->bytes; i += RAW_BYTES) move(t, i, &seen[0], f.stream, f);
    if (i < t->bytes) move(t, t->bytes - RAW_BYTES, &seen[0], false, f);
    if (f.stores > 0) return;
    NB_UNROLL
    for (int a = 0; a < TWIN_UNROLL; a++) seen[a] = raw_opaque(seen[a]);
}

NB_INLINE int twin_rows(const struct nb_call *call, int64_t begin, int64_t end, struct twin_form f) {
    const int64_t item = (int64_t)sizeof(elem), cols = call->cols;
    const bool joined = call->x_stride == cols && (f.loads < 2 || call->residual_stride == cols) &&
                        (f.stores < 1 || call->y_stride == cols) && (f.stores < 2 || call->residual_out_stride == cols);
    const int64_t rows_per_run = joined ? end - begin : 1;
    for (int64_t r = begin; r < end; r += rows_per_run) {
        struct twin_run t = {.bytes = rows_per_run * cols * item};
        t.in[0] = (const char *)call->x + r * call->x_stride * item;
        if (f.loads > 1) t.in[1] = (const char *)call->residual + r * call->residual_stride * item;
        if (f.stores > 0) t.out[0] = (char *)call->y + r * call->y_stride * item;
        if (f.stores > 1) t.out[1] = (char *)call->residual_out + r * call->residual_out_stride * item;
        move_run(&t, f);
    }
    if (f.stream) raw_stream_end();
    return 0;
}

static inline int twin_row_local(const struct nb_call *call) {
    (void)call;
    return 1;
}
static inline int64_t twin_chain(const struct nb_call *call) {
    (void)call;
    return 0;
}

#endif
