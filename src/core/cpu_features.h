// SPDX-License-Identifier: Apache-2.0
/* The CPU's own words: instruction sets by CPUID and XGETBV, names by libcpuid. For src/core/cpu.c. */
#ifndef NB_CPU_FEATURES_H
#define NB_CPU_FEATURES_H

#include <stdint.h>

#include "kernels/kernel.h"

struct nb_cpu {
    uint32_t features; /* mask of enum nb_cpu_feature */
    char vendor[32], model[96];
    char codename[64]; /* libcpuid's, "" when it does not know the CPU or takes it for another */
    int family, model_number, stepping;
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* 0 when unknown; l3 is what one core can reach */
    int n_online;
    char hypervisor[32];    /* "" on bare metal */
    char disagreement[160]; /* where libcpuid and CPUID differ, "" where not */
};

/* Features, vendor, model, family, hypervisor. */
void nb_cpuid_fill(struct nb_cpu *c);
/* Codename and disagreement. */
void nb_libcpuid_fill(struct nb_cpu *c);
/* Why features of the mask are missing; static. */
const char *nb_cpuid_why_missing(uint32_t missing);

#endif
