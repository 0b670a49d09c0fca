// SPDX-License-Identifier: Apache-2.0
/* Workers are started by executing this program again, so that nothing of the parent's state reaches them but the job; or by a fork
 * server. A fork server that says nothing is ended, and workers are executed from then on. */
#include "src/measure/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/timer.h"
#include "src/measure/kept_memory.h"
#include "src/measure/kept_programs.h"
#include "src/programs/program_process.h"

static volatile sig_atomic_t interrupted;
static void on_interrupt(int number) { interrupted = number; }

void nb_watch_interrupts(void) {
    /* No SA_RESTART: poll() shall return. The second time the signal has its way. */
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    nb_guard_ends_when(nb_interrupted);
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
    char program[] = "normbench", subcommand[] = "__worker", name[] = "-0";
    char *own[] = {program, subcommand, NULL}, *emulated[] = {program, name, program, NULL, subcommand, NULL};
    const char *emulator = nb_cpu_emulator();
    char *file freed = emulator ? realpath("/proc/self/exe", NULL) : NULL;
    emulated[3] = file; /* by which the emulator finds it: its /proc/self/exe is the emulator */
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
    char **environment freed = padded_environment(seed, padding, 4096);
    int error = posix_spawn(pid, emulator ? emulator : "/proc/self/exe", &actions, &attributes, file ? emulated : own,
                            environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* ---- fork server ------------------------------------------------------------------------------------------------- */

enum { READY_LIMIT_MS = 120000, BIRTH_LIMIT_MS = 20000 };

bool nb_fork_server_pays(const char *const *plugins, int n_plugins) {
    for (int i = 0; i < n_plugins; i++)
        if (nb_peer_is(plugins[i])) return true;
    return n_plugins == 0;
}

void nb_fork_server_renew(struct nb_fork_server *n) {
    if (n->pid == 0) return;
    kill(n->pid, SIGKILL);
    close(n->socket);
    while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR) continue;
    nb_strbuf_release(&n->answers.begun);
    n->has_word = false;
    n->pid = 0;
}

static void take_word(const char *text, size_t n, void *arg) {
    struct nb_fork_server *server = arg;
    if (n != sizeof server->word) return;
    memcpy(&server->word, text, n);
    server->has_word = true;
}

/* False: nothing came, or the user wants to stop. */
static bool receive(struct nb_fork_server *n, int *word, int limit_ms) {
    const double end_s = nb_now_s() + 1e-3 * limit_ms;
    struct pollfd p = {.fd = n->socket, .events = POLLIN};
    bool more = true;
    while (!n->has_word && more && nb_now_s() < end_s && poll(&p, 1, limit_ms) == 1)
        more = nb_answers_read(&n->answers, n->socket, take_word, n);
    *word = n->word;
    const bool came = n->has_word;
    n->has_word = false;
    return came;
}

/* What the parent and a worker share while it works, in *fd; null: no memory. */
static struct nb_shared *make_shared(int *fd, uint64_t secret) {
    *fd = memory_file("normbench-shared", NULL, sizeof(struct nb_shared));
    struct nb_shared *shared =
        *fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (shared == MAP_FAILED) return NULL;
    shared->current = -1;
    shared->secret = secret;
    return shared;
}

/* Those of the files that are programs, or that are not. Owned, as a list. */
static const char **choose(const char *const *files, int n, bool programs, int *n_chosen) {
    const char **chosen = nb_alloc((unsigned)n + 1, sizeof *chosen);
    *n_chosen = 0;
    for (int i = 0; i < n; i++)
        if ((!nb_peer_is(files[i]) && nb_kernel_program_is(files[i])) == programs) chosen[(*n_chosen)++] = files[i];
    return chosen;
}

static bool start_server(struct nb_fork_server *n) {
    int n_objects;
    const char **objects freed = choose(n->plugins, n->n_plugins, false, &n_objects);
    const struct nb_job job = {.kind = "fork_server", .plugins = objects, .n_plugins = n_objects, .digests_at = -1};
    int ends[2], ready, shared_fd released_by(nb_fd_release) = -1;
    char *text freed = nb_job_print(&job);
    const int job_fd released_by(nb_fd_release) = memory_file("normbench-job", text, strlen(text));
    if (job_fd < 0 || nb_answers_open(&n->answers, ends) != 0) return false;
    struct nb_shared *shared = make_shared(&shared_fd, n->answers.secret);
    const int fds[NB_N_WORKER_FDS] = {job_fd, ends[1], shared_fd, -1, -1, -1};
    const bool is_started = shared && execute_worker(&n->pid, fds, n->seed++) == 0;
    if (shared) munmap(shared, sizeof *shared);
    close(ends[1]);
    n->socket = ends[0];
    if (is_started && receive(n, &ready, READY_LIMIT_MS)) return true;
    if (is_started) nb_fork_server_renew(n);
    if (!is_started) close(ends[0]), n->pid = 0;
    return false;
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
    return nb_fds_send(n->socket, &which, 1, present, (size_t)n_present);
}

/* A worker with these descriptors, one at a time. False: not from here. */
static bool fork_worker(struct nb_fork_server *n, const int fds[NB_N_WORKER_FDS], pid_t *pid) {
    if (n->refused) return false;
    if (n->pid == 0 && !start_server(n)) {
        n->refused = true;
        return false;
    }
    if (send_descriptors(n, fds) && receive(n, pid, BIRTH_LIMIT_MS) && *pid > 0) return true;
    nb_fork_server_renew(n);
    n->refused = true;
    return false;
}

/* Its status has come, or the fork server is no more. */
static bool forked_has_ended(struct nb_fork_server *n) {
    struct pollfd p = {.fd = n->socket, .events = POLLIN};
    while (!n->has_word && poll(&p, 1, 0) > 0)
        if (!nb_answers_read(&n->answers, n->socket, take_word, n)) return true;
    return n->has_word;
}

/* Without a fork server to tell, its workers have been killed with it. */
static int forked_status(struct nb_fork_server *n) {
    struct pollfd p = {.fd = n->socket, .events = POLLIN};
    while (!forked_has_ended(n)) poll(&p, 1, -1);
    if (n->has_word) return n->has_word = false, n->word;
    nb_fork_server_renew(n);
    return SIGKILL;
}

/* ---- lines -------------------------------------------------------------------------------------------------------- */

struct reader {
    struct nb_answers answers;
    cJSON *lines; /* kept until the worker has ended */
    struct nb_outcome *outcome;
};

static void take_line(const char *text, size_t n, void *arg) {
    struct reader *r = arg;
    cJSON *line = strlen(text) == n && nb_json_is_utf8(text) ? cJSON_ParseWithOpts(text, NULL, true) : NULL;
    const char *type = nb_json_get_text(line, "type");
    if (!type) {
        r->answers.n_strange++;
        cJSON_Delete(line);
    } else if (strcmp(type, "fault") == 0) {
        const char *status = nb_json_get_text(line, "status"), *reason = nb_json_get_text(line, "reason");
        snprintf(r->outcome->fault_status, sizeof r->outcome->fault_status, "%s", status ? status : "crashed");
        snprintf(r->outcome->fault_reason, sizeof r->outcome->fault_reason, "%s", reason ? reason : "");
        cJSON_Delete(line);
    } else {
        cJSON_AddItemToArray(r->lines, line);
    }
}

/* A process of ours, or of a fork server's (null: ours). */
struct child {
    struct nb_fork_server *fork_server;
    pid_t pid;
};

/* It stays a zombie until wait_for(), so that its number and its process group cannot be another's yet. */
static bool has_ended(struct child *c) {
    siginfo_t info = {0};
    if (c->fork_server) return forked_has_ended(c->fork_server);
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == c->pid;
}

/* For a CPU: the worker, and the programs whose kernels it calls. */
static double waited_s(const struct child *c, const struct nb_shared *shared) {
    double s = nb_waited_for_cpu_s(c->pid);
    for (size_t i = 0; i < sizeof shared->groups / sizeof shared->groups[0]; i++)
        if (shared->groups[i] > 1) s += nb_waited_for_cpu_s(shared->groups[i]);
    return s;
}

/* The worker, or a program whose kernels it calls. */
static bool is_overdue(const struct child *c, const struct nb_shared *shared, double since_s, double limit_s) {
    bool is = nb_is_overdue(c->pid, since_s, limit_s);
    for (size_t i = 0; i < sizeof shared->groups / sizeof shared->groups[0] && !is; i++)
        is = shared->groups[i] > 1 && nb_is_overdue(shared->groups[i], since_s, limit_s);
    return is;
}

/* Until the worker has ended; that it closes its end of the socket says nothing, since a kernel may do so, nor that it does not, since
 * what a kernel forked holds it too. A worker that takes no step for silence_s, or that the user no longer wants, is killed. */
static void follow(struct reader *r, int fd, struct child *c, const struct nb_shared *shared, double silence_s) {
    int32_t beats = shared->beats;
    double last_step = nb_now_s(), waited = waited_s(c, shared);
    bool more = true;
    pid_t group;
    while (!has_ended(c)) {
        struct pollfd p = {.fd = more ? fd : -1, .events = POLLIN};
        int ready = poll(&p, 1, more ? 200 : 1);
        const uint64_t next = r->answers.next;
        if (ready > 0) more = nb_answers_read(&r->answers, fd, take_line, r);
        if (r->answers.next != next || shared->beats != beats) {
            beats = shared->beats;
            last_step = nb_now_s();
            waited = waited_s(c, shared);
        }
        if (interrupted)
            r->outcome->ending = NB_ENDED_BY_USER;
        else if (is_overdue(c, shared, last_step + fmax(waited_s(c, shared) - waited, 0), silence_s))
            r->outcome->ending = NB_ENDED_SILENT;
        else
            continue;
        kill(c->pid, SIGKILL);
        break;
    }
    kill(-c->pid, SIGKILL); /* what its kernels started, and those of programs */
    for (size_t i = 0; i < sizeof shared->groups / sizeof shared->groups[0]; i++)
        if ((group = shared->groups[i]) > 1) kill(-group, SIGKILL);
    struct pollfd rest = {.fd = fd, .events = POLLIN};
    while (more && poll(&rest, 1, 0) > 0) more = nb_answers_read(&r->answers, fd, take_line, r);
}

static void wait_for(struct child *c, struct nb_outcome *outcome) {
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

/* Once, since the kernel is in as many workers as there are launches. */
static void warn_of_strangers(const struct nb_job *job) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        nb_warn("a kernel wrote to descriptors that are not its own; what it wrote was dropped (first seen with %s)",
                job->n_cases > 0 ? job->asked[0].key : job->kind);
}

/* The programs that the job's worker is to have. Null: none. */
static struct nb_kept_programs *lend_programs(const struct nb_job *job) {
    int n, n_needed = 0;
    const char **files freed = choose(job->plugins, job->n_plugins, true, &n);
    for (int i = 0; i < n; i++)
        if (nb_job_needs(job, files[i])) files[n_needed++] = files[i];
    struct nb_kept_programs *programs =
        n_needed > 0 ? nb_kept_programs_lend(files, n_needed, job->programs_anew) : NULL;
    return programs;
}

/* Returns what the worker said; owned. */
static cJSON *run_once(struct nb_fork_server *fork_server, const struct nb_job *wanted, int digests_fd,
                       double silence_s, struct nb_outcome *outcome) {
    struct nb_job given = *wanted, *const job = &given;
    struct nb_kept_programs *programs = lend_programs(wanted);
    const int programs_fd released_by(nb_fd_release) =
        programs ? nb_kept_programs_send(programs, &given.n_programs) : -1;
    *outcome = (struct nb_outcome){.ending = NB_NOT_STARTED,
                                   .current = -1,
                                   .silence_s = silence_s,
                                   .had_company = programs && nb_kept_programs_had_company(programs)};
    struct reader reader = {.lines = cJSON_CreateArray(), .outcome = outcome};
    struct nb_shared *shared = NULL;
    int ends[2], error = 0, shared_fd released_by(nb_fd_release) = -1;
    struct child child = {0};
    char *text freed = nb_job_print(job);
    const int job_fd released_by(nb_fd_release) = memory_file("normbench-job", text, strlen(text));
    const bool is_open = job_fd >= 0 && nb_answers_open(&reader.answers, ends) == 0;
    if (!is_open || !(shared = make_shared(&shared_fd, reader.answers.secret))) error = errno ? errno : ENOMEM;
    /* Not where a plugin runs: a process that it leaves behind would share the memory of later workers. */
    const int memory_fd = job->cold_bytes > 0 && job->n_plugins == 0 ? nb_kept_memory_lend() : -1;
    if (!error) {
        const int fds[NB_N_WORKER_FDS] = {job_fd, ends[1], shared_fd, digests_fd, programs_fd, memory_fd};
        nb_worked("process", NULL, 1, 0);
        error = start(&child, fork_server, fds, job->seed);
    }
    if (is_open) close(ends[1]);
    if (error) {
        nb_error("a worker cannot be started: %s", strerror(error));
    } else {
        outcome->ending = NB_ENDED_WELL;
        follow(&reader, ends[0], &child, shared, silence_s);
        wait_for(&child, outcome);
        outcome->current = shared->current;
        if (reader.answers.n_strange > 0) warn_of_strangers(job);
    }
    if (is_open) close(ends[0]);
    nb_kept_memory_return(memory_fd);
    if (programs) nb_kept_programs_return(programs, outcome->ending == NB_ENDED_WELL);
    if (shared) munmap(shared, sizeof *shared);
    nb_strbuf_release(&reader.answers.begun);
    return reader.lines;
}

/* By a signal that no kernel's mistake leads to: by a system out of memory, or by a user. */
static bool was_killed(const struct nb_outcome *o) {
    return o->ending == NB_ENDED_BY_SIGNAL && o->signal == SIGKILL && !o->fault_status[0];
}

void nb_process_run(struct nb_fork_server *fork_server, const struct nb_job *job, int digests_fd, double silence_s,
                    void (*take)(cJSON *line, void *arg), void *arg, struct nb_outcome *outcome) {
    cJSON *line, *lines = run_once(fork_server, job, digests_fd, silence_s, outcome);
    if (was_killed(outcome) && !interrupted) {
        nb_note("a worker was killed (signal 9); its work is repeated");
        cJSON_Delete(lines);
        lines = run_once(fork_server, job, digests_fd, silence_s, outcome);
    }
    while ((line = cJSON_DetachItemFromArray(lines, 0))) take(line, arg);
    cJSON_Delete(lines);
}

enum nb_status nb_outcome_blame(const struct nb_outcome *o, char *reason, size_t n) {
    if (o->ending == NB_ENDED_SILENT) {
        snprintf(reason, n, "no end within %.3g s", o->silence_s);
        return NB_TIMED_OUT;
    }
    if (o->fault_status[0]) {
        size_t len = (size_t)snprintf(reason, n, "%s", o->fault_reason);
        if (o->signal && len < n) snprintf(reason + len, n - len, " (signal %d)", o->signal);
        enum nb_status status = nb_status_parse(o->fault_status);
        return nb_status_ends(status) ? status : NB_CRASHED;
    }
    if (o->ending == NB_ENDED_BY_SIGNAL && o->signal == SIGKILL)
        snprintf(reason, n, "killed twice (signal 9), as a system out of memory does");
    else if (o->ending == NB_ENDED_BY_SIGNAL)
        snprintf(reason, n, "signal %d, %s", o->signal, strsignal(o->signal));
    else
        snprintf(reason, n, "ended the process with exit code %d", o->exit_code);
    return NB_CRASHED;
}
