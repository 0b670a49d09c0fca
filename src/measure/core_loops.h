// SPDX-License-Identifier: Apache-2.0
/* The loops behind core_rate.h, by instruction set. For src/measure/core_rate.c. */
#ifndef NB_CORE_LOOPS_H
#define NB_CORE_LOOPS_H

#include <stddef.h>
#include <stdint.h>

enum nb_core_work {
    NB_WORK_FMA,
    NB_WORK_WIDEN_F16,
    NB_WORK_WIDEN_BF16,
    NB_WORK_NARROW_F16,
    NB_WORK_NARROW_BF16,
    NB_N_WORKS
};
enum { NB_CORE_BUFFER = 4096 }; /* bytes, aligned to 64, all of which a round of a conversion reads or writes */

struct nb_core_loop {
    enum nb_core_work work;
    uint32_t features, width;                              /* enum nb_cpu_feature, enum nb_width: what it needs */
    int64_t (*run)(unsigned char *buffer, int64_t rounds); /* returns how many elements it worked on */
};
extern const struct nb_core_loop nb_core_loops_v3[], nb_core_loops_v4[];
extern const size_t nb_n_core_loops_v3, nb_n_core_loops_v4; /* 0 where they do not exist */

#endif
