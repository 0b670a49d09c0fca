// SPDX-License-Identifier: Apache-2.0
/* Copies: the loads and stores of an op without its arithmetic, a register at a time, as fast as memory and this width allow.
 * Elements are moved bit by bit. Rows that lie next to each other are one run of bytes; the end of a run is moved by a
 * last register that overlaps the one before, so that no length or alignment costs more than one access. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "kernels/shared/reduce.h"

#define RAW_BYTES ((int64_t)sizeof(raw))
#define COPY_UNROLL 4
#define COPY_AHEAD 1024 /* bytes from what is loaded to what is prefetched: some 100 ns at 10 GB/s */

/* A kernel's COPY_FORM, which it declares, and COPY_DETAILS. Loads of x (and residual) and stores to y (and residual_out); backward: loads of x,
 * dy (and dresidual_out), a store to dx. Constants wherever this is used. */
struct copy_form {
    int loads, stores;
    enum nb_kernel_flag flags; /* NB_FLAG_STREAMING or none */
    bool backward, prefetch;
};
/* A run of bytes; out_aligned: the second output may be streamed where the first can. */
struct copy_run {
    const char *in[3];
    char *out[2];
    int64_t bytes;
    bool out_aligned;
};

/* The first output is x, or the or of all that is loaded where it is the only one; the second is the second input. */
NB_INLINE void move(const struct copy_run *t, int64_t i, raw *seen, bool stream, struct copy_form f) {
    raw a = raw_opaque(raw_load(t->in[0] + i)), b = a;
    if (f.loads >= 2) b = raw_opaque(raw_load(t->in[1] + i));
    if (f.stores == 0) *seen = raw_or(*seen, a);
    if (f.loads >= 2 && f.stores == 1) a = raw_or(a, b);
    if (f.loads == 3) a = raw_or(a, raw_opaque(raw_load(t->in[2] + i)));
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
NB_INLINE void move_elements(const struct copy_run *t, struct copy_form f) {
    for (int64_t i = 0; i < t->bytes; i += (int64_t)sizeof(elem)) {
        uint32_t a = 0, b = 0, c = 0;
        memcpy(&a, t->in[0] + i, sizeof(elem));
        if (f.loads >= 2) memcpy(&b, t->in[1] + i, sizeof(elem));
        if (f.loads == 3) memcpy(&c, t->in[2] + i, sizeof(elem));
        if (f.loads >= 2 && f.stores == 1) a |= b | c;
        __asm__ volatile("" : "+r"(a), "+r"(b));
        if (f.stores > 0) memcpy(t->out[0] + i, &a, sizeof(elem));
        if (f.stores > 1) memcpy(t->out[1] + i, &b, sizeof(elem));
    }
}

/* Of all inputs as much as a turn of the loop loads. What lies behind their ends is never fetched in earnest: a prefetch cannot fault. */
NB_INLINE void prefetch(const struct copy_run *t, int64_t i, struct copy_form f) {
    for (int n = 0; n < f.loads; n++)
        for (int64_t line = 0; line < COPY_UNROLL * RAW_BYTES; line += 64)
            __builtin_prefetch(t->in[n] + i + COPY_AHEAD + line, 0, 0);
}

NB_INLINE void move_run(struct copy_run *t, struct copy_form f) {
    if (t->bytes < RAW_BYTES) {
        move_elements(t, f);
        return;
    }
    const bool stream = f.flags == NB_FLAG_STREAMING;
    raw seen[COPY_UNROLL];
    NB_UNROLL
    for (int a = 0; a < COPY_UNROLL; a++) seen[a] = raw_load(t->in[0]);
    int64_t i = 0;
    if (stream) { /* up to the first whole register of the output */
        move(t, 0, &seen[0], false, f);
        i = RAW_BYTES - (int64_t)((uintptr_t)t->out[0] % RAW_BYTES);
        t->out_aligned = ((uintptr_t)t->out[1] + (uintptr_t)i) % RAW_BYTES == 0;
    }
    for (; i + COPY_UNROLL * RAW_BYTES <= t->bytes; i += COPY_UNROLL * RAW_BYTES) {
        if (f.prefetch) prefetch(t, i, f);
        NB_UNROLL
        for (int a = 0; a < COPY_UNROLL; a++) move(t, i + a * RAW_BYTES, &seen[a], stream, f);
    }
    for (; i + RAW_BYTES <= t->bytes; i += RAW_BYTES) move(t, i, &seen[0], stream, f);
    if (i < t->bytes) move(t, t->bytes - RAW_BYTES, &seen[0], false, f);
    if (f.stores > 0) return;
    NB_UNROLL
    for (int a = 0; a < COPY_UNROLL; a++) seen[a] = raw_opaque(seen[a]);
}

/* A tensor that is moved, and what it takes from one row to the next. */
struct copy_tensors {
    const void *in[3];
    void *out[2];
    int64_t in_stride[3], out_stride[2];
};

NB_INLINE struct copy_tensors copy_tensors_of(const struct nb_call *call, struct copy_form f) {
    if (f.backward)
        return (struct copy_tensors){.in = {call->x, call->dy, call->dresidual_out},
                                     .out = {call->dx},
                                     .in_stride = {call->x_stride, call->dy_stride, call->dresidual_out_stride},
                                     .out_stride = {call->dx_stride}};
    return (struct copy_tensors){.in = {call->x, call->residual},
                                 .out = {call->y, call->residual_out},
                                 .in_stride = {call->x_stride, call->residual_stride},
                                 .out_stride = {call->y_stride, call->residual_out_stride}};
}

NB_INLINE int copy_rows(const struct nb_call *call, int64_t begin, int64_t end, struct copy_form f) {
    const int64_t item = (int64_t)sizeof(elem), cols = call->cols;
    const struct copy_tensors tensors = copy_tensors_of(call, f);
    bool joined = true;
    for (int i = 0; i < f.loads; i++) joined &= tensors.in_stride[i] == cols;
    for (int i = 0; i < f.stores; i++) joined &= tensors.out_stride[i] == cols;
    const int64_t rows_per_run = joined ? end - begin : 1;
    for (int64_t r = begin; r < end; r += rows_per_run) {
        struct copy_run t = {.bytes = rows_per_run * cols * item};
        for (int i = 0; i < f.loads; i++) t.in[i] = (const char *)tensors.in[i] + r * tensors.in_stride[i] * item;
        for (int i = 0; i < f.stores; i++) t.out[i] = (char *)tensors.out[i] + r * tensors.out_stride[i] * item;
        move_run(&t, f);
    }
    if (f.flags == NB_FLAG_STREAMING) raw_stream_end();
    return 0;
}

#ifdef COPY_FORM
#ifndef COPY_DETAILS
#define COPY_DETAILS .backward = false
#endif
static int copy_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    return copy_rows(call, begin, end, (struct copy_form){COPY_FORM, COPY_DETAILS});
}
#define COPY_KERNEL COPY_FORM, .run = copy_run, .row_local = always_row_local, .chain = no_chain
#endif
