// SPDX-License-Identifier: Apache-2.0
/* Other code and other constants, to stand between. */
#include "tests/identity/identity.h"

float identity_filler(float x, int i);
static const double numbers[17] = {0.5, 1.5, 2.5, 3.5};
float identity_filler(float x, int i) { return (float)((x * 13.25f + 0.125f) * numbers[i % 17]); }
