// SPDX-License-Identifier: Apache-2.0
/* The machine as the process finds it: features that both the CPU and the operating system offer, caches, allowed CPUs.
 * The width limit and the first call's findings are the only state. */
#include "src/core/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum nb_width widest = NB_512;

/* ---- caches ---- */

static bool read_line(const char *path, char *text, size_t n) {
    FILE *f = fopen(path, "re");
    bool read = f && fgets(text, (int)n, f);
    if (f) fclose(f);
    if (read) text[strcspn(text, "\n")] = '\0';
    return read;
}

/* "48K" -> 49152; 0 when it is no size. */
static int64_t parse_size(const char *text) {
    char *end;
    long long value = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    return value > 0 && value < 1LL << 40 ? value << shift : 0;
}

static bool read_cache_file(int cpu, int index, const char *name, char *text, size_t n) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, name);
    return read_line(path, text, n);
}

/* The kernel's view of the caches that one CPU reaches; where it shows none, the C library's, which asks the CPU. */
static void fill_caches(struct nb_cpu *c) {
    int cpu = 0;
    char level[16], type[32], size[32];
    nb_cpu_allowed(&cpu, 1);
    for (int i = 0; read_cache_file(cpu, i, "level", level, sizeof level); i++) {
        if (!read_cache_file(cpu, i, "type", type, sizeof type) || strcmp(type, "Instruction") == 0) continue;
        if (!read_cache_file(cpu, i, "size", size, sizeof size)) continue;
        if (level[0] == '1') c->l1d_bytes = parse_size(size);
        if (level[0] == '2') c->l2_bytes = parse_size(size);
        if (level[0] == '3') c->l3_bytes = parse_size(size);
    }
    if (c->l1d_bytes > 0) return;
    long l1d = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE),
         l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    c->l1d_bytes = l1d > 0 ? l1d : 0;
    c->l2_bytes = l2 > 0 ? l2 : 0;
    c->l3_bytes = l3 > 0 ? l3 : 0;
}

const struct nb_cpu *nb_cpu_light(void) {
    static struct nb_cpu light;
    static bool filled;
    if (filled) return &light;
    nb_cpuid_fill(&light);
    fill_caches(&light);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    light.n_online = n > 0 ? (int)n : 1;
    filled = true;
    return &light;
}

const struct nb_cpu *nb_cpu(void) {
    static struct nb_cpu full;
    static bool filled;
    if (filled) return &full;
    full = *nb_cpu_light();
    nb_libcpuid_fill(&full);
    filled = true;
    return &full;
}

/* ---- what may run ---- */

void nb_cpu_limit_width(enum nb_width width) { widest = width; }

uint32_t nb_width_features(uint32_t width) {
#if defined(__x86_64__)
    if (width == NB_256X || width == NB_512) return NB_CPU_AVX2 | NB_CPU_AVX512;
    return width <= NB_256 ? NB_CPU_AVX2 : 0;
#else
    return width == NB_128 ? NB_CPU_NEON : 0;
#endif
}

const char *nb_cpu_refuses(uint32_t features, uint32_t width) {
    if (width != NB_NATIVE && width > (uint32_t)widest) return "wider than --max-width";
    uint32_t missing = features & ~nb_cpu_light()->features;
    return missing ? nb_cpuid_why_missing(missing) : NULL;
}

int nb_cpu_allowed(int *cpus, int max) {
    int n = 0;
    /* The kernel refuses a mask shorter than its own: grow until it fits. */
    for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n_cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)n_cpus);
        bool known = set && sched_getaffinity(0, bytes, set) == 0;
        for (int i = 0; known && i < n_cpus && n < max; i++)
            if (CPU_ISSET_S((size_t)i, bytes, set)) cpus[n++] = i;
        CPU_FREE(set);
        if (known) break;
    }
    return n;
}
