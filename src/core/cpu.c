// SPDX-License-Identifier: Apache-2.0
/* CPUID says what the CPU can do, XGETBV what the operating system saves at a context switch: a feature needs both.
 * Leaves and bits: Intel SDM volume 2A (CPUID), AMD APM volume 3 appendix E. On aarch64 Linux's HWCAP says both at once. */
#include "src/core/cpu.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/core/files.h"

/* ---- features and names ---- */

#if defined(__x86_64__)
#include <cpuid.h>
#include <libcpuid/libcpuid.h>

#ifndef NB_CPU_IN_C
#define NB_CPU_IN_C 0u /* features whose instructions the kernels of this build have in C (make check-avx512) */
#endif

#define BIT(n) (1u << (n))

struct leaf {
    uint32_t eax, ebx, ecx, edx;
};

/* All zero for a leaf that the CPU does not have. */
static struct leaf cpuid(uint32_t number, uint32_t sub) {
    struct leaf l = {0};
    if ((uint32_t)__get_cpuid_max(number & 0x80000000u, NULL) >= number)
        __cpuid_count(number, sub, l.eax, l.ebx, l.ecx, l.edx);
    return l;
}

static bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

/* What the CPU itself offers, whether or not the operating system enables it. */
static uint32_t cpu_offers(void) {
    struct leaf l1 = cpuid(1, 0), l7 = cpuid(7, 0), e1 = cpuid(0x80000001u, 0);
    struct leaf l7_1 = l7.eax >= 1 ? cpuid(7, 1) : (struct leaf){0};
    uint32_t features = 0;
    bool fma_f16c_avx = has(l1.ecx, BIT(12) | BIT(29) | BIT(28)), lzcnt = has(e1.ecx, BIT(5));
    if (fma_f16c_avx && lzcnt && has(l7.ebx, BIT(3) | BIT(5) | BIT(8))) features |= NB_CPU_AVX2; /* BMI1, AVX2, BMI2 */
    if (!(features & NB_CPU_AVX2)) return features;
    if (has(l7.ebx, BIT(16) | BIT(17) | BIT(30) | BIT(31))) features |= NB_CPU_AVX512; /* F, DQ, BW, VL */
    if (!(features & NB_CPU_AVX512)) return features;
    if (has(l7_1.eax, BIT(5))) features |= NB_CPU_AVX512BF16;
    if (has(l7.edx, BIT(23))) features |= NB_CPU_AVX512FP16;
    return features;
}

static uint64_t xcr0(void) {
    uint32_t low, high;
    if (!has(cpuid(1, 0).ecx, BIT(27))) return 0; /* OSXSAVE: XGETBV may be executed */
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* XCR0: bits 1 and 2 are XMM and YMM; 5, 6, 7 the opmasks and the two halves of ZMM. */
static uint32_t system_enables(void) {
    const uint32_t avx512 = NB_CPU_AVX512 | NB_CPU_AVX512BF16 | NB_CPU_AVX512FP16;
    uint64_t state = xcr0();
    uint32_t features = 0;
    if ((state & 0x06) == 0x06) features |= NB_CPU_AVX2;
    if ((state & 0xe6) == 0xe6) features |= avx512;
    return features;
}

static const char *why_missing(uint32_t missing) {
    uint32_t offered = cpu_offers();
    if (missing & NB_CPU_AVX2)
        return offered & NB_CPU_AVX2 ? "the operating system does not enable AVX"
                                     : "this CPU has no AVX2 with FMA, F16C, BMI and LZCNT";
    if (missing & NB_CPU_AVX512)
        return offered & NB_CPU_AVX512 ? "the operating system does not enable AVX-512"
                                       : "this CPU has no AVX-512 with F, BW, VL and DQ";
    if (missing & NB_CPU_AVX512BF16) return "this CPU has no AVX512-BF16";
    if (missing & NB_CPU_AVX512FP16) return "this CPU has no AVX512-FP16";
    if (missing & (NB_CPU_NEON | NB_CPU_SVE256)) return "this CPU has no NEON and no SVE (it is not an aarch64)";
    return "it needs a CPU feature that this program does not know";
}

/* ---- names ---- */

/* Four bytes a word, as CPUID returns text. */
static void copy_words(char *text, const uint32_t *words, size_t n) {
    memcpy(text, words, n * sizeof *words);
    text[n * sizeof *words] = '\0';
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
}

static void fill_model(struct nb_cpu *c) {
    struct leaf l0 = cpuid(0, 0), l1 = cpuid(1, 0);
    copy_words(c->vendor, (const uint32_t[]){l0.ebx, l0.edx, l0.ecx}, 3);
    int base_family = l1.eax >> 8 & 0xf, base_model = l1.eax >> 4 & 0xf;
    c->signature = l1.eax;
    c->stepping = l1.eax & 0xf;
    c->family = base_family == 15 ? base_family + (int)(l1.eax >> 20 & 0xff) : base_family;
    c->model_number = base_family == 15 || base_family == 6 ? base_model + (int)(l1.eax >> 12 & 0xf0) : base_model;
    uint32_t brand[12];
    for (uint32_t i = 0; i < 3; i++) {
        struct leaf l = cpuid(0x80000002u + i, 0);
        memcpy(brand + 4 * i, &l, sizeof l);
    }
    char text[sizeof brand + 1];
    copy_words(text, brand, 12);
    size_t start = strspn(text, " "), n = strlen(text);
    while (n > start && text[n - 1] == ' ') n--;
    snprintf(c->model, sizeof c->model, "%.*s", (int)(n - start), text + start);
}

/* Leaf 0x40000000 is the hypervisor's, present when bit 31 of leaf 1's ECX is set; it lies outside both ranges that
 * __get_cpuid_max knows. */
static void fill_hypervisor(struct nb_cpu *c) {
    static const char *const names[][2] = {{"KVMKVMKVM", "KVM"},       {"Microsoft Hv", "Hyper-V"},
                                           {"VMwareVMware", "VMware"}, {"XenVMMXenVMM", "Xen"},
                                           {"TCGTCGTCGTCG", "QEMU"},   {"VBoxVBoxVBox", "VirtualBox"}};
    if (!has(cpuid(1, 0).ecx, BIT(31))) return;
    uint32_t eax, words[3];
    __cpuid(0x40000000u, eax, words[0], words[1], words[2]);
    copy_words(c->hypervisor, words, 3);
    if (!c->hypervisor[0]) snprintf(c->hypervisor, sizeof c->hypervisor, "unnamed");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(c->hypervisor, names[i][0]) == 0) snprintf(c->hypervisor, sizeof c->hypervisor, "%s", names[i][1]);
}

