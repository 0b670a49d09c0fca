// SPDX-License-Identifier: Apache-2.0
/* Kernels of another process: a program, in whatever language, that speaks the protocol of cmd/guide/protocol.md over a socket, and maps the
 * memory that its tensors lie in. In this process such a kernel is a struct nb_kernel like any other, but that run() cannot be called:
 * whoever calls kernels asks nb_kernel_is_of_program(), and sends calls. A program is started when its table is read, and again in a
 * process that was forked off since, by the kernel's open(). It is killed when the process that started it ends. Where that is not this
 * one, which was lent it (src/measure/kept_programs.h), it goes on behind this one's end. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/kernel_fields.h"

struct nb_program_process;

/* What the registry is told. */
extern const struct nb_program_api nb_kernel_programs;

/* The language and its versions, as the program said. */
const char *nb_kernel_program_language(const struct nb_kernel *k);
/* Says bye to a process that nothing is open in, and ends it. */
void nb_kernel_program_dismiss(struct nb_program_process *process);

/* run() of kernels of programs. */
int nb_kernel_of_program(const struct nb_call *call, int phase, int64_t begin, int64_t end);
static inline bool nb_kernel_is_of_program(const struct nb_kernel *k) { return k->run == nb_kernel_of_program; }

/* ---- calls ---- */

#define NB_PROGRAM_GONE INT_MIN

struct nb_program_calls {
    const struct nb_call *calls; /* n of them, which take turns */
    int n, start;                /* start: whose turn it is first */
    int64_t amount;
    bool empty; /* of a function that does nothing in the kernel's place */
};
/* Has the program prepare the calls, which it otherwise does when they are first made. As nb_kernel_program_run() returns. */
int nb_kernel_program_prepare(const struct nb_kernel *k, const struct nb_program_calls *c);
/* One message. 0; what the kernel returned; or NB_PROGRAM_GONE. */
int nb_kernel_program_run(const struct nb_kernel *k, const struct nb_program_calls *c);
/* What the last call that failed came to: the program's own text, or how the program ended. */
const char *nb_kernel_program_said(const struct nb_kernel *k);

/* ---- memory ---- */

/* Of nb_program_memory_new(); programs have it no longer. False: it is not from there. */
bool nb_program_memory_free(void *area);
