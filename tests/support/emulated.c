// SPDX-License-Identifier: Apache-2.0
/* Criterion executes this program again for each test, also where it is emulated. Its call finds this function before the C library's. */

#include <unistd.h>

#include "src/core/cpu.h"

int execve(const char *path, char *const argv[], char *const envp[]) { return nb_cpu_execute(path, argv, envp); }
