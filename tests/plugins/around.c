// SPDX-License-Identifier: Apache-2.0
/* A correct kernel in a file that misbehaves around it. NORMBENCH_TEST_FAULT says WHERE:WHAT[:WHOM]. WHERE: in the file's constructor, its
 * destructor, normbench_kernels() ("table"), applicable(), run() or a thread of its own. WHAT: exit, _exit, crash, kill, hang, junk (forged
 * answers, written to every descriptor but the first three), child (one that outlives it) or interrupt (of the process that asked, in the 12th call,
 * which never ends). WHOM: workers alone, the file candidate.so
 * alone, or both ("worker+candidate"); without it every process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"

static void misbehave(const char *where);
static const char *applicable(const struct nb_call *call);

#define OWN_TABLE
#define KERNEL_NAME "bad_around"
#define KERNEL_FIELDS .applicable = applicable
#include "plugin.h"
#include "silent.h"

static int run(ROWS) {
    misbehave("run");
    correct_rows(call, begin, end);
    return 0;
}

static bool is_candidate(void) {
    Dl_info info;
    return dladdr((const void *)&kernel, &info) && strstr(info.dli_fname, "candidate");
}

/* A worker is the program executed again. */
static bool is_worker(void) {
    char line[256] = "";
    const int fd = open("/proc/self/cmdline", O_RDONLY);
    const ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    for (ssize_t i = 0; i < n; i++)
        if (!line[i]) line[i] = ' ';
    return strstr(line, "worker") != NULL;
}

/* As lines and as packets of their own; the first bytes, taken for numbers, name the first case. */
static void write_junk(void) {
    static const char *const forged[] = {
        "{\"type\":\"launch\",\"group\":0,\"launch\":0,\"cases\":[],\"copies\":[],\"forged\":1}\n{\"type\":\"end\"}\n",
        "{\"type\":\"fault\",\"status\":\"crashed\",\"reason\":\"forged\"}\n", "\n{\"type\":"};
    static const char zeros[16] = "";
    for (int fd = 3; fd < 2048; fd++) {
        for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++)
            if (write(fd, forged[i], strlen(forged[i])) < 0) continue;
        if (write(fd, zeros, sizeof zeros) < 0 || write(fd, zeros, 0) < 0) continue;
        if (pwrite(fd, zeros, sizeof zeros, 0) < 0) continue;
    }
}

/* What stays behind must be ended by whoever asked. */
static void leave_a_child(void) {
    if (fork() == 0) {
        sleep(3);
        _exit(0);
    }
    _exit(0);
}

static void misbehave(const char *where) {
    const char *fault = getenv("NORMBENCH_TEST_FAULT"), *what = fault ? strchr(fault, ':') : NULL;
    if (!what || strncmp(fault, where, (size_t)(what - fault)) != 0 || where[what - fault] != '\0') return;
    const char *whom = strchr(++what, ':');
    if (whom && strstr(whom, "worker") && !is_worker()) return;
    if (whom && strstr(whom, "candidate") && !is_candidate()) return;
    const size_t n = whom ? (size_t)(whom - what) : strlen(what);
    if (strncmp(what, "exit", n) == 0) exit(0);
    if (strncmp(what, "_exit", n) == 0) _exit(0);
    if (strncmp(what, "crash", n) == 0) raise(SIGSEGV);
    if (strncmp(what, "kill", n) == 0) raise(SIGKILL);
    if (strncmp(what, "hang", n) == 0) hang();
    if (strncmp(what, "junk", n) == 0) write_junk();
    if (strncmp(what, "child", n) == 0) leave_a_child();
    static int n_calls;
    if (strncmp(what, "interrupt", n) == 0 && ++n_calls == 12)
        for (kill(getppid(), SIGTERM);;) pause();
}

static void *work_apart(void *arg) {
    usleep(2000);
    misbehave("thread");
    return arg;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    const char *fault = getenv("NORMBENCH_TEST_FAULT");
    misbehave("constructor");
    if (fault && strncmp(fault, "thread", 6) == 0 && pthread_create(&thread, NULL, work_apart, NULL) == 0)
        pthread_detach(thread);
}
__attribute__((destructor)) static void end(void) { misbehave("destructor"); }

static const char *applicable(const struct nb_call *call) {
    misbehave("applicable");
    return NULL;
}
const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n) {
    static const struct nb_kernel *const table[] = {&kernel};
    misbehave("table");
    *n = 1;
    return abi_version == NB_ABI_VERSION ? table : NULL;
}
