// SPDX-License-Identifier: Apache-2.0
/* What the first kernel calls, and what that calls. */
#include <math.h>

#include "tests/identity/identity.h"

float identity_helper(float x) { return IF(callee, identity_deeper(x) - 1, identity_deeper(x) + 1); }

__attribute__((noinline)) float identity_deeper(float x) {
    return IF(library, sinhf(x), tanhf(x)) * IF(deep, 0.75f, 0.5f);
}
