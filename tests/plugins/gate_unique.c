// SPDX-License-Identifier: Apache-2.0
/* gate_global_old.c with a number that is unique in the process, as C++ makes them: whoever loads this file twice, by whatever
 * path, has one of it. Weak, as there: an assembler may bind a symbol that is neither weak nor global within the file. */
__asm__(".data\n"
        ".weak gate_test_factor\n"
        ".balign 4\n"
        ".type gate_test_factor, @gnu_unique_object\n"
        ".size gate_test_factor, 4\n"
        "gate_test_factor: .float 1.0\n"
        ".text");
#define FACTOR_IS_ELSEWHERE
#include "gate_global_old.c"
