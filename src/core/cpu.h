// SPDX-License-Identifier: Apache-2.0
/* What this machine's CPU may run and how its caches are cut. On x86-64 which instructions may run is decided by CPUID and XGETBV
 * alone, and libcpuid names the CPU; on aarch64 Linux's auxiliary vector decides, and MIDR_EL1 names it. */
#pragma once

#include <stdint.h>

#include "kernels/kernel.h"

struct nb_cpu {
    uint32_t features; /* mask of enum nb_cpu_feature */
    char vendor[32], model[96];
    char codename[64];                     /* libcpuid's, "" when it does not know the CPU or takes it for another */
    int family, model_number, stepping;    /* CPUID's; 0 where there is none */
    uint32_t signature;                    /* EAX of CPUID's leaf 1, or MIDR_EL1; 0 when unknown */
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* 0 when unknown; l3 is what one core can reach */
    int n_online;
    char hypervisor[32];    /* "" on bare metal, and where nothing says */
    char disagreement[160]; /* where libcpuid and CPUID differ, "" where not */
};

/* Filled on the first call. The light part (all but codename and disagreement) never touches libcpuid: workers start
 * with it. */
const struct nb_cpu *nb_cpu_light(void);
const struct nb_cpu *nb_cpu(void);

/* The program that emulates the CPU of this process (qemu-user), by which alone it can start itself again; null where it runs by itself. */
const char *nb_cpu_emulator(void);
/* execve(), which takes a program for the emulated CPU too: the machine refuses that one, and the emulator is executed with it. */
int nb_cpu_execute(const char *file, char *const argv[], char *const envp[]);
/* Hides widths above this one (--max-width). */
void nb_cpu_limit_width(enum nb_width width);
/* Null when a variant of this width that needs these features may run here; else the reason, static. */
const char *nb_cpu_refuses(uint32_t features, uint32_t width);
/* The features that a width of the built-in kernels is compiled for; 0 for native. */
uint32_t nb_width_features(uint32_t width);
/* The CPU numbers this process may run on, in order; returns how many were written, at most max. */
int nb_cpu_allowed(int *cpus, int max);
/* The calling thread runs there from now on; where the CPU went offline meanwhile it stays unpinned, and the noise shows it. */
void nb_cpu_pin(int cpu);

/* ---- code for one instruction set ---- */

/* Files of src/ that hold code for an instruction set which the program as a whole is not compiled for: everything between
 * BEGIN and END may use it, and is called only after the CPU was asked (src/core/cpu.h). Headers of the system come before BEGIN. */

#if defined(__clang__)
#define NB_TARGET_PRAGMA(text) _Pragma(#text)
#define NB_TARGET_BEGIN(isa) NB_TARGET_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define NB_TARGET_END _Pragma("clang attribute pop")
#else
#define NB_TARGET_PRAGMA(text) _Pragma(#text)
#define NB_TARGET_BEGIN(isa) _Pragma("GCC push_options") NB_TARGET_PRAGMA(GCC target(isa))
#define NB_TARGET_END _Pragma("GCC pop_options")
#endif

/* As the kernels of these widths are compiled. */
#define NB_TARGET_V3 "avx2,fma,f16c,bmi,bmi2,lzcnt"
#define NB_TARGET_V4 "avx2,fma,f16c,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512vl,avx512dq"
