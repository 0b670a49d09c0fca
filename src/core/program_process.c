// SPDX-License-Identifier: Apache-2.0
/* What it prints comes through a pipe, which is read while its answer is awaited: a kernel that prints in every call would fill the terminal. */
#include "src/core/program_process.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/core/timer.h"

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}
static bool is_python(const char *file) { return ends_with(file, ".py"); }

static bool is_shared_object(const char *file) {
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    return ends_with(name, ".so") || strstr(name, ".so.");
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

/* A program of ELF asks for an interpreter (the loader), lies at fixed addresses or says that it is one; other executable files are scripts. */
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
    assert(file);
    struct stat st;
    if (is_python(file)) return true;
    if (is_shared_object(file) || stat(file, &st) != 0 || !S_ISREG(st.st_mode) || access(file, X_OK) != 0) return false;
    FILE *f = fopen(file, "re");
    const bool is = f && is_program(f);
    if (f) fclose(f);
    return is;
}

/* The environment of the program: ours, the descriptors' numbers, and where the package lies that came with this program, which is preferred to
 * any other, since it speaks the same version. Texts are owned, the list too. */
enum { SOCKET_FD = 3, MEMORY_FD = 4 };
extern char **environ;
static void environment_of(const char *file, struct nb_strings *out) {
    static const char *const ours[] = {"NORMBENCH_WORKER_FD=", "NORMBENCH_MEMORY_FD=", "PYTHONPATH="};
    struct nb_strbuf text = {0};
    char *package = is_python(file) ? nb_share_dir("NORMBENCH_PACKAGE", "cmd/packaging/python/src") : NULL;
    const char *path = getenv("PYTHONPATH");
    if (is_python(file) && !package) package = nb_share_dir("NORMBENCH_PACKAGE", "python");
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
    nb_strbuf_clear(&text);
    nb_strbuf_addf(&text, "%s%s%s%s", ours[2], package ? package : "", path && *path ? ":" : "", path ? path : "");
    if (package) nb_strings_add(out, text.text);
    nb_strbuf_release(&text);
    free(package);
    out->items = nb_realloc(out->items, out->n + 1, sizeof *out->items);
    out->items[out->n] = NULL;
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
    const size_t room = p->n_printed < MOST_PRINTED ? MOST_PRINTED - p->n_printed : 0;
    const size_t passed = (size_t)n < room ? (size_t)n : room;
    print(text, passed);
    if (p->n_printed <= MOST_PRINTED && p->n_printed + (size_t)n > MOST_PRINTED) {
        print("\n", 1);
        nb_note("a program with kernels has printed more than %d bytes; the rest is left out", MOST_PRINTED);
    }
    keep_last(p, text + passed, (size_t)n - passed);
    p->n_printed += (size_t)n;
}

/* The end of what was left out. */
static void print_last(const struct nb_program_process *p) {
    const size_t left_out = p->n_printed > MOST_PRINTED ? p->n_printed - MOST_PRINTED : 0;
    const size_t n = left_out < sizeof p->last ? left_out : sizeof p->last;
    const char *text = p->last + sizeof p->last - n, *line = memchr(text, '\n', n);
    if (n == 0) return;
    nb_note("of %zu bytes that the program printed, the last lines:", p->n_printed);
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

static _Noreturn void become(char **argv, char **environment, const int ends[3], int memory, pid_t owner) {
    enum { AWAY = 10, STATUS_FD = MEMORY_FD + 1 };
    int away[4] = {ends[0], memory, ends[1], ends[2]};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != owner) _exit(0);
    setpgid(0, 0); /* what a kernel sends to its group is not for the harness */
    const int nothing = open("/dev/null", O_RDONLY);
    for (int i = 0; i < 4; i++) away[i] = fcntl(away[i], F_DUPFD_CLOEXEC, AWAY);
    dup2(nothing, STDIN_FILENO);
    dup2(away[2], STDOUT_FILENO); /* what it prints is no data of ours */
    dup2(away[2], STDERR_FILENO);
    dup2(away[0], SOCKET_FD);
    dup2(away[1], MEMORY_FD);
    dup3(away[3], STATUS_FD, O_CLOEXEC);
    close_range(STATUS_FD + 1, ~0u, 0);
    if (strchr(argv[0], '/'))
        nb_cpu_execute(argv[0], argv, environment);
    else
        execvpe(argv[0], argv, environment);
    const int error = errno;
    const ssize_t written = write(STATUS_FD, &error, sizeof error);
    _exit(written == sizeof error ? 0 : 1);
}

