// SPDX-License-Identifier: Apache-2.0
/* Which files are programs, what environment they get, and how they are executed. */
#include "src/core/program_start.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}
static bool is_python(const char *file) { return ends_with(file, ".py"); }

/* A program of ELF asks for an interpreter (the loader) or lies at fixed addresses; other executable files are scripts. */
static bool is_program(FILE *f) {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    if (fread(&head, sizeof head, 1, f) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return fseek(f, 0, SEEK_SET) == 0 && fgetc(f) == '#' && fgetc(f) == '!';
    if (head.e_type == ET_EXEC) return true;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof part) return false;
    if (fseek(f, (long)head.e_phoff, SEEK_SET) != 0) return false;
    for (int i = 0; i < head.e_phnum && fread(&part, sizeof part, 1, f) == 1; i++)
        if (part.p_type == PT_INTERP) return true;
    return false;
}

bool nb_kernel_program_is(const char *file) {
    assert(file);
    struct stat st;
    if (is_python(file)) return true;
    if (strstr(file, ".so") || stat(file, &st) != 0 || !S_ISREG(st.st_mode) || access(file, X_OK) != 0) return false;
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

enum { CANNOT_START = 127 };

static _Noreturn void become(char **argv, char **environment, int socket, int memory, pid_t owner) {
    enum { AWAY = 10 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != owner) _exit(0);
    const int nothing = open("/dev/null", O_RDONLY), s = fcntl(socket, F_DUPFD, AWAY), m = fcntl(memory, F_DUPFD, AWAY);
    if (nothing < 0 || s < 0 || m < 0) _exit(CANNOT_START);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what it prints is no data of ours */
    dup2(s, SOCKET_FD);
    dup2(m, MEMORY_FD);
    close_range(MEMORY_FD + 1, ~0u, 0);
    execvpe(argv[0], argv, environment);
    dprintf(STDERR_FILENO, "normbench: error: %s: cannot be started: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_START);
}

pid_t nb_program_start(const char *file, int memory, int *socket) {
    assert(file && memory >= 0 && socket);
    char python[] = "python3", option[] = "-m", module[] = "normbench.worker";
    char *named = getenv("NORMBENCH_PYTHON"), *path = realpath(file, NULL);
    char *for_python[] = {named && *named ? named : python, option, module, path, NULL};
    char *alone[] = {path, NULL};
    struct nb_strings environment = {0};
    const pid_t owner = getpid();
    pid_t pid = -1;
    int ends[2];
    if (path && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        environment_of(file, &environment);
        fflush(NULL);
        pid = fork();
        if (pid == 0) become(is_python(file) ? for_python : alone, environment.items, ends[1], memory, owner);
        close(ends[1]);
        if (pid > 0)
            *socket = nb_fd_out_of_reach(ends[0], false);
        else
            close(ends[0]);
    }
    nb_strings_release(&environment);
    free(path);
    return pid;
}
