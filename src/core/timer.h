// SPDX-License-Identifier: Apache-2.0
/* The clock: CLOCK_MONOTONIC_RAW, which no adjustment of the system's time bends. */
#ifndef NB_TIMER_H
#define NB_TIMER_H

#include <stddef.h>

double nb_now_s(void);
/* The same, asked of the system itself: code in this process that puts itself between the program and its C library cannot change the
 * answer. Some 0.1 to 1 us. */
double nb_system_now_s(void);
/* strftime() of now, UTC. */
void nb_utc_now(const char *format, char *out, size_t n);

#endif
