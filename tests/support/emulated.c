// SPDX-License-Identifier: Apache-2.0
/* Criterion executes this program again for each test. Emulated, the program is foreign to the machine, which refuses it: the emulator
 * is executed with it. The library's call finds this function before the C library's. */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/core/cpu.h"

int execve(const char *path, char *const argv[], char *const envp[]) {
    enum { MOST = 64, BEFORE = 3 };
    char name[] = "-0", *again[MOST] = {argv[0], name, argv[0], realpath(path, NULL)};
    syscall(SYS_execve, path, argv, envp);
    if (errno == ENOEXEC && nb_cpu_emulator() && again[BEFORE]) {
        for (int i = 1; i + BEFORE < MOST - 1 && argv[i]; i++) again[i + BEFORE] = argv[i];
        syscall(SYS_execve, nb_cpu_emulator(), again, envp);
        errno = ENOEXEC;
    }
    free(again[BEFORE]);
    return -1;
}
