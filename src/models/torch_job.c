// SPDX-License-Identifier: Apache-2.0
/* A job that PyTorch does: starts the Python package's `python -m normbench.models`, passes the request, and takes the answer. Whatever the
 * interpreter does costs this job's answer alone: it has a process group of its own, which whoever watches this worker ends with it, and its
 * "alive" lines are this worker's steps forward, so that one that hangs is ended as any worker is. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/status.h"
#include "src/measure/worker.h"
#include "src/programs/program_process.h"

struct python {
    const char *path;
    pid_t pid;
    int in, out; /* our ends of its stdin and of its stdout */
    struct nb_strbuf line;
    size_t n_strange; /* lines that are none of the protocol */
};

/* As -m does, but that standard modules are not looked for in the current folder. */
static char in_python[] =
    "import runpy, sys\n"
    "if sys.path[:1] == ['']: del sys.path[0]\n"
    "if sys.version_info < (3, 9):\n"
    "    print('{\"missing\": \"%s is Python %d.%d; 3.9 or later is needed (NORMBENCH_PYTHON names another)\"}' % ((sys.executable,) + tuple(sys.version_info[:2])))\n"
    "else: runpy.run_module('normbench.models', run_name='__main__', alter_sys=True)\n";

static _Noreturn void become(const char *path, int in, int out, char *argument) {
    char option[] = "-c", *name = nb_strdup(path), *argv[] = {name, option, in_python, argument, NULL};
    extern char **environ;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    char *package = nb_python_path();
    if (package) putenv(package);
    if (strchr(path, '/'))
        nb_cpu_execute(path, argv, environ);
    else
        execvp(path, argv);
    cJSON *json = cJSON_CreateObject();
    struct nb_strbuf line = {0};
    char *reason =
        nb_textf("%s cannot be started: %s; NORMBENCH_PYTHON names another interpreter", path, strerror(errno));
    nb_json_text(json, "missing", reason);
    nb_json_print(json, &line);
    nb_strbuf_add(&line, "\n");
    _exit(write(STDOUT_FILENO, line.text, line.len) == (ssize_t)line.len ? 0 : 1);
}

/* False: there are no descriptors or no process to be had. */
static bool start(struct python *p, struct nb_workplace *w, const char *path, char *argument) {
    int in[2], out[2];
    *p = (struct python){.path = path};
    if (pipe2(in, O_CLOEXEC) != 0) return false;
    if (pipe2(out, O_CLOEXEC) == 0) {
        fflush(NULL);
        p->pid = fork();
        if (p->pid == 0) become(path, in[0], out[1], argument);
        close(out[1]);
        p->out = out[0];
        if (p->pid <= 0) close(out[0]);
    }
    close(in[0]);
    p->in = in[1];
    if (p->pid <= 0) return close(in[1]), false;
    setpgid(p->pid, p->pid); /* whichever of both comes first */
    w->shared->groups[0] = p->pid;
    return true;
}

/* Ends it with all that it started. of_itself: how it came to its end, which is waited for. */
static int end(struct python *p, struct nb_workplace *w, bool of_itself) {
    int status = 0;
    siginfo_t info;
    if (p->in >= 0) close(p->in);
    close(p->out);
    while (of_itself && waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
    kill(-p->pid, SIGKILL); /* its number is not another's before it has been waited for */
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
    w->shared->groups[0] = 0;
    nb_strbuf_release(&p->line);
    return status;
}

static bool has_ended(const struct python *p) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid;
}

/* Some of its stdout; 0: no more will come. What it forked may hold its stdout open, so that its own end counts too. */
static ssize_t read_some(const struct python *p, char *text, size_t n) {
    enum { LOOK_MS = 200 };
    for (;;) {
        struct pollfd end = {.fd = p->out, .events = POLLIN};
        const bool ended = has_ended(p); /* before what it said last is looked for */
        const int ready = poll(&end, 1, ended ? 0 : LOOK_MS);
        const ssize_t done = ready > 0 ? read(p->out, text, n) : -1;
        if (done >= 0) return done;
        if (ended && ready == 0) return 0;
        if ((ready < 0 || ready > 0) && errno != EINTR) return 0;
    }
}

/* The next line that is a JSON object, owned; null: there is none. */
static cJSON *next_object(struct python *p) {
    enum { MOST_BYTES = 1 << 28 };
    for (;;) {
        char text[1 << 16], *newline = p->line.text ? memchr(p->line.text, '\n', p->line.len) : NULL;
        if (newline) {
            *newline = '\0';
            cJSON *json = nb_json_is_utf8(p->line.text) ? cJSON_Parse(p->line.text) : NULL;
            const size_t rest = p->line.len - (size_t)(newline + 1 - p->line.text);
            memmove(p->line.text, newline + 1, rest + 1);
            p->line.len = rest;
            if (cJSON_IsObject(json)) return json;
            cJSON_Delete(json);
            p->n_strange++;
            continue;
        }
        const ssize_t n = p->line.len < MOST_BYTES ? read_some(p, text, sizeof text) : 0;
        if (n == 0) return NULL;
        nb_strbuf_addn(&p->line, text, (size_t)n);
    }
}

