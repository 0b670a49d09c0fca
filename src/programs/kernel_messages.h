// SPDX-License-Identifier: Apache-2.0
/* The messages of cmd/guide/protocol.md as structs, for kernel_program.c alone: they have the protocol's layout, and its names. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the messages are little-endian"
#endif

enum { VERSION = 1, MOST_BYTES = 65536, MOST_KERNELS = 10000, NAME_BYTES = 96, N_TENSORS = 19 };
enum { HELLO = 1, DESCRIBE, OPEN, CALL, CLOSE, BYE };
enum { FLAG_ROW_LOCAL = 1, FLAG_STRIDES = 2, FLAG_THREADS = 4, FLAG_FLUSHES = 8, FLAG_RECOMPUTES = 16, ALL_FLAGS = 31 };

struct head {
    char magic[4];
    uint16_t version, type;
    uint32_t sequence, bytes;
};
struct answer_head {
    struct head head;
    int32_t status;
    uint32_t text_bytes;
};
struct hello {
    struct head head;
    uint64_t memory_bytes;
};
struct hello_answer {
    struct answer_head head;
    uint32_t n_kernels, reserved;
};
struct describe {
    struct head head;
    uint32_t kernel, reserved;
};
struct described {
    struct answer_head head;
    uint32_t op, pass, dtype, flags;
    uint32_t roots, eps_places, casts, weight_offsets, affines, params, round_sums;
    uint32_t layouts, modes;
    uint32_t style, stats, stats_dtype, variance;
    float loads, stores, flops;
    float min_rms, max_abs, max_rho; /* 0: no limit */
    uint32_t reserved;
    char name[NAME_BYTES], variant[NAME_BYTES];
};
struct tensor {
    int64_t offset, rows, cols, stride;
    uint32_t dtype, is_written;
};
struct area {
    int64_t offset, bytes;
};
struct opening {
    struct head head;
    uint32_t kernel, handle, mode, layout, n_threads, n_areas;
    int64_t rows, cols, n, c, hw, k;
    double eps, alpha, momentum;
    uint32_t root, eps_place, cast, weight_offset, affine, param, round_sum, reserved;
    struct tensor tensors[N_TENSORS];
    struct area areas[N_TENSORS];
};
struct call {
    struct head head;
    uint32_t first, n, start, flags;
    uint64_t amount;
};
struct call_answer {
    struct answer_head head;
    uint64_t n_done, ns;
};
struct closing {
    struct head head;
    uint32_t first, n;
};
_Static_assert(sizeof(struct head) == 16 && sizeof(struct answer_head) == 24, "as the protocol has it");
_Static_assert(sizeof(struct described) == 312 && offsetof(struct described, name) == 120, "as the protocol has it");
_Static_assert(offsetof(struct opening, tensors) == 144 && offsetof(struct opening, areas) == 904,
               "as the protocol has it");
_Static_assert(sizeof(struct call) == 40 && sizeof(struct call_answer) == 40, "as the protocol has it");

union message {
    struct head head;
    struct answer_head answer;
    struct hello_answer hello;
    struct described described;
    struct call_answer call;
    char bytes[MOST_BYTES];
};
