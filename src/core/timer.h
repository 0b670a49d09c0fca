// SPDX-License-Identifier: Apache-2.0
/* The clock: CLOCK_MONOTONIC_RAW, which no adjustment of the system's time bends. */
#ifndef NB_TIMER_H
#define NB_TIMER_H

double nb_now_s(void);

#endif
