// SPDX-License-Identifier: Apache-2.0
/* The table of the built-in kernels: one entry for each object of kernel_list.h, which the build writes from the file
 * names. A file that does not define its kernel is a link error. */
#include "kernel.h"

#define NB_KERNEL_ENTRY(variant) extern const struct nb_kernel variant;
#include "kernel_list.h"
#undef NB_KERNEL_ENTRY

/* Says to who compares the machine code of two builds that every reference between functions left a relocation: the build gives each
 * function a section and makes no jump tables. */
extern const char nb_code_in_sections;
__attribute__((visibility("hidden"), used)) const char nb_code_in_sections = 1;

static const struct nb_kernel *const table[] = {
#define NB_KERNEL_ENTRY(variant) &variant,
#include "kernel_list.h"
#undef NB_KERNEL_ENTRY
};

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    if (abi_version != NB_ABI_VERSION) return NULL;
    *n = sizeof table / sizeof table[0];
    return table;
}