static void fill_features(struct nb_cpu *c) {
    c->features = (cpu_offers() & system_enables()) | NB_CPU_IN_C;
    fill_model(c);
    fill_hypervisor(c);
}

/* An old libcpuid takes a CPU newer than itself for the nearest it knows: when it denies AVX-512 to a CPU that has it,
 * the name it gives is not believed either. */
static void fill_codename(struct nb_cpu *c) {
    struct cpu_raw_data_t raw;
    struct cpu_id_t id;
    memset(&id, 0, sizeof id);
    cpuid_set_warn_function(NULL);
    if (cpuid_get_raw_data(&raw) != 0 || cpu_identify(&raw, &id) != 0) {
        snprintf(c->disagreement, sizeof c->disagreement, "libcpuid %s does not know this CPU: %.80s",
                 cpuid_lib_version(), cpuid_error());
        return;
    }
    uint32_t offered = cpu_offers();
    bool avx2 = id.flags[CPU_FEATURE_AVX2] != 0, avx512 = id.flags[CPU_FEATURE_AVX512F] != 0;
    bool avx2_agrees = avx2 == ((offered & NB_CPU_AVX2) != 0);
    if (avx2_agrees && avx512 == ((offered & NB_CPU_AVX512) != 0)) {
        if (strncmp(id.cpu_codename, "Unknown", 7) != 0)
            snprintf(c->codename, sizeof c->codename, "%.63s", id.cpu_codename);
        return;
    }
    snprintf(c->disagreement, sizeof c->disagreement, "libcpuid %s takes it for %.63s %s %s; CPUID is believed",
             cpuid_lib_version(), id.cpu_codename, (avx2_agrees ? avx512 : avx2) ? "with" : "without",
             avx2_agrees ? "AVX-512" : "AVX2");
}

#else /* other architectures: the compiler's target is what runs, and the operating system names the machine */

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

/* Firmware names the machine that it stands in; a device tree says that there is a hypervisor, and which. */
static void fill_hypervisor(struct nb_cpu *c) {
    static const char *const places[] = {"/proc/device-tree/hypervisor/compatible", "/sys/class/dmi/id/product_name",
                                         "/sys/class/dmi/id/sys_vendor"};
    static const char *const names[][2] = {{"linux,kvm", "KVM"},
                                           {"xen,xen", "Xen"},
                                           {"KVM", "KVM"},
                                           {"QEMU", "QEMU"},
                                           {"VMware", "VMware"},
                                           {"Virtual Machine", "Hyper-V"},
                                           {"VirtualBox", "VirtualBox"},
                                           {"Apple Virtualization", "Apple"},
                                           {"Google Compute", "KVM"}};
    char text[96];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!nb_file_line(places[i], text, sizeof text)) continue;
        for (size_t j = 0; j < sizeof names / sizeof names[0] && !c->hypervisor[0]; j++)
            if (strncmp(text, names[j][0], strlen(names[j][0])) == 0)
                snprintf(c->hypervisor, sizeof c->hypervisor, "%s", names[j][1]);
    }
}

#if defined(__aarch64__)

