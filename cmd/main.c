// SPDX-License-Identifier: Apache-2.0
/* Finds the subcommand. The table of subcommands is written by the build from the files of this folder. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/shared/options.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/measure/worker.h"
#include "src/programs/kernel_program.h"

#define NB_COMMAND_ENTRY(name) extern const struct nb_command nb_command_##name;
#include "command_list.h"
#undef NB_COMMAND_ENTRY

static const struct nb_command *const commands[] = {
#define NB_COMMAND_ENTRY(name) &nb_command_##name,
#include "command_list.h"
#undef NB_COMMAND_ENTRY
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* By what people come for; a command that is in none of the groups would be seen by nobody (tests/cli/commands.sh). */
static const struct {
    const char *title;
    const char *names[12];
} groups[] = {{"Commands",
               {"run", "claims", "stress", "gate", "try", "compare", "report", "list", "info", "new-plugin", "replay"}},
              {"Arithmetic", {"tolerance", "limits", "emulate", "probe"}},
              {"Machine", {"tune", "merge", "peers"}}};

static const struct nb_command *command_named(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static void print_help(FILE *out) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text,
                  "usage: normbench COMMAND [OPTIONS]\n\n"
                  "A laboratory for normalization kernels (RMSNorm, LayerNorm, BatchNorm and relatives): how fast "
                  "each really is, how accurate, and whether a change made it slower.\n");
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        nb_strbuf_addf(&text, "\n%s\n", groups[g].title);
        for (const char *const *name = groups[g].names; *name; name++)
            nb_strbuf_addf(&text, "  %-11s %s\n", *name, command_named(*name)->summary);
    }
    nb_strbuf_add(
        &text,
        "\n`normbench COMMAND --help` describes a command in full; `normbench info` shows what this machine can do. "
        "`normbench help --man [COMMAND]` prints a manual page, `normbench help --completions bash` the shell's completions.\n"
        "Start with: normbench run\n\n"
        "Environment: NORMBENCH_TUNING is the tuning's file, or none; NORMBENCH_PYTHON the interpreter of kernels in Python; "
        "NORMBENCH_KERNELS another libnormkernels.so, NORMBENCH_CONFIGS, NORMBENCH_DATA and NORMBENCH_PEERS other folders of "
        "configs, inputs and adapters; XDG_CACHE_HOME, XDG_DATA_HOME, TMPDIR and NO_COLOR as usual.\n\n"
        "Exit codes: 0 ok, 1 a case failed, 2 usage or configuration, 3 regression, 4 inconclusive, 5 not comparable, "
        "77 nothing of what was selected can run here, 128+n ended by signal n.\n");
    nb_print_help(text.text, out);
}

static int unknown(const char *name) {
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++) names[i] = commands[i]->name;
    const struct nb_hint hint = nb_did_you_mean(name, names, N_COMMANDS);
    nb_error("no command '%s'%s", name, *hint.text ? hint.text : "; `normbench --help` lists them");
    return NB_EXIT_USAGE;
}

/* --man [COMMAND], --completions bash. */
static int print_manual(int argc, char **argv) {
    const bool man = strcmp(argv[0], "--man") == 0;
    if (argc > 2) return nb_error("help %s: '%s' is one argument too many", argv[0], argv[2]), NB_EXIT_USAGE;
    if (!man && (argc < 2 || strcmp(argv[1], "bash") != 0))
        return nb_error("help --completions: bash is the shell that has them"), NB_EXIT_USAGE;
    if (!man) return nb_print_completions(commands, N_COMMANDS), NB_EXIT_OK;
    if (argc == 1) return nb_print_man(NULL, commands, N_COMMANDS), NB_EXIT_OK;
    const struct nb_command *command = command_named(argv[1]);
    return command ? nb_print_man(command, commands, N_COMMANDS), NB_EXIT_OK : unknown(argv[1]);
}

/* A file opened later must not become somebody's stdout. */
static int open_standard_descriptors(void) {
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO) close(fd);
    return fd >= 0 ? 0 : nb_error("/dev/null: %s; a /dev with it is needed", strerror(errno));
}

