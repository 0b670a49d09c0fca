// SPDX-License-Identifier: Apache-2.0
/* Workers are started by executing this program again: nothing of the parent's state reaches them but the job. */
#include "src/launch/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/timer.h"

extern char **environ;

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

/* In the child the descriptors stand at the numbers of job.h. They are moved out of the way first, behind all of them: a source
 * could itself have one of those numbers. A kernel that prints must not write into the run's data, nor read its input. */
static int spawn(pid_t *pid, const int fds[4], uint64_t seed) {
    enum { FIRST = NB_FD_JOB, N = 4 };
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

/* It stays a zombie until wait_for(), so that its number and its process group cannot be another's yet. */
static bool has_ended(pid_t pid) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Until the worker has ended; that it closes its end of the pipe says nothing, since a kernel may do so, nor that it does not, since
 * what a kernel forked holds it too. A worker that takes no step for silence_s, or that the user no longer wants, is killed. */
static void follow(struct reader *r, int fd, pid_t pid, const struct nb_shared *shared, double silence_s) {
    int32_t beats = shared->beats;
    double last_step = nb_now_s();
    bool more = true;
    while (!has_ended(pid)) {
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
        kill(pid, SIGKILL);
        break;
    }
    kill(-pid, SIGKILL); /* what its kernels started */
    struct pollfd rest = {.fd = fd, .events = POLLIN};
    while (more && poll(&rest, 1, 0) > 0) more = read_some(r, fd);
}

static void wait_for(pid_t pid, struct nb_outcome *outcome) {
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (outcome->ending == NB_ENDED_BY_USER || outcome->ending == NB_ENDED_SILENT) return;
    if (WIFSIGNALED(status)) {
        outcome->ending = NB_ENDED_BY_SIGNAL;
        outcome->signal = WTERMSIG(status);
    } else {
        outcome->exit_code = WEXITSTATUS(status);
        outcome->ending = outcome->exit_code == 0 ? NB_ENDED_WELL : NB_ENDED_BADLY;
    }
}

void nb_process_run(const struct nb_job *job, int digests_fd, double silence_s, uint64_t seed,
                    void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome) {
    *outcome = (struct nb_outcome){.ending = NB_NOT_STARTED, .current = -1};
    struct reader reader = {.take = take, .arg = arg, .outcome = outcome};
    struct nb_shared *shared = MAP_FAILED;
    int answers[2] = {-1, -1}, shared_fd = -1;
    pid_t pid;
    char *text = nb_job_print(job);
    int job_fd = memory_file("normbench-job", text, strlen(text));
    shared_fd = memory_file("normbench-shared", NULL, sizeof *shared);
    if (job_fd < 0 || shared_fd < 0 || pipe2(answers, O_CLOEXEC) != 0) goto out;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    if (shared == MAP_FAILED) goto out;
    shared->current = -1;
    const int fds[4] = {job_fd, answers[1], shared_fd, digests_fd};
    int error = spawn(&pid, fds, seed);
    close(answers[1]);
    answers[1] = -1;
    if (error) {
        nb_error("a worker cannot be started: %s", strerror(error));
        goto out;
    }
    outcome->ending = NB_ENDED_WELL;
    follow(&reader, answers[0], pid, shared, silence_s);
    wait_for(pid, outcome);
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