/* Implementer (bits 31 to 24), variant (23 to 20), part (15 to 4), revision (3 to 0): Arm ARM, D19.2.103. Lists of names grow each year. */
static void fill_model(struct nb_cpu *c) {
    const uint32_t id = c->signature;
    snprintf(c->vendor, sizeof c->vendor, "implementer 0x%02x", id >> 24);
    snprintf(c->model, sizeof c->model, "%s part 0x%03x r%up%u", c->vendor, id >> 4 & 0xfff, id >> 20 & 0xf, id & 0xf);
}

/* Linux lets programs read MIDR_EL1 where it sets CPUID. The length of SVE's vectors is the process's own: the CPU's longest, or less. */
static void fill_cpu(struct nb_cpu *c) {
    enum { CPUID = 1 << 11, SVE = 1 << 22, LENGTH = 0xffff, BYTES = 32 };
    uint64_t midr;
    c->features = NB_CPU_NEON;
    if (getauxval(AT_HWCAP) & SVE && (prctl(PR_SVE_GET_VL) & LENGTH) == BYTES) c->features |= NB_CPU_SVE256;
    if (!(getauxval(AT_HWCAP) & CPUID)) return;
    __asm__ volatile("mrs %0, midr_el1" : "=r"(midr));
    c->signature = (uint32_t)midr;
    fill_model(c);
}

#else
static void fill_cpu(struct nb_cpu *c) { (void)c; }
#endif

static void fill_features(struct nb_cpu *c) {
    struct utsname name;
    if (uname(&name) == 0) snprintf(c->model, sizeof c->model, "%.60s", name.machine);
    fill_cpu(c);
    fill_hypervisor(c);
}

static void fill_codename(struct nb_cpu *c) { (void)c; }

static const char *why_missing(uint32_t missing) {
    if (missing & NB_CPU_SVE256) return "this CPU has no SVE with vectors of 256 bits";
    if (missing & NB_CPU_NEON) return "this CPU has no NEON";
    return "it needs an x86-64 CPU";
}

#endif

/* ---- limits and caches ---- */

/* The machine as the process finds it: features that both the CPU and the operating system offer, caches, allowed CPUs.
 * The width limit and the first call's findings are the only state. */

static enum nb_width widest = NB_512;

/* ---- caches ---- */

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
    return nb_file_line(path, text, n);
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
    fill_features(&light);
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
    fill_codename(&full);
    filled = true;
    return &full;
}

/* /proc/self is the emulated program to an emulator, which has no word for the same place by another name. */
const char *nb_cpu_emulator(void) {
    static char emulator[4096];
    static bool is_known;
    char self[sizeof emulator];
    if (!is_known) {
        const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        const ssize_t m = readlink("/proc/thread-self/exe", emulator, sizeof emulator - 1);
        const bool is_own = n <= 0 || m <= 0 || (n == m && memcmp(self, emulator, (size_t)n) == 0);
        emulator[is_own ? 0 : m] = '\0';
        is_known = true;
    }
    return emulator[0] ? emulator : NULL;
}

/* The system's own call, since the tests replace the C library's by this function. Allocates nothing: it runs behind a fork. */
int nb_cpu_execute(const char *file, char *const argv[], char *const envp[]) {
    enum { MOST = 64, BEFORE = 3 };
    char whole[PATH_MAX], name[] = "-0", *again[MOST] = {argv[0], name, argv[0], whole};
    syscall(SYS_execve, file, argv, envp);
    if (errno != ENOEXEC || !nb_cpu_emulator() || !realpath(file, whole)) return -1;
    for (int i = 1; argv[i]; i++) {
        if (i + BEFORE >= MOST - 1) return errno = E2BIG, -1;
        again[i + BEFORE] = argv[i];
    }
    syscall(SYS_execve, nb_cpu_emulator(), again, envp);
    return -1;
}

/* ---- what may run ---- */

void nb_cpu_limit_width(enum nb_width width) { widest = width; }

uint32_t nb_width_features(uint32_t width) {
#if defined(__x86_64__)
    if (width == NB_256X || width == NB_512) return NB_CPU_AVX2 | NB_CPU_AVX512;
    return width <= NB_256 ? NB_CPU_AVX2 : 0;
#else
    static const uint32_t features[NB_N_WIDTHS] = {
        [NB_128] = NB_CPU_NEON, [NB_256] = NB_CPU_SVE256, [NB_256X] = NB_CPU_AVX512, [NB_512] = NB_CPU_AVX512};
    return width < NB_N_WIDTHS ? features[width] : 0;
#endif
}

const char *nb_cpu_refuses(uint32_t features, uint32_t width) {
    if (width != NB_NATIVE && width > (uint32_t)widest) return "wider than --max-width";
    uint32_t missing = features & ~nb_cpu_light()->features;
    return missing ? why_missing(missing) : NULL;
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

void nb_cpu_pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}
