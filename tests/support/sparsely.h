// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include "src/core/cpu.h"

/* The step of loops over examples that take the same ways through the code. A sanitizer looks at what is read and written, not at
 * figures, and an emulator shows what another architecture does; both are many times slower, and see one example in five. */
static inline int sparsely(void) {
#if defined(__SANITIZE_ADDRESS__)
    return 5;
#else
    return nb_cpu_emulator() ? 5 : 1;
#endif
}

/* The same for examples that differ in what they compute alone: one in n of them, but all with NORMBENCH_TEST_ALL=1 (`make check-long`). */
static inline int one_in(int n) { return getenv("NORMBENCH_TEST_ALL") ? 1 : n; }