/* ---- which interpreter has PyTorch ---- */

/* What it said to --about, or why it said nothing as {"missing"}; owned. */
static cJSON *ask_about(struct nb_workplace *w, const char *path) {
    char about[] = "--about";
    struct python p;
    cJSON *said = NULL;
    if (start(&p, w, path, about)) {
        while ((said = next_object(&p)) && !nb_json_get_text(said, "torch") && !nb_json_get_text(said, "missing")) {
            cJSON_Delete(said);
            nb_worker_at(w, -1);
        }
        end(&p, w, false);
    }
    if (said) return said;
    said = cJSON_CreateObject();
    char *reason freed = nb_textf("%s ended without saying whether it has PyTorch (stderr says why)", path);
    nb_json_text(said, "missing", reason);
    return said;
}

static int about_job(struct nb_workplace *w) {
    const char *named = getenv("NORMBENCH_PYTHON");
    char *folder freed = nb_share_dir(NULL, "peers/survey/torch");
    char *survey freed = folder ? nb_path_join(folder, "bin/python3") : NULL;
    const bool is_named = named && *named;
    const char *const paths[] = {is_named ? named : "python3", is_named ? NULL : survey};
    char *missing freed = NULL; /* what the first of them said */
    cJSON *said = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0] && paths[i] && !said; i++) {
        said = ask_about(w, paths[i]);
        if (nb_json_get_text(said, "torch")) {
            nb_json_text(said, "interpreter", paths[i]);
            continue;
        }
        if (!missing)
            missing = nb_textf("%s%s", nb_json_get_text(said, "missing"),
                               is_named ? "" : "; or `make survey LIBS=torch` installs one");
        cJSON_Delete(said);
        said = NULL;
    }
    if (!said) {
        said = cJSON_CreateObject();
        nb_json_text(said, "reason", missing);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(said, "type");
    nb_json_text(said, "type", "answer");
    nb_worker_say(said);
    return 0;
}

/* ---- a request ---- */

static bool is_answer(const cJSON *json) {
    return nb_json_is(json, "type", "answer") &&
           (nb_json_is(json, "status", nb_status_name(NB_OK)) || nb_json_get_text(json, "reason"));
}

/* Owned: its answer; null where it ended without one. */
static cJSON *follow(struct python *p, struct nb_workplace *w) {
    cJSON *json;
    while ((json = next_object(p)) && !is_answer(json)) {
        p->n_strange += !nb_json_is(json, "type", "alive");
        if (nb_json_is(json, "type", "alive")) nb_worker_at(w, -1);
        cJSON_Delete(json);
    }
    return json;
}

static void say_crashed(const struct python *p, int status) {
    cJSON *json = cJSON_CreateObject();
    char *how freed = WIFSIGNALED(status)
                          ? nb_textf("was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)))
                          : nb_textf("ended with exit code %d", WEXITSTATUS(status));
    char *reason freed = nb_textf("PyTorch gave no answer: %s %s%s (stderr says more)", p->path, how,
                                  p->n_strange ? ", after lines that are not of the protocol" : "");
    nb_json_text(json, "type", "answer");
    nb_json_text(json, "status", nb_status_name(NB_CRASHED));
    nb_json_text(json, "reason", reason);
    nb_worker_say(json);
}

static int request_job(struct nb_workplace *w, const char *path) {
    struct nb_strbuf request released_by(nb_strbuf_release) = {0};
    struct python p;
    nb_json_print(nb_json_get(w->job.options, "request"), &request);
    nb_strbuf_add(&request, "\n");
    if (!start(&p, w, path, NULL)) {
        nb_worker_say_skipped("no process for Python can be started");
        return 0;
    }
    for (size_t done = 0; done < request.len;) {
        const ssize_t n = write(p.in, request.text + done, request.len - done);
        if (n < 0 && errno != EINTR) break; /* it ended: its end says so */
        if (n > 0) done += (size_t)n;
    }
    close(p.in);
    p.in = -1;
    cJSON *answer = follow(&p, w);
    const int status = end(&p, w, !answer);
    if (answer)
        nb_worker_say(answer);
    else
        say_crashed(&p, status);
    return 0;
}

static int torch_job(struct nb_workplace *w) {
    const char *python = nb_json_get_text(w->job.options, "python");
    signal(SIGPIPE, SIG_IGN);
    return python ? request_job(w, python) : about_job(w);
}

const struct nb_job_type nb_torch_job = {.work = torch_job, .own_inputs = true, .no_cases = true, .no_kernels = true};
