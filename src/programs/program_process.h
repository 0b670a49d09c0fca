// SPDX-License-Identifier: Apache-2.0
/* A program with kernels, as a process: which files are one, how it is started, what it prints and how it ends. For kernel_program.c; the
 * messages that it exchanges are there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Is the file to be started, and not loaded? Python sources, and executable files that are no shared objects. */
bool nb_kernel_program_is(const char *file);

/* "PYTHONPATH=..", by which Python finds the package that came with this program, and prefers it to any other, since it speaks the same
 * version; owned, null: it is not there. */
char *nb_python_path(void);

/* What all processes that have to do with one share of it. Who speaks to it leaves here what the next has to know. */
struct nb_program_page {
    volatile int32_t has_ended, how, status; /* as waitid() says it, by the minder */
    bool is_clean;                           /* every question was answered, and no case is open */
    uint32_t sequence, next_handle;
    uint64_t memory_bytes; /* that it was told */
    size_t n_printed;
    uint32_t hello_bytes; /* 0: it was not greeted yet */
    char hello[65536];    /* its answer */
};

/* Its parent is a minder, a process that does nothing but end it when whoever started it wants that, or is no more. */
struct nb_program_process {
    pid_t pid, owner;   /* 0: none runs; owner: the process that speaks to it */
    pid_t minder;       /* 0: another process has it, and only lends it */
    int socket, output; /* our ends; output, of what it prints, -1: closed */
    int lifeline;       /* to the minder, -1: another has it */
    int page_fd;
    struct nb_program_page *page;
    int start_s;     /* for how long yet it is given time to start: to import PyTorch from a cold disk, say */
    char last[2048]; /* of what it printed beyond what is passed on */
};

/* Starts it with its end of a socket, and this file in memory, as the protocol says (cmd/guide/protocol.md), in a process group of its own;
 * it is killed when this process ends. begin: called in it first, or null. False: it cannot be, and why says what and what to do. */
bool nb_program_start(struct nb_program_process *p, const char *file, int memory, void (*begin)(void), char *why,
                      size_t n);
/* Of one that another process has started: these are its file, its number, and descriptors of the socket, of what it prints and of the page.
 * The next to take a program of this file takes it. */
void nb_program_offer(const char *file, pid_t pid, const int fds[3]);
/* False: none was offered. */
bool nb_program_take(struct nb_program_process *p, const char *file);
enum { NB_PROGRAM_LOAD_S = 60 }; /* the longest that it may take until it answers, as usual */
/* Until it has written to the socket or closed it, or for so long (-1: for ever). What it prints goes to stderr, up to a limit. */
void nb_program_wait(struct nb_program_process *p, int limit_ms);
/* Ends it, and what it has started. May it end of itself, 1 s is given to it. True: it did, and how says how. */
bool nb_program_end(struct nb_program_process *p, bool of_itself, char *how, size_t n);
/* Closes our ends, in a process that it does not end with. */
void nb_program_forget(struct nb_program_process *p);

/* For whoever watches this process, in memory that outlives it: from now on the process groups of the programs that it has running are in
 * the n places (0: none there), which the end of its own group does not end; and beats grows while it waits for one to start. */
void nb_program_watch(volatile pid_t *groups, int n, volatile int32_t *beats);
