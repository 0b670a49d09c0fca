// SPDX-License-Identifier: Apache-2.0
/* What it prints comes through a pipe, which is read while its answer is awaited: a kernel
 * that prints in every call would fill the terminal. */
#include "src/programs/program_process.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/core/timer.h"

static bool is_python(const char *file) { return nb_text_ends(file, ".py"); }

static bool is_shared_object(const char *file) {
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    return nb_text_ends(name, ".so") || strstr(name, ".so.");
}

/* A static program that lies anywhere in memory (PIE) differs from a shared object in this flag alone. */
static bool is_flagged_program(FILE *f, const Elf64_Phdr *dynamic) {
    Elf64_Dyn entry;
    if (fseek(f, (long)dynamic->p_offset, SEEK_SET) != 0) return false;
    for (uint64_t n = dynamic->p_filesz / sizeof entry; n > 0 && fread(&entry, sizeof entry, 1, f) == 1; n--) {
        if (entry.d_tag == DT_NULL) return false;
        if (entry.d_tag == DT_FLAGS_1) return entry.d_un.d_val & DF_1_PIE;
    }
    return false;
}

/* A program of ELF asks for an interpreter (the loader), lies at fixed addresses or says
 * that it is one; other executable files are scripts. */
static bool is_program(FILE *f) {
    Elf64_Ehdr head;
    Elf64_Phdr part, dynamic = {0};
    if (fread(&head, sizeof head, 1, f) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return fseek(f, 0, SEEK_SET) == 0 && fgetc(f) == '#' && fgetc(f) == '!';
    if (head.e_type == ET_EXEC) return true;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof part) return false;
    if (fseek(f, (long)head.e_phoff, SEEK_SET) != 0) return false;
    for (int i = 0; i < head.e_phnum && fread(&part, sizeof part, 1, f) == 1; i++) {
        if (part.p_type == PT_INTERP) return true;
        if (part.p_type == PT_DYNAMIC) dynamic = part;
    }
    return is_flagged_program(f, &dynamic);
}

bool nb_kernel_program_is(const char *file) {
    struct stat st;
    if (is_python(file)) return true;
    if (is_shared_object(file) || stat(file, &st) != 0 || !S_ISREG(st.st_mode) || access(file, X_OK) != 0) return false;
    FILE *f = fopen(file, "re");
    const bool is = f && is_program(f);
    if (f) fclose(f);
    return is;
}

char *nb_python_path(void) {
    const char *path = getenv("PYTHONPATH");
    char *package freed = nb_share_dir("NORMBENCH_PACKAGE", "cmd/packaging/python/src"), *out = NULL;
    if (!package) package = nb_share_dir("NORMBENCH_PACKAGE", "python");
    if (package) out = nb_textf("PYTHONPATH=%s%s%s", package, path && *path ? ":" : "", path ? path : "");
    return out;
}

/* The environment of the program: ours, the descriptors' numbers, and where the package lies. Texts are owned, the list too. */
enum { SOCKET_FD = 3, MEMORY_FD = 4 };
extern char **environ;
static void environment_of(const char *file, struct nb_strings *out) {
    static const char *const ours[] = {"NORMBENCH_WORKER_FD=", "NORMBENCH_MEMORY_FD=", "PYTHONPATH="};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    char *package freed = is_python(file) ? nb_python_path() : NULL;
    for (char **e = environ; *e; e++) {
        bool is_ours = false;
        for (int i = 0; i < (package ? 3 : 2); i++) is_ours |= strncmp(*e, ours[i], strlen(ours[i])) == 0;
        if (!is_ours) nb_strings_add(out, *e);
    }
    nb_strbuf_addf(&text, "%s%d", ours[0], SOCKET_FD);
    nb_strings_add(out, text.text);
    nb_strbuf_clear(&text);
    nb_strbuf_addf(&text, "%s%d", ours[1], MEMORY_FD);
    nb_strings_add(out, text.text);
    if (package) nb_strings_add(out, package);
    *NB_PUSH(out->items, out->n) = NULL;
}

