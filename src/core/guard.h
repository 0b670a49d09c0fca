// SPDX-License-Identifier: Apache-2.0
/* Code from outside never runs in the process that decides: it is loaded and asked in the guard, a fork of this process, which may
 * crash, hang or end in its place. */
#pragma once

#include <stddef.h>

enum { NB_GUARD_BYTES = 64 << 10 };

/* Has work(arg) done in the guard, within limit_s seconds; arg, of at most NB_GUARD_BYTES, is copied there and back. What it points to
 * must be older than the guard, which lives from the first call to the first that fails. Null: done. Else what the code did instead
 * ("ended the process with exit code 0", "did not end within 2 s"), good until the next call; arg is as it was. In the
 * guard itself the work is simply done. Not for several threads at once. */
const char *nb_guarded(void (*work)(void *arg), void *arg, size_t bytes, double limit_s);
/* What a new guard begins with: to load again what the last one had. Null: nothing. */
void nb_guard_begins_with(void (*begin)(void));
/* The longest that foreign code may take to be loaded, in seconds: as usual for its kind, or what this variable of the environment says. */
#define NB_LOAD_TIMEOUT "NORMBENCH_LOAD_TIMEOUT"
double nb_load_timeout_s(double usual_s);
/* A guard that is waited for while this says other than 0 is given up: "was interrupted". */
void nb_guard_ends_when(int (*is_over)(void));
/* Ends the guard and all that it started; the next call starts another. */
void nb_guard_end(void);