/* By which it finds its own files, and executes itself. */
static int check_proc(void) {
    if (access("/proc/self/exe", F_OK) == 0) return 0;
    return nb_error("/proc/self/exe: %s; /proc must be mounted (mount -t proc proc /proc)", strerror(errno));
}

/* What could not be printed is an error, unless it is that the reader (head, less) has seen enough. Why an earlier write failed is no
 * longer known, so one more is tried. */
static int finish(int exit_code) {
    bool failed = ferror(stdout) != 0;
    failed = fflush(stdout) != 0 || failed;
    struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (!failed || (poll(&reader, 1, 0) == 1 && reader.revents & POLLERR)) return exit_code;
    const bool again = write(STDOUT_FILENO, "\n", 1) == 1;
    nb_error("stdout cannot be written: %s", again ? "some of it is lost" : strerror(errno));
    return nb_exit_unwritten(exit_code);
}

/* Below it a library's recursion or a file's path may end the process without a word; with fewer files to open or less memory a worker fails, and with it
 * its kernel. */
enum { LEAST_STACK_KIB = 256, LEAST_FILES = 32, LEAST_MEMORY_KIB = 64 << 10 };

static int check_files(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= LEAST_FILES) return 0;
    files.rlim_cur = files.rlim_max < LEAST_FILES ? files.rlim_max : LEAST_FILES;
    if (files.rlim_cur == LEAST_FILES && setrlimit(RLIMIT_NOFILE, &files) == 0) return 0;
    return nb_error("only %llu files may be open; `ulimit -n %d` or more is needed", (unsigned long long)files.rlim_max,
                    LEAST_FILES);
}

static int check_size(int resource, const char *what, char option, int least_kib) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur / 1024 >= (rlim_t)least_kib) return 0;
    return nb_error("the %s may have %llu KiB alone; `ulimit -%c %d` or more is needed", what,
                    (unsigned long long)limit.rlim_cur / 1024, option, least_kib);
}

static int check_limits(void) {
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its write */
    if (check_size(RLIMIT_STACK, "stack", 's', LEAST_STACK_KIB) != 0) return -1;
    if (check_size(RLIMIT_DATA, "process's data", 'd', LEAST_MEMORY_KIB) != 0) return -1;
    return check_size(RLIMIT_AS, "process", 'v', LEAST_MEMORY_KIB);
}

/* cJSON's; ends the process where there is none, as ours do. */
static void *alloc_json(size_t n) { return nb_alloc(n, 1); }

/* The library of the kernels is mapped. A build that writes it anew takes its pages away, and whoever reads one then gets this signal. */
static void say_cut_short(int number) {
    static const char text[] =
        "normbench: error: a file that is in use was cut short, such as the library of the kernels by a build; "
        "start again when the build has ended (--resume DIR continues a run)\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(128 + SIGBUS);
    _exit(NB_EXIT_USAGE);
}

int main(int argc, char **argv) {
    if (open_standard_descriptors() != 0 || check_proc() != 0 || check_files() != 0 || check_limits() != 0)
        return NB_EXIT_USAGE;
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = alloc_json, .free_fn = free});
    if (argc < 2) {
        print_help(stderr);
        return NB_EXIT_USAGE;
    }
    const char *name = argv[1];
    nb_use_programs(&nb_kernel_programs);
    if (strcmp(name, "__worker") == 0) return nb_worker_main();
    signal(SIGBUS, say_cut_short);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("normbench " NB_VERSION);
        return finish(NB_EXIT_OK);
    }
    if (strcmp(name, "help") == 0 && argc >= 3 &&
        (strcmp(argv[2], "--man") == 0 || strcmp(argv[2], "--completions") == 0))
        return finish(print_manual(argc - 2, argv + 2));
    bool help = strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (help && argc < 3) {
        print_help(stdout);
        return finish(NB_EXIT_OK);
    }
    if (help) name = argv[2];
    const struct nb_command *command = command_named(name);
    if (!command) return unknown(name);
    if (!help) return finish(command->run(argc - 1, argv + 1));
    nb_print_help(command->help, stdout);
    return finish(NB_EXIT_OK);
}
