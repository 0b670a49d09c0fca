// SPDX-License-Identifier: Apache-2.0
/* The way from a worker to its parent: whole messages in packets over a socket (SOCK_SEQPACKET). The kernels that run in a worker may
 * write to any descriptor that they find, so the socket has a number that is hard to guess, and each packet begins with a mark that
 * follows from its place in the sequence and a secret, which is erased where the worker got it from before foreign code is loaded. A
 * packet with another mark is dropped and counted; the messages around it stay whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/text.h"

/* ---- the worker's side ---- */

/* From now on messages go over this socket, which gets another number; what was begun before is closed. alone: and so is every other
 * descriptor, whoever left it open. */
void nb_answers_begin(int fd, uint64_t secret, bool alone);
/* The number that it got. */
int nb_answers_fd(void);
/* This process speaks from now on: one that was forked off from the worker, or the worker again when that one has ended. */
void nb_answers_take_over(void);
/* How many messages have been said, by whichever of them. */
uint64_t nb_answers_said(void);
/* A message. Last words may be said at any time, also from a signal handler, and once. False: they cannot be said, or not by this
 * process, which a kernel forked. */
bool nb_answers_say(const char *text, size_t n, bool last_words);

/* ---- the parent's side ---- */

struct nb_answers {
    uint64_t secret, next;  /* next: place of the packet that comes */
    struct nb_strbuf begun; /* a message whose last packet has not come */
    size_t n_strange;       /* packets that the harness did not write */
};
/* Both ends of a socket, and a secret for them. -1: none to be had. */
int nb_answers_open(struct nb_answers *a, int ends[2]);
/* Takes a packet; take() gets each whole message, which has a null byte behind it. False: nothing more will come. */
bool nb_answers_read(struct nb_answers *a, int fd, void (*take)(const char *text, size_t n, void *arg), void *arg);
