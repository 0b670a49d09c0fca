// SPDX-License-Identifier: Apache-2.0
/* Did threads that are not the pool's work for a kernel while it was timed? By CPU time, block by block of a launch.
 *
 * The launch has no threads but the pool's, unless an arm started some. A thread that an arm merely keeps may work for a moment: one that
 * works for the arm does so in block after block of those that the arm takes part in. Times are medians over blocks, which help in a quarter
 * of them moves by less than their spread. */
#ifndef NB_HIDDEN_THREADS_H
#define NB_HIDDEN_THREADS_H

#include <stdbool.h>

#include "src/measure/pool.h"

struct nb_hidden_threads {
    struct nb_cpu_times first, last;
    int blocks; /* in which others had more than 1 % of the pool's time, and 20 us */
};

struct nb_hidden_threads nb_hidden_threads_begin(struct nb_cpu_times now);
/* A block ends. */
void nb_hidden_threads_block(struct nb_hidden_threads *hidden, struct nb_cpu_times now);
/* blocks: those that the arm took part in. */
bool nb_hidden_threads_found(const struct nb_hidden_threads *hidden, int blocks);

#endif
