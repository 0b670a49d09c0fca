// SPDX-License-Identifier: Apache-2.0
/* gate_global_old.c with a number that is unique in the process, as C++ makes them: whoever loads this file twice, by whatever
 * path, has one of it. */
__asm__(".type gate_test_factor, @gnu_unique_object");
#include "gate_global_old.c"