/* ---- who watches ---- */

static struct {
    volatile pid_t *groups;
    int n;
    volatile int32_t *beats;
    pid_t owner;
} watched;

void nb_program_watch(volatile pid_t *groups, int n, volatile int32_t *beats) {
    assert(groups && n > 0 && beats);
    watched.groups = groups;
    watched.n = n;
    watched.beats = beats;
    watched.owner = getpid();
}

static bool is_watched(void) { return watched.groups && watched.owner == getpid(); }

/* One in place of another; 0: none. */
static void note(pid_t before, pid_t now) {
    if (!is_watched()) return;
    for (int i = 0; i < watched.n; i++)
        if (watched.groups[i] == before) {
            watched.groups[i] = now;
            return;
        }
}

/* ---- what it prints ---- */

/* As much of it as tells what goes on; of the rest the end, which says how it came to one. */
enum { MOST_PRINTED = 4096 };

static void print(const char *text, size_t n) {
    fflush(stderr);
    for (ssize_t done; n > 0 && (done = write(STDERR_FILENO, text, n)) > 0; text += done) n -= (size_t)done;
}

static void keep_last(struct nb_program_process *p, const char *text, size_t n) {
    if (n > sizeof p->last) text += n - sizeof p->last, n = sizeof p->last;
    memmove(p->last, p->last + n, sizeof p->last - n);
    memcpy(p->last + sizeof p->last - n, text, n);
}

static void take_output(struct nb_program_process *p) {
    char text[4096];
    const ssize_t n = read(p->output, text, sizeof text);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        close(p->output);
        p->output = -1;
        return;
    }
    size_t *const n_printed = &p->page->n_printed;
    const size_t room = *n_printed < MOST_PRINTED ? MOST_PRINTED - *n_printed : 0;
    const size_t passed = (size_t)n < room ? (size_t)n : room;
    print(text, passed);
    if (*n_printed <= MOST_PRINTED && *n_printed + (size_t)n > MOST_PRINTED) {
        print("\n", 1);
        nb_note("a program with kernels has printed more than %d bytes; the rest is left out", MOST_PRINTED);
    }
    keep_last(p, text + passed, (size_t)n - passed);
    *n_printed += (size_t)n;
}

/* The end of what was left out. */
static void print_last(const struct nb_program_process *p) {
    const size_t n_printed = p->page->n_printed, left_out = n_printed > MOST_PRINTED ? n_printed - MOST_PRINTED : 0;
    const size_t n = left_out < sizeof p->last ? left_out : sizeof p->last;
    const char *text = p->last + sizeof p->last - n, *line = memchr(text, '\n', n);
    if (n == 0) return;
    nb_note("of %zu bytes that the program printed, the last lines:", n_printed);
    if (line && line + 1 < p->last + sizeof p->last) text = line + 1;
    print(text, (size_t)(p->last + sizeof p->last - text));
}

void nb_program_wait(struct nb_program_process *p, int limit_ms) {
    assert(p && p->pid != 0);
    double until = nb_now_s() + (limit_ms < 0 ? 1 : 1e-3 * limit_ms);
    for (;;) {
        struct pollfd ends[] = {{.fd = p->socket, .events = POLLIN}, {.fd = p->output, .events = POLLIN}};
        const bool starts = limit_ms < 0 && p->start_s > 0, is_limited = starts || limit_ms >= 0;
        const double left_s = until - nb_now_s();
        const int n = poll(ends, 2, !is_limited ? -1 : left_s > 0 ? (int)(1e3 * left_s) + 1 : 0);
        if (n > 0 && ends[1].revents) take_output(p);
        if (n > 0 && ends[0].revents) p->start_s = 0;
        if ((n > 0 && ends[0].revents) || (n < 0 && errno != EINTR)) return;
        if (!is_limited || nb_now_s() < until) continue;
        if (!starts) return;
        p->start_s--;
        until = nb_now_s() + 1;
        if (is_watched()) ++*watched.beats;
    }
}

/* ---- its start ---- */

