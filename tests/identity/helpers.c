// SPDX-License-Identifier: Apache-2.0
/* What the first kernel calls, and what that calls. */
#include <math.h>

#include "tests/identity/identity.h"

float identity_helper(float x) {
#if defined(CHANGED_callee)
    return identity_deeper(x) - 1;
#else
    return identity_deeper(x) + 1;
#endif
}

__attribute__((noinline)) float identity_deeper(float x) {
#if defined(CHANGED_deep)
    return tanhf(x) * 0.75f;
#elif defined(CHANGED_library)
    return sinhf(x) * 0.5f;
#else
    return tanhf(x) * 0.5f;
#endif
}
