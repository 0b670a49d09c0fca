// SPDX-License-Identifier: Apache-2.0
/* CPUID says what the CPU can do, XGETBV what the operating system saves at a context switch: a feature needs both.
 * Leaves and bits: Intel SDM volume 2A (CPUID), AMD APM volume 3 appendix E. */
#include "src/core/cpu_features.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <libcpuid/libcpuid.h>

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

const char *nb_cpuid_why_missing(uint32_t missing) {
    uint32_t offered = cpu_offers();
    if (missing & NB_CPU_AVX2)
        return offered & NB_CPU_AVX2 ? "the operating system does not enable AVX"
                                     : "this CPU has no AVX2 with FMA, F16C, BMI and LZCNT";
    if (missing & NB_CPU_AVX512)
        return offered & NB_CPU_AVX512 ? "the operating system does not enable AVX-512"
                                       : "this CPU has no AVX-512 with F, BW, VL and DQ";
    if (missing & NB_CPU_AVX512BF16) return "this CPU has no AVX512-BF16";
    if (missing & NB_CPU_AVX512FP16) return "this CPU has no AVX512-FP16";
    if (missing & NB_CPU_NEON) return "this CPU has no NEON (it is not an aarch64)";
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

void nb_cpuid_fill(struct nb_cpu *c) {
    c->features = cpu_offers() & system_enables();
    fill_model(c);
    fill_hypervisor(c);
}

/* An old libcpuid takes a CPU newer than itself for the nearest it knows: when it denies AVX-512 to a CPU that has it,
 * the name it gives is not believed either. */
void nb_libcpuid_fill(struct nb_cpu *c) {
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

#include <sys/utsname.h>

void nb_cpuid_fill(struct nb_cpu *c) {
    struct utsname name;
#if defined(__aarch64__)
    c->features = NB_CPU_NEON;
#endif
    if (uname(&name) == 0) snprintf(c->model, sizeof c->model, "%.60s", name.machine);
}

void nb_libcpuid_fill(struct nb_cpu *c) { (void)c; }

const char *nb_cpuid_why_missing(uint32_t missing) {
    if (missing & NB_CPU_NEON) return "this CPU has no NEON";
    return "it needs an x86-64 CPU";
}

#endif
