// SPDX-License-Identifier: Apache-2.0
/* Workers are started by executing this program again, so that nothing of the parent's state reaches them but the job; or by a fork
 * server. A fork server that says nothing is ended, and workers are executed from then on. */
#include "src/measure/process.h"

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

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/timer.h"

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number) { interrupted = number; }

void nb_watch_interrupts(void) {
    /* No SA_RESTART: poll() shall return. The second time the signal has its way. */
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}
int nb_interrupted(void) { return interrupted; }

/* ---- a process that is executed ------------------------------------------------------------------------------------ */

extern char **environ;

/* A file in memory with these bytes; contents null: zeros. -1: none to be had. */
static int memory_file(const char *name, const void *contents, size_t bytes) {
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

/* Executes this program as a worker that finds fds[i] at NB_FD_JOB + i (negative: none). seed: how far its stack is moved. 0, or an error
 * number.
 *
 * In the child the descriptors stand at the numbers of job.h. They are moved out of the way first, behind all of them: a source
 * could itself have one of those numbers. A kernel that prints must not write into the run's data, nor read its input. */
static int execute_worker(pid_t *pid, const int fds[NB_N_WORKER_FDS], uint64_t seed) {
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

static bool start_server(struct nb_fork_server *n) {
    const struct nb_job job = {.kind = "fork_server",
                               .plugins = n->plugins,
                               .n_plugins = n->n_plugins,
                               .max_width = n->max_width,
                               .digests_at = -1};
    int ends[2];
    char ready, *text = nb_job_print(&job);
    const int job_fd = memory_file("normbench-job", text, strlen(text));
    const int shared_fd = memory_file("normbench-shared", NULL, sizeof(struct nb_shared));
    bool fine = job_fd >= 0 && shared_fd >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
    if (fine) {
        const int fds[NB_N_WORKER_FDS] = {job_fd, -1, shared_fd, -1, ends[1]};
        fine = execute_worker(&n->pid, fds, n->seed++) == 0;
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

/* A worker with these descriptors, one at a time. False: not from here. */
static bool fork_worker(struct nb_fork_server *n, const int fds[NB_N_WORKER_FDS], pid_t *pid) {
    if (n->refused) return false;
    if (n->pid == 0 && !start_server(n)) {
        n->refused = true;
        return false;
    }
    if (send_descriptors(n, fds) && receive(n, pid, sizeof *pid, BIRTH_LIMIT_MS) && *pid > 0) return true;
    nb_fork_server_renew(n);
    return false;
}

static bool forked_has_ended(const struct nb_fork_server *n) {
    struct pollfd p = {.fd = n->socket, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* Without a fork server to tell, its workers have been killed with it. */
static int forked_status(struct nb_fork_server *n) {
    int status;
    ssize_t got;
    while ((got = recv(n->socket, &status, sizeof status, 0)) < 0 && errno == EINTR) continue;
    if (got == (ssize_t)sizeof status) return status;
    nb_fork_server_renew(n);
    return SIGKILL;
}

/* ---- lines -------------------------------------------------------------------------------------------------------- */

struct reader {
    struct nb_strbuf pending;
    void (*take)(cJSON *line, void *arg);
    void *arg;
    struct nb_outcome *outcome;
};

static void take_line(struct reader *r, const char *text, size_t n) {
    cJSON *line = cJSON_ParseWithLength(text, n);
    const char *type = nb_json_get_text(line, "type");
    if (!type) {
        nb_warn("a worker wrote something that is no line of ours: %.60s", text);
        cJSON_Delete(line);
    } else if (strcmp(type, "fault") == 0) {
        const char *status = nb_json_get_text(line, "status"), *reason = nb_json_get_text(line, "reason");
        snprintf(r->outcome->fault_status, sizeof r->outcome->fault_status, "%s", status ? status : "crashed");
        snprintf(r->outcome->fault_reason, sizeof r->outcome->fault_reason, "%s", reason ? reason : "");
        cJSON_Delete(line);
    } else {
        r->take(line, r->arg);
    }
}

/* False at the end. */
static bool read_some(struct reader *r, int fd) {
    char chunk[65536];
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    if (n == 0) return false;
    nb_strbuf_addn(&r->pending, chunk, (size_t)n);
    char *begin = r->pending.text, *end;
    while ((end = memchr(begin, '\n', r->pending.len - (size_t)(begin - r->pending.text)))) {
        take_line(r, begin, (size_t)(end - begin));
        begin = end + 1;
    }
    r->pending.len -= (size_t)(begin - r->pending.text);
    memmove(r->pending.text, begin, r->pending.len + 1);
    return true;
}

/* A process of ours, or of a fork server's (null: ours). */
struct child {
    struct nb_fork_server *fork_server;
    pid_t pid;
};

/* It stays a zombie until wait_for(), so that its number and its process group cannot be another's yet. */
static bool has_ended(const struct child *c) {
    siginfo_t info = {0};
    if (c->fork_server) return forked_has_ended(c->fork_server);
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == c->pid;
}

/* Until the worker has ended; that it closes its end of the pipe says nothing, since a kernel may do so, nor that it does not, since
 * what a kernel forked holds it too. A worker that takes no step for silence_s, or that the user no longer wants, is killed. */
static void follow(struct reader *r, int fd, const struct child *c, const struct nb_shared *shared, double silence_s) {
    int32_t beats = shared->beats;
    double last_step = nb_now_s();
    bool more = true;
    while (!has_ended(c)) {
        struct pollfd p = {.fd = more ? fd : -1, .events = POLLIN};
        int ready = poll(&p, 1, more ? 200 : 1);
        if (ready > 0) more = read_some(r, fd);
        if (ready > 0 || shared->beats != beats) {
            beats = shared->beats;
            last_step = nb_now_s();
        }
        if (interrupted)
            r->outcome->ending = NB_ENDED_BY_USER;
        else if (nb_now_s() - last_step > silence_s)
            r->outcome->ending = NB_ENDED_SILENT;
        else
            continue;
        kill(c->pid, SIGKILL);
        break;
    }
    kill(-c->pid, SIGKILL); /* what its kernels started */
    struct pollfd rest = {.fd = fd, .events = POLLIN};
    while (more && poll(&rest, 1, 0) > 0) more = read_some(r, fd);
}

static void wait_for(const struct child *c, struct nb_outcome *outcome) {
    int status = 0;
    if (c->fork_server)
        status = forked_status(c->fork_server);
    else
        while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
    if (outcome->ending == NB_ENDED_BY_USER || outcome->ending == NB_ENDED_SILENT) return;
    if (WIFSIGNALED(status)) {
        outcome->ending = NB_ENDED_BY_SIGNAL;
        outcome->signal = WTERMSIG(status);
    } else {
        outcome->exit_code = WEXITSTATUS(status);
        outcome->ending = outcome->exit_code == 0 ? NB_ENDED_WELL : NB_ENDED_BADLY;
    }
}

/* A worker from its start to its end: what it says, how long it may be silent, how it ended. */
static int start(struct child *c, struct nb_fork_server *fork_server, const int fds[NB_N_WORKER_FDS], uint64_t seed) {
    if (fork_server && fork_worker(fork_server, fds, &c->pid)) {
        c->fork_server = fork_server;
        return 0;
    }
    return execute_worker(&c->pid, fds, seed);
}

void nb_process_run(struct nb_fork_server *fork_server, const struct nb_job *job, int digests_fd, double silence_s,
                    void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome) {
    *outcome = (struct nb_outcome){.ending = NB_NOT_STARTED, .current = -1};
    struct reader reader = {.take = take, .arg = arg, .outcome = outcome};
    struct nb_shared *shared = MAP_FAILED;
    int answers[2] = {-1, -1}, shared_fd = -1;
    struct child child = {0};
    char *text = nb_job_print(job);
    int job_fd = memory_file("normbench-job", text, strlen(text));
    shared_fd = memory_file("normbench-shared", NULL, sizeof *shared);
    if (job_fd < 0 || shared_fd < 0 || pipe2(answers, O_CLOEXEC) != 0) goto out;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    if (shared == MAP_FAILED) goto out;
    shared->current = -1;
    const int fds[NB_N_WORKER_FDS] = {job_fd, answers[1], shared_fd, digests_fd, -1};
    int error = start(&child, fork_server, fds, job->seed);
    close(answers[1]);
    answers[1] = -1;
    if (error) {
        nb_error("a worker cannot be started: %s", strerror(error));
        goto out;
    }
    outcome->ending = NB_ENDED_WELL;
    follow(&reader, answers[0], &child, shared, silence_s);
    wait_for(&child, outcome);
    outcome->current = shared->current;
out:
    if (shared != MAP_FAILED) munmap(shared, sizeof *shared);
    for (int i = 0; i < 2; i++)
        if (answers[i] >= 0) close(answers[i]);
    if (job_fd >= 0) close(job_fd);
    if (shared_fd >= 0) close(shared_fd);
    nb_strbuf_release(&reader.pending);
    free(text);
}

enum nb_status nb_outcome_blame(const struct nb_outcome *o, char *reason, size_t n) {
    if (o->ending == NB_ENDED_SILENT) {
        snprintf(reason, n, "no end within the time allowed");
        return NB_TIMED_OUT;
    }
    if (o->fault_status[0]) {
        size_t len = (size_t)snprintf(reason, n, "%s", o->fault_reason);
        if (o->signal && len < n) snprintf(reason + len, n - len, " (signal %d)", o->signal);
        enum nb_status status = nb_status_parse(o->fault_status);
        return nb_status_ends(status) ? status : NB_CRASHED;
    }
    if (o->ending == NB_ENDED_BY_SIGNAL && o->signal == SIGKILL)
        snprintf(reason, n, "killed (signal 9), as a system out of memory does");
    else if (o->ending == NB_ENDED_BY_SIGNAL)
        snprintf(reason, n, "signal %d, %s", o->signal, strsignal(o->signal));
    else
        snprintf(reason, n, "ended the process by exit code %d", o->exit_code);
    return NB_CRASHED;
}
