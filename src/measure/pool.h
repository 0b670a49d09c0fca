// SPDX-License-Identifier: Apache-2.0
/* The harness's threads: pinned, with barriers between the phases of a call. Thread 0 is the caller. Between calls the
 * others spin, since waking a thread takes longer than many a call. A kernel with threads of its own is called whole by the caller
 * alone, and they sleep while it has the cores. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/kernel_fields.h"
#include "src/programs/kernel_program.h"

struct nb_pool;

/* n_threads pinned to cpus[0..n_threads); cpus null: not pinned. */
struct nb_pool *nb_pool_new(int n_threads, const int *cpus);
void nb_pool_free(struct nb_pool *pool);

/* Runs all phases of a call, the units of each split into equal ranges in order. Returns the first non-zero code. */
int nb_pool_run(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_call *call);
/* Calls of a kernel of another process, as one message. Should that process be gone this one ends too, with a fault's last words. */
int nb_pool_run_program(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_program_calls *calls);
/* Rows [begin, end) of a row_local kernel (one phase), split likewise. */
int nb_pool_run_rows(struct nb_pool *pool, const struct nb_kernel *kernel, const struct nb_call *call, int64_t begin,
                     int64_t end);
/* Puts the pool's threads to sleep; returns when they do. The next call of an ordinary kernel wakes them. */
void nb_pool_park(struct nb_pool *pool);
/* Before a sample of the kernel is timed: whoever's threads it does not use sleep (a peer's may spin on for a while after its last
 * call), and the pool's are awake if it does use them. */
void nb_pool_make_ready(struct nb_pool *pool, const struct nb_kernel *kernel);

int nb_pool_threads(const struct nb_pool *pool);
/* nb_core_probe() on all threads at once: the slowest. */
double nb_pool_probe(struct nb_pool *pool);

/* CPU time so far of the pool's threads, the caller among them, and of all others that this process has or had. */
struct nb_cpu_times {
    double pool_s, others_s;
};
struct nb_cpu_times nb_pool_cpu_times(const struct nb_pool *pool);

/* "run() returned 7", and what the kernel's process said. */
void nb_say_returned(char *text, size_t n, const struct nb_kernel *kernel, int code);
/* Without threads: every phase in ranges of so many units, 0: whole; to prove that the cut changes nothing. */
int nb_run_in_ranges(const struct nb_kernel *kernel, const struct nb_call *call, int64_t range);

/* ---- threads of libraries ---------------------------------------------------------------------------------------- */

/* Kernels whose library has threads of its own (NB_FLAG_OWN_THREADS): opened with the CPUs of their case and no others, so that the
 * threads that they start get as many CPUs as the harness's would; watched, so that no arm is timed while another's threads
 * still spin. */

/* Calls open(n_threads) of the kernels, each function once, before the caller pins itself; entries may repeat. cpus: n_threads of
 * them, or null. Threads that come up meanwhile are pinned to cpus[1..n_threads), one each; to all of cpus when there are more
 * of them. The floating-point state is kept. -1 with the reason written. */
int nb_kernels_open(const struct nb_entry *const *entries, size_t n, int n_threads, const int *cpus, char *reason,
                    size_t size);
/* Their close(). */
void nb_kernels_close(const struct nb_entry *const *entries, size_t n);

/* How many threads this process has but the caller. */
size_t nb_threads_others(void);
/* Waits until every thread of this process but the caller sleeps, for at most limit_s. False: one still runs. */
bool nb_threads_wait_asleep(double limit_s);

/* ---- threads that work unseen ---- */

/* Did threads that are not the pool's work for a kernel while it was timed? By CPU times, read between rounds of a launch in which each arm
 * had its turn.
 *
 * The launch has no threads but the pool's, unless an arm started some. A thread that an arm merely keeps may work for a moment: one that
 * works for the arm goes on as long as the arm is called. What runs on another CPU is accounted at that CPU's ticks, 4 ms apart where the
 * kernel has 250 in a second, and a launch may be over after two of them. So a launch is counted in parts that hold several ticks, and where
 * others worked it goes on, untimed, until there are enough parts to tell. */

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
