// SPDX-License-Identifier: Apache-2.0
/* One request and one answer at a time, each a packet over a socket. The code that the guard runs may write to that socket as well: an
 * answer bears the number of its request, which is random, and one that does not ends the guard. */
#include "src/core/guard.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/timer.h"

struct packet {
    uint64_t number;
    void (*work)(void *arg);
    unsigned char arg[NB_GUARD_BYTES];
};
enum { HEAD = offsetof(struct packet, arg) };

static struct {
    pid_t pid, owner; /* owner: whose it is; a fork of that process has none */
    int socket;
} guard;
static bool is_guard;
static void (*begins_with)(void);
static int (*is_over)(void);

void nb_guard_begins_with(void (*begin)(void)) { begins_with = begin; }
void nb_guard_ends_when(int (*over)(void)) { is_over = over; }

double nb_load_timeout_s(double usual_s) {
    const char *said = getenv(NB_LOAD_TIMEOUT);
    const double s = said ? strtod(said, NULL) : 0;
    return s >= 1 && s <= 86400 ? s : usual_s;
}

/* ---- the guard's side ---- */

static _Noreturn void serve(int fd, pid_t owner) {
    static struct packet p;
    is_guard = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != owner) _exit(0);
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what it prints is no data of ours */
    fd = nb_fd_out_of_reach(fd, true);
    for (int number = 1; number < NSIG; number++)
        if (number != SIGPIPE) signal(number, SIG_DFL);
    if (begins_with) begins_with();
    for (;;) {
        const ssize_t n = recv(fd, &p, sizeof p, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < HEAD) _exit(0);
        p.work(p.arg);
        fflush(NULL);
        if (send(fd, &p, (size_t)n, MSG_NOSIGNAL) != n) _exit(0);
    }
}

/* ---- this side ---- */

void nb_guard_end(void) {
    if (guard.pid == 0) return;
    close(guard.socket);
    if (guard.owner == getpid()) {
        kill(guard.pid, SIGKILL);
        kill(-guard.pid, SIGKILL); /* what it started */
        while (waitpid(guard.pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    guard.pid = 0;
}

static bool start(void) {
    static bool registered;
    const pid_t owner = getpid();
    int ends[2];
    if (guard.pid != 0 && guard.owner == owner) return true;
    nb_guard_end();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    fflush(NULL); /* so that nothing is written twice */
    guard.pid = fork();
    if (guard.pid == 0) {
        close(ends[0]);
        serve(ends[1], owner);
    }
    close(ends[1]);
    guard.socket = ends[0];
    guard.owner = owner;
    if (guard.pid < 0) {
        guard.pid = 0;
        close(ends[0]);
        return false;
    }
    if (!registered) registered = atexit(nb_guard_end) == 0;
    return true;
}

static bool has_ended(siginfo_t *info) {
    *info = (siginfo_t){0};
    return waitid(P_PID, (id_t)guard.pid, info, WEXITED | WNOHANG | WNOWAIT) == 0 && info->si_pid == guard.pid;
}

static const char *ending(const siginfo_t *info) {
    static char text[80];
    if (info->si_code == CLD_EXITED)
        snprintf(text, sizeof text, "ended the process with exit code %d", info->si_status);
    else
        snprintf(text, sizeof text, "was ended by signal %d (%s)", info->si_status, strsignal(info->si_status));
    return text;
}

/* Null: an answer has come. A process that the guard started may hold its end of the socket open, so that its end is watched too. */
static const char *wait_for_answer(double limit_s) {
    enum { LOOK_MS = 20 };
    static char late[40];
    const double start_s = nb_now_s(), waited_s = nb_waited_for_cpu_s(guard.pid);
    siginfo_t info;
    for (;;) {
        struct pollfd p = {.fd = guard.socket, .events = POLLIN};
        const int ready = poll(&p, 1, LOOK_MS);
        if (ready > 0 && p.revents & POLLIN) return NULL;
        if (has_ended(&info)) return ending(&info);
        if (is_over && is_over()) return "was interrupted";
        if (nb_is_overdue(guard.pid, start_s + nb_waited_for_cpu_s(guard.pid) - waited_s, limit_s)) break;
    }
    snprintf(late, sizeof late, "did not end within %g s", limit_s);
    return late;
}

/* Of a guard that sends nothing more. */
static const char *last_words(void) {
    siginfo_t info;
    for (int i = 0; i < 100; i++) {
        if (has_ended(&info)) return ending(&info);
        poll(NULL, 0, 10);
    }
    return "closed a descriptor that is not its own";
}

/* Null, or what happened instead. */
static const char *answered(struct packet *answer, uint64_t number, size_t bytes, double limit_s) {
    const char *why = wait_for_answer(limit_s);
    if (why) return why;
    const ssize_t n = recv(guard.socket, answer, sizeof *answer, MSG_DONTWAIT);
    if (n <= 0) return last_words();
    return (size_t)n == HEAD + bytes && answer->number == number ? NULL : "wrote to a descriptor that is not its own";
}

const char *nb_guarded(void (*work)(void *arg), void *arg, size_t bytes, double limit_s) {
    assert(work && (arg || bytes == 0) && bytes <= NB_GUARD_BYTES && limit_s > 0);
    static struct packet request, answer;
    const char *why = NULL;
    if (is_guard) {
        work(arg);
        return NULL;
    }
    if (!start()) return "has no process to run in (`ulimit -u`, `ulimit -v`)";
    request.work = work;
    while (getrandom(&request.number, sizeof request.number, 0) < 0 && errno == EINTR) continue;
    if (bytes) memcpy(request.arg, arg, bytes);
    const bool sent = send(guard.socket, &request, HEAD + bytes, MSG_NOSIGNAL) >= 0;
    why = sent ? answered(&answer, request.number, bytes, limit_s) : last_words();
    if (why)
        nb_guard_end();
    else if (bytes)
        memcpy(arg, answer.arg, bytes);
    return why;
}
