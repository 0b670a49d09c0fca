// SPDX-License-Identifier: Apache-2.0
/* What this machine's CPU may run and how its caches are cut. Which instructions may run is decided by CPUID and XGETBV alone;
 * libcpuid names the CPU and its caches. */
#ifndef NB_CPU_H
#define NB_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"

struct nb_cpu {
    uint32_t features; /* mask of enum nb_cpu_feature */
    char vendor[32], model[96], codename[64];
    int family, model_number, stepping;
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* 0 when unknown; l3 is what one core can reach */
    int n_online;
    char hypervisor[32];      /* "" on bare metal */
    char disagreement[160];   /* where libcpuid and CPUID differ, "" where not */
};

/* Filled on the first call. The light part (features, caches) never touches libcpuid: workers start with it. */
const struct nb_cpu *nb_cpu_light(void);
const struct nb_cpu *nb_cpu(void);

/* Hides widths above this one (--max-width). */
void nb_cpu_limit_width(enum nb_width width);
/* Null when a variant of this width that needs these features may run here; else the reason, static. */
const char *nb_cpu_refuses(uint32_t features, uint32_t width);
/* The CPU numbers this process may run on, in order; returns how many were written, at most max. */
int nb_cpu_allowed(int *cpus, int max);

#endif
