// SPDX-License-Identifier: Apache-2.0
/* Did threads that are not the pool's work for a kernel while it was timed? By CPU time, block by block of a launch.
 *
 * The launch has no threads but the pool's, unless an arm started some. A thread that an arm merely keeps may work for a moment: one that
 * works for the arm does so in block after block of those that the arm takes part in. Times are medians over blocks, which help in a quarter
 * of them moves by less than their spread. */
#ifndef NB_HELP_H
#define NB_HELP_H

#include <stdbool.h>

#include "src/measure/pool.h"

struct nb_help {
    struct nb_cpu_times first, last;
    int blocks; /* in which others had more than 1 % of the pool's time, and 20 us */
};

struct nb_help nb_help_begin(struct nb_cpu_times now);
/* A block ends. */
void nb_help_block(struct nb_help *help, struct nb_cpu_times now);
/* blocks: those that the arm took part in. */
bool nb_help_found(const struct nb_help *help, int blocks);

#endif
