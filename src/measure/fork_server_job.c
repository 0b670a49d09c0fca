// SPDX-License-Identifier: Apache-2.0
/* A worker that forks others (src/measure/process.h): everything is loaded, nothing opened, and no thread runs but this one, or
 * fork() would leave the rest of them behind. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/measure/answers.h"
#include "src/measure/pool.h"
#include "src/measure/worker.h"

enum { FIRST = NB_FD_JOB, AWAY = NB_FD_JOB + NB_N_WORKER_FDS };

static void close_all(const int *fds, int n) {
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0) close(fds[i]);
}

/* The descriptors of the next worker, -1 where there is none: out of the way of the numbers where it looks for them. False: the parent is
 * gone, or this process may not have as many. */
static bool next_worker(int away[NB_N_WORKER_FDS]) {
    unsigned char which;
    int present[NB_MOST_FDS];
    const int n = nb_fds_receive(nb_answers_fd(), &which, 1, present);
    bool all = n >= 0;
    for (int i = 0, taken = 0; i < NB_N_WORKER_FDS; i++) {
        const bool is_there = n >= 0 && which >> i & 1;
        away[i] = is_there && taken < n ? fcntl(present[taken++], F_DUPFD_CLOEXEC, AWAY) : -1;
        all &= is_there == (away[i] >= 0);
    }
    close_all(present, n);
    if (!all) close_all(away, NB_N_WORKER_FDS);
    return all;
}

static void take_descriptors(const int away[NB_N_WORKER_FDS]) {
    for (int i = 0; i < NB_N_WORKER_FDS; i++) {
        close(FIRST + i);
        if (away[i] < 0) continue;
        dup2(away[i], FIRST + i);
        close(away[i]);
    }
}

static bool say(int word) { return nb_answers_say((const char *)&word, sizeof word, false); }

/* Returns when there is nothing more to do; in the workers it does not. */
static void bring_forth(void) {
    int fds[NB_N_WORKER_FDS];
    while (next_worker(fds)) {
        const pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, 0);
            take_descriptors(fds);
            const int result = nb_worker_main();
            fflush(NULL);
            _exit(result); /* taking PyTorch's library down takes 0.2 s, and its memory goes with the process */
        }
        if (pid > 0) setpgid(pid, pid); /* whichever of the two comes first */
        close_all(fds, NB_N_WORKER_FDS);
        siginfo_t info;
        int status = 0;
        if (!say(pid)) return;
        if (pid < 0) continue;
        while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
        status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status; /* as waitpid() packs them */
        if (!say(status)) return;
        char reaped;
        if (recv(nb_answers_fd(), &reaped, 1, MSG_PEEK) != 1) return; /* the next request is its word */
        waitpid(pid, NULL, 0);
    }
}

/* Where few files may be open, its own socket lies where its workers have theirs. */
static int fork_server_job(struct nb_workplace *w) {
    if (nb_answers_fd() < AWAY || nb_threads_others() > 0 || !say(0)) return -1;
    bring_forth();
    return 0;
}

const struct nb_job_type nb_fork_server_job = {.work = fork_server_job, .own_inputs = true, .no_cases = true};
