// SPDX-License-Identifier: Apache-2.0
/* What this machine's CPU may run and how its caches are cut. Which instructions may run is decided by CPUID and XGETBV
 * alone; libcpuid names the CPU. */
#ifndef NB_CPU_H
#define NB_CPU_H

#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/cpu_features.h"

/* Filled on the first call. The light part (all but codename and disagreement) never touches libcpuid: workers start
 * with it. */
const struct nb_cpu *nb_cpu_light(void);
const struct nb_cpu *nb_cpu(void);

/* Hides widths above this one (--max-width). */
void nb_cpu_limit_width(enum nb_width width);
/* Null when a variant of this width that needs these features may run here; else the reason, static. */
const char *nb_cpu_refuses(uint32_t features, uint32_t width);
/* The features that a width of the built-in kernels is compiled for; 0 for native. */
uint32_t nb_width_features(uint32_t width);
/* The CPU numbers this process may run on, in order; returns how many were written, at most max. */
int nb_cpu_allowed(int *cpus, int max);

#endif