/* What its process is made of; ends: the program's of the socket and of what it prints, where it says that it cannot be started, and the
 * minder's of the lifeline. */
struct birth {
    char **argv, **environment;
    int ends[4], memory;
    void (*begin)(void);
    struct nb_program_page *page;
    volatile pid_t *pid;
};

static _Noreturn void become(const struct birth *b, pid_t minder) {
    enum { AWAY = 10, STATUS_FD = MEMORY_FD + 1 };
    int away[4] = {b->ends[0], b->memory, b->ends[1], b->ends[2]};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != minder) _exit(0);
    setpgid(0, 0); /* what a kernel sends to its group is not for the harness */
    if (b->begin) b->begin();
    const int nothing = open("/dev/null", O_RDONLY);
    for (int i = 0; i < 4; i++) away[i] = fcntl(away[i], F_DUPFD_CLOEXEC, AWAY);
    dup2(nothing, STDIN_FILENO);
    dup2(away[2], STDOUT_FILENO); /* what it prints is no data of ours */
    dup2(away[2], STDERR_FILENO);
    dup2(away[0], SOCKET_FD);
    dup2(away[1], MEMORY_FD);
    dup3(away[3], STATUS_FD, O_CLOEXEC);
    close_range(STATUS_FD + 1, ~0u, 0);
    if (strchr(b->argv[0], '/'))
        nb_cpu_execute(b->argv[0], b->argv, b->environment);
    else
        execvpe(b->argv[0], b->argv, b->environment);
    const int error = errno;
    const ssize_t written = write(STATUS_FD, &error, sizeof error);
    _exit(written == sizeof error ? 0 : 1);
}

/* In an interpreter of any version, from any folder: the standard modules are not to be
 * looked for in the current one, as they are with -m. */
static char in_python[] =
    "import sys\n"
    "if sys.path[:1] == ['']: del sys.path[0]\n"
    "if sys.version_info < (3, 9): sys.exit('normbench: error: %s is Python %d.%d; kernels need 3.9 or later (NORMBENCH_PYTHON "
    "names the interpreter)' % ((sys.executable,) + tuple(sys.version_info[:2])))\n"
    "try: from normbench.worker import main\n"
    "except ModuleNotFoundError as error: sys.exit('normbench: error: %s: %s; install the package there, or set NORMBENCH_PYTHON to "
    "an interpreter that has it' % (sys.executable, error))\n"
    "main()\n";

static void say_not_started(const char *file, const char *interpreter, int error, char *why, size_t n) {
    const bool is_named = getenv("NORMBENCH_PYTHON") && *getenv("NORMBENCH_PYTHON");
    if (!is_python(file) || error == ENOMEM || error == EAGAIN)
        snprintf(why, n, "cannot be started: %s", strerror(error));
    else if (is_named)
        snprintf(why, n, "NORMBENCH_PYTHON=%s cannot be started: %s", interpreter, strerror(error));
    else
        snprintf(why, n, "%s cannot be started: %s; NORMBENCH_PYTHON names another interpreter", interpreter,
                 strerror(error));
}

/* The error with which it could not become the program; 0: it has. */
static int status_of_start(int fd) {
    int error = 0;
    ssize_t n;
    while ((n = read(fd, &error, sizeof error)) < 0 && errno == EINTR) continue;
    return n == sizeof error ? error : 0;
}

static void on_child(int number) { (void)number; }

/* The minder's whole life. A parent's death is told by the lifeline alone: PR_SET_PDEATHSIG is of the thread that forked, which may end long
 * before its process. */
