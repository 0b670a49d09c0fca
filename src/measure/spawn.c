// SPDX-License-Identifier: Apache-2.0
/* Workers are started by executing this program again: nothing of the parent's state reaches them but the job. */
#include "src/measure/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/log.h"

extern char **environ;

int nb_memory_file(const char *name, const void *contents, size_t bytes) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0) return -1;
    if (contents ? write(fd, contents, bytes) == (ssize_t)bytes : ftruncate(fd, (off_t)bytes) == 0) return fd;
    close(fd);
    return -1;
}

/* The parent's environment, behind a variable of random length that moves the stack of the new process. */
static char **padded_environment(uint64_t seed, char *padding, size_t n) {
    size_t count = 0, length = 16 + (size_t)(seed % (n - 32));
    while (environ[count]) count++;
    char **copy = nb_alloc(count + 2, sizeof *copy);
    snprintf(padding, n, "NORMBENCH_PADDING=");
    memset(padding + 18, 'x', length - 16);
    padding[18 + length - 16] = '\0';
    copy[0] = padding;
    memcpy(copy + 1, environ, count * sizeof *copy);
    return copy;
}

/* In the child the descriptors stand at the numbers of job.h. They are moved out of the way first, behind all of them: a source
 * could itself have one of those numbers. A kernel that prints must not write into the run's data, nor read its input. */
int nb_spawn_worker(pid_t *pid, const int fds[NB_N_WORKER_FDS], uint64_t seed) {
    enum { FIRST = NB_FD_JOB, N = NB_N_WORKER_FDS };
    int away = FIRST + N;
    for (int i = 0; i < N; i++)
        if (fds[i] >= away) away = fds[i] + 1;
    char padding[4200];
    char program[] = "normbench", subcommand[] = "__worker", *const argv[] = {program, subcommand, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setpgroup(&attributes, 0); /* a terminal's Ctrl-C goes to the parent alone */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    for (int i = 0; i < N; i++)
        if (fds[i] >= 0) posix_spawn_file_actions_adddup2(&actions, fds[i], away + i);
    for (int i = 0; i < N; i++) {
        if (fds[i] < 0) continue;
        posix_spawn_file_actions_adddup2(&actions, away + i, FIRST + i);
        posix_spawn_file_actions_addclose(&actions, away + i);
    }
    char **environment = padded_environment(seed, padding, 4096);
    int error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environment);
    free(environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}
