// SPDX-License-Identifier: Apache-2.0
/* The kernels of the sources (registry.h): every variant of those in kernel_catalogue.h, which cmd/kernel_catalogue.awk writes. */
#include "src/core/registry.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/text.h"

static const struct nb_kernel kernels[] = {
#define NB_CATALOGUE_ENTRY(kernel, ...) {.name = #kernel, __VA_ARGS__},
#include "kernel_catalogue.h"
#undef NB_CATALOGUE_ENTRY
};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

static const struct {
    enum nb_width width;
    const char *suffix;
    uint32_t cpu_features;
    bool by_default; /* of every kernel, not only those that comparisons of widths are made with */
} widths[] = {
#if defined(__x86_64__)
    {NB_SCALAR, "scalar", NB_CPU_AVX2, true}, {NB_128, "v128", NB_CPU_AVX2, false},
    {NB_256, "v256", NB_CPU_AVX2, true},      {NB_256X, "v256x", NB_CPU_AVX512, false},
    {NB_512, "v512", NB_CPU_AVX512, true},
#elif defined(__aarch64__)
    {NB_SCALAR, "scalar", 0, true},
    {NB_128, "v128", NB_CPU_NEON, true},
    {NB_256, "v256", NB_CPU_NEON | NB_CPU_SVE256, false},
#else
    {NB_SCALAR, "scalar", 0, true},
#endif
};
enum { N_WIDTHS = sizeof widths / sizeof widths[0], N_MOST = N_KERNELS * N_WIDTHS * NB_N_DTYPES };

static struct nb_entry *entries;
static size_t n_entries;

static void add_entry(struct nb_kernel *k, const struct nb_kernel *kernel, size_t width, enum nb_dtype dtype) {
    char *id = nb_textf("%s_%s_%s", kernel->name, widths[width].suffix, nb_dtype_names[dtype]);
    *k = *kernel;
    k->width = widths[width].width;
    k->cpu_features = widths[width].cpu_features;
    k->dtype = dtype;
    k->variant = id;
    k->summary = "";
    entries[n_entries++] = (struct nb_entry){.kernel = k, .id = id, .kernel_id = (char *)kernel->name};
}

static void fill(void) {
    struct nb_kernel *variants = nb_alloc(N_MOST, sizeof *variants);
    entries = nb_alloc(N_MOST, sizeof *entries);
    for (size_t k = 0; k < N_KERNELS; k++)
        for (size_t w = 0; w < N_WIDTHS; w++)
            for (int d = 0; d < NB_N_DTYPES; d++)
                if (kernels[k].stats_dtype != NB_STATS_X || d != NB_F32)
                    add_entry(&variants[n_entries], &kernels[k], w, (enum nb_dtype)d);
}

const struct nb_entry *nb_catalogue(size_t *n) {
    if (!entries) fill();
    *n = n_entries;
    return entries;
}

const char *nb_catalogue_remedy(const struct nb_entry *entry) {
    char *dir freed = nb_program_dir();
    if (nb_dir_holds(dir, "../share/normbench"))
        return "this installation lacks it: packages and `make install` have every kernel";
    for (size_t w = 0; w < N_WIDTHS; w++)
        if (widths[w].width == entry->kernel->width && widths[w].by_default)
            return "`make VARIANTS=all` builds every kernel, in some 3 minutes on two CPUs";
    return "`make WIDTHS=all` builds every kernel in every width, in some 5 minutes on two CPUs";
}