static _Noreturn void mind(const struct birth *b) {
    const struct sigaction action = {.sa_handler = on_child};
    const pid_t self = getpid();
    const int lifeline = b->ends[3];
    siginfo_t info = {0};
    sigset_t child, before;
    setpgid(0, 0); /* a terminal's Ctrl-C goes to the parent alone */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);
    sigprocmask(SIG_BLOCK, &child, &before);
    sigdelset(&before, SIGCHLD);
    const pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        become(b, self);
    }
    const int error = errno;
    *b->pid = pid;
    if (pid < 0 && write(b->ends[2], &error, sizeof error) < 0) _exit(1);
    close_range(0, (unsigned)lifeline - 1, 0);
    close_range((unsigned)lifeline + 1, ~0u, 0);
    for (struct pollfd end = {.fd = lifeline, .events = POLLIN}; pid > 0 && end.revents == 0;) {
        if (info.si_pid == 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
            b->page->how = info.si_code;
            b->page->status = info.si_status;
            b->page->has_ended = 1;
        }
        ppoll(&end, 1, NULL, &before);
    }
    if (pid > 0) kill(-pid, SIGKILL); /* its number and its group's are not another's before it has been waited for */
    if (pid > 0) kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    _exit(0);
}

static int start_s(void) { return (int)nb_load_timeout_s(NB_PROGRAM_LOAD_S); }

