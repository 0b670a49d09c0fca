// SPDX-License-Identifier: Apache-2.0
/* Workers are started by executing this program again: nothing of the parent's state reaches them but the job. */
#include "src/measure/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/json.h"
#include "src/core/log.h"
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
    if (c->fork_server) return nb_fork_server_child_ended(c->fork_server);
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
        status = nb_fork_server_child_status(c->fork_server);
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
    if (fork_server && nb_fork_server_spawn(fork_server, fds, &c->pid)) {
        c->fork_server = fork_server;
        return 0;
    }
    return nb_spawn_worker(&c->pid, fds, seed);
}

void nb_process_run(const struct nb_job *job, int digests_fd, double silence_s, uint64_t seed,
                    void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome) {
    nb_process_run_from(NULL, job, digests_fd, silence_s, seed, take, arg, outcome);
}

void nb_process_run_from(struct nb_fork_server *fork_server, const struct nb_job *job, int digests_fd, double silence_s,
                         uint64_t seed, void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome) {
    *outcome = (struct nb_outcome){.ending = NB_NOT_STARTED, .current = -1};
    struct reader reader = {.take = take, .arg = arg, .outcome = outcome};
    struct nb_shared *shared = MAP_FAILED;
    int answers[2] = {-1, -1}, shared_fd = -1;
    struct child child = {0};
    char *text = nb_job_print(job);
    int job_fd = nb_memory_file("normbench-job", text, strlen(text));
    shared_fd = nb_memory_file("normbench-shared", NULL, sizeof *shared);
    if (job_fd < 0 || shared_fd < 0 || pipe2(answers, O_CLOEXEC) != 0) goto out;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    if (shared == MAP_FAILED) goto out;
    shared->current = -1;
    const int fds[NB_N_WORKER_FDS] = {job_fd, answers[1], shared_fd, digests_fd, -1};
    int error = start(&child, fork_server, fds, seed);
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
        return status == NB_N_STATUSES ? NB_CRASHED : status;
    }
    if (o->ending == NB_ENDED_BY_SIGNAL && o->signal == SIGKILL)
        snprintf(reason, n, "killed (signal 9), as a system out of memory does");
    else if (o->ending == NB_ENDED_BY_SIGNAL)
        snprintf(reason, n, "signal %d, %s", o->signal, strsignal(o->signal));
    else
        snprintf(reason, n, "ended the process by exit code %d", o->exit_code);
    return NB_CRASHED;
}
