// SPDX-License-Identifier: Apache-2.0
/* What others did to a launch while it was timed. */
#ifndef NB_DISTURBANCE_H
#define NB_DISTURBANCE_H

#include <sys/resource.h>

/* steal_ms: time that the hypervisor gave to others, over all CPUs; NaN: not known. Of the measuring thread: the rest. */
struct nb_noise {
    double steal_ms, wall_s, cpu_s;
    long involuntary, voluntary;
    int cpu;
};

void nb_disturbance_begin(struct nb_noise *noise, struct rusage *before);
void nb_disturbance_end(struct nb_noise *noise, const struct rusage *before);

#endif
