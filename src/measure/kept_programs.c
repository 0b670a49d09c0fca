// SPDX-License-Identifier: Apache-2.0
/* A list of what is lent as one. Its descriptors go to the worker through a socket, one message for each program. */
#include "src/measure/kept_programs.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/measure/system.h"
#include "src/programs/kernel_program.h"
#include "src/programs/program_memory.h"
#include "src/programs/program_process.h"

struct kept {
    char *file;
    bool is_wanted; /* by the worker that has it */
    struct nb_program_process process;
};
struct nb_kept_programs {
    struct nb_kept_programs *next;
    struct kept *programs;
    int n, memory;
    size_t memory_bytes;
    pid_t owner;
    bool is_lent;
    bool had_company; /* when it was lent last */
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct nb_kept_programs *all;

/* ---- where they are ---- */

static void end(struct nb_kept_programs *k) {
    struct nb_kept_programs **at = &all;
    while (*at != k) at = &(*at)->next;
    *at = k->next;
    for (int i = 0; i < k->n; i++) {
        if (k->owner == getpid()) nb_kernel_program_dismiss(&k->programs[i].process);
        free(k->programs[i].file);
    }
    close(k->memory);
    free(k->programs);
    free(k);
}

void nb_kept_programs_end(void) {
    pthread_mutex_lock(&one_at_a_time);
    for (struct nb_kept_programs *k = all, *next; k; k = next) {
        next = k->next;
        if (!k->is_lent) end(k);
    }
    pthread_mutex_unlock(&one_at_a_time);
}

static struct nb_kept_programs *new_programs(void) {
    static bool is_registered;
    struct nb_kept_programs *k = nb_alloc(1, sizeof *k);
    k->memory = nb_program_memory_create(&k->memory_bytes);
    k->owner = getpid();
    if (k->memory < 0) return free(k), NULL;
    k->next = all;
    all = k;
    if (!is_registered) is_registered = atexit(nb_kept_programs_end) == 0;
    return k;
}

static bool has(const struct nb_kept_programs *k, const char *file) {
    for (int i = 0; i < k->n; i++)
        if (strcmp(k->programs[i].file, file) == 0) return true;
    return false;
}

static bool is_among(const char *file, const char *const *files, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(files[i], file) == 0) return true;
    return false;
}

/* One may end between two workers, by what kernels left behind in it. */
static bool has_ended(const struct nb_kept_programs *k) {
    for (int i = 0; i < k->n; i++)
        if (k->programs[i].process.page->has_ended) return true;
    return false;
}

/* The free ones that have most of the files. Null: none is free. */
static struct nb_kept_programs *find(const char *const *files, int n) {
    struct nb_kept_programs *best = NULL;
    int most = -1;
    for (struct nb_kept_programs *k = all; k; k = k->next) {
        int n_found = 0;
        for (int i = 0; i < n; i++) n_found += has(k, files[i]);
        if (k->is_lent || n_found <= most || has_ended(k)) continue;
        best = k;
        most = n_found;
    }
    return best;
}

/* A program that cannot be started is started by the worker once more, which says why it cannot. */
static void add(struct nb_kept_programs *k, const char *file) {
    char why[300];
    struct kept new = {.file = NULL};
    if (has(k, file) || !nb_program_start(&new.process, file, k->memory, nb_limit_memory, why, sizeof why)) return;
    new.file = nb_strdup(file);
    *NB_PUSH(k->programs, k->n) = new;
}

struct nb_kept_programs *nb_kept_programs_lend(const char *const *files, int n, bool anew) {
    assert(files && n > 0);
    pthread_mutex_lock(&one_at_a_time);
    struct nb_kept_programs *k = anew ? NULL : find(files, n);
    if (!k) k = new_programs();
    if (k) {
        k->is_lent = true;
        k->had_company = k->n > 0;
        for (int i = 0; i < n; i++) add(k, files[i]);
        for (int i = 0; i < k->n; i++) k->programs[i].is_wanted = is_among(k->programs[i].file, files, n);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return k;
}

bool nb_kept_programs_had_company(const struct nb_kept_programs *k) {
    assert(k && k->is_lent);
    return k->had_company;
}

void nb_kept_programs_return(struct nb_kept_programs *k, bool ended_well) {
    assert(k && k->is_lent);
    bool is_clean = ended_well;
    for (int i = 0; i < k->n; i++)
        is_clean &= k->programs[i].process.page->is_clean && !k->programs[i].process.page->has_ended;
    if (is_clean)
        is_clean = fallocate(k->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)k->memory_bytes) == 0;
    pthread_mutex_lock(&one_at_a_time);
    k->is_lent = false;
    if (!is_clean) end(k);
    pthread_mutex_unlock(&one_at_a_time);
}

/* ---- on their way ---- */

enum { N_FDS = 4 }; /* socket, what it prints, page; memory */
struct message {
    pid_t pid;
    char file[PATH_MAX + 1];
};

static bool send_one(int socket, const struct nb_kept_programs *k, const struct kept *program) {
    const struct nb_program_process *p = &program->process;
    const int fds[N_FDS] = {p->socket, p->output, p->page_fd, k->memory};
    struct message m = {.pid = p->pid};
    if (strlen(program->file) >= sizeof m.file || p->output < 0) return false;
    memcpy(m.file, program->file, strlen(program->file) + 1);
    return nb_fds_send(socket, &m, sizeof m, fds, N_FDS);
}

int nb_kept_programs_send(const struct nb_kept_programs *k, int *n_messages) {
    int ends[2];
    *n_messages = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    for (int i = 0; i < k->n; i++)
        if (k->programs[i].is_wanted) *n_messages += send_one(ends[0], k, &k->programs[i]);
    close(ends[0]);
    return ends[1];
}

void nb_kept_programs_take(int fd, int n_messages) {
    int fds[NB_MOST_FDS];
    static struct message m;
    for (int i = 0; i < n_messages; i++) {
        if (nb_fds_receive(fd, &m, sizeof m, fds) != N_FDS) return;
        nb_program_offer(m.file, m.pid, fds);
        if (i == 0)
            nb_program_memory_take(fds[N_FDS - 1]);
        else
            close(fds[N_FDS - 1]);
    }
}