static struct nb_program_page *map_page(int fd) {
    void *page = mmap(NULL, sizeof(struct nb_program_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void wait_for(pid_t pid) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

/* ends: ours of the socket, of what it prints, where it says that it cannot be started, and of the lifeline. An error number, or 0. */
static int fork_minder(struct nb_program_process *p, struct birth *b, const int ends[4]) {
    volatile pid_t *pid = mmap(NULL, sizeof *pid, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pid == MAP_FAILED) return errno;
    b->pid = pid;
    fflush(NULL);
    const pid_t minder = fork();
    int error = minder < 0 ? errno : 0;
    if (minder == 0) mind(b);
    for (int i = 0; i < 4; i++) close(b->ends[i]);
    if (minder > 0) error = status_of_start(ends[2]);
    if (minder > 0 && error == 0)
        *p = (struct nb_program_process){.pid = *pid,
                                         .owner = getpid(),
                                         .minder = minder,
                                         .lifeline = ends[3],
                                         .page_fd = p->page_fd,
                                         .page = b->page,
                                         .start_s = start_s()};
    munmap((void *)(uintptr_t)pid, sizeof *pid);
    if (error) close(ends[3]);
    if (error && minder > 0) wait_for(minder);
    return error;
}

static int start(struct nb_program_process *p, struct birth *b) {
    int pairs[4][2], n = 0, error = 0, ours[4];
    p->page_fd = memfd_create("normbench-program", MFD_CLOEXEC);
    if (p->page_fd < 0) return errno;
    if (ftruncate(p->page_fd, sizeof *b->page) != 0 || !(b->page = map_page(p->page_fd))) error = errno;
    while (!error && n < 4) {
        const bool is_socket = n == 0 || n == 3;
        const int result =
            is_socket ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[n]) : pipe2(pairs[n], O_CLOEXEC);
        if (result != 0)
            error = errno;
        else
            n++;
    }
    if (error) {
        for (int i = 0; i < n; i++) close(pairs[i][0]), close(pairs[i][1]);
        if (b->page) munmap(b->page, sizeof *b->page);
        close(p->page_fd);
        return error;
    }
    for (int i = 0; i < 4; i++) ours[i] = pairs[i][0], b->ends[i] = pairs[i][1]; /* of pipes, we read */
    b->page->is_clean = true;
    const int page_fd = p->page_fd;
    error = fork_minder(p, b, ours);
    close(ours[2]);
    if (error) {
        close(ours[0]);
        close(ours[1]);
        munmap(b->page, sizeof *b->page);
        close(page_fd);
        return error;
    }
    fcntl(ours[1], F_SETFL, O_NONBLOCK);
    p->socket = nb_fd_out_of_reach(ours[0], false);
    p->output = nb_fd_out_of_reach(ours[1], false);
    note(0, p->pid);
    return 0;
}

bool nb_program_start(struct nb_program_process *p, const char *file, int memory, void (*begin)(void), char *why,
                      size_t n) {
    assert(p && file && memory >= 0 && why);
    char python[] = "python3", option[] = "-c";
    char *named = getenv("NORMBENCH_PYTHON"), *path freed = realpath(file, NULL);
    char *for_python[] = {named && *named ? named : python, option, in_python, path, NULL};
    char *alone[] = {path, NULL}, **argv = is_python(file) ? for_python : alone;
    struct nb_strings environment released_by(nb_strings_release) = {0};
    int error = errno;
    p->pid = 0;
    if (path) {
        environment_of(file, &environment);
        struct birth b = {.argv = argv, .environment = environment.items, .memory = memory, .begin = begin};
        error = start(p, &b);
    }
    if (error) say_not_started(file, argv[0] ? argv[0] : file, error, why, n);
    return error == 0;
}

/* ---- one of another process ---- */

/* Few: a worker has the programs of its own cases alone. */
static struct offer {
    char *file; /* null: taken */
    pid_t pid;
    int fds[3];
} * offers;
static size_t n_offers;

void nb_program_offer(const char *file, pid_t pid, const int fds[3]) {
    assert(file && pid > 0 && fds);
    *NB_PUSH(offers, n_offers) = (struct offer){nb_strdup(file), pid, {fds[0], fds[1], fds[2]}};
}

bool nb_program_take(struct nb_program_process *p, const char *file) {
    struct offer *o = NULL;
    for (size_t i = 0; i < n_offers && !o; i++)
        if (offers[i].file && strcmp(offers[i].file, file) == 0) o = &offers[i];
    struct nb_program_page *page = o ? map_page(o->fds[2]) : NULL;
    if (!page) return false;
    *p = (struct nb_program_process){.pid = o->pid,
                                     .owner = getpid(),
                                     .socket = nb_fd_out_of_reach(o->fds[0], false),
                                     .output = nb_fd_out_of_reach(o->fds[1], false),
                                     .lifeline = -1,
                                     .page_fd = nb_fd_out_of_reach(o->fds[2], false),
                                     .page = page,
                                     .start_s = page->hello_bytes ? 0 : start_s()};
    page->is_clean = false;
    note(0, p->pid);
    free(o->file);
    o->file = NULL;
    return true;
}

/* ---- its end ---- */

static void say_ended(const struct nb_program_page *page, char *how, size_t n) {
    if (page->how == CLD_EXITED)
        snprintf(how, n, "ended with exit code %d", page->status);
    else
        snprintf(how, n, "was ended by signal %d (%s)", page->status, strsignal(page->status));
}

void nb_program_forget(struct nb_program_process *p) {
    assert(p && p->pid != 0);
    if (p->owner == getpid()) note(p->pid, 0);
    close(p->socket);
    if (p->output >= 0) close(p->output);
    if (p->lifeline >= 0) close(p->lifeline);
    close(p->page_fd);
    munmap(p->page, sizeof *p->page);
    p->pid = 0;
}

bool nb_program_end(struct nb_program_process *p, bool of_itself, char *how, size_t n) {
    enum { ROUNDS = 1000, ROUND_MS = 1 };
    assert(p && p->pid != 0 && p->owner == getpid() && how);
    for (int i = 0; i < ROUNDS && of_itself && !p->page->has_ended; i++) {
        poll(NULL, 0, ROUND_MS);
        if (p->output >= 0) take_output(p);
    }
    const bool has_ended = p->page->has_ended;
    if (has_ended) say_ended(p->page, how, n);
    kill(-p->pid, SIGKILL); /* the minder has not waited for it yet */
    kill(p->pid, SIGKILL);
    for (int i = 0; i < ROUNDS && !p->page->has_ended; i++) poll(NULL, 0, ROUND_MS);
    for (size_t before = p->page->n_printed + 1; p->output >= 0 && before != p->page->n_printed;)
        before = p->page->n_printed, take_output(p);
    if (has_ended && (p->page->how != CLD_EXITED || p->page->status != 0)) print_last(p);
    if (p->minder) { /* told so, since a fork of this process may hold the lifeline too */
        send(p->lifeline, "", 1, MSG_NOSIGNAL);
        wait_for(p->minder);
    }
    nb_program_forget(p);
    return has_ended;
}
