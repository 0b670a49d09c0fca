// SPDX-License-Identifier: Apache-2.0
/* Did threads that are not the pool's work for a kernel while it was timed? By CPU times, read between rounds of a launch in which each arm
 * had its turn.
 *
 * The launch has no threads but the pool's, unless an arm started some. A thread that an arm merely keeps may work for a moment: one that
 * works for the arm goes on as long as the arm is called. What runs on another CPU is accounted at that CPU's ticks, 4 ms apart where the
 * kernel has 250 in a second, and a launch may be over after two of them. So a launch is counted in parts that hold several ticks, and where
 * others worked it goes on, untimed, until there are enough parts to tell. */
#pragma once

#include <stdbool.h>

#include "src/measure/pool.h"

struct nb_hidden_threads {
    struct nb_cpu_times first, part, last; /* read when the launch began, when this part of it did, and just now */
    double part_s;                         /* CPU time of all threads in a part, at least */
    int parts, helped;                     /* complete ones, and those in which others worked */
};

/* n_threads: of the pool. */
struct nb_hidden_threads nb_hidden_threads_begin(struct nb_cpu_times now, int n_threads);
/* A round ends. */
void nb_hidden_threads_round(struct nb_hidden_threads *hidden, struct nb_cpu_times now);
/* Have others worked, for longer than the clocks are apart, and are there too few parts to say for whom? */
bool nb_hidden_threads_undecided(const struct nb_hidden_threads *hidden);
/* They have worked in most parts. */
bool nb_hidden_threads_found(const struct nb_hidden_threads *hidden);
