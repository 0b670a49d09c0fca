// SPDX-License-Identifier: Apache-2.0
/* A short call into code that is not ours, in a process that must survive it. */
#ifndef NB_GUARD_H
#define NB_GUARD_H

/* work(arg), for at most limit_s seconds. Null when it returned; else what happened instead ("segmentation fault", "no end within
 * 2 s"). What it had in hand is lost then, so that this serves questions, not work: workers are for that. Code that ends the
 * program ends it with a message and exit code 2. Not for several threads at once. */
const char *nb_guarded(void (*work)(void *arg), void *arg, double limit_s);

#endif