/* In an interpreter of any version, from any folder: the standard modules are not to be looked for in the current one, as they are with -m. */
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

enum { START_S = 60 };

static int start(struct nb_program_process *p, char **argv, char **environment, int memory) {
    int sockets[2], output[2], status[2], error;
    const pid_t owner = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return errno;
    if (pipe2(output, O_CLOEXEC) != 0) return error = errno, close(sockets[0]), close(sockets[1]), error;
    if (pipe2(status, O_CLOEXEC) != 0) {
        error = errno;
        for (int i = 0; i < 2; i++) close(sockets[i]), close(output[i]);
        return error;
    }
    fflush(NULL);
    const pid_t pid = fork();
    error = errno;
    if (pid == 0) become(argv, environment, (int[3]){sockets[1], output[1], status[1]}, memory, owner);
    close(sockets[1]);
    close(output[1]);
    close(status[1]);
    if (pid > 0) error = status_of_start(status[0]);
    close(status[0]);
    if (pid > 0 && error == 0) {
        fcntl(output[0], F_SETFL, O_NONBLOCK);
        *p = (struct nb_program_process){.pid = pid,
                                         .owner = owner,
                                         .start_s = START_S,
                                         .socket = nb_fd_out_of_reach(sockets[0], false),
                                         .output = nb_fd_out_of_reach(output[0], false)};
        note(0, pid);
        return 0;
    }
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    close(sockets[0]);
    close(output[0]);
    return error;
}

bool nb_program_start(struct nb_program_process *p, const char *file, int memory, char *why, size_t n) {
    assert(p && file && memory >= 0 && why);
    char python[] = "python3", option[] = "-c";
    char *named = getenv("NORMBENCH_PYTHON"), *path = realpath(file, NULL);
    char *for_python[] = {named && *named ? named : python, option, in_python, path, NULL};
    char *alone[] = {path, NULL}, **argv = is_python(file) ? for_python : alone;
    struct nb_strings environment = {0};
    int error = errno;
    p->pid = 0;
    if (path) {
        environment_of(file, &environment);
        error = start(p, argv, environment.items, memory);
        nb_strings_release(&environment);
    }
    if (error) say_not_started(file, argv[0] ? argv[0] : file, error, why, n);
    free(path);
    return error == 0;
}

/* ---- its end ---- */

static void say_ended(const siginfo_t *info, char *how, size_t n) {
    if (info->si_code == CLD_EXITED)
        snprintf(how, n, "ended with exit code %d", info->si_status);
    else
        snprintf(how, n, "was ended by signal %d (%s)", info->si_status, strsignal(info->si_status));
}

void nb_program_forget(struct nb_program_process *p) {
    assert(p && p->pid != 0);
    close(p->socket);
    if (p->output >= 0) close(p->output);
    p->pid = 0;
}

bool nb_program_end(struct nb_program_process *p, bool of_itself, char *how, size_t n) {
    assert(p && p->pid != 0 && p->owner == getpid() && how);
    siginfo_t info = {0};
    for (int i = 0; i < 100 && of_itself && info.si_pid == 0; i++) {
        if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
        if (info.si_pid == 0) poll(NULL, 0, 10);
        if (p->output >= 0) take_output(p);
    }
    if (info.si_pid != 0) say_ended(&info, how, n);
    kill(-p->pid, SIGKILL); /* its number and its group's are not another's before it has been waited for */
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    for (size_t before = p->n_printed + 1; p->output >= 0 && before != p->n_printed;)
        before = p->n_printed, take_output(p);
    if (info.si_pid != 0 && (info.si_code != CLD_EXITED || info.si_status != 0)) print_last(p);
    note(p->pid, 0);
    nb_program_forget(p);
    return info.si_pid != 0;
}
