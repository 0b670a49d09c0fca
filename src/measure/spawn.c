// SPDX-License-Identifier: Apache-2.0
/* Workers are started by executing this program again, so that nothing of the parent's state reaches them but the job; or by a fork
 * server. A fork server that says nothing is ended, and workers are executed from then on. */
#include "src/measure/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/random.h"

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

/* ---- fork server ------------------------------------------------------------------------------------------------- */

enum { READY_LIMIT_MS = 120000, BIRTH_LIMIT_MS = 20000 };

bool nb_fork_server_pays(const char *const *plugins, int n_plugins) {
    for (int i = 0; i < n_plugins; i++)
        if (nb_peer_is(plugins[i])) return true;
    return false;
}

void nb_fork_server_renew(struct nb_fork_server *n) {
    if (n->pid == 0) return;
    kill(n->pid, SIGKILL);
    close(n->socket);
    while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR) continue;
    n->pid = 0;
}

/* False: nothing came, or the user wants to stop. */
static bool receive(const struct nb_fork_server *n, void *out, size_t bytes, int limit_ms) {
    struct pollfd p = {.fd = n->socket, .events = POLLIN};
    return poll(&p, 1, limit_ms) == 1 && recv(n->socket, out, bytes, 0) == (ssize_t)bytes;
}

static bool start(struct nb_fork_server *n) {
    const struct nb_job job = {.kind = "fork_server",
                               .plugins = n->plugins,
                               .n_plugins = n->n_plugins,
                               .max_width = n->max_width,
                               .digests_at = -1};
    int ends[2];
    char ready, *text = nb_job_print(&job);
    const int job_fd = nb_memory_file("normbench-job", text, strlen(text));
    const int shared_fd = nb_memory_file("normbench-shared", NULL, sizeof(struct nb_shared));
    bool fine = job_fd >= 0 && shared_fd >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
    if (fine) {
        const int fds[NB_N_WORKER_FDS] = {job_fd, -1, shared_fd, -1, ends[1]};
        fine = nb_spawn_worker(&n->pid, fds, n->seed++) == 0;
        close(ends[1]);
        n->socket = ends[0];
        if (!fine) close(ends[0]);
        if (!fine) n->pid = 0;
    }
    if (fine && !receive(n, &ready, sizeof ready, READY_LIMIT_MS)) {
        nb_fork_server_renew(n);
        fine = false;
    }
    if (job_fd >= 0) close(job_fd);
    if (shared_fd >= 0) close(shared_fd);
    free(text);
    return fine;
}

/* The byte says which of the descriptors there are. */
static bool send_descriptors(const struct nb_fork_server *n, const int fds[NB_N_WORKER_FDS]) {
    int present[NB_N_WORKER_FDS], n_present = 0;
    unsigned char which = 0;
    for (int i = 0; i < NB_N_WORKER_FDS; i++) {
        if (fds[i] < 0) continue;
        which |= (unsigned char)(1u << i);
        present[n_present++] = fds[i];
    }
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof present)] = {0};
    struct iovec io = {&which, 1};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = CMSG_SPACE((size_t)n_present * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN((size_t)n_present * sizeof(int));
    memcpy(CMSG_DATA(c), present, (size_t)n_present * sizeof(int));
    return sendmsg(n->socket, &message, MSG_NOSIGNAL) == 1;
}

bool nb_fork_server_spawn(struct nb_fork_server *n, const int fds[NB_N_WORKER_FDS], pid_t *pid) {
    if (n->refused) return false;
    if (n->pid == 0 && !start(n)) {
        n->refused = true;
        return false;
    }
    if (send_descriptors(n, fds) && receive(n, pid, sizeof *pid, BIRTH_LIMIT_MS) && *pid > 0) return true;
    nb_fork_server_renew(n);
    return false;
}

bool nb_fork_server_child_ended(const struct nb_fork_server *n) {
    struct pollfd p = {.fd = n->socket, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* Without a fork server to tell, its workers have been killed with it. */
int nb_fork_server_child_status(struct nb_fork_server *n) {
    int status;
    ssize_t got;
    while ((got = recv(n->socket, &status, sizeof status, 0)) < 0 && errno == EINTR) continue;
    if (got == (ssize_t)sizeof status) return status;
    nb_fork_server_renew(n);
    return SIGKILL;
}
