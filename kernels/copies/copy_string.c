// SPDX-License-Identifier: Apache-2.0
/* The copy for a forward norm as the CPU's own instruction for it moves it: rep movsb, whose microcode chooses width and kind of store by
 * the length; elsewhere the C library's memcpy. The same at every width. No arithmetic. */
#include "kernels/copies/baseline_copy.h"

static inline void move_string(char *to, const char *from, size_t n) {
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    memcpy(to, from, n);
#endif
}

static int copy_string_run(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    const int64_t item = (int64_t)sizeof(elem);
    const bool joined = call->x_stride == call->cols && call->y_stride == call->cols;
    const int64_t step = joined ? end - begin : 1;
    for (int64_t row = begin; row < end; row += step)
        move_string((char *)call->y + row * call->y_stride * item, (const char *)call->x + row * call->x_stride * item,
                    (size_t)(step * call->cols * item));
    return 0;
}

NB_KERNEL(copy_string, .summary = "x -> y, by rep movsb", .op = NB_OP_COPY, .loads = 1, .stores = 1,
          .run = copy_string_run, .row_local = always_row_local, .chain = no_chain);
