// SPDX-License-Identifier: Apache-2.0
/* Exact instruction counts without a performance counter: the CPU's trap flag raises a signal after every instruction. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/core/kernel_fields.h"

typedef void (*nb_work)(void *arg);

/* Instructions that work(arg) retires in this thread, its own return included, counted one by one with the trap flag (x86-64 only);
 * a repeated string instruction counts once. work runs once before, uncounted, so that symbols are bound and pages are there.
 * -1 with the reason: another architecture, more than `limit` instructions (work still ends, at full speed), or a
 * debugger that takes the traps. About 10 microseconds an instruction. Bit-stable as long as the work is. */
int64_t nb_single_step(nb_work work, void *arg, int64_t limit, char *reason, size_t n);
/* Of one call's work, all of it by this thread. Phases and units are asked for before: what a call costs the harness is no work of the
 * kernel. Left of it are some instructions a phase. */
int64_t nb_single_step_kernel(const struct nb_kernel *kernel, const struct nb_call *call, int64_t limit, char *reason,
                              size_t n);
/* Does it count a loop of known length right? 0, or -1 with the reason. */
int nb_single_step_probe(char *reason, size_t n);
