// SPDX-License-Identifier: Apache-2.0
/* The table, and the symbol that says how all of it was built. */
#include "tests/identity/identity.h"

#if !defined(CHANGED_unmarked)
extern const char nb_code_in_sections;
__attribute__((visibility("hidden"), used)) const char nb_code_in_sections = 1;
#endif

const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *const table[] = {&identity_first, &identity_second};
    *n = 2;
    identity_chosen = IF(chosen, identity_deeper, identity_helper);
    static int *const counts[] = {&identity_repeats};
    *counts[*n - 2] = IF(repeats, 2, 1);
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
