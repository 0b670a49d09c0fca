// SPDX-License-Identifier: Apache-2.0
/* The parent's side. A fork server that says nothing is ended, and workers are executed from then on. */
#include "src/measure/fork_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/peers.h"
#include "src/core/random.h"
#include "src/measure/spawn.h"

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
