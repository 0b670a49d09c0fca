// SPDX-License-Identifier: Apache-2.0
/* Time that is played: in place of src/core/timer.c in the unit tests and in build/normbench-played, which scripts run. It moves by what
 * nb_worked() is told, by waits and by what a test says, and by nothing else: on a host that is slow, shared or stopped a verdict is the same,
 * and no limit is met by chance. What takes how long is a table, a line each, the first that fits:
 *
 *   gate_new:gated_twice_* 2000 0.5 contended=1.6 others=0.3 spread=0.01
 *   work: a pattern of kernels by variant or by file:variant (no folder, no .so), or the name of other work that
 *   nb_worked() is told ("*": kernels alone); ns a call, and ns for
 *   each element of it; how much longer it takes while the core is contended (1.3), which share of it other threads of the process do (0),
 *   by how much, at most, it differs from sample to sample and from process to process (0), and beside=: how much longer it takes once a kernel of
 *   the gate's candidate has worked in the process (1)
 *   probe 2000             cycles of the probe of the core, with the same options
 *   interrupt chunk 3      the third piece of that work in a process sends it SIGINT
 *   contended 0.5 2 4      from 0.5 s to 2 s of every 4 s of a process the core is another's too, and the probe says so; cpu=1: that CPU's core
 *   slice 0.1 0.004        every 0.1 s of a process another has the CPU for 4 ms
 *   switch 0.1             every 0.1 s another has it for no time at all
 *   load 0.5               the load average
 *   reading 20             ns that a process other than the first needs to read the clock, so that no loop waits for ever
 *
 * The program reads it from the file NORMBENCH_PLAYED. Processes have a time of their own, as those on several CPUs have, which begins at the
 * latest of all; the first one's is the latest of all. What hangs says so (hang() in tests/plugins/plugin.h): then its time is over, whatever
 * the limit. NORMBENCH_PLAYED_PAGE: where they say it. Dates are real. */
#pragma once

/* In a unit test: these lines before the others; null: none. */
void nb_played_table(const char *text);
/* Time goes by, in which this thread works; or another of this process does. */
void nb_played_work(double s);
void nb_played_others(double s);
